"""The tables of the calendar."""

from __future__ import annotations

from typing import Any, Final

from callwright.environments.rows import row


@row("people", prefix="P", index=("email",))
class Person:
    """Somebody who can be invited; ``work_start`` and ``work_end`` are minutes of their own local day."""

    id: str
    name: str
    email: str
    time_zone: str
    work_start: int
    work_end: int


@row("profile")
class Profile:
    """The signed-in person: one row, ``me``."""

    id: str
    person_id: str
    calendar_id: str  # where events go when a call names no calendar


@row("calendars", prefix="C", index=("owner_id",))
class Calendar:
    """``access`` is what the signed-in person may do: owner, writer, reader or free_busy."""

    id: str
    owner_id: str
    name: str
    time_zone: str
    access: str


@row("events", prefix="E", index=("calendar_id", "organizer_id"), stamps=("cancelled_from",))
class Event:
    """One event, or the first occurrence of a series; times in seconds, UTC.

    ``cancelled_from``: occurrences from this time on are cancelled (0: all of them); ``None``: none are.
    """

    id: str
    calendar_id: str
    organizer_id: str
    title: str
    description: str
    location: str
    start: int
    end: int
    time_zone: str
    show_as: str
    recurring: bool
    cancelled_from: int | None = None


@row("recurrence_rules")
class RecurrenceRule:
    """How an event repeats; weekdays count from Monday = 0, ``until`` is the last start allowed (seconds, UTC)."""

    event_id: str
    frequency: str
    interval: int
    weekdays: tuple[int, ...]
    monthly_by: str
    count: int | None
    until: int | None


@row("exceptions", key=("event_id", "original_start"), index=("event_id",))
class OccurrenceException:
    """An occurrence that is skipped, or that differs from its series; ``title`` and ``location`` of ``None`` do not."""

    event_id: str
    original_start: int
    skipped: bool
    start: int
    end: int
    title: str | None = None
    location: str | None = None


@row("invitees", key=("event_id", "person_id"), index=("event_id", "person_id"))
class Invitee:
    """An invitation and its answer: needs_action, accepted, tentative or declined."""

    event_id: str
    person_id: str
    response: str
    optional: bool


ROWS: Final[tuple[type[Any], ...]] = (Person, Profile, Calendar, Event, RecurrenceRule, OccurrenceException, Invitee)
