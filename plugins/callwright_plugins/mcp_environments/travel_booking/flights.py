"""Tools about flights: airports, schedules, seats, rules, and holding seats."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import DAY, MINUTE, iso, parse_day
from callwright_plugins.mcp_environments.travel_booking.fares import (
    HOLD_TIME,
    Position,
    check_price,
    check_seats,
    check_sellable,
    held_seats,
    need_fare,
    need_flight,
    places,
    quote,
    refund,
    rule_of,
    seat_fee,
    taken,
    terms,
)
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Airport,
    Cabin,
    Fare,
    FareClass,
    Flight,
    FlightBooking,
    Hold,
)
from callwright_plugins.mcp_environments.travel_booking.schedule import explain_no_flights

FlightId = Annotated[str, Field(description="Flight id, such as F00031, from search_flights.", max_length=40)]
FareName = Annotated[FareClass, Field(description="Class of fare.")]
QuotedPrice = Annotated[
    int, Field(ge=0, description="Price in cents for one traveller, as search_flights or get_flight quoted it.")
]


class AirportView(TypedDict):
    """An airport."""

    code: str
    name: str
    city: str
    country: str


class FareView(TypedDict):
    """A fare of a flight: the price for one traveller now, and the seats left at it."""

    fare_class: FareClass
    cabin: Cabin
    price_cents: Annotated[int, Field(description="For one traveller.")]
    seats_left: int


class FlightView(TypedDict):
    """A flight with its fares."""

    flight_id: str
    number: str
    origin: str
    destination: str
    departs_at: Annotated[str, Field(description="UTC.")]
    arrives_at: Annotated[str, Field(description="UTC.")]
    duration_minutes: int
    cancelled: bool
    fares: list[FareView]


class SeatView(TypedDict):
    """A seat of the map; ``fee_cents`` is for the cheapest fare of its cabin."""

    seat: str
    position: Position
    extra_legroom: bool
    exit_row: bool
    available: bool
    fee_cents: Annotated[int, Field(description="For the cheapest fare of its cabin.")]


class SeatMap(TypedDict):
    """The seats of a cabin."""

    flight_id: str
    cabin: Cabin
    available: int
    seats: list[SeatView]


class RulesView(TypedDict):
    """What a fare allows; fees are for each traveller, null is not allowed."""

    fare_class: FareClass
    cabin: Cabin
    changeable: bool
    change_fee_cents: Annotated[int | None, Field(description="For each traveller; null: not changeable.")]
    refundable: Annotated[bool, Field(description="Whether cancelling gives anything back.")]
    cancel_fee_cents: Annotated[
        int | None, Field(description="For each traveller, by the rules of the fare; null: not refundable.")
    ]
    difference_refunded: Annotated[bool, Field(description="Whether a cheaper new flight gives money back.")]
    seat_fee_cents: Annotated[int, Field(description="For choosing a seat, each.")]
    baggage_kg: Annotated[int, Field(description="For each traveller.")]
    points_per_euro: Annotated[int, Field(description="Earned.")]
    booking: BookingTerms | None


class BookingTerms(TypedDict):
    """What changing or cancelling a booking costs now, for all travellers, and what cancelling gives back."""

    booking_id: str
    change_fee_cents: Annotated[int | None, Field(description="For all travellers, now; null: not changeable.")]
    cancel_fee_cents: Annotated[
        int | None,
        Field(description="For all travellers, now: what cancel_flight takes as accepted_fee_cents; null: no refund."),
    ]
    refund_cents: Annotated[int | None, Field(description="What cancelling now gives back; null: nothing.")]
    points_returned: Annotated[int | None, Field(description="Of those that were paid with; null: none.")]


class HoldView(TypedDict):
    """Seats that are kept at a price until a time."""

    hold_id: str
    flight_id: str
    fare_class: FareClass
    seats: int
    price_cents: Annotated[int, Field(description="For one traveller.")]
    total_cents: Annotated[int, Field(description="For all seats.")]
    expires_at: str


@tool(read_only=True, discovery=True)
def search_airports(
    world: World,
    /,
    query: Annotated[
        str, Field(description="Part of a code, name, city or country; empty for all.", max_length=60)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[AirportView]:
    """Find airports; their codes are what search_flights takes. A city may have several."""
    wanted = query.lower().strip()
    found = [
        airport
        for airport in world.rows(Airport)
        if wanted in f"{airport.code}|{airport.name}|{airport.city}|{airport.country}".lower()
    ]
    return page(
        found,
        lambda one: {"code": one.code, "name": one.name, "city": one.city, "country": one.country},
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True, latency=3)
def search_flights(
    world: World,
    /,
    origin: Annotated[str, Field(description="Airport code to leave from, such as VAL.", max_length=10)],
    destination: Annotated[str, Field(description="Airport code to go to; empty for anywhere.", max_length=10)] = "",
    date: Annotated[str, Field(description="Day of departure (UTC), such as 2026-03-10; empty for any.")] = "",
    travelers: Annotated[int, Field(ge=1, le=9, description="Seats that the fares shown must have left.")] = 1,
    fare_class: Annotated[FareClass | None, Field(description="Only this class of fare; null for all.")] = None,
    sort: Annotated[
        Literal["departure", "price", "duration"], Field(description="Order; price is that of the cheapest fare shown.")
    ] = "departure",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[FlightView]:
    """Find flights that can still be booked, with the fares that have enough seats and their prices for one traveller.
    Fails with DATE_ORDER for a day in the past. Warns with ROUTE_NOT_FLOWN or OUTSIDE_SCHEDULE if that is why there is
    none.
    """
    start = _code(world, origin)
    end = _code(world, destination) if destination else ""
    if start == end:
        raise ToolError("SAME_AIRPORT", f"a flight from {start} to {end} goes nowhere")
    day = parse_day(date) if date else 0
    if date and day + DAY <= world.now:
        raise ToolError("DATE_ORDER", f"{date} is past; it is {iso(world.now)} now")
    flights = world.find(Flight, route=f"{start}-{end}") if end else world.find(Flight, origin=start)
    held: dict[tuple[str, str], int] = {}
    for hold in world.rows(Hold):
        if hold.state == "open" and hold.expires_at > world.now:
            key = (hold.flight_id, hold.fare_class)
            held[key] = held.get(key, 0) + hold.seats

    def has_seats(flight: Flight, name: str) -> bool:
        fare = world.get(Fare, (flight.id, name))
        return fare is not None and fare.seats_left - held.get((flight.id, name), 0) >= travelers

    def view(flight: Flight) -> FlightView:
        whole = flight_view(world, flight)
        return {**whole, "fares": [fare for fare in whole["fares"] if fare["fare_class"] in wanted and fits(fare)]}

    def fits(fare: FareView) -> bool:
        return fare["seats_left"] >= travelers

    wanted: tuple[str, ...] = get_args(FareClass) if fare_class is None else (fare_class,)
    found = [
        flight
        for flight in flights
        if not flight.cancelled
        and flight.departs_at > world.now
        and (not date or day <= flight.departs_at < day + DAY)
        and any(has_seats(flight, name) for name in wanted)
    ]
    if not found:
        explain_no_flights(world, start, end, day)
    if sort == "price":
        views = sorted(map(view, found), key=lambda one: min(fare["price_cents"] for fare in one["fares"]))
        return page(views, lambda one: one, limit, cursor)
    found.sort(key=lambda one: one.departs_at if sort == "departure" else one.arrives_at - one.departs_at)
    return page(found, view, limit, cursor)


@tool(read_only=True)
def get_flight(world: World, /, flight_id: FlightId) -> FlightView:
    """A flight with all its fares at today's prices."""
    return flight_view(world, need_flight(world, flight_id))


