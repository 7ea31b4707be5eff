"""Tools that change events: create, update, move, cancel and skip."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from typing import Annotated, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.calendar.agenda import (
    HORIZON,
    changeable_event,
    moment,
    my_zone,
    occurrence_at,
    occurrences,
    person_named,
    profile,
    refuse_conflict,
    visible_event,
)
from callwright_plugins.mcp_environments.calendar.parameters import (
    AllowConflict,
    EventId,
    Moment,
    OccurrenceStart,
    OptionalMoment,
    People,
    ZoneName,
)
from callwright_plugins.mcp_environments.calendar.recurrence import LATEST, first_start, is_start, starts, zone_of
from callwright_plugins.mcp_environments.calendar.rows import (
    Calendar,
    Event,
    Invitee,
    OccurrenceException,
    RecurrenceRule,
)
from callwright_plugins.mcp_environments.calendar.views import WEEKDAYS, EventView, event_view, local_time
from callwright_plugins.mcp_environments.times import DAY, iso

Title = Annotated[str, Field(description="Title.", min_length=1, max_length=200)]
Description = Annotated[str, Field(description="Description.", max_length=2000)]
Location = Annotated[str, Field(description="Where it takes place.", max_length=200)]
ShowAs = Annotated[Literal["busy", "free"], Field(description="Whether it takes up time.")]
CalendarChoice = Annotated[
    str, Field(description="Calendar with access owner or writer; empty: the signed-in person's first.", max_length=40)
]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
#: Longest event, in seconds.
_LONGEST = 14 * DAY


def _calendar(world: World, calendar_id: str) -> Calendar:
    calendar = world.need(Calendar, calendar_id or profile(world).calendar_id)
    if calendar.access not in ("owner", "writer"):
        raise ToolError("PERMISSION_DENIED", f"{calendar.id} {calendar.name!r} can only be read ({calendar.access})")
    return calendar


def _span(world: World, start: str, end: str, zone: str) -> tuple[int, int]:
    zone_of(zone)
    first, last = moment(start, zone), moment(end, zone)
    if last <= first:
        raise ToolError("END_BEFORE_START", f"the end {iso(last)} is not after the start {iso(first)}")
    if last - first > _LONGEST:
        raise ToolError("RANGE_TOO_LONG", "an event takes at most 14 days")
    _refuse_past(world, first)
    return first, last


def _refuse_past(world: World, start: int) -> None:
    if start < world.now:
        raise ToolError("PAST_EVENT", f"{iso(start)} is past; it is {iso(world.now)} now (get_current_time)")


def _invited(world: World, people: list[str] | None) -> list[str]:
    me = profile(world).person_id
    return [who for who in {person_named(world, text).id: None for text in people or ()} if who != me]


def _view(world: World, event: Event) -> EventView:
    return event_view(world, event, profile(world).person_id)


@tool
def create_event(
    world: World,
    /,
    title: Title,
    start: Moment,
    end: Moment,
    calendar_id: CalendarChoice = "",
    time_zone: ZoneName = "",
    description: Description = "",
    location: Location = "",
    invitees: People | None = None,
    show_as: ShowAs = "busy",
    allow_conflict: AllowConflict = False,
) -> EventView:
    """Create one event on a calendar that can be written to, organised by the signed-in person, and invite people.

    Fails with PAST_EVENT, END_BEFORE_START, TZ_UNKNOWN, PERMISSION_DENIED, and CONFLICT where the signed-in person
    is busy.
    """
    calendar = _calendar(world, calendar_id)
    zone = time_zone or my_zone(world)
    first, last = _span(world, start, end, zone)
    invited = _invited(world, invitees)
    if show_as == "busy" and not allow_conflict:
        refuse_conflict(world, [(first, last)])
    me = profile(world).person_id
    event = Event(
        world.new_id(Event), calendar.id, me, title, description, location, first, last, zone, show_as, recurring=False
    )
    world.put(event)
    for who in invited:
        world.put(Invitee(event.id, who, "needs_action", False))
    return _view(world, event)


@tool
def create_recurring_event(
    world: World,
    /,
    title: Title,
    start: Moment,
    end: Moment,
    frequency: Annotated[Literal["daily", "weekly", "monthly"], Field(description="How it repeats.")],
    interval: Annotated[int, Field(description="Every so many days, weeks or months.", ge=1, le=24)] = 1,
    weekdays: Annotated[
        list[Weekday] | None, Field(description="Weekly only: on these days; else that of start.", max_length=7)
    ] = None,
    monthly_by: Annotated[
        Literal["day", "weekday"],
        Field(description="Monthly only: on the same day of the month, or the same weekday of it (second Tuesday)."),
    ] = "day",
    count: Annotated[int | None, Field(description="How many occurrences; not with until.", ge=1, le=730)] = None,
    until: Annotated[
        str, Field(description="Last day or time at which one may begin; not with count. Empty: no end.", max_length=40)
    ] = "",
    calendar_id: CalendarChoice = "",
    time_zone: ZoneName = "",
    description: Description = "",
    location: Location = "",
    invitees: People | None = None,
    allow_conflict: AllowConflict = False,
) -> EventView:
    """Create a series that repeats at the same wall-clock time of its zone. start and end are the first occurrence's.

    Without count or until it has no end. BAD_RULE for parts that do not fit each other; otherwise it fails as
    create_event does, with CONFLICT for any occurrence within a year.
    """
    calendar = _calendar(world, calendar_id)
    zone = time_zone or my_zone(world)
    first, last = _span(world, start, end, zone)
    if weekdays and frequency != "weekly":
        raise ToolError("BAD_RULE", f"weekdays go with weekly series only, not with {frequency} ones")
    if monthly_by == "weekday" and frequency != "monthly":
        raise ToolError("BAD_RULE", f"monthly_by goes with monthly series only, not with {frequency} ones")
    if count is not None and until:
        raise ToolError("BAD_RULE", "a series ends by count or by until, not by both")
    local_days = [WEEKDAYS.index(day) for day in weekdays or ()]
    if frequency == "weekly" and not local_days:
        local_days = [("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun").index(local_time(first, zone)[:3])]
    rule = RecurrenceRule(
        world.new_id(Event),
        frequency,
        interval,
        tuple(sorted(set(local_days))),
        monthly_by,
        count,
        None if not until else moment(until if len(until.strip()) > 10 else f"{until.strip()}T23:59:59", zone),
    )
    length = last - first
    first = first_start(rule, first, zone_of(zone))
    if rule.until is not None and rule.until < first:
        raise ToolError("BAD_RULE", f"the series would end ({iso(rule.until)}) before it begins ({iso(first)})")
    following = list(islice(starts(rule, first, zone_of(zone), first, min(first + HORIZON, LATEST)), 400))
    if any(later - earlier < length for earlier, later in pairwise(following)):
        raise ToolError("BAD_RULE", "an occurrence would last into the next one")
    invited = _invited(world, invitees)
    if not allow_conflict:
        refuse_conflict(world, [(one, one + length) for one in following])
    event = Event(
        rule.event_id,
        calendar.id,
        profile(world).person_id,
        title,
        description,
        location,
        first,
        first + length,
        zone,
        "busy",
        recurring=True,
    )
    world.put(event)
    world.put(rule)
    for who in invited:
        world.put(Invitee(event.id, who, "needs_action", False))
    return _view(world, event)


@tool(idempotent=True)
def update_event(
    world: World,
    /,
    event_id: EventId,
    occurrence_start: OccurrenceStart = "",
    title: Annotated[str | None, Field(description="New title.", min_length=1, max_length=200)] = None,
    description: Annotated[str | None, Field(description="New text (whole event only).", max_length=2000)] = None,
    location: Annotated[str | None, Field(description="New place.", max_length=200)] = None,
    show_as: Annotated[
        Literal["busy", "free"] | None, Field(description="Whether it takes up time (whole event only).")
    ] = None,
    allow_conflict: AllowConflict = False,
) -> EventView:
    """Change the title, text or place of an event, or the title or place of one occurrence; move_event changes times.

    Only its organiser may (NOT_ORGANIZER), and not once it is cancelled or over. CONFLICT if it would take up
    time in which the signed-in person is busy.
    """
    event = changeable_event(world, event_id)
    if title is None and description is None and location is None and show_as is None:
        raise ToolError("NOTHING_TO_CHANGE", "name at least one of title, description, location and show_as")
    if not occurrence_start:
        if show_as == "busy" and event.show_as == "free" and not allow_conflict:
            ahead = occurrences(world, event, world.now, min(world.now + HORIZON, LATEST))
            refuse_conflict(world, sorted((one.start, one.end) for one in ahead), event.id)
        changes = {"title": title, "description": description, "location": location, "show_as": show_as}
        return _view(world, world.update(event, **{name: new for name, new in changes.items() if new is not None}))
    one = occurrence_at(world, event, occurrence_start)
    if description is not None or show_as is not None:
        raise ToolError("BAD_RULE", "description and show_as belong to the whole series; leave occurrence_start empty")
    if one.end <= world.now:
        raise ToolError("PAST_EVENT", f"the occurrence of {iso(one.start)} is over")
    before = world.get(OccurrenceException, (event.id, one.original))
    world.put(
        OccurrenceException(
            event.id,
            one.original,
            False,
            one.start,
            one.end,
            title if title is not None else before.title if before else None,
            location if location is not None else before.location if before else None,
        )
    )
    return _view(world, event)


@tool(idempotent=True)
def move_event(
    world: World,
    /,
    event_id: EventId,
    new_start: Moment,
    new_end: OptionalMoment = "",
    occurrence_start: OccurrenceStart = "",
    allow_conflict: AllowConflict = False,
) -> EventView:
    """Move an event, or one occurrence of a series, to another time; without new_end it keeps its length.

    Only its organiser may. Everybody invited is asked again. A whole series can only get another time of the same
    day, before it has begun (BAD_RULE, PAST_EVENT). CONFLICT where the signed-in person is busy.
    """
    event = changeable_event(world, event_id)
    start = moment(new_start, event.time_zone)
    one = occurrence_at(world, event, occurrence_start) if occurrence_start else None
    was_start, was_end = (one.start, one.end) if one else (event.start, event.end)
    end = moment(new_end, event.time_zone) if new_end else start + was_end - was_start
    start, end = _span(world, iso(start), iso(end), event.time_zone)
    if was_start < world.now:
        raise ToolError("PAST_EVENT", f"it began at {iso(was_start)}; name an occurrence_start that lies ahead")
    if one is not None:
        if not allow_conflict and event.show_as == "busy":
            refuse_conflict(world, [(start, end)], event.id, one.original)
        before = world.get(OccurrenceException, (event.id, one.original))
        texts = (before.title, before.location) if before else (None, None)
        world.put(OccurrenceException(event.id, one.original, False, start, end, *texts))
    elif event.recurring:
        event = _move_series(world, event, start, end, allow_conflict)
    else:
        if not allow_conflict and event.show_as == "busy":
            refuse_conflict(world, [(start, end)], event.id)
        event = world.update(event, start=start, end=end)
    if (start, end) != (was_start, was_end):
        for invitee in world.find(Invitee, event_id=event.id):
            world.update(invitee, response="needs_action")
    return _view(world, event)


def _move_series(world: World, event: Event, start: int, end: int, allow_conflict: bool) -> Event:
    """Give a series another time of day. Exceptions stay with the days that they were on, and those that were moved by
    themselves at their time.
    """
    zone = event.time_zone
    if local_time(start, zone)[:14] != local_time(event.start, zone)[:14]:
        raise ToolError(
            "BAD_RULE", "a whole series keeps its days; move single occurrences, or cancel it and create another one"
        )
    rule = world.need(RecurrenceRule, event.id)
    if rule.until is not None and rule.until < start:
        raise ToolError("BAD_RULE", f"the series would end ({iso(rule.until)}) before it begins ({iso(start)})")
    for one in world.find(OccurrenceException, event_id=event.id):
        day = datetime.fromtimestamp(one.original_start, zone_of(zone)).date()
        clock = datetime.fromtimestamp(start, zone_of(zone)).time()
        original = int(datetime.combine(day, clock, zone_of(zone)).timestamp())
        world.drop(one)
        if is_start(rule, start, zone_of(zone), original):  # not if the later time lies behind the end of the series
            at = one.start, one.end
            if not one.skipped and at == (one.original_start, one.original_start + event.end - event.start):
                at = original, original + end - start  # only its title or place is its own
            world.put(OccurrenceException(event.id, original, one.skipped, *at, one.title, one.location))
    event = world.update(event, start=start, end=end)
    # Where the occurrences are now, skipped and moved ones considered, is only known once they are there; a failing
    # call is undone.
    low = min(start, world.now)
    spans = sorted((one.start, one.end) for one in occurrences(world, event, low, min(start + HORIZON, LATEST)))
    if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
        raise ToolError("BAD_RULE", "an occurrence would last into another one of the series")
    if not allow_conflict and event.show_as == "busy":
        refuse_conflict(world, spans, event.id)
    return event


@tool(destructive=True, irreversible=True)
def cancel_event(world: World, /, event_id: EventId) -> EventView:
    """Cancel an event for everybody; of a series that has begun, all that still lies ahead.

    Only its organiser may; EVENT_CANCELLED if it already is, PAST_EVENT if it is over. skip_occurrence cancels one
    occurrence.
    """
    event = changeable_event(world, event_id)
    if not event.recurring and event.start < world.now:
        raise ToolError("PAST_EVENT", f"{event.id} began at {iso(event.start)} and cannot be cancelled any more")
    begun = event.recurring and next(occurrences(world, event, 0, world.now), None) is not None
    return _view(world, world.update(event, cancelled_from=world.now if begun else 0))


@tool(destructive=True, irreversible=True)
def skip_occurrence(
    world: World,
    /,
    event_id: EventId,
    occurrence_start: Annotated[
        str, Field(description="occurrence_start, as list_events gives it.", min_length=1, max_length=40)
    ],
) -> EventView:
    """Take one occurrence out of a series; the others stay. Only the organiser may.

    OCCURRENCE_NOT_IN_SERIES if the series has none at that time (or it was skipped before), PAST_EVENT if it has begun.
    """
    event = changeable_event(world, event_id)
    one = occurrence_at(world, event, occurrence_start)
    if one.start < world.now:
        raise ToolError("PAST_EVENT", f"the occurrence of {iso(one.start)} has begun or is over")
    world.put(OccurrenceException(event.id, one.original, True, one.start, one.end))
    return _view(world, visible_event(world, event_id))


CHANGING = [create_event, create_recurring_event, update_event, move_event, cancel_event, skip_occurrence]
