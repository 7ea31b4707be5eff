from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.calendar import environment
from callwright_plugins.mcp_environments.calendar.agenda import busy, occurrences
from callwright_plugins.mcp_environments.calendar.recurrence import first_start, is_start, starts, zone_of
from callwright_plugins.mcp_environments.calendar.rows import (
    Calendar,
    Event,
    Invitee,
    OccurrenceException,
    Person,
    Profile,
    RecurrenceRule,
)

ENV = environment()
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "get_current_time": "R", "list_calendars": "RD", "list_events": "RD", "search_events": "RD", "get_event": "R",
    "list_invitees": "R", "find_free_slots": "R", "check_conflicts": "R", "create_event": "",
    "create_recurring_event": "", "update_event": "", "move_event": "", "cancel_event": "X", "skip_occurrence": "X",
    "add_invitee": "", "remove_invitee": "X", "respond_to_invite": "",
}  # fmt: skip
NINE = {"start": "2026-04-01T09:00Z", "end": "2026-04-01T10:00Z"}


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 17


def test_conformance() -> None:
    check_component("environment", ENV)


# Failures ----------


def event_titled(session: StatefulSession, title: str, mine: bool = True) -> str:
    for event in session.world.rows(Event):
        if event.title == title and (event.organizer_id == "P00001") == mine and event.cancelled_from is None:
            return event.id
    raise AssertionError(title)


def sync(session: StatefulSession, **wanted: bool) -> str:
    """A "Project sync" of mine (or not), past (or not), cancelled (or not), to which I am invited (or not)."""
    for event in session.world.find(Event, title="Project sync"):
        facts = {
            "mine": event.organizer_id == "P00001",
            "past": event.end < session.world.now,
            "cancelled": event.cancelled_from is not None,
            "invited": session.world.get(Invitee, (event.id, "P00001")) is not None,
            "hidden": session.world.need(Calendar, event.calendar_id).access == "free_busy",
        }
        if all(facts[name] == value for name, value in wanted.items()):
            return event.id
    raise AssertionError(wanted)


