"""Times of which a world has records: whoever asks for others is told so, instead of being told that nothing was."""

from __future__ import annotations

from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import iso


def outside(world: World, what: str, first: int, last: int, begin: int, end: int | None) -> str:
    """A sentence, if the time from ``first`` until before ``last`` lies wholly outside of the records.

    These are from ``begin`` to ``end``, both included; with an ``end`` of ``None`` there is no last one. ``what`` names
    them. Empty if a part of the time is inside.
    """
    if last > begin and (end is None or first <= end):
        return ""
    known = f"from {iso(begin)} on" if end is None else f"from {iso(begin)} to {iso(end)}"
    return f"{what} are {known}, which is not the time that was asked for; it is {iso(world.now)} now"


def outside_of_column(world: World, kind: type[Any], column: str, what: str, first: int, last: int) -> str:
    """As :func:`outside`, for records that a column dates, up to now. Empty where there is no record at all."""
    begin = min((getattr(row, column) for row in world.rows(kind)), default=None)
    return "" if begin is None else outside(world, what, first, last, begin, world.now)
