"""Hotels: searching, narrowing, choosing, asking, booking and cancelling."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Clock,
    Day,
    Domain,
    Email,
    PersonName,
    Row,
    Rows,
    at_least,
    at_most,
    edited,
    edited_row,
    fail,
    first_by,
    keep,
    keep_having,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import CITY_NAMES, per_world, pick, roll, shuffled, stream

DOMAIN: Final = Domain("hotels")
AMENITIES: Final = ("gym", "parking", "pool", "sauna")
Amenity = Literal["gym", "parking", "pool", "sauna"]
DISTRICTS: Final = ("airport", "centre", "old town", "waterfront")
District = Literal["airport", "centre", "old town", "waterfront"]
_NAMES: Final = [
    "Admiral",
    "Alba",
    "Astoria",
    "Bellevue",
    "Borough",
    "Cavendish",
    "Celeste",
    "Chandler",
    "Crescent",
    "Duke",
    "Embassy",
    "Excelsior",
    "Falcon",
    "Gallery",
    "Garrison",
    "Halcyon",
    "Imperial",
    "Juniper",
    "Kingsway",
    "Laurel",
    "Majestic",
    "Meridian",
    "Nordic",
    "Orchid",
    "Pavilion",
    "Quay",
    "Regent",
    "Savoy",
    "Terrace",
    "Union",
    "Verity",
    "Windsor",
]
_KINDS: Final = (
    "Hotel",
    "House",
    "Inn",
    "Lodge",
    "Palace",
    "Rooms",
    "Suites",
    "Court",
    "Gardens",
    "Residence",
    "Plaza",
    "Point",
    "Arms",
    "Place",
)


class Hotel(TypedDict):
    """A hotel with its rate a night in euros; the last two stand there after the filter of that kind."""

    hotel: str
    place: CityName
    district: District
    stars: int
    guest_score: float
    nightly_rate: int
    total: int
    amenities: list[Amenity]
    stars_above_minimum: NotRequired[float]
    under_rate_by: NotRequired[float]


class Hotels(TypedDict):
    """Hotels with a free room."""

    place: CityName
    arrival: Day
    hotels: list[Hotel]


class Policies(TypedDict):
    """House rules."""

    hotel: str
    check_in_from: Clock
    check_out_until: Clock
    pets_allowed: bool
    breakfast: str


class Transfer(TypedDict):
    """A ride from the airport."""

    hotel: str
    passengers: int
    vehicle: str
    price: float


class GuestParty(TypedDict):
    """Who stays."""

    adults: Annotated[int, says(minimum=1, maximum=6)]
    children: NotRequired[Annotated[int, says(minimum=0, maximum=6)]]


class Billing(TypedDict):
    """Who pays."""

    name: PersonName
    email: Email
    card_last_four: Annotated[str, says(pattern="^[0-9]{4}$")]


class RoomBooking(TypedDict):
    """A booked room."""

    booking_number: str
    hotel: str
    arrival: Day
    nights: int
    total: float
    name: str


class RoomCancellation(TypedDict):
    """A cancelled room."""

    booking_number: str
    refund: float
    reason: str


HotelTable = Annotated[list[Hotel], REFERENCE_ONLY]
RoomBookingResult = Annotated[RoomBooking, REFERENCE_ONLY]
Nights = Annotated[int, says(minimum=1, maximum=30)]


@per_world()
def by_place() -> dict[str, Rows]:
    """Sixteen hotels in every city."""
    names = shuffled(stream("hotels"), [f"{name} {kind}" for name in _NAMES for kind in _KINDS])
    made: dict[str, Rows] = {}
    for number, place in enumerate(CITY_NAMES):
        rng = stream(f"hotels/{place}")
        made[place] = Rows()
        for name in names[16 * number : 16 * number + 16]:
            stars = 2 + int(rng.random() * 4)
            made[place].append(
                {
                    "hotel": name,
                    "place": place,
                    "district": pick(rng, DISTRICTS),
                    "stars": stars,
                    "guest_score": round(5.5 + 0.4 * stars + 2.4 * rng.random(), 1),
                    "nightly_rate": 30 + 28 * stars + int(rng.random() * 120),
                    "amenities": [amenity for amenity in AMENITIES if rng.random() < 0.5],
                }
            )
    return made


@per_world()
def by_hotel() -> dict[str, Row]:
    """Every hotel by its name, which is its own."""
    return {row["hotel"]: row for rows in by_place().values() for row in rows}


def _the_hotel(hotel: str) -> Row:
    row = by_hotel().get(hotel)
    if row is None:
        fail("unknown_hotel", f"no hotel named {hotel[:40]!r} is known")
    return row


def _rate(row: Row, arrival: str) -> int:
    drawn = {"nightly_rate": row["nightly_rate"] + roll(f"rate/{row['hotel']}/{arrival}", 60)}
    rate: int = edited_row("rates", _dated(row["hotel"], arrival), drawn)["nightly_rate"]
    return rate


def _dated(hotel: str, arrival: str) -> str:
    """The key of a rate among edits."""
    return f"{hotel}/{arrival}"


def _full(hotel: str, arrival: str) -> bool:
    return roll(f"full/{hotel}/{arrival}", 6) == 0


@per_world(2048)
def _free(place: str, arrival: str, nights: int) -> Rows:
    rows = Rows()
    for row in by_place()[place]:
        if not _full(row["hotel"], arrival):
            rate = row["nightly_rate"] + roll(f"rate/{row['hotel']}/{arrival}", 60)
            rows.append({**row, "nightly_rate": rate, "total": rate * nights})
    return rows


@DOMAIN.tool("retrieval", "hotels")
def search_hotels(place: CityName, arrival: Day, nights: Nights) -> Hotels:
    """Hotels of a city with a room free from a day for so many nights, with their rates in euros."""
    the_city(place)
    the_day(arrival)
    rows = edited("hotels", _free(place, arrival, nights), lambda row: row["hotel"])
    priced = edited("rates", rows, lambda row: _dated(row["hotel"], arrival))
    if priced is not rows:
        priced = Rows([{**row, "total": row["nightly_rate"] * nights} for row in priced])
    return {"place": place, "arrival": arrival, "hotels": priced}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def keep_hotels_with_stars(
    hotels: HotelTable, minimum_stars: Annotated[int, says(minimum=1, maximum=5)]
) -> list[Hotel]:
    """The given hotels that have at least so many stars."""
    return at_least(table(hotels, "hotel", "stars"), "stars", minimum_stars, "stars_above_minimum")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_hotels_within_rate(
    hotels: HotelTable, maximum_rate: Annotated[int, says(minimum=1, maximum=5000)]
) -> list[Hotel]:
    """The given hotels that cost at most so much a night."""
    return at_most(table(hotels, "hotel", "nightly_rate"), "nightly_rate", maximum_rate, "under_rate_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_hotels_with_amenity(hotels: HotelTable, amenity: Amenity) -> list[Hotel]:
    """The given hotels that offer an amenity."""
    return keep_having(table(hotels, "hotel", "amenities"), "amenities", amenity)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_hotels_in_district(hotels: HotelTable, district: District) -> list[Hotel]:
    """The given hotels that lie in a part of town."""
    return keep(table(hotels, "hotel", "district"), "district", district)  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "hotel")
def choose_cheapest_hotel(hotels: HotelTable) -> Hotel:
    """The one of the given hotels with the lowest rate."""
    return first_by(table(hotels, "hotel", "nightly_rate"), lambda row: (row["nightly_rate"], row["hotel"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "hotel")
def choose_top_reviewed_hotel(hotels: HotelTable) -> Hotel:
    """The one of the given hotels that guests score highest."""
    return first_by(table(hotels, "hotel", "guest_score"), lambda row: (-row["guest_score"], row["hotel"]))  # type: ignore[return-value]


@DOMAIN.tool("information")
def hotel_policies(hotel: str) -> Policies:
    """Check-in, check-out, pets and breakfast of a hotel, by its name."""
    row = _the_hotel(hotel)
    seed = roll(f"policies/{hotel}", 1 << 20)
    return {
        "hotel": row["hotel"],
        "check_in_from": ("13:00", "14:00", "15:00", "16:00")[seed % 4],
        "check_out_until": ("10:00", "10:30", "11:00", "12:00")[seed // 4 % 4],
        "pets_allowed": seed // 16 % 2 == 0,
        "breakfast": ("included", "12 euros", "17 euros", "not served")[seed // 32 % 4],
    }


@DOMAIN.tool("information", "price")
def quote_hotel_transfer(hotel: str, passengers: Annotated[int, says(minimum=1, maximum=16)]) -> Transfer:
    """Vehicle and price in euros of a ride from the airport to a hotel. Fails for more than twelve passengers."""
    _the_hotel(hotel)
    if passengers > 12:
        fail("too_large", "the largest vehicle takes 12 passengers")
    vehicle = "car" if passengers <= 3 else "van" if passengers <= 7 else "minibus"
    price = 18.0 + roll(f"transfer/{hotel}", 30) + 4.5 * passengers
    return {"hotel": hotel, "passengers": passengers, "vehicle": vehicle, "price": price}


@DOMAIN.tool("workflow", read_only=False)
def book_hotel_room(hotel: str, arrival: Day, nights: Nights, party: GuestParty, billing: Billing) -> RoomBooking:
    """Book a room. Fails if the hotel is full that day or the party is too large for a room."""
    row = _the_hotel(hotel)
    the_day(arrival)
    people = party["adults"] + party.get("children", 0)
    if people > 6:
        fail("too_large", "a room takes up to 6 people")
    if _full(hotel, arrival):
        fail("fully_booked", f"{hotel} is full on {arrival}")
    total = (_rate(row, arrival) + 15 * (people - 1)) * nights
    payer = f"{billing['name']}/{billing['email']}/{billing['card_last_four']}"
    key = f"{hotel}/{arrival}/{nights}/{people}/{party['adults']}/{payer}"
    return {
        "booking_number": f"H{roll(f'room/{key}', 900_000) + 100_000}",
        "hotel": hotel,
        "arrival": arrival,
        "nights": nights,
        "total": float(total),
        "name": billing["name"],
    }


@DOMAIN.tool("workflow", "refund", read_only=False)
def cancel_hotel_room(
    booking: RoomBookingResult, reason: Literal["found another hotel", "illness", "trip cancelled"]
) -> RoomCancellation:
    """Cancel a room that was just booked. Stays of more than ten nights cannot be cancelled."""
    number, total, nights = booking.get("booking_number"), booking.get("total"), booking.get("nights")
    if (
        not isinstance(number, str)
        or isinstance(total, bool)
        or not isinstance(total, int | float)
        or not isinstance(nights, int)
        or not abs(total) < 1e12
    ):
        fail("not_a_table", "this tool takes a room booking; pass on the result of the call that made it")
    if nights > 10:
        fail("not_cancellable", "stays of more than ten nights cannot be cancelled")
    share = {"found another hotel": 0.5, "illness": 0.9, "trip cancelled": 0.75}[reason]
    return {"booking_number": number, "refund": round(total * share, 2), "reason": reason}