Case = Callable[[StatefulSession], tuple[str, dict[str, Any]]]
FAILURES: list[tuple[str, Case]] = [
    ("CONFLICT", lambda s: ("create_event", {"title": "x", "start": "2026-03-04T10:00", "end": "2026-03-04T11:00"})),
    ("CONFLICT", lambda s: ("create_recurring_event", {"title": "x", "start": "2026-03-03T10:00",
                            "end": "2026-03-03T11:00", "frequency": "daily"})),
    ("CONFLICT", lambda s: ("move_event", {"event_id": sync(s, mine=True, past=False, cancelled=False),
                            "new_start": "2026-03-04T10:00"})),
    ("CONFLICT", lambda s: ("move_event", {"event_id": event_titled(s, "Sunday check"),
                            "occurrence_start": "2026-03-15T20:00", "new_start": "2026-03-04T10:00"})),
    ("PAST_EVENT", lambda s: ("create_event", {"title": "x", "start": "2026-03-02T08:59Z", "end": "2026-03-03"})),
    ("PAST_EVENT", lambda s: ("move_event", {"event_id": sync(s, mine=True, past=True, cancelled=False),
                              "new_start": "2026-05-01T10:00"})),
    ("PAST_EVENT", lambda s: ("cancel_event", {"event_id": event_titled(s, "Old series")})),
    ("PAST_EVENT", lambda s: ("skip_occurrence", {"event_id": event_titled(s, "Night job"),
                              "occurrence_start": "2026-03-01T02:30"})),
    ("PAST_EVENT", lambda s: ("update_event", {"event_id": event_titled(s, "Night job"), "title": "x",
                              "occurrence_start": "2026-03-01T02:30"})),
    ("END_BEFORE_START", lambda s: ("create_event", {"title": "x", "start": NINE["end"], "end": NINE["start"]})),
    ("END_BEFORE_START", lambda s: ("list_events", {"start": NINE["end"], "end": NINE["start"]})),
    ("NOT_ORGANIZER", lambda s: ("cancel_event", {"event_id": sync(s, mine=False, past=False, cancelled=False,
                                 hidden=False)})),
    ("NOT_ORGANIZER", lambda s: ("add_invitee", {"event_id": sync(s, mine=False, hidden=False), "person": "P00005"})),
    ("OCCURRENCE_NOT_IN_SERIES", lambda s: ("skip_occurrence", {"event_id": event_titled(s, "Sunday check"),
                                            "occurrence_start": "2026-03-16T20:00"})),
    ("OCCURRENCE_NOT_IN_SERIES", lambda s: ("skip_occurrence", {"event_id": event_titled(s, "Stand-up"),
                                            "occurrence_start": "2026-03-03T06:00"})),
    ("OCCURRENCE_NOT_IN_SERIES", lambda s: ("get_event", {"event_id": event_titled(s, "Focus"),
                                            "occurrence_start": "2026-03-04T08:00"})),
    ("TZ_UNKNOWN", lambda s: ("get_current_time", {"time_zone": "Mars/Olympus"})),
    ("TZ_UNKNOWN", lambda s: ("get_current_time", {"time_zone": "localtime"})),
    ("TZ_UNKNOWN", lambda s: ("get_current_time", {"time_zone": "../etc/passwd"})),
    ("TZ_UNKNOWN", lambda s: ("create_event", {"title": "x", "time_zone": "Berlin", **NINE})),
    ("EVENT_CANCELLED", lambda s: ("update_event", {"event_id": sync(s, mine=True, cancelled=True), "title": "x"})),
    ("EVENT_CANCELLED", lambda s: ("cancel_event", {"event_id": sync(s, mine=True, cancelled=True)})),
    ("PERMISSION_DENIED", lambda s: ("get_event", {"event_id": sync(s, hidden=True, invited=False)})),
    ("PERMISSION_DENIED", lambda s: ("create_event", {"title": "x", "calendar_id": "C00004", **NINE})),
    ("NOT_FOUND", lambda s: ("get_event", {"event_id": "E99999"})),
    ("NOT_FOUND", lambda s: ("create_event", {"title": "x", "invitees": ["Ada Berg"], **NINE})),
    ("NOT_FOUND", lambda s: ("list_events", {"calendar_id": "C99999"})),
    ("BAD_TIME", lambda s: ("create_event", {"title": "x", "start": "tomorrow", "end": "later"})),
    ("BAD_TIME", lambda s: ("create_event", {"title": "x", "start": "9999-12-31", "end": "9999-12-31"})),
    ("RANGE_TOO_LONG", lambda s: ("list_events", {"start": "2026-01-01", "end": "2027-01-01"})),
    ("RANGE_TOO_LONG", lambda s: ("create_event", {"title": "x", "start": "2026-04-01", "end": "2026-05-01"})),
    ("BAD_RULE", lambda s: ("create_recurring_event", {"title": "x", **NINE, "frequency": "daily",
                            "weekdays": ["monday"]})),
    ("BAD_RULE", lambda s: ("create_recurring_event", {"title": "x", **NINE, "frequency": "daily", "count": 2,
                            "until": "2026-05-01"})),
    ("BAD_RULE", lambda s: ("create_recurring_event", {"title": "x", **NINE, "frequency": "daily",
                            "until": "2026-03-31"})),
    ("BAD_RULE", lambda s: ("create_recurring_event", {"title": "x", "start": "2026-04-01", "end": "2026-04-03",
                            "frequency": "daily"})),
    ("BAD_RULE", lambda s: ("move_event", {"event_id": event_titled(s, "Payroll"), "new_start": "2026-04-01T07:00"})),
    ("NOTHING_TO_CHANGE", lambda s: ("update_event", {"event_id": event_titled(s, "Payroll")})),
    ("ALREADY_INVITED", lambda s: ("add_invitee", {"event_id": event_titled(s, "Payroll"), "person": "me"})),
    ("NOT_INVITED", lambda s: ("remove_invitee", {"event_id": event_titled(s, "Payroll"), "person": "P00005"})),
    ("NOT_INVITED", lambda s: ("respond_to_invite", {"event_id": event_titled(s, "Payroll"), "response": "accepted"})),
    ("BAD_CURSOR", lambda s: ("list_calendars", {"cursor": "99"})),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), FAILURES)
