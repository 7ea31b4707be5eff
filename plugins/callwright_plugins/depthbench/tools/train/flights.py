"""Flights: searching, filtering, choosing, status, baggage, booking and cancelling."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright.tools.spec import ToolError
from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Clock,
    Day,
    Domain,
    Email,
    Phone,
    Row,
    Rows,
    at_most,
    clock,
    edited,
    edited_row,
    fail,
    first_by,
    from_time,
    keep,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import CITY_NAMES, per_world, roll, stream

DOMAIN: Final = Domain("flights")
AIRLINES: Final = ("Aerona", "Borealis", "Cirrus", "Meridian")
Airline = Literal["Aerona", "Borealis", "Cirrus", "Meridian"]
CABINS: Final = ("economy", "premium", "business")
Cabin = Literal["economy", "premium", "business"]
_FACTOR: Final = {"economy": 1.0, "premium": 1.7, "business": 3.4}


class Flight(TypedDict):
    """A flight; the last three stand there after the filter of that kind."""

    flight_number: str
    airline: Airline
    origin: CityName
    destination: CityName
    date: Day
    departs: Clock
    duration_minutes: int
    stops: int
    price: int
    under_budget_by: NotRequired[float]
    stops_to_spare: NotRequired[float]
    minutes_after: NotRequired[int]


class Flights(TypedDict):
    """Flights of a day."""

    origin: CityName
    destination: CityName
    flights: list[Flight]


class FlightStatus(TypedDict):
    """How a flight is doing."""

    flight_number: str
    date: Day
    status: str
    gate: str
    delay_minutes: int


class Baggage(TypedDict):
    """What may be taken along."""

    flight_number: str
    cabin: Cabin
    cabin_bag_kg: int
    checked_bags: int
    checked_bag_kg: int


class FlightPassengerName(TypedDict):
    """A name as in the passport."""

    first: Annotated[str, says(minLength=1, maxLength=40)]
    last: Annotated[str, says(minLength=1, maxLength=40)]


class Passport(TypedDict):
    """A passport."""

    number: Annotated[str, says(pattern="^[A-Z][0-9]{7}$", description="A capital letter and seven digits")]
    expires: Day


class Passenger(TypedDict):
    """Who flies."""

    name: FlightPassengerName
    passport: Passport


class FlightContact(TypedDict):
    """Whom to reach."""

    email: Email
    phone: NotRequired[Phone]


class FlightBooking(TypedDict):
    """A booked flight."""

    booking_code: str
    flight_number: str
    date: Day
    cabin: Cabin
    passengers: int
    total: float


class FlightRefund(TypedDict):
    """A cancelled booking."""

    booking_code: str
    refund: float
    fee: float
    reason: str


FlightTable = Annotated[list[Flight], REFERENCE_ONLY]
FlightBookingResult = Annotated[FlightBooking, REFERENCE_ONLY]


@per_world()
def timetable(origin: str, destination: str) -> Rows:
    """The fourteen daily flights of a route, without date and day's price."""
    rng = stream(f"route/{origin}/{destination}")
    number = 20 * (CITY_NAMES.index(origin) * len(CITY_NAMES) + CITY_NAMES.index(destination))
    rows = Rows()
    base = 45 + int(rng.random() * 400)
    for index in range(14):
        airline = AIRLINES[index % 4]
        stops = (0, 0, 1, 1, 2)[int(rng.random() * 5)]
        rows.append(
            {
                "flight_number": f"{airline[:2].upper()}{1000 + number + index}",
                "airline": airline,
                "origin": origin,
                "destination": destination,
                "departs": clock(330 + 5 * int(rng.random() * 200)),
                "duration_minutes": 70 + int(rng.random() * 240) + stops * 95,
                "stops": stops,
                "price": base + int(rng.random() * 260) - 25 * stops,
            }
        )
    return Rows(sorted(rows, key=lambda row: (row["departs"], row["flight_number"])))


def _route(flight_number: str) -> Row:
    digits = flight_number[2:]
    if len(digits) < 6 and digits.isascii() and digits.isdigit() and int(digits) >= 1000:
        start, end = divmod((int(digits) - 1000) // 20, len(CITY_NAMES))
        if start < len(CITY_NAMES) and start != end:
            for row in timetable(CITY_NAMES[start], CITY_NAMES[end]):
                if row["flight_number"] == flight_number:
                    return row
    raise ToolError("unknown_flight", f"there is no flight {flight_number[:20]!r}")


@per_world(2048)
def _on(origin: str, destination: str, date: str) -> Rows:
    rows = Rows()
    for row in timetable(origin, destination):
        if roll(f"flies/{row['flight_number']}/{date}", 6):
            rows.append({**row, "date": date, "price": row["price"] + roll(f"fare/{row['flight_number']}/{date}", 90)})
    return rows


def _dated(flight_number: str, date: str) -> str:
    """The key of a flight of a day among edits."""
    return f"{flight_number}/{date}"


@DOMAIN.tool("retrieval", "flights")
def search_flights(origin: CityName, destination: CityName, date: Day) -> Flights:
    """All flights from one city to another on a date, with prices for one passenger in economy."""
    the_city(origin)
    the_city(destination)
    the_day(date)
    if origin == destination:
        fail("same_place", "origin and destination are the same city")
    flights = edited("flights", _on(origin, destination, date), lambda row: _dated(row["flight_number"], date))
    return {"origin": origin, "destination": destination, "flights": flights}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def filter_flights_by_airline(flights: FlightTable, airline: Airline) -> list[Flight]:
    """Those of the given flights that an airline operates."""
    return keep(table(flights, "flight_number", "airline"), "airline", airline)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_flights_by_fare(
    flights: FlightTable, maximum_fare: Annotated[int, says(minimum=1, maximum=20_000)]
) -> list[Flight]:
    """Those of the given flights that cost at most this."""
    return at_most(table(flights, "flight_number", "price"), "price", maximum_fare, "under_budget_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_flights_by_stops(
    flights: FlightTable, maximum_stops: Annotated[int, says(minimum=0, maximum=3)]
) -> list[Flight]:
    """Those of the given flights with at most so many stops; 0 means direct."""
    return at_most(table(flights, "flight_number", "stops"), "stops", maximum_stops, "stops_to_spare")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_flights_departing_after(flights: FlightTable, time: Clock) -> list[Flight]:
    """Those of the given flights that leave at a time of day or later."""
    return from_time(table(flights, "flight_number", "departs"), "departs", time, "minutes_after")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "flight_number")
