"""Months: their names, their order, and when they are locked."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.budget.rows import CLOCK, SessionClock
from callwright_plugins.mcp_environments.times import DAY, WEEK, iso_date, month_of

#: A month is locked so long after its end, and budgets are made so many months ahead.
LOCKS_AFTER: Final = 10 * DAY
AHEAD: Final = 12


@lru_cache(maxsize=4096)
def later(month: str, steps: int = 1) -> str:
    """The month so many steps later."""
    number = int(month[:4]) * 12 + int(month[5:]) - 1 + steps
    return f"{number // 12:04d}-{number % 12 + 1:02d}"


@lru_cache(maxsize=4096)
def begins(month: str) -> int:
    """The midnight (UTC) with which a month begins."""
    return int(datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC).timestamp())


def span(first: str, last: str) -> list[str]:
    """The months from one to another, both included."""
    found = []
    while first <= last:
        found.append(first)
        first = later(first)
    return found


def is_locked(world: World, month: str) -> bool:
    """Whether nothing in a month may change any more."""
    return world.now >= begins(later(month)) + LOCKS_AFTER


def horizon(world: World) -> str:
    """The last month for which budgets are made."""
    return later(month_of(world.now), AHEAD)


def chosen(world: World, month: str) -> str:
    """The month itself, or the one of now for ``""``. Fails with ``BAD_MONTH``."""
    if not month:
        return month_of(world.now)
    first, last = world.need(SessionClock, CLOCK).first_month, horizon(world)
    if not "01" <= month[5:] <= "12" or not first <= month <= last:
        raise ToolError("BAD_MONTH", f"{month!r} is not a month from {first} to {last}")
    return month


def refuse_locked(world: World, month: str) -> None:
    """Fails with ``MONTH_LOCKED``."""
    if is_locked(world, month):
        raise ToolError(
            "MONTH_LOCKED",
            f"{month} is locked since {iso_date(begins(later(month)) + LOCKS_AFTER)}; nothing in it can change",
        )


def next_day(day: int, every: str, anchor_day: int) -> int:
    """A week later, or the anchor day of the next month (its last day where it is shorter)."""
    if every == "week":
        return day + WEEK
    month = later(month_of(day))
    return begins(month) + (min(anchor_day, monthrange(int(month[:4]), int(month[5:]))[1]) - 1) * DAY