def test_failures_leave_the_state(code: str, case: Case) -> None:
    session = ENV.open("adversarial")
    tool, arguments = case(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert outcome.message
    assert session.digest() == before


# Golden edges ----------


def test_the_date_comes_from_the_clock() -> None:
    session = ENV.open("sparse")
    today = datetime.fromisoformat(executed(session, "get_current_time")["utc"])
    ahead, behind = (
        {"title": "x", "start": (today + delta).isoformat(), "end": (today + delta + timedelta(hours=1)).isoformat()}
        for delta in (timedelta(days=1), timedelta(days=-1))
    )
    assert session.call("create_event", behind).code == "PAST_EVENT"
    assert executed(session, "create_event", **ahead)["status"] == "confirmed"


def test_free_slots_then_create_then_invite() -> None:
    session = ENV.open()
    people = [one.id for one in session.world.rows(Person) if one.time_zone == "Europe/Berlin"][1:3]
    slot = executed(session, "find_free_slots", people=people, duration_minutes=30, end="2026-03-14")["items"][0]
    taken = executed(session, "list_events")["items"][0]
    clash = session.call("create_event", {"title": "x", "start": taken["start"], "end": taken["end"]})
    assert clash.code == "CONFLICT"
    end = datetime.fromisoformat(slot["start"]) + timedelta(minutes=30)
    made = executed(session, "create_event", title="Sync", start=slot["start"], end=end.isoformat())
    for person in people:
        assert executed(session, "add_invitee", event_id=made["event_id"], person=person)["overlapping_event_ids"] == []
    assert [
        one["person_id"] for one in executed(session, "list_invitees", event_id=made["event_id"])["items"]
    ] == people
    again = executed(session, "check_conflicts", start=slot["start"], end=end.isoformat(), people=["me", *people])
    assert {one["event_id"] for one in again["items"]} == {made["event_id"]}
    assert again["total"] == 3


def test_series_then_skip() -> None:
    session = ENV.open("sparse")
    made = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00", end="2026-03-03T09:30",
              frequency="weekly", weekdays=["tuesday", "thursday"], count=4)  # fmt: skip
    window = {"start": "2026-03-02", "end": "2026-04-30"}
    listed = [
        one["occurrence_start"] for one in executed(session, "list_events", **window)["items"] if one["title"] == "x"
    ]
    # Berlin is an hour ahead of UTC until 29 March.
    assert listed == [f"2026-03-{day}T08:00:00Z" for day in ("03", "05", "10", "12")]
    executed(session, "skip_occurrence", event_id=made["event_id"], occurrence_start=listed[1])
    left = [
        one["occurrence_start"] for one in executed(session, "list_events", **window)["items"] if one["title"] == "x"
    ]
    assert left == [listed[0], *listed[2:]]
    other = executed(
        session, "create_event", title="y", start=listed[1], end="2026-03-05T08:30Z"
    )  # the time is free now
    assert session.call("skip_occurrence", {"event_id": other["event_id"], "occurrence_start": listed[1]}).code == (
        "OCCURRENCE_NOT_IN_SERIES"
    )


# The rules of the domain ----------


