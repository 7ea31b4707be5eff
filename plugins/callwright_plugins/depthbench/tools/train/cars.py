"""Cars at dealerships: listing, filtering, choosing, history, loans and test drives."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    Amount,
    CityName,
    Day,
    Domain,
    PersonName,
    Row,
    Rows,
    asked_for,
    at_least,
    at_most,
    edited,
    edited_row,
    fail,
    first_by,
    keep,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import CITY_NAMES, at_hand, per_world, pick, roll, shuffled, stream

DOMAIN: Final = Domain("cars")
MAKES: Final = {
    "Audi": ("A3", "A4", "Q5"),
    "BMW": ("118i", "320d", "X3"),
    "Ford": ("Fiesta", "Focus", "Kuga"),
    "Honda": ("Civic", "Jazz", "CR-V"),
    "Toyota": ("Corolla", "Yaris", "RAV4"),
    "Volvo": ("V60", "XC40", "S90"),
}
Make = Literal["Audi", "BMW", "Ford", "Honda", "Toyota", "Volvo"]
BODIES: Final = ("hatchback", "saloon", "SUV")
Body = Literal["hatchback", "saloon", "SUV"]
_HOUSES: Final = ("Autohaus", "Motors", "Car Centre", "Auto Plaza", "Wheels", "Drive-In")
_BODY: Final = {
    **dict.fromkeys(("A3", "118i", "Fiesta", "Focus", "Jazz", "Yaris", "Civic"), "hatchback"),
    **dict.fromkeys(("A4", "320d", "Corolla", "V60", "S90"), "saloon"),
    **dict.fromkeys(("Q5", "X3", "Kuga", "CR-V", "RAV4", "XC40"), "SUV"),
}


class Car(TypedDict):
    """A car for sale; the last three stand there after the filter of that kind."""

    listing_id: str
    dealership: str
    make: Make
    model: str
    body: Body
    year: int
    mileage_km: int
    price: int
    under_budget_by: NotRequired[float]
    below_mileage_by: NotRequired[float]
    years_newer: NotRequired[float]


class Dealerships(TypedDict):
    """The dealerships of a city."""

    city: CityName
    dealerships: list[str]


class Listings(TypedDict):
    """Cars for sale."""

    count: int
    cars: list[Car]


class CarHistory(TypedDict):
    """What is known of a car."""

    listing_id: str
    owners: int
    accidents: int
    last_service: Day


class Loan(TypedDict):
    """A loan at five percent a year."""

    price: float
    deposit: float
    months: int
    monthly_payment: float
    total_cost: float


class Driver(TypedDict):
    """Who drives."""

    name: PersonName
    licence: Annotated[str, says(pattern="^[A-Z]{2}[0-9]{6}$", description="Two capital letters and six digits")]


class TestDrive(TypedDict):
    """A booked test drive."""

    booking_id: str
    listing_id: str
    dealership: str
    date: Day
    driver: str


Cars = Annotated[list[Car], REFERENCE_ONLY]


@per_world()
def dealerships() -> dict[str, list[str]]:
    """Three dealerships in every city."""
    drawn = {city: shuffled(stream(f"dealers/{city}"), _HOUSES)[:3] for city in CITY_NAMES}
    return {city: [f"{city} {word}" for word in words] for city, words in drawn.items()}


@per_world()
def _known() -> dict[str, list[str]]:
    """The dealerships that have cars: those of a city's list, or every one that a list might name."""
    if not at_hand.get().version.pins_names:
        return dealerships()
    return {city: [f"{city} {word}" for word in _HOUSES] for city in CITY_NAMES}


@per_world()
def by_dealership() -> dict[str, Rows]:
    """Nine cars at every dealership."""
    made: dict[str, Rows] = {}
    number = 1000
    for city, names in _known().items():
        makes = shuffled(stream(f"cars/{city}"), tuple(MAKES))[:4]
        for name in names:
            rng = stream(f"cars/{name}")
            made[name] = Rows()
            for _ in range(9):
                number += 1
                make = pick(rng, makes)
                model = pick(rng, MAKES[make])
                year = 2012 + int(rng.random() * 14)
                mileage = (2026 - year) * (6000 + int(rng.random() * 16000)) + int(rng.random() * 9000)
                worth = {"hatchback": 21000, "saloon": 32000, "SUV": 38000}[_BODY[model]]
                price = round(worth * 0.9 ** (2026 - year) * (0.85 + 0.4 * rng.random()) / 50) * 50 + 900
                made[name].append(
                    {
                        "listing_id": f"C{number}",
                        "dealership": name,
                        "make": make,
                        "model": model,
                        "body": _BODY[model],
                        "year": year,
                        "mileage_km": mileage,
                        "price": price,
                    }
                )
    return made


@per_world()
def by_listing() -> dict[str, Row]:
    """Every car by its listing."""
    return {row["listing_id"]: row for rows in by_dealership().values() for row in rows}


