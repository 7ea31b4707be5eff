"""Times as tools write and read them: ISO 8601 in UTC outside, seconds of the Unix clock inside."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from callwright.tools.spec import ToolError

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86_400
WEEK: Final = 7 * DAY
#: The years in which worlds live, with room on both sides for what tools add to a time.
_FIRST_YEAR, _LAST_YEAR = 1900, 2900


@lru_cache(maxsize=65536)
def iso(seconds: int) -> str:
    """``2026-03-02T09:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=65536)
def iso_date(seconds: int) -> str:
    """``2026-03-02``: the day in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


@lru_cache(maxsize=65536)
def month_of(seconds: int) -> str:
    """``2026-03``: the month in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def parse_time(text: str, code: str = "BAD_TIME") -> int:
    """Seconds of an ISO 8601 time; without an offset it is UTC, a day alone its midnight. Else fails with ``code``.

    So do years before 1900 and after 2900: nothing happens there.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            raise ValueError
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp())
    except (ValueError, OverflowError):
        raise ToolError(code, f"{text[:40]!r} is not a time such as 2026-03-02T09:00:00Z") from None


def parse_day(text: str, code: str = "BAD_DATE") -> int:
    """Seconds of the midnight (UTC) with which a day such as ``2026-03-02`` begins. Else fails with ``code``."""
    try:
        day = date.fromisoformat(text.strip())
        if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            raise ValueError
        return int((day - date(1970, 1, 1)) / timedelta(seconds=1))
    except (ValueError, OverflowError):
        raise ToolError(code, f"{text[:40]!r} is not a day such as 2026-03-02") from None