def test_an_occurrence_is_named_by_its_first_time_also_after_a_move() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily", count=3, invitees=["P00002"])["event_id"]  # fmt: skip
    executed(session, "move_event", event_id=event, occurrence_start="2026-03-04T09:00Z", new_start="2026-03-06T15:00Z")
    listed = executed(session, "list_events", start="2026-03-06", end="2026-03-07")["items"]
    assert [(one["start"], one["occurrence_start"]) for one in listed] == [
        ("2026-03-06T15:00:00Z", "2026-03-04T09:00:00Z")
    ]
    assert executed(session, "list_events", start="2026-03-04", end="2026-03-05")["items"] == []
    executed(session, "update_event", event_id=event, occurrence_start="2026-03-04T09:00Z", title="y")
    one = executed(session, "get_event", event_id=event, occurrence_start="2026-03-04T09:00Z")
    assert (one["title"], one["start"]) == ("y", "2026-03-06T15:00:00Z")
    executed(session, "skip_occurrence", event_id=event, occurrence_start="2026-03-04T09:00Z")
    assert executed(session, "list_events", start="2026-03-06", end="2026-03-07")["items"] == []


def test_moving_asks_everybody_again_and_only_a_move_does() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_event", title="x", invitees=["P00002"], **NINE)["event_id"]
    invitee = session.world.need(Invitee, (event, "P00002"))
    session.world.update(invitee, response="accepted")
    executed(session, "move_event", event_id=event, new_start=NINE["start"])
    executed(session, "update_event", event_id=event, title="y")
    assert executed(session, "list_invitees", event_id=event)["items"][0]["response"] == "accepted"
    executed(session, "move_event", event_id=event, new_start="2026-04-01T08:45Z")
    assert executed(session, "list_invitees", event_id=event)["items"][0]["response"] == "needs_action"


def test_a_whole_series_keeps_its_days_and_exceptions_when_it_moves() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-27T09:00", end="2026-03-27T09:30",
               frequency="daily", count=4)["event_id"]  # fmt: skip
    executed(session, "skip_occurrence", event_id=event, occurrence_start="2026-03-28T09:00")
    executed(session, "move_event", event_id=event, new_start="2026-03-27T11:00")
    listed = executed(session, "list_events", start="2026-03-27", end="2026-04-02")["items"]
    assert [one["local_start"] for one in listed if one["event_id"] == event] == [
        "Fri 2026-03-27 11:00 +0100", "Sun 2026-03-29 11:00 +0200", "Mon 2026-03-30 11:00 +0200"
    ]  # fmt: skip


def test_cancelling_a_series_that_has_begun_keeps_its_past() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily")["event_id"]  # fmt: skip
    session.helper("_advance_clock", {"seconds": 5 * 86_400})
    assert executed(session, "cancel_event", event_id=event)["status"] == "ended"
    listed = executed(session, "list_events", start="2026-03-02", end="2026-03-20")["items"]
    assert [one["start"][:10] for one in listed] == [f"2026-03-0{day}" for day in range(3, 7)]
    assert session.call("cancel_event", {"event_id": event}).code == "EVENT_CANCELLED"


def test_cancelling_a_series_ends_what_lies_ahead_wherever_it_was_moved() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily", count=8)["event_id"]  # fmt: skip
    for original, new in (("2026-03-04T09:00Z", "2026-03-12T15:00Z"), ("2026-03-09T09:00Z", "2026-03-05T15:00Z")):
        executed(session, "move_event", event_id=event, occurrence_start=original, new_start=new, allow_conflict=True)
    session.helper("_advance_clock", {"seconds": 4 * 86_400})
    assert executed(session, "cancel_event", event_id=event)["next_occurrences"] == []
    listed = executed(session, "list_events", start="2026-03-02", end="2026-03-20")["items"]
    past = ["2026-03-03T09:00:00Z", "2026-03-05T09:00:00Z", "2026-03-05T15:00:00Z"]
    assert [one["start"] for one in listed if one["event_id"] == event] == past
    look = {"event_id": event, "occurrence_start": "2026-03-09T09:00Z"}
    assert executed(session, "get_event", **look)["start"] == "2026-03-05T15:00:00Z"
    gone = {"event_id": event, "occurrence_start": "2026-03-04T09:00Z"}
    assert session.call("get_event", gone).code == "OCCURRENCE_NOT_IN_SERIES"


