"""Travellers and points: who may fly, what bookings earn, and what is there to spend."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final, Literal

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.times import DAY, iso_date
from callwright_plugins.mcp_environments.travel_booking.rows import (
    Airport,
    FareRule,
    Flight,
    FlightBooking,
    LoyaltyEntry,
    Traveler,
)

Tier = Literal["member", "silver", "gold"]

ADULT: Final = 18
#: Least points earned in 365 days, and what a tier earns in percent.
TIERS: Final[tuple[tuple[Tier, int, int], ...]] = (("gold", 50_000, 150), ("silver", 20_000, 125), ("member", 0, 100))


def age_on(birth_date: str, day: str) -> int:
    """Whole years from a birth date to a day."""
    born, then = date.fromisoformat(birth_date), date.fromisoformat(day)
    return then.year - born.year - ((then.month, then.day) < (born.month, born.day))


def need_travelers(world: World, ids: Sequence[str]) -> list[Traveler]:
    """The travellers; fails with ``NOT_FOUND``, and with ``DUPLICATE_TRAVELER`` for one who is named twice."""
    for name in ids:
        if list(ids).count(name) > 1:
            raise ToolError("DUPLICATE_TRAVELER", f"traveller {name} is named more than once")
    return [
        world.need(Traveler, name, message=f"there is no traveller {name!r}; use list_travelers or add_traveler")
        for name in ids
    ]


def check_party(world: World, flight: Flight, travelers: Sequence[Traveler], booking_id: str = "") -> None:
    """Fails with ``ADULT_REQUIRED``, ``TRAVELER_DOC_MISSING``, or ``TRAVELER_CONFLICT`` with another booking."""
    day = iso_date(flight.departs_at)
    if not any(age_on(traveler.birth_date, day) >= ADULT for traveler in travelers):
        raise ToolError("ADULT_REQUIRED", f"none of the travellers is {ADULT} on {day}; children fly with an adult")
    countries = {world.need(Airport, code).country for code in (flight.origin, flight.destination)}
    arrival = iso_date(flight.arrives_at)
    for traveler in travelers:
        name = f"{traveler.first_name} {traveler.last_name} ({traveler.id})"
        if len(countries) > 1 and not (traveler.passport_no and traveler.passport_expires >= arrival):
            state = f"a passport that expires on {traveler.passport_expires}" if traveler.passport_no else "no passport"
            raise ToolError(
                "TRAVELER_DOC_MISSING",
                f"{name} has {state} and needs one valid on {arrival}; add_traveler with the same name and birth date "
                "takes a new one",
            )
        for other in world.rows(FlightBooking):
            if other.id == booking_id or other.cancelled_at is not None or traveler.id not in other.traveler_ids:
                continue
            booked = world.need(Flight, other.flight_id)
            if booked.departs_at < flight.arrives_at and flight.departs_at < booked.arrives_at and not booked.cancelled:
                raise ToolError("TRAVELER_CONFLICT", f"{name} is on flight {booked.number} then (booking {other.id})")


# Points ---------------------------------------------------------------------------------------------------------------


def points_available(world: World) -> int:
    """Points that can be spent now."""
    return sum(
        entry.points for entry in world.rows(LoyaltyEntry) if entry.available_at <= world.now and _holds(world, entry)
    )


def _holds(world: World, entry: LoyaltyEntry) -> bool:
    """Whether points were earned for good: a flight that the airline cancelled is no journey."""
    booking = world.get(FlightBooking, entry.booking_id) if entry.reason == "earned" else None
    return booking is None or not world.need(Flight, booking.flight_id).cancelled


def tier(world: World) -> tuple[Tier, int, int]:
    """The customer's tier, the points earned in the last 365 days, and what the tier earns in percent."""
    earned = sum(
        entry.points
        for entry in world.rows(LoyaltyEntry)
        if entry.reason == "earned" and world.now - 365 * DAY < entry.available_at <= world.now and _holds(world, entry)
    )
    return next((name, earned, percent) for name, least, percent in TIERS if earned >= least)


def earn(world: World, cents: int, available_at: int, booking_id: str, rule: FareRule | None = None) -> int:
    """Credit the points of a booking that was paid with so much money; hotels earn five a euro. Returns them."""
    points = cents * (rule.points_per_euro if rule else 5) * tier(world)[2] // 10_000
    if points:
        entry = LoyaltyEntry(world.new_id(LoyaltyEntry), world.now, available_at, points, "earned", booking_id)
        world.put(entry)
    return points


def spend(world: World, points: int, price: int, booking_id: str) -> None:
    """Pay a price partly with points; fails with ``INSUFFICIENT_POINTS`` or ``POINTS_EXCEED_PRICE``."""
    check_points(world, points, price)
    if points:
        world.put(LoyaltyEntry(world.new_id(LoyaltyEntry), world.now, world.now, -points, "spent", booking_id))


def check_points(world: World, points: int, price: int) -> None:
    """Fails with ``INSUFFICIENT_POINTS`` or ``POINTS_EXCEED_PRICE``."""
    available = points_available(world)
    if points > available:
        raise ToolError("INSUFFICIENT_POINTS", f"{available} points can be spent now, not {points}")
    if points > price:
        raise ToolError("POINTS_EXCEED_PRICE", f"the price is {price} cents, so at most {price} points can be used")


def lose(world: World, booking_id: str) -> None:
    """Take back the points that a booking earned; they were not available yet."""
    for entry in world.find(LoyaltyEntry, booking_id=booking_id, reason="earned"):
        world.drop(entry)


def give_back(world: World, points: int, booking_id: str) -> None:
    """Return points that had been spent."""
    if points:
        world.put(LoyaltyEntry(world.new_id(LoyaltyEntry), world.now, world.now, points, "returned", booking_id))