def _the_listing(listing_id: str) -> Row:
    row = by_listing().get(listing_id)
    if row is None:
        fail("unknown_listing", f"there is no listing {listing_id[:20]!r}")
    return edited_row("cars", listing_id, row)


@DOMAIN.tool("retrieval", "dealerships")
def find_dealerships(city: CityName) -> Dealerships:
    """The names of the car dealerships of a city."""
    the_city(city)
    return {"city": city, "dealerships": dealerships()[city]}


@DOMAIN.tool("retrieval", "cars")
def list_cars_at_dealerships(dealerships: Annotated[list[str], says(minItems=1, maxItems=10)]) -> Listings:
    """Every car for sale at the named dealerships."""
    known = by_dealership()
    rows = Rows()
    for name in asked_for(dealerships):
        if name not in known:
            fail("unknown_dealership", f"no dealership named {name[:40]!r} is known")
        rows.extend(edited("cars", known[name], lambda row: row["listing_id"]))
    return {"count": len(rows), "cars": rows}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def filter_cars_by_make(cars: Cars, make: Make) -> list[Car]:
    """Those of the given cars that are of a make."""
    return keep(table(cars, "listing_id", "make"), "make", make)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_cars_by_body(cars: Cars, body: Body) -> list[Car]:
    """Those of the given cars that have a body style."""
    return keep(table(cars, "listing_id", "body"), "body", body)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_cars_by_price(cars: Cars, maximum_price: Annotated[int, says(minimum=1, maximum=1_000_000)]) -> list[Car]:
    """Those of the given cars that cost at most this."""
    return at_most(table(cars, "listing_id", "price"), "price", maximum_price, "under_budget_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_cars_by_mileage(cars: Cars, maximum_km: Annotated[int, says(minimum=1, maximum=1_000_000)]) -> list[Car]:
    """Those of the given cars that have run at most so many kilometres."""
    return at_most(table(cars, "listing_id", "mileage_km"), "mileage_km", maximum_km, "below_mileage_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_cars_by_year(cars: Cars, minimum_year: Annotated[int, says(minimum=1950, maximum=2030)]) -> list[Car]:
    """Those of the given cars that were built in this year or later."""
    return at_least(table(cars, "listing_id", "year"), "year", minimum_year, "years_newer")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "listing_id")
def pick_cheapest_car(cars: Cars) -> Car:
    """The cheapest of the given cars."""
    return first_by(table(cars, "listing_id", "price"), lambda row: (row["price"], row["listing_id"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "listing_id")
def pick_newest_car(cars: Cars) -> Car:
    """The newest of the given cars; of one year the one that has run least."""
    rows = table(cars, "listing_id", "year", "mileage_km")
    return first_by(rows, lambda row: (-row["year"], row["mileage_km"], row["listing_id"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def get_car_history(listing_id: str) -> CarHistory:
    """Owners, accidents and last service of the car of a listing."""
    row = _the_listing(listing_id)
    seed = roll(f"history/{listing_id}", 1 << 20)
    return {
        "listing_id": listing_id,
        "owners": 1 + min(seed % 4, max(0, 2025 - row["year"])),
        "accidents": (0, 0, 0, 1, 1, 2)[seed // 4 % 6],
        "last_service": f"2025-{1 + seed // 24 % 12:02d}-{1 + seed // 288 % 28:02d}",
    }


@DOMAIN.tool("information", "monthly_payment")
def quote_car_loan(price: Amount, deposit: Amount, months: Annotated[int, says(minimum=6, maximum=96)]) -> Loan:
    """Monthly payment for a car at five percent a year after a deposit. Fails if nothing is left to be paid."""
    if deposit >= price:
        fail("zero_amount", "the deposit covers the whole price")
    rate = 0.05 / 12
    monthly = round((price - deposit) * rate / (1 - (1 + rate) ** -months), 2)
    return {
        "price": price,
        "deposit": deposit,
        "months": months,
        "monthly_payment": monthly,
        "total_cost": round(deposit + monthly * months, 2),
    }


@DOMAIN.tool("workflow", "booking_id", read_only=False)
def book_test_drive(listing_id: str, date: Day, driver: Driver) -> TestDrive:
    """Book a test drive of a listed car. Fails if the car is not to be driven that day."""
    row = _the_listing(listing_id)
    the_day(date)
    if roll(f"drive/{listing_id}/{date}", 9) == 0:
        fail("fully_booked", f"{listing_id} is taken on {date}")
    number = roll(f"test-drive/{listing_id}/{date}/{driver['name']}/{driver['licence']}", 90_000) + 10_000
    return {
        "booking_id": f"D{number}",
        "listing_id": listing_id,
        "dealership": row["dealership"],
        "date": date,
        "driver": driver["name"],
    }