def test_an_occurrence_that_only_has_another_title_moves_with_its_series() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily", count=3)["event_id"]  # fmt: skip
    executed(session, "update_event", event_id=event, occurrence_start="2026-03-04T09:00Z", title="y")
    executed(session, "move_event", event_id=event, occurrence_start="2026-03-05T09:00Z", new_start="2026-03-05T13:00Z")
    executed(session, "move_event", event_id=event, new_start="2026-03-03T15:00Z", new_end="2026-03-03T16:00Z")
    listed = executed(session, "list_events", start="2026-03-02", end="2026-03-20")["items"]
    assert [(one["title"], one["start"], one["end"]) for one in listed if one["event_id"] == event] == [
        ("x", "2026-03-03T15:00:00Z", "2026-03-03T16:00:00Z"),
        ("y", "2026-03-04T15:00:00Z", "2026-03-04T16:00:00Z"),
        ("x", "2026-03-05T13:00:00Z", "2026-03-05T13:30:00Z"),
    ]


def test_a_skipped_day_is_in_nobodys_way_when_the_series_moves() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily", count=3)["event_id"]  # fmt: skip
    executed(session, "create_event", title="y", start="2026-03-04T11:00Z", end="2026-03-04T12:00Z")
    move = {"event_id": event, "new_start": "2026-03-03T11:00Z"}
    assert session.call("move_event", move).code == "CONFLICT"
    executed(session, "skip_occurrence", event_id=event, occurrence_start="2026-03-04T09:00Z")
    executed(session, "move_event", **move)


def test_an_occurrence_cannot_be_moved_onto_another_one() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_recurring_event", title="x", start="2026-03-03T09:00Z", end="2026-03-03T09:30Z",
               frequency="daily", count=3)["event_id"]  # fmt: skip
    move = {"event_id": event, "occurrence_start": "2026-03-03T09:00Z"}
    assert session.call("move_event", {**move, "new_start": "2026-03-04T09:15Z"}).code == "CONFLICT"
    executed(session, "move_event", **move, new_start="2026-03-03T09:15Z")  # its own old time is free


def test_what_shows_as_free_conflicts_once_it_shows_as_busy() -> None:
    session = ENV.open("sparse")
    event = executed(session, "create_event", title="x", show_as="free", **NINE)["event_id"]
    executed(session, "create_event", title="y", **NINE)
    assert session.call("update_event", {"event_id": event, "show_as": "busy"}).code == "CONFLICT"
    executed(session, "update_event", event_id=event, show_as="busy", allow_conflict=True)


def test_declining_frees_the_time() -> None:
    session = ENV.open("sparse")
    event = next(iter(session.world.find(Invitee, person_id="P00001"))).event_id
    start, end = (executed(session, "get_event", event_id=event)[name] for name in ("start", "end"))
    assert session.call("create_event", {"title": "x", "start": start, "end": end}).code == "CONFLICT"
    executed(session, "respond_to_invite", event_id=event, response="declined")
    executed(session, "create_event", title="x", start=start, end=end)
    again = executed(session, "respond_to_invite", event_id=event, response="accepted")
    assert len(again["overlapping_event_ids"]) == 1


def test_free_or_busy_calendars_hide_titles() -> None:
    session = ENV.open("adversarial")
    listed = executed(session, "list_events", calendar_id="C00002", start="2026-02-20", end="2026-04-01", limit=100)[
        "items"
    ]
    hidden = [one for one in listed if session.world.get(Invitee, (one["event_id"], "P00001")) is None]
    assert hidden
    assert {(one["title"], one["location"]) for one in hidden} == {("(busy)", "")}
    found = executed(session, "search_events", text="project sync", include_cancelled=True, limit=100)["items"]
    assert not {one["event_id"] for one in found} & {one["event_id"] for one in hidden}


# Recurrence against two other implementations ----------

