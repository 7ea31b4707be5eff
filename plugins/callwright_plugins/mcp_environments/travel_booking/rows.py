"""The tables of the travel agency. Money is in cents, times are seconds of the session's clock, days are ISO dates."""

from __future__ import annotations

from typing import Any, Final, Literal

from callwright.environments.rows import row

FareClass = Literal["basic", "standard", "flex", "business"]
Cabin = Literal["economy", "business"]
HoldState = Literal["open", "booked"]


@row("profile")
class Profile:
    """The signed-in customer."""

    id: str
    name: str
    email: str


@row("airports", key="code")
class Airport:
    """An airport by its three letters."""

    code: str
    name: str
    city: str
    country: str


@row("flights", prefix="F", index=("route", "origin"))
class Flight:
    """A flight on a day. ``route`` is ``AAA-BBB``; ``occupied`` are seats that other people have."""

    id: str
    number: str
    route: str
    origin: str
    destination: str
    departs_at: int
    arrives_at: int
    #: Economy rows of the aircraft.
    rows: int
    occupied: tuple[str, ...]
    cancelled: bool


@row("fares", key=("flight_id", "fare_class"), index=("flight_id",))
class Fare:
    """The seats of a flight that one class of fare sells; ``capacity`` is how many there were."""

    flight_id: str
    fare_class: FareClass
    base_cents: int
    capacity: int
    seats_left: int


@row("fare_rules")
class FareRule:
    """What a class of fare allows. Fees are for each traveller; ``None`` is not allowed."""

    fare_class: FareClass
    cabin: Cabin
    change_fee_cents: int | None
    cancel_fee_cents: int | None
    #: Whether a change to a cheaper flight pays the difference back.
    difference_refunded: bool
    seat_fee_cents: int
    baggage_kg: int
    points_per_euro: int


@row("seat_inventory", key=("flight_id", "seat"), index=("booking_id",))
class Seat:
    """A seat that a traveller of a booking has, and what was paid for it."""

    flight_id: str
    seat: str
    booking_id: str
    traveler_id: str
    fee_cents: int


@row("travelers", prefix="T")
class Traveler:
    """Somebody whom the customer books for. The passport number is never shown."""

    id: str
    first_name: str
    last_name: str
    birth_date: str
    passport_no: str
    passport_expires: str


# It follows from when the seats were held.
@row("holds", prefix="HO", index=("flight_id",), bookkeeping=("expires_at",))
class Hold:
    """Seats that are kept at a price until a time."""

    id: str
    flight_id: str
    fare_class: FareClass
    seats: int
    price_cents: int
    expires_at: int
    state: HoldState


@row("flight_bookings", prefix="BF", stamps=("booked_at", "cancelled_at"), unordered=("traveler_ids",))
class FlightBooking:
    """A booked flight. What was charged is ``fare_cents`` + ``fees_cents``, partly in points."""

    id: str
    flight_id: str
    fare_class: FareClass
    traveler_ids: tuple[str, ...]
    booked_at: int
    cancelled_at: int | None
    #: The fare of all travellers together.
    fare_cents: int
    #: Seats and changes.
    fees_cents: int
    points_used: int
    refunded_cents: int
    points_returned: int


@row("hotels", prefix="H", index=("city",))
class Hotel:
    """A hotel; bookings of refundable rooms are free to cancel until ``free_days`` before arrival."""

    id: str
    name: str
    city: str
    stars: int
    free_days: int


@row("room_types", prefix="RM", index=("hotel_id",))
class RoomType:
    """A kind of room in a hotel."""

    id: str
    hotel_id: str
    name: str
    sleeps: int
    refundable: bool


@row("room_nights", key=("room_type_id", "day"), index=("room_type_id",))
class RoomNight:
    """A night in a kind of room. ``min_stay`` is the fewest nights of a stay that begins on it."""

    room_type_id: str
    day: str
    rate_cents: int
    rooms_left: int
    min_stay: int


@row("hotel_bookings", prefix="BH", stamps=("booked_at", "cancelled_at"), unordered=("guest_ids",))
class HotelBooking:
    """A booked room; ``nights`` are (day, rate)."""

    id: str
    room_type_id: str
    guest_ids: tuple[str, ...]
    nights: tuple[tuple[str, int], ...]
    booked_at: int
    cancelled_at: int | None
    points_used: int
    refunded_cents: int
    points_returned: int


@row("loyalty", prefix="L", index=("booking_id",), stamps=("at", "available_at"))
class LoyaltyEntry:
    """Points that came or went, and from when on they count."""

    id: str
    at: int
    available_at: int
    points: int
    reason: str
    booking_id: str


ROWS: Final[list[type[Any]]] = [
    Profile,
    Airport,
    Flight,
    Fare,
    FareRule,
    Seat,
    Traveler,
    Hold,
    FlightBooking,
    Hotel,
    RoomType,
    RoomNight,
    HotelBooking,
    LoyaltyEntry,
]
