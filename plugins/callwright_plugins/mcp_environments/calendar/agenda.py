"""What is when, and for whom: occurrences of events, busy time, and who may see and change what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.calendar.recurrence import LATEST, is_start, starts, starts_within, zone_of
from callwright_plugins.mcp_environments.calendar.rows import (
    Calendar,
    Event,
    Invitee,
    OccurrenceException,
    Person,
    Profile,
    RecurrenceRule,
)
from callwright_plugins.mcp_environments.recorded_times import outside
from callwright_plugins.mcp_environments.times import DAY, WEEK, iso

#: How far ahead a new series is compared with what is planned.
HORIZON: Final = 366 * DAY
#: The longest time between two occurrences of a series, for each unit of its interval.
_LONGEST: Final = {"daily": DAY, "weekly": WEEK, "monthly": 31 * DAY}


@frozen
class Occurrence:
    """One time at which an event takes place. ``original`` is when the series' rule puts it."""

    event: Event
    original: int
    start: int
    end: int
    title: str
    location: str


def profile(world: World) -> Profile:
    """The signed-in person's profile."""
    return world.need(Profile, "me")


def my_zone(world: World) -> str:
    """The time zone of the signed-in person."""
    return world.need(Person, profile(world).person_id).time_zone


def person_named(world: World, text: str) -> Person:
    """The person with this id or address; ``me`` is the signed-in one. Fails with ``NOT_FOUND``."""
    wanted = text.strip()
    if wanted == "me":
        return world.need(Person, profile(world).person_id)
    person = world.get(Person, wanted) or next(iter(world.find(Person, email=wanted.lower())), None)
    if person is None:
        raise ToolError("NOT_FOUND", f"no person has the id or address {wanted[:60]!r}; list_calendars names people")
    return person


def moment(text: str, zone: str) -> int:
    """Seconds of an ISO time; one without an offset is a wall-clock time of ``zone``. Fails with ``BAD_TIME``."""
    try:
        read = datetime.fromisoformat(text.strip())
        seconds = int((read if read.tzinfo else read.replace(tzinfo=zone_of(zone))).timestamp())
    except (ValueError, OverflowError):
        raise ToolError("BAD_TIME", f"{text[:40]!r} is not a time such as 2026-03-02T09:00Z") from None
    if not 0 <= seconds < LATEST:
        raise ToolError("BAD_TIME", f"{text[:40]!r} is not a time between 1970 and 2100")
    return seconds


def outside_of_calendar(world: World, low: int, high: int) -> str:
    """Why nothing is found from ``low`` to ``high``, if that is past and before all events, or after all of them and
    more than a year ahead; else empty.
    """
    span = world.derived(_planned, Event, RecurrenceRule)
    if span is None:
        return ""
    begin, end = span
    last = None if end is None else max(end, world.now + HORIZON)
    return outside(world, "events", low, high, min(begin, world.now), last)


def _planned(world: World) -> tuple[int, int | None] | None:
    """When the first event begins, and when the last one ends; ``None`` where a series has no end."""
    rules = world.table(RecurrenceRule)
    begin, end = None, 0
    endless = False
    for event in world.rows(Event):
        begin = event.start if begin is None else min(begin, event.start)
        rule = rules.get(event.id) if event.recurring else None
        if rule is None:
            end = max(end, event.end)
        elif rule.until is not None:
            end = max(end, rule.until + event.end - event.start)
        elif rule.count is not None:
            end = max(end, event.end + rule.count * rule.interval * _LONGEST[rule.frequency])
        else:
            endless = True
    return None if begin is None else (begin, None if endless else end)


def occurrences(world: World, event: Event, low: int, high: int) -> Iterator[Occurrence]:
    """The occurrences that overlap with the time from ``low`` to ``high``; moved ones come last."""
    if event.cancelled_from == 0:
        return
    if not event.recurring:
        if event.start < high and event.end > low:
            yield Occurrence(event, event.start, event.start, event.end, event.title, event.location)
        return
    rule = world.need(RecurrenceRule, event.id)
    length = event.end - event.start
    end = LATEST if event.cancelled_from is None else event.cancelled_from
    different = {one.original_start: one for one in world.find(OccurrenceException, event_id=event.id)}
    first, last = max(0, low - length + 1), min(high, end)
    find = starts_within if last - first <= HORIZON else starts
    for start in find(rule, event.start, zone_of(event.time_zone), first, last):
        if start not in different:
            yield Occurrence(event, start, start, start + length, event.title, event.location)
    for one in different.values():
        # A cancellation ends what still lay ahead of it, wherever the rule had put that.
        if not one.skipped and one.start < min(high, end) and one.end > low:
            yield _different(event, one)


