"""When several people are free at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from callwright.environments.world import World
from callwright_plugins.mcp_environments.calendar.agenda import busy
from callwright_plugins.mcp_environments.calendar.recurrence import zone_of
from callwright_plugins.mcp_environments.calendar.rows import Person

Span = tuple[int, int]
#: Windows begin at multiples of this many seconds.
GRID: Final = 900


def free_windows(
    world: World, people: Sequence[Person], low: int, high: int, length: int, working_hours_only: bool
) -> list[Span]:
    """The longest spans between ``low`` and ``high`` in which all are free for at least ``length`` seconds."""
    left: list[Span] = [(low, high)]
    for person in people:
        if working_hours_only:
            left = _both(left, working_hours(person.time_zone, person.work_start, person.work_end, low, high))
        left = _without(left, ((one.start, one.end) for one in busy(world, person.id, low, high)))
    rounded = ((-(-start // GRID) * GRID, end) for start, end in left)
    return [(start, end) for start, end in rounded if end - start >= length]


@lru_cache(maxsize=4096)
def working_hours(time_zone: str, work_start: int, work_end: int, low: int, high: int) -> tuple[Span, ...]:
    """Somebody's working hours, Monday to Friday, that overlap with a span; minutes of the local day."""
    zone = zone_of(time_zone)
    day = datetime.fromtimestamp(low, zone).date() - timedelta(days=1)
    found: list[Span] = []
    while True:
        midnight = datetime(day.year, day.month, day.day)
        # Wall-clock minutes are added before the zone is put on: on the day the clocks change, 9:00 is still 9:00.
        start, end = (
            int((midnight + timedelta(minutes=minutes)).replace(tzinfo=zone).timestamp())
            for minutes in (work_start, work_end)
        )
        if start >= high:
            return tuple(found)
        if day.weekday() < 5 and end > low:
            found.append((start, end))
        day += timedelta(days=1)


def _both(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    found: list[Span] = []
    one = other = 0
    while one < len(left) and other < len(right):
        start, end = max(left[one][0], right[other][0]), min(left[one][1], right[other][1])
        if start < end:
            found.append((start, end))
        if left[one][1] < right[other][1]:
            one += 1
        else:
            other += 1
    return found


def _without(left: Sequence[Span], taken: Iterable[Span]) -> list[Span]:
    """What is left of spans in order when others, ordered by their starts, are taken out."""
    found = list(left)
    for start, end in taken:
        found = [
            piece
            for span in found
            for piece in ((span[0], min(span[1], start)), (max(span[0], end), span[1]))
            if piece[0] < piece[1]
        ]
    return found
