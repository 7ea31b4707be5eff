"""Prices of fares, seats left, seat maps, and what the rules of a fare cost at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE, iso
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Cabin,
    Fare,
    FareClass,
    FareRule,
    Flight,
    FlightBooking,
    Hold,
    Seat,
)

Position = Literal["window", "middle", "aisle"]

HOLD_TIME: Final = 30 * MINUTE
#: How long before departure flights are no longer sold, changed or cancelled, and seats no longer chosen.
CLOSING: Final = HOUR
#: Both within the first of booking, and the second before departure: changing and cancelling are free.
GRACE: Final = DAY
GRACE_DEPARTURE: Final = 7 * DAY
LEGROOM_FEE: Final = 2500
BUSINESS_ROWS: Final = 3
_ECONOMY: Final[tuple[tuple[str, Position], ...]] = (
    ("A", "window"),
    ("B", "middle"),
    ("C", "aisle"),
    ("D", "aisle"),
    ("E", "middle"),
    ("F", "window"),
)
_BUSINESS: Final[tuple[tuple[str, Position], ...]] = (("A", "window"), ("C", "aisle"), ("D", "aisle"), ("F", "window"))


# Prices and seats left ------------------------------------------------------------------------------------------------


def quote(world: World, flight: Flight, fare: Fare, left: int | None = None) -> int:
    """What a seat costs now, in cents of whole euros: more when two thirds are gone, and more near departure."""
    left = free_seats(world, fare) if left is None else left
    percent = 110 if left * 3 <= fare.capacity else 100
    ahead = flight.departs_at - world.now
    percent += 30 if ahead < 3 * DAY else 15 if ahead < 14 * DAY else 0
    return fare.base_cents * percent // 100 // 100 * 100


def free_seats(world: World, fare: Fare) -> int:
    """How many seats a fare can still sell: those that are not held."""
    return fare.seats_left - held_seats(world, fare.flight_id).get(fare.fare_class, 0)


def held_seats(world: World, flight_id: str) -> dict[str, int]:
    """How many seats of a flight are held, by class of fare."""
    held: dict[str, int] = {}
    for hold in world.find(Hold, flight_id=flight_id):
        if hold.state == "open" and hold.expires_at > world.now:
            held[hold.fare_class] = held.get(hold.fare_class, 0) + hold.seats
    return held


def need_flight(world: World, flight_id: str) -> Flight:
    """The flight; fails with ``NOT_FOUND``."""
    return world.need(Flight, flight_id, message=f"there is no flight {flight_id!r}; use search_flights")


def need_fare(world: World, flight: Flight, fare_class: FareClass) -> Fare:
    """The fare of a flight; fails with ``NOT_FOUND`` for a class that it does not sell."""
    return world.need(
        Fare, (flight.id, fare_class), message=f"flight {flight.id} has no {fare_class} fare; get_flight lists them"
    )


def rule_of(world: World, fare_class: FareClass) -> FareRule:
    """The rules of a class of fare."""
    return world.need(FareRule, fare_class)


def check_sellable(world: World, flight: Flight) -> None:
    """Fails with ``FLIGHT_CANCELLED`` or ``SALES_CLOSED``."""
    if flight.cancelled:
        raise ToolError("FLIGHT_CANCELLED", f"the airline cancelled flight {flight.number} ({flight.id})")
    if world.now >= flight.departs_at - CLOSING:
        raise ToolError(
            "SALES_CLOSED",
            f"flight {flight.number} ({flight.id}) leaves at {iso(flight.departs_at)}; sales end 1 h before",
        )


def check_seats(world: World, flight: Flight, fare: Fare, seats: int) -> None:
    """Fails with ``SOLD_OUT`` if a fare has fewer seats."""
    left = free_seats(world, fare)
    if left < seats:
        raise ToolError(
            "SOLD_OUT", f"{left} {fare.fare_class} seats are left on {flight.number} ({flight.id}), not {seats}"
        )


def check_price(price: int, quoted: int, flight: Flight, fare_class: FareClass) -> None:
    """Fails with ``FARE_CHANGED`` unless the price is the one that was quoted."""
    if price != quoted:
        raise ToolError(
            "FARE_CHANGED",
            f"a {fare_class} seat on {flight.number} ({flight.id}) costs {price} cents now, not {quoted}; ask the "
            "customer and call again with the new price",
        )


# The rules at a time --------------------------------------------------------------------------------------------------


@frozen
class Terms:
    """What changing or cancelling a booking costs now, for all travellers; ``None`` is not allowed."""

    change_cents: int | None
    cancel_cents: int | None


def terms(world: World, booking: FlightBooking) -> Terms:
    """The rules of a booking's fare as they are now."""
    flight, rule = world.need(Flight, booking.flight_id), rule_of(world, booking.fare_class)
    fresh = world.now - booking.booked_at < GRACE and flight.departs_at - world.now >= GRACE_DEPARTURE
    if flight.cancelled or fresh:
        return Terms(0, 0)
    people = len(booking.traveler_ids)
    return Terms(
        None if rule.change_fee_cents is None else rule.change_fee_cents * people,
        None if rule.cancel_fee_cents is None else rule.cancel_fee_cents * people,
    )


def refund(booking: FlightBooking, fee: int) -> tuple[int, int]:
    """What cancelling at a fee gives back, in cents and points: the fee is taken from the money first."""
    money = booking.fare_cents + booking.fees_cents - booking.points_used
    return max(money - fee, 0), max(booking.points_used - max(fee - money, 0), 0)


# Seat maps ------------------------------------------------------------------------------------------------------------


@frozen
class Place:
    """A seat of an aircraft."""

    seat: str
    row: int
    cabin: Cabin
    position: Position
    exit_row: bool

    @property
    def legroom(self) -> bool:
        """Whether it has more room: exit rows and the first row of economy."""
        return self.exit_row or self.row == BUSINESS_ROWS + 1


def places(flight: Flight) -> tuple[Place, ...]:
    """The seats of a flight's aircraft from front to back."""
    return _layout(flight.rows)


@lru_cache(maxsize=64)
def _layout(rows: int) -> tuple[Place, ...]:
    exit_row = BUSINESS_ROWS + rows // 2
    return tuple(
        Place(f"{row}{letter}", row, "business" if row <= BUSINESS_ROWS else "economy", position, row == exit_row)
        for row in range(1, BUSINESS_ROWS + rows + 1)
        for letter, position in (_BUSINESS if row <= BUSINESS_ROWS else _ECONOMY)
    )


def seat_fee(rule: FareRule, place: Place) -> int:
    """What a fare pays for a seat."""
    if rule.cabin == "business":
        return 0
    return LEGROOM_FEE if place.legroom else rule.seat_fee_cents


def taken(world: World, flight: Flight) -> set[str]:
    """The seats that somebody has."""
    return {*flight.occupied, *(seat.seat for seat in world.rows(Seat) if seat.flight_id == flight.id)}
