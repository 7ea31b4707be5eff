"""What the customer pays for flights and rooms, less points and what comes back."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Charge, Charges
from callwright.environments.world import World
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Flight,
    FlightBooking,
    Hotel,
    HotelBooking,
    RoomType,
)


def paid_for_flight(world: World, booking: FlightBooking) -> int:
    """Fares, seats and changes; a point is a cent."""
    return booking.fare_cents + booking.fees_cents - booking.points_used - booking.refunded_cents


def flight_told(world: World, booking: FlightBooking) -> str:
    """On the statement."""
    flight = world.need(Flight, booking.flight_id)
    return f"Flight {flight.number} {flight.origin}-{flight.destination}"


def paid_for_room(world: World, booking: HotelBooking) -> int:
    """All nights; a point is a cent."""
    return sum(rate for _, rate in booking.nights) - booking.points_used - booking.refunded_cents


def room_told(world: World, booking: HotelBooking) -> str:
    """On the statement."""
    return f"Stay at {world.need(Hotel, world.need(RoomType, booking.room_type_id).hotel_id).name}"


CHARGES: Final = Charges(
    (Charge(FlightBooking, paid_for_flight, flight_told), Charge(HotelBooking, paid_for_room, room_told)),
    declined="CARD_DECLINED",
)