@tool(read_only=True)
def get_seat_map(
    world: World,
    /,
    flight_id: FlightId,
    cabin: Annotated[Cabin, Field(description="Which cabin.")] = "economy",
    available_only: Annotated[bool, Field(description="Only seats that nobody has.")] = False,
) -> SeatMap:
    """The seats of a cabin, which of them are free, and what a seat costs beside the fare."""
    flight = need_flight(world, flight_id)
    occupied = taken(world, flight)
    rule = rule_of(world, "business" if cabin == "business" else "basic")
    seats = [place for place in places(flight) if place.cabin == cabin]
    return {
        "flight_id": flight.id,
        "cabin": cabin,
        "available": sum(place.seat not in occupied for place in seats),
        "seats": [
            {
                "seat": place.seat,
                "position": place.position,
                "extra_legroom": place.legroom,
                "exit_row": place.exit_row,
                "available": place.seat not in occupied,
                "fee_cents": seat_fee(rule, place),
            }
            for place in seats
            if not (available_only and place.seat in occupied)
        ],
    }


@tool(read_only=True)
def get_fare_rules(
    world: World,
    /,
    fare_class: Annotated[FareClass | None, Field(description="Class of fare; null if a booking is given.")] = None,
    booking_id: Annotated[
        str, Field(description="Flight booking, such as BF00002: also what it costs to change or cancel now.")
    ] = "",
) -> RulesView:
    """What a class of fare allows and costs to change or cancel. With booking_id also the fees for that booking now;
    cancel_flight needs the fee it tells.
    """
    booking = None
    if booking_id:
        booking = need_booking(world, booking_id)
        if fare_class not in (None, booking.fare_class):
            raise ToolError("BAD_FARE_CLASS", f"booking {booking.id} has a {booking.fare_class} fare, not {fare_class}")
        fare_class = booking.fare_class
    if fare_class is None:
        raise ToolError("BAD_FARE_CLASS", "give a fare_class or a booking_id")
    rule = rule_of(world, fare_class)
    return {
        "fare_class": rule.fare_class,
        "cabin": rule.cabin,
        "changeable": rule.change_fee_cents is not None,
        "change_fee_cents": rule.change_fee_cents,
        "refundable": rule.cancel_fee_cents is not None,
        "cancel_fee_cents": rule.cancel_fee_cents,
        "difference_refunded": rule.difference_refunded,
        "seat_fee_cents": rule.seat_fee_cents,
        "baggage_kg": rule.baggage_kg,
        "points_per_euro": rule.points_per_euro,
        "booking": _terms_view(world, booking) if booking is not None and booking.cancelled_at is None else None,
    }