rules = st.builds(
    lambda frequency, interval, weekdays, by, count, until: RecurrenceRule(
        "E", frequency, interval, tuple(sorted(weekdays)) if frequency == "weekly" else (),
        by if frequency == "monthly" else "day", count, None if until is None or count else 1_772_442_000 + until,
    ),
    st.sampled_from(["daily", "weekly", "monthly"]), st.integers(1, 5), st.sets(st.integers(0, 6), min_size=1),
    st.sampled_from(["day", "weekday"]), st.none() | st.integers(1, 30), st.none() | st.integers(0, 400 * 86_400),
)  # fmt: skip
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland", "Asia/Kolkata"])
firsts = st.integers(0, 500).map(lambda hours: 1_772_442_000 - 400 * 86_400 + hours * 3600 * 17)
HIGH = 1_772_442_000 + 500 * 86_400


def naive(rule: RecurrenceRule, first: int, zone: ZoneInfo, high: int) -> list[int]:
    """Day by day: is it one?"""
    local = datetime.fromtimestamp(first, zone)
    found: list[int] = []
    day = local.date()
    while True:
        weeks = (day - timedelta(days=day.weekday()) - (local.date() - timedelta(days=local.weekday()))).days // 7
        months = (day.year - local.year) * 12 + day.month - local.month
        matches = {
            "daily": (day - local.date()).days % rule.interval == 0,
            "weekly": weeks % rule.interval == 0 and day.weekday() in rule.weekdays,
            "monthly": months % rule.interval == 0
            and (
                day.day == local.day
                if rule.monthly_by == "day"
                else day.weekday() == local.weekday() and (day.day - 1) // 7 == (local.day - 1) // 7
            ),
        }
        start = int(datetime.combine(day, local.time(), zone).timestamp())
        if start >= high or (rule.until is not None and start > rule.until):
            return found
        if matches[rule.frequency]:
            found.append(start)
            if len(found) == rule.count:
                return found
        day += timedelta(days=1)


@given(rules, zones, firsts, st.integers(-450, 500))
@settings(max_examples=100)
def test_recurrence_is_what_a_day_by_day_search_finds(rule: RecurrenceRule, name: str, first: int, low: int) -> None:
    zone = zone_of(name)
    first = first_start(rule, first, zone)
    begin = 1_772_442_000 + low * 86_400
    every = naive(rule, first, zone, HIGH)
    assert list(starts(rule, first, zone, begin, HIGH)) == [start for start in every if start >= begin]
    assert all(is_start(rule, first, zone, start) for start in every[:5])
    assert not any(is_start(rule, first, zone, start + 60) for start in every[:5])


