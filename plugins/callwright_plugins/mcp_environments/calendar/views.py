"""What tools of the calendar return."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.calendar.agenda import Occurrence, access, my_zone, occurrences
from callwright_plugins.mcp_environments.calendar.recurrence import LATEST, zone_of
from callwright_plugins.mcp_environments.calendar.rows import (
    Calendar,
    Event,
    Invitee,
    OccurrenceException,
    Person,
    RecurrenceRule,
)
from callwright_plugins.mcp_environments.times import iso

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class CalendarView(TypedDict):
    """A calendar and whose it is."""

    calendar_id: str
    name: str
    time_zone: str
    access: Annotated[str, Field(description="Yours: owner and writer may create events; free_busy sees no titles.")]
    owner_id: str
    owner_name: str
    owner_email: str


class OccurrenceView(TypedDict):
    """One time at which an event takes place; ``occurrence_start`` names it in a series and is empty elsewhere."""

    event_id: str
    calendar_id: str
    title: str
    location: str
    start: Annotated[str, Field(description="UTC.")]
    end: Annotated[str, Field(description="UTC.")]
    local_start: Annotated[str, Field(description="In your time zone.")]
    occurrence_start: Annotated[str, Field(description="Names the occurrence in its series; empty: no series.")]
    show_as: Annotated[str, Field(description="Whether it takes up time: busy or free.")]


class RuleView(TypedDict):
    """How an event repeats."""

    frequency: str
    interval: int
    weekdays: list[str]
    monthly_by: str
    count: Annotated[int | None, Field(description="Occurrences in all; null: no such bound.")]
    until: Annotated[str | None, Field(description="Last day; null: no such bound.")]


class ExceptionView(TypedDict):
    """What differs from the rule."""

    occurrence_start: Annotated[str, Field(description="As the rule has it.")]
    skipped: bool
    start: Annotated[str | None, Field(description="New time; null where it is skipped.")]
    end: Annotated[str | None, Field(description="New time; null where it is skipped.")]


class EventView(TypedDict):
    """An event, or a series with its rule, exceptions and next occurrences."""

    event_id: str
    calendar_id: str
    organizer_id: str
    organizer_email: str
    title: str
    description: str
    location: str
    start: Annotated[str, Field(description="UTC; of a series its first occurrence.")]
    end: Annotated[str, Field(description="UTC.")]
    time_zone: str
    local_start: Annotated[str, Field(description="In your time zone.")]
    show_as: Annotated[str, Field(description="Whether it takes up time: busy or free.")]
    status: str
    my_response: Annotated[str, Field(description="organizer, not_invited, or your answer.")]
    invitee_count: int
    recurrence: RuleView | None
    exceptions: Annotated[list[ExceptionView], Field(description="Occurrences that were moved, changed or taken out.")]
    next_occurrences: Annotated[list[str], Field(description="Starts of up to three that are still to come.")]


class InviteeView(TypedDict):
    """Somebody invited, and their answer."""

    person_id: str
    name: str
    email: str
    time_zone: str
    response: str
    optional: Annotated[bool, Field(description="Need not come.")]


@lru_cache(maxsize=65536)
def local_time(seconds: int, zone: str) -> str:
    """``Mon 2026-03-02 10:00 +0100``: the wall-clock time of a zone."""
    return datetime.fromtimestamp(seconds, zone_of(zone)).strftime("%a %Y-%m-%d %H:%M %z")


def calendar_view(world: World, calendar: Calendar) -> CalendarView:
    """A calendar."""
    owner = world.need(Person, calendar.owner_id)
    return {
        "calendar_id": calendar.id,
        "name": calendar.name,
        "time_zone": calendar.time_zone,
        "access": calendar.access,
        "owner_id": owner.id,
        "owner_name": owner.name,
        "owner_email": owner.email,
    }


def occurrence_view(world: World, one: Occurrence) -> OccurrenceView:
    """An occurrence; of one on a calendar that shares only free and busy times, the times alone."""
    seen = access(world, one.event) == "details"
    return {
        "event_id": one.event.id,
        "calendar_id": one.event.calendar_id,
        "title": one.title if seen else "(busy)" if one.event.show_as == "busy" else "(free)",
        "location": one.location if seen else "",
        "start": iso(one.start),
        "end": iso(one.end),
        "local_start": local_time(one.start, my_zone(world)),
        "occurrence_start": iso(one.original) if one.event.recurring else "",
        "show_as": one.event.show_as,
    }


def rule_view(rule: RecurrenceRule) -> RuleView:
    """A rule."""
    return {
        "frequency": rule.frequency,
        "interval": rule.interval,
        "weekdays": [WEEKDAYS[number] for number in rule.weekdays],
        "monthly_by": rule.monthly_by,
        "count": rule.count,
        "until": None if rule.until is None else iso(rule.until),
    }


def status_of(event: Event) -> str:
    """``confirmed``, ``cancelled``, or ``ended`` for a series cancelled after it began."""
    if event.cancelled_from is None:
        return "confirmed"
    return "ended" if event.cancelled_from else "cancelled"


def event_view(world: World, event: Event, me: str) -> EventView:
    """Everything about an event."""
    rule = world.get(RecurrenceRule, event.id)
    exceptions = world.find(OccurrenceException, event_id=event.id) if event.recurring else []
    mine = world.get(Invitee, (event.id, me))
    return {
        "event_id": event.id,
        "calendar_id": event.calendar_id,
        "organizer_id": event.organizer_id,
        "organizer_email": world.need(Person, event.organizer_id).email,
        "title": event.title,
        "description": event.description,
        "location": event.location,
        "start": iso(event.start),
        "end": iso(event.end),
        "time_zone": event.time_zone,
        "local_start": local_time(event.start, my_zone(world)),
        "show_as": event.show_as,
        "status": status_of(event),
        "my_response": "organizer" if event.organizer_id == me else mine.response if mine else "not_invited",
        "invitee_count": world.count(Invitee, event_id=event.id),
        "recurrence": None if rule is None else rule_view(rule),
        "exceptions": [
            {
                "occurrence_start": iso(one.original_start),
                "skipped": one.skipped,
                "start": None if one.skipped else iso(one.start),
                "end": None if one.skipped else iso(one.end),
            }
            for one in sorted(exceptions, key=lambda one: one.original_start)
        ],
        "next_occurrences": next_starts(world, event, 3),
    }


def next_starts(world: World, event: Event, most: int) -> list[str]:
    """When the next occurrences begin, as far as they still lie ahead."""
    if not event.recurring:
        return [iso(one.start) for one in occurrences(world, event, world.now, LATEST) if one.start >= world.now]
    high, found = world.now + 32 * 86_400, list[int]()
    while len(found) < most and high < world.now + 1500 * 86_400:  # a rule may be sparse: look further step by step
        found = sorted(one.start for one in occurrences(world, event, world.now, high) if one.start >= world.now)
        high += (high - world.now) * 3
    return [iso(start) for start in found[:most]]


def invitee_view(world: World, invitee: Invitee) -> InviteeView:
    """An invitation."""
    person = world.need(Person, invitee.person_id)
    return {
        "person_id": person.id,
        "name": person.name,
        "email": person.email,
        "time_zone": person.time_zone,
        "response": invitee.response,
        "optional": invitee.optional,
    }
