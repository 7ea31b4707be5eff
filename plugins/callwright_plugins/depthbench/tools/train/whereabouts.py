"""Where the user is and lives, what day and time it is for them, which currency they use."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import CityName, Clock, Currency, Day, Domain
from callwright_plugins.depthbench.world import CITIES, WEEKDAYS, Context

DOMAIN: Final = Domain("whereabouts")


class Where(TypedDict):
    """A city and its country."""

    city: CityName
    country: str


class When(TypedDict):
    """A date and its weekday."""

    date: Day
    weekday: str


class TimeNow(TypedDict):
    """A time of day."""

    time: Clock


class Preferred(TypedDict):
    """A currency."""

    currency: Currency


@DOMAIN.tool("information", "city")
def get_current_city(context: Context, /) -> Where:
    """The city in which the user is right now."""
    return {"city": context.city, "country": CITIES[context.city].country}


@DOMAIN.tool("information", "city")
def get_home_city(context: Context, /) -> Where:
    """The city in which the user lives."""
    return {"city": context.home, "country": CITIES[context.home].country}


@DOMAIN.tool("information", "date")
def get_todays_date(context: Context, /) -> When:
    """Today's date for the user."""
    return {"date": context.today.isoformat(), "weekday": WEEKDAYS[context.today.weekday()]}


@DOMAIN.tool("information", "date")
def get_tomorrows_date(context: Context, /) -> When:
    """Tomorrow's date for the user."""
    day = context.today + timedelta(days=1)
    return {"date": day.isoformat(), "weekday": WEEKDAYS[day.weekday()]}


@DOMAIN.tool("information", "date")
def get_next_birthday(context: Context, /) -> When:
    """The date of the user's next birthday."""
    return {"date": context.birthday.isoformat(), "weekday": WEEKDAYS[context.birthday.weekday()]}


@DOMAIN.tool("information", "time")
def get_current_time(context: Context, /) -> TimeNow:
    """The time of day where the user is."""
    return {"time": context.time}


@DOMAIN.tool("information", "currency")
def get_preferred_currency(context: Context, /) -> Preferred:
    """The currency in which the user likes to see prices."""
    return {"currency": context.currency}  # type: ignore[typeddict-item]