def occurrence_at(world: World, event: Event, text: str) -> Occurrence:
    """The occurrence that the rule puts at this time. Fails with ``OCCURRENCE_NOT_IN_SERIES``."""
    original = moment(text, event.time_zone)
    if not event.recurring:
        raise ToolError("OCCURRENCE_NOT_IN_SERIES", f"{event.id} is no series: it is once, at {iso(event.start)}")
    held = is_start(world.need(RecurrenceRule, event.id), event.start, zone_of(event.time_zone), original)
    exception = world.get(OccurrenceException, (event.id, original))
    begins = original if exception is None else exception.start
    cancelled = event.cancelled_from is not None and begins >= event.cancelled_from
    if not held or cancelled or (exception is not None and exception.skipped):
        why = "was skipped" if exception is not None else "is not one of its times"
        raise ToolError(
            "OCCURRENCE_NOT_IN_SERIES",
            f"{iso(original)} {why} in the series {event.id}; list_events gives each occurrence_start",
        )
    if exception is not None:
        return _different(event, exception)
    return Occurrence(event, original, original, original + event.end - event.start, event.title, event.location)


def _different(event: Event, one: OccurrenceException) -> Occurrence:
    title = event.title if one.title is None else one.title
    location = event.location if one.location is None else one.location
    return Occurrence(event, one.original_start, one.start, one.end, title, location)


def events_of(world: World, person_id: str) -> Iterator[Event]:
    """The events that take up a person's time: organised, or invited to and not declined."""
    yield from world.find(Event, organizer_id=person_id)
    events = world.table(Event)
    for invitee in world.find(Invitee, person_id=person_id):
        if invitee.response != "declined":
            event = events[invitee.event_id]
            if event.organizer_id != person_id:
                yield event


def busy(
    world: World, person_id: str, low: int, high: int, ignore: str = "", ignore_start: int | None = None
) -> list[Occurrence]:
    """When a person is busy between two times, in order.

    The event ``ignore`` does not count; with ``ignore_start``, only its occurrence of that original time does not.
    """
    found = [
        one
        for event in events_of(world, person_id)
        if event.show_as == "busy" and (event.recurring or (event.start < high and event.end > low))
        for one in occurrences(world, event, low, high)
        if event.id != ignore or (ignore_start is not None and one.original != ignore_start)
    ]
    return sorted(found, key=order)


def order(one: Occurrence) -> tuple[int, int, str]:
    """By time, and then by event."""
    return one.start, one.end, one.event.id


def refuse_conflict(
    world: World, spans: Iterable[tuple[int, int]], ignore: str = "", ignore_start: int | None = None
) -> None:
    """Fails with ``CONFLICT`` if the signed-in person is busy in one of these spans, which are in order."""
    listed = list(spans)
    if not listed:
        return
    taken = busy(world, profile(world).person_id, listed[0][0], max(end for _, end in listed), ignore, ignore_start)
    for start, end in listed:
        for one in taken:
            if one.start < end and one.end > start:
                raise ToolError(
                    "CONFLICT",
                    f"{iso(start)} to {iso(end)} overlaps with {one.event.id} {one.title!r} ({iso(one.start)} to "
                    f"{iso(one.end)}); choose another time with find_free_slots, or set allow_conflict",
                )


def access(world: World, event: Event) -> str:
    """``details`` if the signed-in person sees what the event is, ``times`` if only when it is."""
    if world.need(Calendar, event.calendar_id).access != "free_busy":
        return "details"
    me = profile(world).person_id
    if event.organizer_id == me or world.get(Invitee, (event.id, me)) is not None:
        return "details"
    return "times"


def visible_event(world: World, event_id: str) -> Event:
    """An event whose details the signed-in person may see. Fails with ``NOT_FOUND`` or ``PERMISSION_DENIED``."""
    event = world.need(Event, event_id, message=f"there is no event {event_id!r}; search_events gives ids")
    if access(world, event) != "details":
        raise ToolError("PERMISSION_DENIED", f"{event_id} is on a calendar that shares only free and busy times")
    return event


def changeable_event(world: World, event_id: str) -> Event:
    """An event that the signed-in person organises and that is neither cancelled nor over.

    Fails with ``NOT_ORGANIZER``, ``EVENT_CANCELLED`` or ``PAST_EVENT``.
    """
    event = visible_event(world, event_id)
    if event.organizer_id != profile(world).person_id:
        organizer = world.need(Person, event.organizer_id)
        raise ToolError("NOT_ORGANIZER", f"only {organizer.name} ({organizer.email}) organises {event_id}")
    refuse_over(world, event)
    return event


def refuse_over(world: World, event: Event) -> None:
    """Fails with ``EVENT_CANCELLED`` or ``PAST_EVENT`` for an event that will not take place any more."""
    if event.cancelled_from is not None:
        raise ToolError("EVENT_CANCELLED", f"{event.id} {event.title!r} was cancelled")
    if next(occurrences(world, event, world.now, LATEST), None) is None:
        raise ToolError("PAST_EVENT", f"{event.id} {event.title!r} is over; it is {iso(world.now)} now")
