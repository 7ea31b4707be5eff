"""When the exchange is open."""

from __future__ import annotations

from typing import Final

from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE, iso_date

OPENS: Final = 8 * HOUR
CLOSES: Final = 16 * HOUR + 30 * MINUTE
HOLIDAYS: Final = frozenset({"2026-01-01", "2026-04-03", "2026-04-06", "2026-05-01", "2026-12-25"})


def is_trading_day(at: int) -> bool:
    """Whether the exchange opens on the day of a time."""
    return (at // DAY + 3) % 7 < 5 and iso_date(at) not in HOLIDAYS  # 1970 began on a Thursday


def is_open(at: int) -> bool:
    """Whether it is open at a time."""
    return OPENS <= at % DAY < CLOSES and is_trading_day(at)


def next_close(at: int) -> int:
    """The first close after a time."""
    close = at // DAY * DAY + CLOSES
    while close <= at or not is_trading_day(close):
        close += DAY
    return close


def next_open(at: int) -> int:
    """The first opening after a time."""
    opening = at // DAY * DAY + OPENS
    while opening <= at or not is_trading_day(opening):
        opening += DAY
    return opening