@given(rules, zones, firsts)
@settings(max_examples=40)
def test_recurrence_is_what_dateutil_finds(rule: RecurrenceRule, name: str, first: int) -> None:
    rrule = pytest.importorskip("dateutil.rrule", reason="python-dateutil is not installed")
    zone = zone_of(name)
    first = first_start(rule, first, zone)
    local = datetime.fromtimestamp(first, zone).replace(tzinfo=None)
    more: dict[str, Any] = {"count": rule.count} if rule.count else {"until": datetime(2028, 1, 1)}
    if rule.frequency == "weekly":
        more["byweekday"] = list(rule.weekdays)
    if rule.frequency == "monthly" and rule.monthly_by == "weekday":
        more["byweekday"] = rrule.weekday(local.weekday(), (local.day - 1) // 7 + 1)
    kind = getattr(rrule, rule.frequency.upper())
    theirs = [int(one.replace(tzinfo=zone).timestamp()) for one in rrule.rrule(kind, local, rule.interval, **more)]
    last = HIGH if rule.until is None else min(HIGH, rule.until + 1)
    assert list(starts(rule, first, zone, 0, HIGH)) == [start for start in theirs if start < last]


def test_the_clocks_change() -> None:
    session = ENV.open("adversarial")
    event = event_titled(session, "Night job")
    listed = executed(session, "list_events", start="2026-03-28", end="2026-03-31")["items"]
    # 02:30 does not exist in Berlin on 29 March; RFC 5545 takes the offset from before: 01:30 UTC, 03:30 on the wall.
    assert [one["start"] for one in listed if one["event_id"] == event] == [
        "2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"
    ]  # fmt: skip


# Free time ----------


@given(
    st.sets(st.integers(2, 41), min_size=1, max_size=3),
    st.sampled_from([15, 30, 45, 90]),
    st.booleans(),
    st.integers(0, 20),
)
@settings(max_examples=6)
def test_free_slots_are_those_that_check_conflicts_finds_free(
    numbers: set[int], minutes: int, working: bool, day: int
) -> None:
    session = ENV.open()
    people = ["P00001", *(f"P{number:05d}" for number in sorted(numbers))]
    low = session.world.now + day * 86_400
    ends = {"start": stamp(low), "end": stamp(low + 86_400)}
    found = executed(session, "find_free_slots", people=people, duration_minutes=minutes, working_hours_only=working,
               limit=100, **ends)["items"]  # fmt: skip
    offered = {start for one in found for start in range(seconds(one["start"]), seconds(one["latest_start"]) + 1, 900)}
    free = {
        start
        for start in range(low, low + 86_400 - minutes * 60 + 1, 900)
        if not executed(session, "check_conflicts", start=stamp(start), end=stamp(start + minutes * 60), people=people)[
            "items"
        ]
        and (not working or all(at_work(session, person, start, start + minutes * 60) for person in people))
    }
    assert offered == free


def at_work(session: StatefulSession, person_id: str, start: int, end: int) -> bool:
    person = session.world.need(Person, person_id)
    first, last = (datetime.fromtimestamp(moment, ZoneInfo(person.time_zone)) for moment in (start, end))
    return (
        first.date() == last.date()
        and first.weekday() < 5
        and first.hour * 60 + first.minute >= person.work_start
        and last.hour * 60 + last.minute <= person.work_end
    )


def stamp(moment: int) -> str:
    return datetime.fromtimestamp(moment, ZoneInfo("UTC")).isoformat()


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


# Invariants ----------

hours = st.integers(-5, 24 * 14)
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "series", "move", "move_one", "skip", "cancel", "invite", "show"]),
        hours,
        st.integers(0, 9),
    ),
    max_size=14,
)  # fmt: skip


@given(steps)
@settings(max_examples=40)
def test_without_allow_conflict_my_time_is_never_taken_twice(script: list[tuple[str, int, int]]) -> None:
    session = ENV.open("sparse")
    for kind, hour, choice in script:
        start = stamp(session.world.now + hour * 3600)
        end = stamp(session.world.now + hour * 3600 + 1800 * (1 + choice % 4))
        mine = session.world.find(Event, organizer_id="P00001")
        event = mine[choice % len(mine)].id if mine else "E00001"
        listed = executed(session, "list_events", start="2026-03-01", end="2026-04-01")["items"]
        one = listed[hour % len(listed)]["occurrence_start"] if listed else "2026-03-09T09:00Z"
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "create": ("create_event", {"title": "x", "start": start, "end": end}),
            "series": ("create_recurring_event", {"title": "x", "start": start, "end": end, "count": 3 + choice,
                       "frequency": ("daily", "weekly", "monthly")[choice % 3]}),
            "move": ("move_event", {"event_id": event, "new_start": start}),
            "move_one": ("move_event", {"event_id": event, "new_start": start, "occurrence_start": one or start}),
            "skip": ("skip_occurrence", {"event_id": event, "occurrence_start": one or start}),
            "cancel": ("cancel_event", {"event_id": event}),
            "show": ("update_event", {"event_id": event, "show_as": ("busy", "free")[choice % 2]}),
            "invite": ("add_invitee", {"event_id": event, "person": f"P0000{1 + choice % 3}"}),
        }  # fmt: skip
        before = session.digest()
        outcome = session.call(*call[kind])
        assert outcome.kind in ("ok", "execution_error")
        if outcome.kind == "execution_error":
            assert session.digest() == before
        taken = busy(session.world, "P00001", session.world.now, session.world.now + 330 * 86_400)
        for earlier, later in pairwise(taken):
            assert earlier.end <= later.start
        for exception in session.world.rows(OccurrenceException):
            held = session.world.need(Event, exception.event_id)
            rule = session.world.need(RecurrenceRule, held.id)
            assert is_start(rule, held.start, zone_of(held.time_zone), exception.original_start)