def pick_cheapest_flight(flights: FlightTable) -> Flight:
    """The cheapest of the given flights."""
    return first_by(table(flights, "flight_number", "price"), lambda row: (row["price"], row["flight_number"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "flight_number")
def pick_fastest_flight(flights: FlightTable) -> Flight:
    """The fastest of the given flights."""
    rows = table(flights, "flight_number", "duration_minutes")
    return first_by(rows, lambda row: (row["duration_minutes"], row["flight_number"]))  # type: ignore[return-value]


@DOMAIN.tool("information")
def get_flight_status(flight_number: str, date: Day) -> FlightStatus:
    """Status, gate and delay of a flight on a date."""
    _route(flight_number)
    the_day(date)
    seed = roll(f"status/{flight_number}/{date}", 1 << 20)
    delay = (0, 0, 0, 10, 25, 40, 75)[seed % 7]
    status = "cancelled" if seed % 41 == 0 else "delayed" if delay else "on time"
    return {
        "flight_number": flight_number,
        "date": date,
        "status": status,
        "gate": f"{'ABCD'[seed // 7 % 4]}{1 + seed // 28 % 40}",
        "delay_minutes": delay,
    }


@DOMAIN.tool("information")
def get_baggage_allowance(flight_number: str, cabin: Cabin) -> Baggage:
    """What may be taken along on a flight in a cabin."""
    row = _route(flight_number)
    extra = AIRLINES.index(row["airline"]) % 2
    place = CABINS.index(cabin)
    return {
        "flight_number": flight_number,
        "cabin": cabin,
        "cabin_bag_kg": 8 + 2 * place,
        "checked_bags": place + extra,
        "checked_bag_kg": 23 + 9 * (place == 2),
    }


@DOMAIN.tool("workflow", read_only=False)
def book_flight(
    flight_number: str,
    date: Day,
    passengers: Annotated[list[Passenger], says(minItems=1, maxItems=6)],
    contact: FlightContact,
    cabin: Cabin = "economy",
) -> FlightBooking:
    """Book seats on a flight. Fails if the cabin is sold out or a passport has expired by then."""
    row = _route(flight_number)
    day = the_day(date)
    for passenger in passengers:
        if the_day(passenger["passport"]["expires"]) <= day:
            fail("expired_document", f"passport {passenger['passport']['number']} has expired by {date}")
    if roll(f"sold/{flight_number}/{date}/{cabin}", 10) == 0:
        fail("sold_out", f"{cabin} of {flight_number} is sold out on {date}")
    drawn = {"price": row["price"] + roll(f"fare/{flight_number}/{date}", 90)}
    fare = edited_row("flights", _dated(flight_number, date), drawn)["price"]
    who = "/".join(
        f"{p['name']['first']} {p['name']['last']} {p['passport']['number']} {p['passport']['expires']}"
        for p in passengers
    )
    seed = roll(f"book/{flight_number}/{date}/{cabin}/{who}/{contact['email']}/{contact.get('phone', '')}", 26**4)
    code = "".join(chr(65 + seed // 26**place % 26) for place in range(4))
    return {
        "booking_code": f"{code}{len(passengers)}{roll(f'code/{seed}', 10)}",
        "flight_number": flight_number,
        "date": date,
        "cabin": cabin,
        "passengers": len(passengers),
        "total": round(fare * _FACTOR[cabin] * len(passengers), 2),
    }


@DOMAIN.tool("workflow", "refund", read_only=False)
def cancel_flight_booking(
    booking: FlightBookingResult, reason: Literal["change of plans", "illness", "duplicate booking"]
) -> FlightRefund:
    """Cancel a booking that was just made; the fee depends on the reason and the cabin. Premium cannot be cancelled."""
    total, cabin, code = booking.get("total"), booking.get("cabin"), booking.get("booking_code")
    if (
        isinstance(total, bool)
        or not isinstance(total, int | float)
        or not abs(total) < 1e12
        or not isinstance(code, str)
    ):
        fail("not_a_table", "this tool takes a booking; pass on the result of the call that made it")
    if cabin == "premium":
        fail("not_cancellable", "premium fares cannot be cancelled")
    share = {"change of plans": 0.4, "illness": 0.1, "duplicate booking": 0.05}[reason]
    fee = round(total * (share if cabin == "economy" else share / 2), 2)
    return {"booking_code": code, "refund": round(total - fee, 2), "fee": fee, "reason": reason}
