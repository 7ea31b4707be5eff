"""When the occurrences of a series begin: RFC 5545's daily, weekly and monthly rules in a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.calendar.rows import RecurrenceRule

#: Times that calls may name: 1970 to 2100.
LATEST: Final = 4_102_444_800
_DAY: Final = 86_400


@lru_cache(maxsize=1024)
def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name (``UTC`` or ``Area/City``). Fails with ``TZ_UNKNOWN``."""
    # Names without a slash other than UTC (localtime, posixrules) differ between machines.
    if name == "UTC" or ("/" in name and not name.startswith(("posix/", "right/"))):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    raise ToolError("TZ_UNKNOWN", f"{name[:60]!r} is not a time zone; use an IANA name such as Europe/Berlin, or UTC")


def starts(rule: RecurrenceRule, first: int, zone: ZoneInfo, low: int, high: int) -> Iterator[int]:
    """The starts (seconds, UTC) of a series from ``low`` up to but not including ``high``, in order.

    ``first`` is the series' first start, which the rule itself contains. Whole weeks and days before ``low`` are
    jumped over, so that a series that began years ago costs no more than a new one.
    """
    local = datetime.fromtimestamp(first, zone)
    clock, last = local.time(), LATEST if rule.until is None else rule.until
    for index, day in _days(rule, local.date(), datetime.fromtimestamp(max(low, 0), zone).date() - timedelta(days=1)):
        if rule.count is not None and index >= rule.count:
            return
        start = int(datetime.combine(day, clock, zone).timestamp())
        if start >= high or start > last:
            return
        if start >= low:
            yield start


@lru_cache(maxsize=65536)
def starts_within(rule: RecurrenceRule, first: int, zone: ZoneInfo, low: int, high: int) -> tuple[int, ...]:
    """:func:`starts` of a span that is not long. Remembered: sessions of one scenario ask for the same ones."""
    return tuple(starts(rule, first, zone, low, high))


def first_start(rule: RecurrenceRule, start: int, zone: ZoneInfo) -> int:
    """The first start of a rule at or after ``start``: a weekly rule may not name the weekday of ``start`` itself."""
    if rule.frequency != "weekly":
        return start
    local = datetime.fromtimestamp(start, zone)
    for ahead in range(7):
        day = local.date() + timedelta(days=ahead)
        if day.weekday() in rule.weekdays:
            return int(datetime.combine(day, local.time(), zone).timestamp())
    return start


def is_start(rule: RecurrenceRule, first: int, zone: ZoneInfo, start: int) -> bool:
    """Whether an occurrence begins at ``start``."""
    return next(starts(rule, first, zone, start, start + 1), None) is not None


def _days(rule: RecurrenceRule, first: date, near: date) -> Iterator[tuple[int, date]]:
    """Numbers and days of occurrences, from about ``near`` on."""
    ahead = max(0, (near - first).days)
    if rule.frequency == "daily":
        number = ahead // rule.interval
        while True:
            yield number, first + timedelta(days=number * rule.interval)
            number += 1
    if rule.frequency == "weekly":
        yield from _weekly(rule, first, ahead)
    else:
        yield from _monthly(rule, first)


def _weekly(rule: RecurrenceRule, first: date, ahead: int) -> Iterator[tuple[int, date]]:
    monday = first - timedelta(days=first.weekday())
    before = sum(1 for weekday in rule.weekdays if weekday < first.weekday())  # of the first week, but before it began
    week = ahead // (7 * rule.interval)
    while True:
        for place, weekday in enumerate(rule.weekdays):
            number = week * len(rule.weekdays) + place - before
            if number >= 0:
                yield number, monday + timedelta(days=week * 7 * rule.interval + weekday)
        week += 1


def _monthly(rule: RecurrenceRule, first: date) -> Iterator[tuple[int, date]]:
    number, months = 0, first.year * 12 + first.month - 1
    nth = (first.day - 1) // 7
    while True:
        year, month = divmod(months, 12)
        day = first.day
        if rule.monthly_by == "weekday":
            day = 1 + (first.weekday() - date(year, month + 1, 1).weekday()) % 7 + 7 * nth
        if day <= _length(year, month + 1):
            yield number, date(year, month + 1, day)
            number += 1
        months += rule.interval


def _length(year: int, month: int) -> int:
    following = date(year + month // 12, month % 12 + 1, 1)
    return (following - date(year, month, 1)).days
