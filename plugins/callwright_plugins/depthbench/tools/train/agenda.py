"""The user's calendar, and reckoning with dates."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    Clock,
    Day,
    Domain,
    PersonName,
    Rows,
    clock,
    edited,
    fail,
    first_by,
    from_time,
    keep,
    keep_having,
    says,
    table,
    the_day,
)
from callwright_plugins.depthbench.world import FIRST_DAY, LAST_DAY, WEEKDAYS, Context, at_hand, pick, shuffled, stream

DOMAIN: Final = Domain("agenda")
KINDS: Final = ("meeting", "call", "appointment", "workshop")
Kind = Literal["meeting", "call", "appointment", "workshop"]
COLLEAGUES: Final = ("Amir", "Bruno", "Elena", "Grace", "Nadia", "Tomas")
_TOPICS: Final = (
    "budget",
    "roadmap",
    "hiring",
    "design",
    "contract",
    "launch",
    "support",
    "training",
    "research",
    "travel",
)


class Event(TypedDict):
    """An event; the last stands there after the filter by time."""

    event_id: str
    title: str
    date: Day
    starts: Clock
    minutes: int
    kind: Kind
    attendees: list[str]
    minutes_after: NotRequired[int]


class Events(TypedDict):
    """The events of a day."""

    date: Day
    events: list[Event]


class NewEvent(TypedDict):
    """An event that was entered."""

    event_id: str
    title: str
    date: Day
    starts: Clock
    ends: Clock
    attendees: list[str]


class Slot(TypedDict):
    """A free stretch of a day."""

    date: Day
    starts: Clock
    ends: Clock


class Shifted(TypedDict):
    """A date some days away."""

    date: Day
    weekday: str


class Span(TypedDict):
    """The days between two dates."""

    start: Day
    end: Day
    days: int


EventTable = Annotated[list[Event], REFERENCE_ONLY]
_days: dict[tuple[str, str], Rows] = {}


def events_of(context: Context, date: str) -> Rows:
    """Between eight and twelve events of a user's day."""
    key = f"{at_hand.get().version.name}/{context.key}"
    rows = _days.get((key, date))
    if rows is None:
        rng = stream(f"agenda/{context.key}/{date}")
        made = []
        for number in range(8 + int(rng.random() * 5)):
            kind = pick(rng, KINDS)
            made.append(
                {
                    "event_id": f"E{date[5:7]}{date[8:]}-{number + 1}",
                    "title": f"{pick(rng, _TOPICS)} {kind}",
                    "date": date,
                    "starts": clock(480 + 15 * int(rng.random() * 44)),
                    "minutes": pick(rng, (15, 30, 45, 60)),
                    "kind": kind,
                    "attendees": shuffled(rng, COLLEAGUES)[: 1 + int(rng.random() * 4)],
                }
            )
        rows = Rows(made)
        if len(_days) > 4096:  # a session may ask for any day of any user; what is kept of it is bounded
            _days.clear()
        _days[key, date] = rows
    return edited("events", rows, lambda row: f"{date}/{row['event_id']}")


@DOMAIN.tool("retrieval", "events")
def list_events(context: Context, /, date: Day) -> Events:
    """The user's events on a date, in no particular order."""
    the_day(date)
    return {"date": date, "events": events_of(context, date)}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def filter_events_after(events: EventTable, time: Clock) -> list[Event]:
    """Those of the given events that start at a time of day or later."""
    return from_time(table(events, "event_id", "starts"), "starts", time, "minutes_after")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_events_by_attendee(
    events: EventTable, attendee: Literal["Amir", "Bruno", "Elena", "Grace", "Nadia", "Tomas"]
) -> list[Event]:
    """Those of the given events that a colleague attends."""
    return keep_having(table(events, "event_id", "attendees"), "attendees", attendee)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_events_by_kind(events: EventTable, kind: Kind) -> list[Event]:
    """Those of the given events that are of a kind."""
    return keep(table(events, "event_id", "kind"), "kind", kind)  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "event_id")
def pick_first_event(events: EventTable) -> Event:
    """The earliest of the given events."""
    return first_by(table(events, "event_id", "starts"), lambda row: (row["starts"], row["event_id"]))  # type: ignore[return-value]


@DOMAIN.tool("workflow", "event_id", read_only=False)
def create_event(
    title: Annotated[str, says(minLength=1, maxLength=80)],
    date: Day,
    starts: Clock,
    minutes: Annotated[int, says(minimum=5, maximum=480)],
    attendees: Annotated[list[PersonName], says(maxItems=12)] | None = None,
) -> NewEvent:
    """Enter an event into the user's calendar."""
    the_day(date)
    names = sorted(attendees or [])
    begin = int(starts[:2]) * 60 + int(starts[3:])
    return {
        "event_id": f"N{date[5:7]}{date[8:]}-{begin}",
        "title": title,
        "date": date,
        "starts": starts,
        "ends": clock(begin + minutes),
        "attendees": names,
    }


@DOMAIN.tool("information", "starts")
def find_free_slot(context: Context, /, date: Day, minutes: Annotated[int, says(minimum=5, maximum=480)]) -> Slot:
    """The first stretch of so many minutes, between 08:00 and 20:00, without an event. Fails if there is none."""
    the_day(date)
    at = 480
    for row in sorted(events_of(context, date), key=lambda row: str(row["starts"])):
        begin = int(row["starts"][:2]) * 60 + int(row["starts"][3:])
        if begin - at >= minutes:
            break
        at = max(at, begin + row["minutes"])
    if at + minutes > 1200:
        fail("no_free_slot", f"there are no {minutes} free minutes on {date}")
    return {"date": date, "starts": clock(at), "ends": clock(at + minutes)}


@DOMAIN.tool("information", "date")
def shift_date(date: Day, days: Annotated[int, says(minimum=-1000, maximum=1000)]) -> Shifted:
    """The date so many days after a date (before it, if negative)."""
    day = the_day(date) + timedelta(days=days)
    if not FIRST_DAY <= day <= LAST_DAY:
        fail("date_out_of_range", f"{day} is not between {FIRST_DAY} and {LAST_DAY}")
    return {"date": day.isoformat(), "weekday": WEEKDAYS[day.weekday()]}


@DOMAIN.tool("information", "days")
def count_days_between(start: Day, end: Day) -> Span:
    """How many days lie between two dates (negative if the second is earlier)."""
    return {"start": start, "end": end, "days": (the_day(end) - the_day(start)).days}