@tool(latency=2)
def hold_flight(
    world: World,
    /,
    flight_id: FlightId,
    fare_class: FareName,
    seats: Annotated[int, Field(ge=1, le=9, description="How many seats, one for each traveller.")],
    quoted_price_cents: QuotedPrice,
) -> HoldView:
    """Keep seats at the quoted price for 30 minutes; book_flight needs the hold. Fails with SOLD_OUT, FLIGHT_CANCELLED,
    SALES_CLOSED, or FARE_CHANGED if the price is no longer the quoted one.
    """
    flight = need_flight(world, flight_id)
    fare = need_fare(world, flight, fare_class)
    check_sellable(world, flight)
    check_seats(world, flight, fare, seats)
    price = quote(world, flight, fare)
    check_price(price, quoted_price_cents, flight, fare_class)
    hold = world.put(
        Hold(world.new_id(Hold), flight.id, fare_class, seats, price, expires_at=world.now + HOLD_TIME, state="open")
    )
    return {
        "hold_id": hold.id,
        "flight_id": flight.id,
        "fare_class": fare_class,
        "seats": seats,
        "price_cents": price,
        "total_cents": price * seats,
        "expires_at": iso(hold.expires_at),
    }


def need_booking(world: World, booking_id: str) -> FlightBooking:
    """The flight booking; fails with ``NOT_FOUND``."""
    return world.need(
        FlightBooking, booking_id, message=f"there is no flight booking {booking_id!r}; use list_bookings"
    )


def flight_view(world: World, flight: Flight) -> FlightView:
    """A flight with its fares."""
    held = held_seats(world, flight.id)
    return {
        "flight_id": flight.id,
        "number": flight.number,
        "origin": flight.origin,
        "destination": flight.destination,
        "departs_at": iso(flight.departs_at),
        "arrives_at": iso(flight.arrives_at),
        "duration_minutes": (flight.arrives_at - flight.departs_at) // MINUTE,
        "cancelled": flight.cancelled,
        "fares": [
            {
                "fare_class": fare.fare_class,
                "cabin": rule_of(world, fare.fare_class).cabin,
                "price_cents": quote(world, flight, fare, left),
                "seats_left": left,
            }
            for fare in world.find(Fare, flight_id=flight.id)
            for left in (fare.seats_left - held.get(fare.fare_class, 0),)
        ],
    }


def _code(world: World, code: str) -> str:
    wanted = code.strip().upper()
    return world.need(Airport, wanted, message=f"there is no airport {code!r}; use search_airports").code


def _terms_view(world: World, booking: FlightBooking) -> BookingTerms:
    now = terms(world, booking)
    back = refund(booking, now.cancel_cents) if now.cancel_cents is not None else None
    return {
        "booking_id": booking.id,
        "change_fee_cents": now.change_cents,
        "cancel_fee_cents": now.cancel_cents,
        "refund_cents": back[0] if back else None,
        "points_returned": back[1] if back else None,
    }


FLIGHTS: Final[list[FunctionTool]] = [
    search_airports,
    search_flights,
    get_flight,
    get_seat_map,
    get_fare_rules,
    hold_flight,
]
