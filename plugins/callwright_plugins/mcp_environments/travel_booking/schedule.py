"""The schedule: which days, routes and cities there are, so that a search can say why it found nothing."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.times import DAY, iso_date
from callwright_plugins.mcp_environments.travel_booking.rows import Airport, Flight, Hotel, RoomNight


def explain_no_flights(world: World, start: str, end: str, day: int) -> None:
    """Warn if a search found nothing because of a route that nobody flies, or a day that no schedule covers.

    ``day`` is a midnight in seconds; 0 is any day, and an empty ``end`` any airport.
    """
    flown = sorted({flight.destination for flight in world.find(Flight, origin=start)})
    if end and end not in flown:
        world.warn("ROUTE_NOT_FLOWN", f"nobody flies from {start} to {end}; from {start} they go to {', '.join(flown)}")
        return
    span = world.derived(_flight_days, Flight)
    if day and span is not None and not span[0] <= day + DAY - 1 <= span[1] + DAY - 1:
        world.warn(
            "OUTSIDE_SCHEDULE",
            f"flights of {iso_date(day)} are not on sale: the schedule is from {iso_date(span[0])} to "
            f"{iso_date(span[1])}, and it is {iso_date(world.now)} now",
        )


def explain_no_rooms(world: World, days: Sequence[str]) -> None:
    """Warn if a search found no room because of nights that are not on sale anywhere."""
    span = world.derived(_hotel_nights, RoomNight)
    if days and span is not None and (days[0] < span[0] or days[-1] > span[1]):
        world.warn(
            "OUTSIDE_SCHEDULE",
            f"nights from {days[0]} to {days[-1]} are not all on sale: hotels sell those from {span[0]} to {span[1]}, "
            f"and it is {iso_date(world.now)} now",
        )


def explain_no_nights(world: World, days: Sequence[str]) -> None:
    """Warn if none of these nights is on sale anywhere."""
    span = world.derived(_hotel_nights, RoomNight)
    if span is not None and (days[-1] < span[0] or days[0] > span[1]):
        world.warn(
            "OUTSIDE_SCHEDULE",
            f"nights from {days[0]} to {days[-1]} are not on sale: hotels sell those from {span[0]} to {span[1]}, and "
            f"it is {iso_date(world.now)} now",
        )


def check_city(world: World, city: str) -> None:
    """Fails with ``NOT_FOUND`` for a city that has neither a hotel nor an airport. ``city`` is in lower case."""
    known = world.derived(_cities, Hotel, Airport)
    if city not in known:
        raise ToolError("NOT_FOUND", f"there is no city {city!r}; there are {', '.join(known.values())}")


def _flight_days(world: World) -> tuple[int, int] | None:
    """The midnights with which the first and the last day of departures begin."""
    times = [flight.departs_at for flight in world.rows(Flight)]
    return (min(times) // DAY * DAY, max(times) // DAY * DAY) if times else None


def _hotel_nights(world: World) -> tuple[str, str] | None:
    days = [night.day for night in world.rows(RoomNight)]
    return (min(days), max(days)) if days else None


def _cities(world: World) -> dict[str, str]:
    """Cities by their names in lower case."""
    names = {hotel.city for hotel in world.rows(Hotel)} | {airport.city for airport in world.rows(Airport)}
    return {name.lower(): name for name in sorted(names)}
