"""What happens to holds: they lapse unless they are booked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.travel_booking.rows import Flight, Hold


def _end(hold: Hold) -> Moment:
    return hold.expires_at, hold.id


def _due(world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(Hold, _end, _end), since):
        if world.need(Hold, moment[1]).state == "open":
            return moment
    return None


def _tells(world: World, hold_id: str, _: Any) -> Iterable[Notice]:
    hold = world.need(Hold, hold_id)
    flight = world.need(Flight, hold.flight_id)
    seats = "1 seat" if hold.seats == 1 else f"{hold.seats} seats"
    yield Notice(f"Your hold {hold.id} of {seats} on {flight.number} ({flight.route}, {flight.id}) has lapsed.")


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind("hold_lapsed", "Seats are no longer held: the traveller is told.", _due, _tells),
)
