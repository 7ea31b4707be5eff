"""Tools that book flights and change what is booked: seats, other flights, cancelling."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import iso, iso_date
from callwright_plugins.mcp_environments.travel_booking.fares import (
    CLOSING,
    check_price,
    check_seats,
    check_sellable,
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
from callwright_plugins.mcp_environments.travel_booking.flights import FlightId, QuotedPrice, need_booking
from callwright_plugins.mcp_environments.travel_booking.party import (
    ADULT,
    age_on,
    check_party,
    check_points,
    earn,
    give_back,
    lose,
    need_travelers,
    spend,
)
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Fare,
    FareClass,
    Flight,
    FlightBooking,
    Hold,
    Seat,
    Traveler,
)

FlightStatus = Literal["confirmed", "departed", "cancelled", "cancelled_by_airline"]
BookingId = Annotated[str, Field(description="Flight booking id, such as BF00002, from list_bookings.", max_length=40)]
Points = Annotated[int, Field(ge=0, description="Points to pay with, worth a cent each.")]


class SeatOf(TypedDict):
    """Who sits where; null is no seat chosen yet."""

    traveler_id: str
    name: str
    seat: Annotated[str | None, Field(description="null: none chosen yet.")]


class FlightBookingView(TypedDict):
    """A booked flight."""

    booking_id: str
    kind: Literal["flight"]
    status: FlightStatus
    flight_id: str
    number: str
    origin: str
    destination: str
    departs_at: Annotated[str, Field(description="UTC.")]
    arrives_at: Annotated[str, Field(description="UTC.")]
    fare_class: FareClass
    travelers: list[SeatOf]
    fare_cents: Annotated[int, Field(description="For all travellers.")]
    fees_cents: Annotated[int, Field(description="Of seats and changes.")]
    points_used: Annotated[int, Field(description="Paid with, a cent each.")]
    refunded_cents: Annotated[int, Field(description="So far.")]
    points_returned: Annotated[int, Field(description="Of those that were paid with.")]


class SeatChoice(TypedDict):
    """A chosen seat and what was charged for it now."""

    booking_id: str
    traveler_id: str
    seat: str
    charged_cents: Annotated[int, Field(description="Now, for this seat.")]


class Change(TypedDict):
    """A changed booking: the fee, the difference of fares (below zero: to the customer), and what that comes to."""

    booking: FlightBookingView
    fee_cents: Annotated[int, Field(description="For all travellers.")]
    difference_cents: Annotated[
        int, Field(description="New fare less the old one; below zero: the new one is cheaper.")
    ]
    charged_cents: Annotated[int, Field(description="Fee and difference; 0 if nothing is.")]
    refunded_cents: Annotated[int, Field(description="In money.")]
    points_returned: Annotated[int, Field(description="Of those that were paid with.")]


class Cancellation(TypedDict):
    """What a cancelled booking gives back."""

    booking_id: str
    fee_cents: Annotated[int, Field(description="For all travellers; taken off the refund.")]
    refund_cents: Annotated[int, Field(description="In money.")]
    points_returned: Annotated[int, Field(description="Of those that were paid with.")]


@tool(latency=5, irreversible=True)
def book_flight(
    world: World,
    /,
    hold_id: Annotated[str, Field(description="Hold id, such as HO00001, from hold_flight.", max_length=40)],
    traveler_ids: Annotated[
        list[str], Field(min_length=1, max_length=9, description="Different travellers, one for each held seat.")
    ],
    points_to_use: Points = 0,
) -> FlightBookingView:
    """Book the held seats for travellers at the held price. Fails with HOLD_EXPIRED, TRAVELER_COUNT,
    TRAVELER_DOC_MISSING (abroad each needs a passport valid on arrival), ADULT_REQUIRED, TRAVELER_CONFLICT or
    INSUFFICIENT_POINTS.
    """
    hold = world.need(Hold, hold_id, message=f"there is no hold {hold_id!r}; use hold_flight")
    if hold.state == "booked":
        raise ToolError("INVALID_STATE", f"hold {hold.id} has been booked; see list_bookings")
    if world.now >= hold.expires_at:
        raise ToolError("HOLD_EXPIRED", f"hold {hold.id} expired at {iso(hold.expires_at)}; hold the seats again")
    flight = world.need(Flight, hold.flight_id)
    check_sellable(world, flight)
    if len(traveler_ids) != hold.seats:
        raise ToolError("TRAVELER_COUNT", f"hold {hold.id} is for {hold.seats} travellers, not {len(traveler_ids)}")
    check_party(world, flight, need_travelers(world, traveler_ids))
    price = hold.price_cents * hold.seats
    check_points(world, points_to_use, price)
    fare = need_fare(world, flight, hold.fare_class)
    world.update(hold, state="booked")
    world.update(fare, seats_left=fare.seats_left - hold.seats)
    booking = world.put(
        FlightBooking(
            id=world.new_id(FlightBooking),
            flight_id=flight.id,
            fare_class=hold.fare_class,
            traveler_ids=tuple(traveler_ids),
            booked_at=world.now,
            cancelled_at=None,
            fare_cents=price,
            fees_cents=0,
            points_used=points_to_use,
            refunded_cents=0,
            points_returned=0,
        )
    )
    spend(world, points_to_use, price, booking.id)
    earn(world, price - points_to_use, flight.departs_at, booking.id, rule_of(world, booking.fare_class))
    return booking_view(world, booking)


@tool(cost="charged_cents", latency=1)
def select_seat(
    world: World,
    /,
    booking_id: BookingId,
    traveler_id: Annotated[str, Field(description="A traveller of the booking, such as T00001.", max_length=40)],
    seat: Annotated[str, Field(description="Seat of the map, such as 12A.", pattern=r"^[0-9]{1,2}[A-Fa-f]$")],
) -> SeatChoice:
    """Choose a seat for a traveller, or another one in its place; only what the new one costs more is charged. Fails
    with SEAT_TAKEN, WRONG_CABIN, SEAT_RESTRICTED (children in an exit row), and once the flight is closed.
    """
    booking = active_booking(world, booking_id)
    flight = world.need(Flight, booking.flight_id)
    if flight.cancelled:
        raise ToolError(
            "FLIGHT_CANCELLED", f"the airline cancelled flight {flight.number} ({flight.id}): nobody sits in it"
        )
    _check_open(world, flight)
    if traveler_id not in booking.traveler_ids:
        raise ToolError("NOT_FOUND", f"traveller {traveler_id!r} is not on booking {booking.id}")
    place = next((place for place in places(flight) if place.seat == seat.upper()), None)
    if place is None:
        raise ToolError("NOT_FOUND", f"flight {flight.id} has no seat {seat}; use get_seat_map")
    rule = rule_of(world, booking.fare_class)
    if place.cabin != rule.cabin:
        raise ToolError("WRONG_CABIN", f"seat {place.seat} is in {place.cabin}, and the fare is for {rule.cabin}")
    now = next((one for one in world.find(Seat, booking_id=booking.id) if one.traveler_id == traveler_id), None)
    if place.seat in taken(world, flight) and (now is None or now.seat != place.seat):
        raise ToolError("SEAT_TAKEN", f"seat {place.seat} on {flight.number} ({flight.id}) is taken; see get_seat_map")
    traveler = world.need(Traveler, traveler_id)
    if place.exit_row and age_on(traveler.birth_date, iso_date(flight.departs_at)) < ADULT:
        raise ToolError("SEAT_RESTRICTED", f"seat {place.seat} is in an exit row, which is not for children")
    before = now.fee_cents if now else 0
    fee = max(seat_fee(rule, place), before)
    if now is not None:
        world.drop(now)
    world.put(Seat(flight.id, place.seat, booking.id, traveler_id, fee))
    world.update(booking, fees_cents=booking.fees_cents + fee - before)
    return {"booking_id": booking.id, "traveler_id": traveler_id, "seat": place.seat, "charged_cents": fee - before}


@tool(cost="fee_cents", latency=4, irreversible=True)
def change_flight(
    world: World, /, booking_id: BookingId, new_flight_id: FlightId, quoted_price_cents: QuotedPrice
) -> Change:
    """Move a booking to another flight between the same airports, in the same class of fare. Costs the change fee and
    the difference to the quoted price; chosen seats are given up. Fails with NOT_CHANGEABLE, ROUTE_MISMATCH,
    SOLD_OUT, FARE_CHANGED, or as book_flight does.
    """
    booking = active_booking(world, booking_id)
    old, new = world.need(Flight, booking.flight_id), need_flight(world, new_flight_id)
    if not old.cancelled:
        _check_open(world, old)
    if new.id == old.id:
        raise ToolError("SAME_FLIGHT", f"booking {booking.id} is for flight {old.id} already")
    if new.route != old.route:
        raise ToolError(
            "ROUTE_MISMATCH", f"booking {booking.id} is from {old.origin} to {old.destination}, not {new.route}"
        )
    fee = terms(world, booking).change_cents
    if fee is None:
        raise ToolError("NOT_CHANGEABLE", f"the {booking.fare_class} fare of booking {booking.id} cannot be changed")
    people = len(booking.traveler_ids)
    fare = need_fare(world, new, booking.fare_class)
    check_sellable(world, new)
    check_seats(world, new, fare, people)
    price = quote(world, new, fare)
    check_price(price, quoted_price_cents, new, booking.fare_class)
    check_party(world, new, need_travelers(world, booking.traveler_ids), booking.id)
    difference = price * people - booking.fare_cents
    if difference < 0 and not rule_of(world, booking.fare_class).difference_refunded:
        difference = 0
    charge, surplus = max(difference + fee, 0), max(-(difference + fee), 0)
    # Points that paid for the old fare do not turn into money: they come back as points.
    back = min(surplus, booking.fare_cents + booking.fees_cents - booking.points_used)
    world.update(fare, seats_left=fare.seats_left - people)
    _release(world, booking)
    changed = world.update(
        booking,
        flight_id=new.id,
        fare_cents=booking.fare_cents + difference,
        fees_cents=booking.fees_cents + fee,
        points_used=booking.points_used - (surplus - back),
    )
    give_back(world, surplus - back, booking.id)
    lose(world, booking.id)
    earn(
        world,
        max(changed.fare_cents - changed.points_used, 0),
        new.departs_at,
        booking.id,
        rule_of(world, booking.fare_class),
    )
    return {
        "booking": booking_view(world, changed),
        "fee_cents": fee,
        "difference_cents": difference,
        "charged_cents": charge,
        "refunded_cents": back,
        "points_returned": surplus - back,
    }


@tool(destructive=True, cost="fee_cents", latency=3, irreversible=True)
def cancel_flight(
    world: World,
    /,
    booking_id: BookingId,
    accepted_fee_cents: Annotated[
        int,
        Field(ge=0, description="The cancel fee that get_fare_rules tells for the booking and the customer accepts."),
    ] = 0,
) -> Cancellation:
    """Cancel a flight booking; the fee is taken off the refund, and points earned with it are lost. Fails with
    NON_REFUNDABLE, and with FEE_NOT_ACCEPTED unless accepted_fee_cents is the fee of now (get_fare_rules).
    """
    booking = active_booking(world, booking_id)
    flight = world.need(Flight, booking.flight_id)
    if not flight.cancelled:
        _check_open(world, flight)
    fee = terms(world, booking).cancel_cents
    if fee is None:
        raise ToolError("NON_REFUNDABLE", f"the {booking.fare_class} fare of booking {booking.id} is not refundable")
    if fee != accepted_fee_cents:
        raise ToolError(
            "FEE_NOT_ACCEPTED",
            f"cancelling booking {booking.id} does not cost {accepted_fee_cents} cents; get_fare_rules tells the fee",
        )
    money, points = refund(booking, fee)
    _release(world, booking)
    world.update(booking, cancelled_at=world.now, refunded_cents=booking.refunded_cents + money, points_returned=points)
    lose(world, booking.id)
    give_back(world, points, booking.id)
    return {"booking_id": booking.id, "fee_cents": fee, "refund_cents": money, "points_returned": points}


def active_booking(world: World, booking_id: str) -> FlightBooking:
    """The booking, if it is not cancelled; fails with ``INVALID_STATE``."""
    booking = need_booking(world, booking_id)
    if booking.cancelled_at is not None:
        raise ToolError("INVALID_STATE", f"booking {booking.id} is cancelled")
    return booking


def _check_open(world: World, flight: Flight) -> None:
    """Fails with ``DEPARTURE_CLOSED`` from an hour before departure."""
    if world.now >= flight.departs_at - CLOSING:
        raise ToolError(
            "DEPARTURE_CLOSED",
            f"flight {flight.number} ({flight.id}) leaves at {iso(flight.departs_at)}; nothing can be changed any more",
        )


def _release(world: World, booking: FlightBooking) -> None:
    """Give up the seats of a booking."""
    fare = world.need(Fare, (booking.flight_id, booking.fare_class))
    world.update(fare, seats_left=fare.seats_left + len(booking.traveler_ids))
    for seat in world.find(Seat, booking_id=booking.id):
        world.drop(seat)


def flight_status(world: World, booking: FlightBooking) -> FlightStatus:
    """Where a booking is now."""
    flight = world.need(Flight, booking.flight_id)
    if booking.cancelled_at is not None:
        return "cancelled"
    if flight.cancelled:
        return "cancelled_by_airline"
    return "departed" if world.now >= flight.departs_at else "confirmed"


def booking_view(world: World, booking: FlightBooking) -> FlightBookingView:
    """A booked flight."""
    flight = world.need(Flight, booking.flight_id)
    seats = {seat.traveler_id: seat.seat for seat in world.find(Seat, booking_id=booking.id)}
    people = [world.need(Traveler, name) for name in booking.traveler_ids]
    return {
        "booking_id": booking.id,
        "kind": "flight",
        "status": flight_status(world, booking),
        "flight_id": flight.id,
        "number": flight.number,
        "origin": flight.origin,
        "destination": flight.destination,
        "departs_at": iso(flight.departs_at),
        "arrives_at": iso(flight.arrives_at),
        "fare_class": booking.fare_class,
        "travelers": [
            {"traveler_id": one.id, "name": f"{one.first_name} {one.last_name}", "seat": seats.get(one.id)}
            for one in people
        ],
        "fare_cents": booking.fare_cents,
        "fees_cents": booking.fees_cents,
        "points_used": booking.points_used,
        "refunded_cents": booking.refunded_cents,
        "points_returned": booking.points_returned,
    }


TRIPS: Final[list[FunctionTool]] = [book_flight, select_seat, change_flight, cancel_flight]
