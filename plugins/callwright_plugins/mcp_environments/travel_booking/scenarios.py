"""The scenarios of the travel agency: a family with plans, somebody new, and bookings on every limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE, iso_date, parse_day
from callwright_plugins.mcp_environments.travel_booking.fares import places
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Airport,
    Fare,
    FareClass,
    FareRule,
    Flight,
    FlightBooking,
    Hold,
    Hotel,
    HotelBooking,
    LoyaltyEntry,
    Profile,
    RoomNight,
    RoomType,
    Seat,
    Traveler,
)

_AIRPORTS: Final = (
    Airport("VAL", "Valmont International", "Valmont", "Alderland"),
    Airport("VAC", "Valmont City", "Valmont", "Alderland"),
    Airport("KNG", "Kingsbridge", "Kingsbridge", "Alderland"),
    Airport("THO", "Thornbury", "Thornbury", "Alderland"),
    Airport("RAV", "Ravenna Bay", "Ravenna", "Costa Mar"),
    Airport("SIL", "Silverlake", "Silverlake", "Costa Mar"),
    Airport("UMB", "Umbria South", "Umbria", "Costa Mar"),
    Airport("NOR", "Northgate", "Northgate", "Fjordia"),
    Airport("HAR", "Harrow Bay", "Harrow Bay", "Fjordia"),
    Airport("YAR", "Yarrow Hub", "Yarrow", "Meridia"),
)
_RULES: Final = (
    FareRule("basic", "economy", None, None, False, 1200, 0, 2),
    FareRule("standard", "economy", 5000, 8000, False, 600, 20, 4),
    FareRule("flex", "economy", 0, 1500, True, 0, 20, 6),
    FareRule("business", "business", 0, 0, True, 0, 40, 10),
)
_CLASSES: Final[tuple[tuple[FareClass, int, int], ...]] = (
    ("basic", 100, 12),
    ("standard", 140, 18),
    ("flex", 190, 10),
    ("business", 380, 6),
)
_ROOMS: Final = (("double", 2, True, 100), ("double, prepaid", 2, False, 85), ("family room", 4, True, 160))
_INNS: Final = ("Grand", "Harbour", "Station", "Garden", "Royal", "Park", "Old Mill", "Bellevue")
_AIRLINES: Final = ("CW", "NX", "QF")


class _Numbers:
    """Ids in the order in which they are asked for, as :meth:`callwright.World.new_id` writes them."""

    def __init__(self) -> None:
        self._last: dict[type[Any], int] = {}

    def __call__(self, kind: type[Any]) -> str:
        self._last[kind] = self._last.get(kind, 0) + 1
        return table_of(kind).identifier(self._last[kind])


def _flight(
    rng: Random,
    number: _Numbers,
    origin: str,
    destination: str,
    departs_at: int,
    *,
    scarce: float = 0.15,
    cancelled: bool = False,
    left: int | None = None,
) -> Iterable[Flight | Fare]:
    """A flight and its fares. ``left`` is how many seats every fare has; else some are nearly or wholly sold."""
    minutes = 55 + 25 * ((ord(origin[0]) * 7 + ord(destination[0]) * 5) % 6)
    flight = Flight(
        id=number(Flight),
        number=f"{rng.choice(_AIRLINES)}{rng.randint(100, 999)}",
        route=f"{origin}-{destination}",
        origin=origin,
        destination=destination,
        departs_at=departs_at,
        arrives_at=departs_at + minutes * MINUTE,
        rows=15,
        occupied=(),
        cancelled=cancelled,
    )
    seats = places(flight)
    # As many seats stay free in each cabin as its fares could ever sell.
    economy = [place.seat for place in seats if place.cabin == "economy"]
    business = [place.seat for place in seats if place.cabin == "business"]
    occupied = sorted(rng.sample(range(len(economy)), 36)), sorted(rng.sample(range(len(business)), 4))
    yield Flight(
        flight.id,
        flight.number,
        flight.route,
        origin,
        destination,
        departs_at,
        flight.arrives_at,
        flight.rows,
        (*(economy[n] for n in occupied[0]), *(business[n] for n in occupied[1])),
        cancelled,
    )
    base = 4000 + 60 * minutes + rng.randrange(0, 4000, 100)
    for name, percent, capacity in _CLASSES:
        seats_left = (
            left if left is not None else rng.randint(0, 2) if rng.random() < scarce else rng.randint(3, capacity)
        )
        yield Fare(flight.id, name, base * percent // 100 // 100 * 100, capacity, min(seats_left, capacity))


def _schedule(rng: Random, number: _Numbers, days: int) -> Iterable[Flight | Fare]:
    """A flight on most days between airports near in the list, and from the hub to everywhere."""
    codes = [airport.code for airport in _AIRPORTS]
    routes = [(a, b) for n, a in enumerate(codes) for b in codes[n + 1 : n + 3]] + [("YAR", code) for code in codes[:4]]
    for origin, destination in routes:
        for start, end in ((origin, destination), (destination, origin)):
            for day in range(days):
                if rng.random() < 0.7:
                    departs = NOW - 9 * HOUR + day * DAY + rng.randrange(6 * 60, 21 * 60, 5) * MINUTE
                    yield from _flight(rng, number, start, end, departs)


def _hotels(
    rng: Random, number: _Numbers, count: int, days: int, *, scarce: float
) -> Iterable[Hotel | RoomType | RoomNight]:
    cities = list(dict.fromkeys(airport.city for airport in _AIRPORTS))
    for n in range(count):
        stars = rng.randint(2, 5)
        city = cities[n % len(cities)]
        hotel = Hotel(
            number(Hotel), f"{_INNS[n // len(cities) % len(_INNS)]} {city}", city, stars, rng.choice((1, 2, 3))
        )
        yield hotel
        rate = stars * 2900 + rng.randrange(0, 3000, 100)
        for name, sleeps, refundable, percent in _ROOMS[: rng.randint(2, 3)]:
            room = RoomType(number(RoomType), hotel.id, name, sleeps, refundable)
            yield room
            for day in range(days):
                weekend = (NOW // DAY + day + 3) % 7 >= 4
                yield RoomNight(
                    room_type_id=room.id,
                    day=iso_date(NOW + day * DAY),
                    rate_cents=rate * percent // 100 * (130 if weekend else 100) // 100,
                    rooms_left=0 if rng.random() < scarce else rng.randint(1, 6),
                    min_stay=2 if weekend and stars >= 4 else 1,
                )


def _traveler(
    number: _Numbers, first: str, last: str, born: str, expires: str = "", passport: str = "X1234567"
) -> Traveler:
    return Traveler(number(Traveler), first, last, born, passport if expires else "", expires)


def _booked(
    number: _Numbers,
    flight: Flight,
    fare_class: FareClass,
    travelers: Sequence[Traveler],
    price: int,
    booked_at: int,
    *,
    cancelled: bool = False,
    points: int = 0,
) -> Iterable[FlightBooking | LoyaltyEntry]:
    """A booking of the past with the points that it earned; its seats are not among those that the fare has left."""
    refund = price * len(travelers) if cancelled else 0
    booking = FlightBooking(
        id=number(FlightBooking),
        flight_id=flight.id,
        fare_class=fare_class,
        traveler_ids=tuple(traveler.id for traveler in travelers),
        booked_at=booked_at,
        cancelled_at=booked_at + HOUR if cancelled else None,
        fare_cents=price * len(travelers),
        fees_cents=0,
        points_used=points,
        refunded_cents=refund - points if cancelled else 0,
        points_returned=points if cancelled else 0,
    )
    yield booking
    if not cancelled:
        rate = next(rule.points_per_euro for rule in _RULES if rule.fare_class == fare_class)
        earned = (price * len(travelers) - points) * rate // 100
        yield LoyaltyEntry(number(LoyaltyEntry), booked_at, flight.departs_at, earned, "earned", booking.id)


def _stay(
    number: _Numbers, room: RoomType, nights: Sequence[RoomNight], guests: Sequence[Traveler], booked_at: int
) -> Iterable[HotelBooking | LoyaltyEntry]:
    booking = HotelBooking(
        id=number(HotelBooking),
        room_type_id=room.id,
        guest_ids=tuple(guest.id for guest in guests),
        nights=tuple((night.day, night.rate_cents) for night in nights),
        booked_at=booked_at,
        cancelled_at=None,
        points_used=0,
        refunded_cents=0,
        points_returned=0,
    )
    yield booking
    earned = sum(night.rate_cents for night in nights) * 5 // 100
    ends = parse_day(nights[-1].day) + DAY
    yield LoyaltyEntry(number(LoyaltyEntry), booked_at, ends, earned, "earned", booking.id)


def _fixed() -> Iterable[Any]:
    yield from _AIRPORTS
    yield from _RULES


def _typical(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    first, last = person(rng)
    yield Profile("me", f"{first} {last}", email_of(first, last, 1))
    yield from _fixed()
    flights = list(_schedule(rng, number, max(4, round(20 * scale))))
    yield from flights
    hotels = list(_hotels(rng, number, max(9, round(27 * scale)), 45, scarce=0.08))
    yield from hotels
    travelers = [
        _traveler(number, first, last, "1984-06-12", "2031-01-31", "AB123456"),
        _traveler(number, "Noor", last, "1986-11-02", "2029-08-15", "AB654321"),
        _traveler(number, "Milan", last, "2014-03-09", "2027-04-01", "AB777777"),
        _traveler(number, "Juno", last, "2017-09-30"),
        _traveler(number, "Otto", "Becker", "1952-01-20", "2026-03-04", "AB999999"),
    ]
    yield from travelers
    yield LoyaltyEntry(number(LoyaltyEntry), NOW - 200 * DAY, NOW - 200 * DAY, 21_500, "earned", "")
    yield LoyaltyEntry(number(LoyaltyEntry), NOW - 90 * DAY, NOW - 90 * DAY, -6_500, "spent", "")
    ahead = [one for one in flights if isinstance(one, Flight) and one.departs_at > NOW + 2 * DAY]
    domestic = [one for one in ahead if {one.origin, one.destination} <= {"VAL", "VAC", "KNG", "THO"}]
    yield from _booked(number, domestic[0], "basic", travelers[:1], 9_900, NOW - 5 * DAY)
    yield from _booked(number, domestic[3], "standard", travelers[:3], 14_900, NOW - 10 * DAY)
    yield from _booked(number, domestic[6], "flex", travelers[:2], 21_000, NOW - 2 * DAY, points=1_500)
    yield from _booked(number, domestic[9], "standard", travelers[1:2], 15_900, NOW - 20 * DAY, cancelled=True)
    rooms = [one for one in hotels if isinstance(one, RoomType)]
    nights = [one for one in hotels if isinstance(one, RoomNight)]
    for n, (start, length) in enumerate(((5, 2), (12, 3), (1, 1))):
        room = rooms[n * 4]
        mine = [night for night in nights if night.room_type_id == room.id]
        yield from _stay(number, room, mine[start : start + length], travelers[:2], NOW - 3 * DAY)


def _sparse(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    first, last = person(rng)
    yield Profile("me", f"{first} {last}", email_of(first, last, 1))
    yield from _fixed()
    for day in range(1, 1 + max(2, round(2 * scale))):
        yield from _flight(rng, number, "VAL", "KNG", NOW + day * DAY, left=4)
        yield from _flight(rng, number, "KNG", "VAL", NOW + day * DAY + 8 * HOUR, left=4)
    yield from _hotels(rng, number, 1, 5, scarce=0.0)
    yield _traveler(number, first, last, "1990-04-01")


def _adversarial(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    yield Profile("me", "Ada Berg", "ada.berg1@example.com")
    yield from _fixed()
    flights: list[Any] = []
    # Twins: the same route at almost the same time from both airports of a city, with few seats and other prices.
    for day in range(1, 1 + max(10, round(20 * scale))):
        for origin in ("VAL", "VAC"):
            for destination in ("RAV", "KNG"):
                flights += _flight(rng, number, origin, destination, NOW + day * DAY + 10 * MINUTE, scarce=0.6)
                flights += _flight(rng, number, destination, origin, NOW + day * DAY + 9 * HOUR, left=day % 3)
    edges: list[list[Any]] = [
        [*_flight(rng, number, "VAL", "KNG", NOW + after, left=9)]
        for after in (HOUR, HOUR + MINUTE, 7 * DAY, 7 * DAY - MINUTE, 3 * DAY, 14 * DAY, 2 * DAY)
    ]
    gone: list[Any] = [*_flight(rng, number, "VAL", "RAV", NOW + 4 * DAY, cancelled=True, left=9)]
    yield from flights
    for edge in edges:
        yield from edge
    yield from gone
    yield from _hotels(rng, number, max(9, round(18 * scale)), 30, scarce=0.4)
    travelers = [
        _traveler(number, "Ada", "Berg", "1980-02-02", "2026-03-05", "ZZ111111"),  # expires in three days
        _traveler(number, "Ada", "Berg", "2009-03-10", "2030-01-01", "ZZ222222"),  # the daughter, 16
        _traveler(number, "Ada", "Bergh", "1979-12-31", "2030-01-01", "ZZ333333"),
        _traveler(number, "Adam", "Berg", "2008-03-03"),  # 18 tomorrow
    ]
    yield from travelers
    yield LoyaltyEntry(number(LoyaltyEntry), NOW - 30 * DAY, NOW - 30 * DAY, 19_999, "earned", "")
    yield LoyaltyEntry(number(LoyaltyEntry), NOW - 20 * DAY, NOW - 20 * DAY, -19_500, "spent", "")
    at = [edge[0] for edge in edges]
    yield from _booked(number, at[0], "flex", travelers[:1], 20_000, NOW - 10 * DAY)  # closed this minute
    yield from _booked(number, at[1], "flex", travelers[2:3], 20_000, NOW - 10 * DAY)  # closes in a minute
    yield from _booked(number, at[2], "basic", travelers[:1], 10_000, NOW - DAY + MINUTE)  # free for a minute more
    yield from _booked(number, at[3], "basic", travelers[2:3], 10_000, NOW - HOUR)  # leaves too soon for that
    yield from _booked(number, at[4], "standard", travelers[:2], 10_000, NOW - DAY)  # the fee is most of the fare
    yield from _booked(number, at[6], "standard", travelers[2:3], 7_000, NOW - 9 * DAY, points=400)  # fee above fare
    yield from _booked(number, gone[0], "basic", travelers[2:3], 12_000, NOW - 9 * DAY)  # the airline cancelled
    fare = next(one for one in edges[5] if isinstance(one, Fare) and one.fare_class == "standard")
    yield Hold(number(Hold), at[5].id, "standard", 1, fare.base_cents, NOW + MINUTE, "open")
    yield Hold(number(Hold), at[5].id, "standard", 8, fare.base_cents, NOW, "open")  # expired this moment
    free = next(place.seat for place in places(at[4]) if place.cabin == "economy" and place.seat not in at[4].occupied)
    yield Seat(at[4].id, free, "BF00005", travelers[0].id, 0)


SCENARIOS: Final = {
    "typical": Scenario(_typical, "a family of five with bookings, points, three weeks of flights and 27 hotels"),
    "sparse": Scenario(_sparse, "somebody new: no bookings or points, four flights, one hotel"),
    "adversarial": Scenario(
        _adversarial, "namesakes, twin airports, few seats, expiring passports, and bookings on every limit of time"
    ),
}
