"""What a phone and an account know of their user: places, day, clock, currency, language."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, Literal

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import CityName, Clock, Currency, Day, Domain
from callwright_plugins.depthbench.world import CITIES, WEEKDAYS, Context

DOMAIN: Final = Domain("profile")


class Located(TypedDict):
    """A place and its country."""

    place: CityName
    country: str


class CalendarDay(TypedDict):
    """A day and its weekday."""

    day: Day
    weekday: str


class ClockReading(TypedDict):
    """A time of day."""

    clock: Clock


class AccountCurrency(TypedDict):
    """A currency."""

    currency: Currency


class ReadingLanguage(TypedDict):
    """A language."""

    language: Literal["English", "French", "German", "Italian", "Spanish"]


def _at(city: str) -> Located:
    return {"place": city, "country": CITIES[city].country}


@DOMAIN.tool("information", "place")
def locate_phone(context: Context, /) -> Located:
    """The city in which the user's phone is at the moment."""
    return _at(context.city)


@DOMAIN.tool("information", "place")
def locate_office(context: Context, /) -> Located:
    """The city in which the user's office is."""
    return _at(context.office)


@DOMAIN.tool("information", "place")
def look_up_birthplace(context: Context, /) -> Located:
    """The city in which the user was born."""
    return _at(context.birthplace)


@DOMAIN.tool("information", "day")
def read_calendar_day(context: Context, /) -> CalendarDay:
    """The current day for the user."""
    return {"day": context.today.isoformat(), "weekday": WEEKDAYS[context.today.weekday()]}


@DOMAIN.tool("information", "day")
def read_next_saturday(context: Context, /) -> CalendarDay:
    """The day of the coming Saturday for the user."""
    day = context.today + timedelta(days=(5 - context.today.weekday()) % 7 or 7)
    return {"day": day.isoformat(), "weekday": "Saturday"}


@DOMAIN.tool("information", "clock")
def read_clock(context: Context, /) -> ClockReading:
    """The time on the user's phone."""
    return {"clock": context.time}


@DOMAIN.tool("information", "currency")
def look_up_account_currency(context: Context, /) -> AccountCurrency:
    """The currency of the user's bank account."""
    return {"currency": context.account_currency}  # type: ignore[typeddict-item]


@DOMAIN.tool("information", "language")
def look_up_reading_language(context: Context, /) -> ReadingLanguage:
    """The language in which the user prefers to read."""
    return {"language": context.language}  # type: ignore[typeddict-item]