# Scenarios ----------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    world = environment(scale=2).open(scenario, seed).world
    assert world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    mine = world.need(Profile, "me")
    assert world.need(Calendar, mine.calendar_id).owner_id == mine.person_id
    for calendar in world.rows(Calendar):
        assert world.get(Person, calendar.owner_id) is not None
        zone_of(calendar.time_zone)
    for event in world.rows(Event):
        assert world.get(Calendar, event.calendar_id) is not None
        assert world.get(Person, event.organizer_id) is not None
        assert event.start < event.end
        assert (world.get(RecurrenceRule, event.id) is not None) == event.recurring
        if event.recurring:
            rule = world.need(RecurrenceRule, event.id)
            assert is_start(rule, event.start, zone_of(event.time_zone), event.start)
    for invitee in world.rows(Invitee):
        assert world.need(Event, invitee.event_id).organizer_id != invitee.person_id
        assert world.get(Person, invitee.person_id) is not None
    for exception in world.rows(OccurrenceException):
        event = world.need(Event, exception.event_id)
        rule = world.need(RecurrenceRule, event.id)
        assert is_start(rule, event.start, zone_of(event.time_zone), exception.original_start)


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 500
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    world = session.world
    colleague = "P00002"
    event = executed(session, "create_event", title="x", invitees=[colleague], allow_conflict=True, **NINE)["event_id"]
    series = executed(session, "create_recurring_event", title="y", start="2026-03-03T05:00Z", end="2026-03-03T05:10Z",
                frequency="monthly", monthly_by="weekday", count=3, allow_conflict=True)  # fmt: skip
    assert series["next_occurrences"] == ["2026-03-03T05:00:00Z", "2026-04-07T04:00:00Z", "2026-05-05T04:00:00Z"]
    invited = next(
        one.event_id
        for one in world.find(Invitee, person_id="P00001")
        for held in (world.need(Event, one.event_id),)
        if held.cancelled_from is None and any(occurrences(world, held, world.now, world.now + 86_400 * 40))
    )
    calls: dict[str, dict[str, Any]] = {
        "get_current_time": {"time_zone": "Asia/Tokyo"},
        "list_calendars": {"owner": "a"},
        "list_events": {},
        "search_events": {"text": "review", "attendee": colleague},
        "get_event": {"event_id": event},
        "list_invitees": {"event_id": event},
        "find_free_slots": {"people": [colleague], "duration_minutes": 30},
        "check_conflicts": {**NINE, "people": [colleague]},
        "update_event": {"event_id": event, "location": "Room"},
        "move_event": {"event_id": event, "new_start": "2026-04-02T05:00Z", "allow_conflict": True},
        "skip_occurrence": {"event_id": series["event_id"], "occurrence_start": series["next_occurrences"][1]},
        "add_invitee": {"event_id": event, "person": "P00003"},
        "remove_invitee": {"event_id": event, "person": "P00003"},
        "respond_to_invite": {"event_id": invited, "response": "tentative"},
        "cancel_event": {"event_id": event},
    }
    assert {*calls, "create_event", "create_recurring_event"} == set(SURFACE)
    for tool, arguments in calls.items():
        executed(session, tool, **arguments)


def test_sparse_answers_with_empty_pages() -> None:
    session = ENV.open("sparse")
    assert session.call("list_events", {}).kind == "empty"
    assert session.call("search_events", {"text": "unicorn"}).kind == "empty"
    assert session.call("check_conflicts", NINE).kind == "empty"
    assert executed(session, "get_current_time")["weekday"] == "Mon"
