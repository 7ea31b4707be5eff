"""Tools that read the calendar."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.calendar.agenda import (
    Occurrence,
    access,
    busy,
    events_of,
    moment,
    my_zone,
    occurrence_at,
    occurrences,
    order,
    outside_of_calendar,
    person_named,
    profile,
    visible_event,
)
from callwright_plugins.mcp_environments.calendar.free_time import free_windows
from callwright_plugins.mcp_environments.calendar.parameters import (
    EventId,
    Moment,
    OccurrenceStart,
    OptionalMoment,
    People,
    ZoneName,
)
from callwright_plugins.mcp_environments.calendar.recurrence import zone_of
from callwright_plugins.mcp_environments.calendar.rows import Calendar, Event, Invitee, Person
from callwright_plugins.mcp_environments.calendar.views import (
    CalendarView,
    EventView,
    InviteeView,
    OccurrenceView,
    calendar_view,
    event_view,
    invitee_view,
    local_time,
    occurrence_view,
    status_of,
)
from callwright_plugins.mcp_environments.times import DAY, MINUTE, iso


class NowView(TypedDict):
    """The time it is."""

    utc: str
    local: str
    weekday: str
    time_zone: str


class FoundEvent(TypedDict):
    """An event that a search found; of a series its first occurrence."""

    event_id: str
    calendar_id: str
    title: str
    location: str
    organizer_email: str
    start: Annotated[str, Field(description="UTC; of a series its first occurrence.")]
    end: Annotated[str, Field(description="UTC.")]
    recurring: bool
    status: str


class FreeWindow(TypedDict):
    """A time in which everybody is free; a meeting may begin at any time from ``start`` to ``latest_start``."""

    start: Annotated[str, Field(description="UTC.")]
    latest_start: Annotated[str, Field(description="The last start at which it still fits into the slot.")]
    end: Annotated[str, Field(description="UTC.")]
    minutes: Annotated[int, Field(description="From start to end.")]
    local_start: Annotated[str, Field(description="In your time zone.")]


class ConflictView(TypedDict):
    """Something that overlaps, and for whom."""

    person_id: str
    email: str
    event_id: str
    title: str
    start: Annotated[str, Field(description="UTC.")]
    end: Annotated[str, Field(description="UTC.")]


def window(world: World, start: str, end: str, zone: str, most_days: int, default_days: int = 7) -> tuple[int, int]:
    """The two ends of a window; by default from now on. Fails with ``END_BEFORE_START`` or ``RANGE_TOO_LONG``."""
    low = moment(start, zone) if start else world.now
    high = moment(end, zone) if end else low + default_days * DAY
    if high <= low:
        raise ToolError("END_BEFORE_START", f"the end {iso(high)} is not after the start {iso(low)}")
    if high - low > most_days * DAY:
        raise ToolError("RANGE_TOO_LONG", f"ask for at most {most_days} days at once, not {(high - low) // DAY}")
    return low, high


@tool(read_only=True)
def get_current_time(world: World, /, time_zone: ZoneName = "") -> NowView:
    """The time it is now, in UTC and in a time zone (by default the signed-in person's).

    Ask before you work out dates such as tomorrow or next Friday. An unknown zone fails with TZ_UNKNOWN.
    """
    zone = time_zone or my_zone(world)
    local = local_time(world.now, zone)
    return {"utc": iso(world.now), "local": local, "weekday": local[:3], "time_zone": zone}


@tool(read_only=True, discovery=True)
def list_calendars(
    world: World,
    /,
    access_level: Annotated[
        Literal["any", "owner", "writer", "reader", "free_busy"],
        Field(description="Only calendars to which the signed-in person has this access."),
    ] = "any",
    owner: Annotated[str, Field(description="Part of the owner's name or address.", max_length=80)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[CalendarView]:
    """List the calendars that the signed-in person can see, with owners and access: the way to find colleagues.

    Events can be created on calendars with access owner or writer only.
    """
    found = [one for one in world.rows(Calendar) if access_level in ("any", one.access)]
    if owner:
        text = owner.strip().lower()
        found = [
            one
            for one in found
            for person in (world.need(Person, one.owner_id),)
            if text in person.name.lower() or text in person.email
        ]
    return page(found, lambda one: calendar_view(world, one), limit, cursor)


@tool(read_only=True, discovery=True)
def list_events(
    world: World,
    /,
    start: OptionalMoment = "",
    end: OptionalMoment = "",
    calendar_id: Annotated[
        str, Field(description="Only this calendar; empty: what takes up the signed-in person's time.", max_length=40)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[OccurrenceView]:
    """List what takes place from start to end in order of time, each occurrence of a series by itself.

    By default the next seven days of the signed-in person; at most 92 days at once (RANGE_TOO_LONG). Warns with
    OUTSIDE_RECORDS for a time of which no calendar knows anything.
    """
    low, high = window(world, start, end, my_zone(world), 92)
    if calendar_id:
        calendar = world.need(Calendar, calendar_id)
        events = world.find(Event, calendar_id=calendar.id)
    else:
        events = list(events_of(world, profile(world).person_id))
    found = [
        one
        for event in events
        if event.recurring or (event.start < high and event.end > low)
        for one in occurrences(world, event, low, high)
    ]
    if not found and (why := outside_of_calendar(world, low, high)):
        world.warn("OUTSIDE_RECORDS", why)
    return page(sorted(found, key=order), lambda one: occurrence_view(world, one), limit, cursor)


@tool(read_only=True, discovery=True)
def search_events(
    world: World,
    /,
    text: Annotated[str, Field(description="Words of title, description or location.", min_length=1, max_length=120)],
    attendee: Annotated[
        str, Field(description="Id or address of somebody who organises or is invited; empty: anybody.", max_length=120)
    ] = "",
    include_cancelled: Annotated[bool, Field(description="Also events that were cancelled.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[FoundEvent]:
    """Search the events whose details the signed-in person may see; every word must occur. Newest first.

    A series is found once; list_events or get_event give its occurrences.
    """
    words = text.lower().split()
    who = person_named(world, attendee).id if attendee else ""
    texts = world.prepared(Event, _with_text, _newest_first)
    for word in words:
        texts = [pair for pair in texts if word in pair[1]]
    found = [
        event
        for event, _ in texts
        if (include_cancelled or event.cancelled_from != 0)
        and (not who or event.organizer_id == who or world.get(Invitee, (event.id, who)) is not None)
        and access(world, event) == "details"
    ]
    return page(found, lambda event: _found(world, event), limit, cursor)


def _with_text(event: Event) -> tuple[Event, str]:
    return event, f"{event.title}\n{event.description}\n{event.location}".lower()


def _newest_first(event: Event) -> tuple[int, str]:
    return -event.start, event.id


def _found(world: World, event: Event) -> FoundEvent:
    return {
        "event_id": event.id,
        "calendar_id": event.calendar_id,
        "title": event.title,
        "location": event.location,
        "organizer_email": world.need(Person, event.organizer_id).email,
        "start": iso(event.start),
        "end": iso(event.end),
        "recurring": event.recurring,
        "status": status_of(event),
    }


@tool(read_only=True)
def get_event(world: World, /, event_id: EventId, occurrence_start: OccurrenceStart = "") -> EventView:
    """Everything about an event; of a series also its rule, its exceptions and when it next takes place.

    With occurrence_start, the title, place and times are those of that occurrence (OCCURRENCE_NOT_IN_SERIES if there is
    none). PERMISSION_DENIED on calendars that share only free and busy times.
    """
    event = visible_event(world, event_id)
    view = event_view(world, event, profile(world).person_id)
    if occurrence_start:
        one = occurrence_at(world, event, occurrence_start)
        view["title"], view["location"] = one.title, one.location
        view["start"], view["end"] = iso(one.start), iso(one.end)
        view["local_start"] = local_time(one.start, my_zone(world))
    return view


@tool(read_only=True)
def list_invitees(
    world: World,
    /,
    event_id: EventId,
    response: Annotated[
        Literal["any", "needs_action", "accepted", "tentative", "declined"], Field(description="Only with this answer.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[InviteeView]:
    """List who is invited to an event and how they have answered. The organiser is not among them."""
    event = visible_event(world, event_id)
    found = [one for one in world.find(Invitee, event_id=event.id) if response in ("any", one.response)]
    return page(found, lambda one: invitee_view(world, one), limit, cursor)


@tool(read_only=True)
def find_free_slots(
    world: World,
    /,
    people: People,
    duration_minutes: Annotated[int, Field(description="How long the meeting takes.", ge=5, le=1440)],
    start: OptionalMoment = "",
    end: OptionalMoment = "",
    working_hours_only: Annotated[
        bool, Field(description="Only within everybody's working hours, Monday to Friday, each in their own time zone.")
    ] = True,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[FreeWindow]:
    """Find the times from start to end in which all these people and the signed-in person are free long enough.

    By default in the next seven days, at most 31 (RANGE_TOO_LONG). Windows begin at full quarters of an hour; nothing
    in common is an empty page. Warns with PAST_TIME for a time that is over.
    """
    low, high = window(world, start, end, my_zone(world), 31)
    asked = {person_named(world, text).id: None for text in ["me", *people]}
    all_people = [world.need(Person, who) for who in asked]
    length = duration_minutes * MINUTE
    found = free_windows(world, all_people, max(low, world.now), high, length, working_hours_only)

    if high <= world.now:
        world.warn(
            "PAST_TIME", f"the time until {iso(high)} is over: nothing can be planned; it is {iso(world.now)} now"
        )

    def view(span: tuple[int, int]) -> FreeWindow:
        return {
            "start": iso(span[0]),
            "latest_start": iso(span[1] - length),
            "end": iso(span[1]),
            "minutes": (span[1] - span[0]) // MINUTE,
            "local_start": local_time(span[0], my_zone(world)),
        }

    return page(found, view, limit, cursor)


@tool(read_only=True)
def check_conflicts(
    world: World,
    /,
    start: Moment,
    end: Moment,
    people: People | None = None,
    time_zone: ZoneName = "",
    ignore_event_id: Annotated[
        str, Field(description="An event that does not count, such as the one to be moved.", max_length=40)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ConflictView]:
    """List what overlaps with the time from start to end, for these people or (by default) for the signed-in person.

    An empty page means that all are free. Titles on calendars that share only free and busy times are not shown. Warns
    with OUTSIDE_RECORDS for a time of which no calendar knows anything.
    """
    zone = time_zone or my_zone(world)
    zone_of(zone)
    low, high = window(world, start, end, zone, 92)
    found: list[tuple[Person, Occurrence]] = []
    for who in {person_named(world, text).id: None for text in people or ["me"]}:
        found += [(world.need(Person, who), one) for one in busy(world, who, low, high, ignore_event_id)]
    if not found and (why := outside_of_calendar(world, low, high)):
        world.warn("OUTSIDE_RECORDS", why)
    return page(found, lambda pair: _conflict(world, *pair), limit, cursor)


def _conflict(world: World, person: Person, one: Occurrence) -> ConflictView:
    return {
        "person_id": person.id,
        "email": person.email,
        "event_id": one.event.id,
        "title": one.title if access(world, one.event) == "details" else "(busy)",
        "start": iso(one.start),
        "end": iso(one.end),
    }


READING = [
    get_current_time,
    list_calendars,
    list_events,
    search_events,
    get_event,
    list_invitees,
    find_free_slots,
    check_conflicts,
]
