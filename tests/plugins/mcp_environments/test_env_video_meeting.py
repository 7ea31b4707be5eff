from __future__ import annotations

from typing import Any

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.video_meeting import environment
from callwright_plugins.mcp_environments.video_meeting.rows import (
    PLANS,
    Meeting,
    Participant,
    Profile,
    Recording,
    User,
    Waiting,
)

ENV = environment()
ME = "U00001"
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "list_meetings": "RD", "get_meeting": "R", "list_recordings": "RD", "schedule_meeting": "", "start_meeting": "",
    "admit_participant": "", "mute_participant": "", "start_recording": "", "stop_recording": "", "end_meeting": "X",
}  # fmt: skip
LATER: dict[str, Any] = {"topic": "x", "starts_at": "2026-03-05T10:00", "minutes": 30}


def meeting(session: StatefulSession, **wanted: Any) -> str:
    """The first meeting with these fields; ``mine`` says whether the signed-in person hosts it."""
    mine = wanted.pop("mine", True)
    passcode = wanted.pop("passcode", "")
    for one in session.world.rows(Meeting):
        fits = all(getattr(one, name) == value for name, value in wanted.items())
        if fits and (one.host_id == ME) == mine and one.passcode == passcode:
            return one.id
    raise AssertionError(wanted)


def live(session: StatefulSession, place: int) -> str:
    """The live meetings of the adversarial world: 0 full and mine, 1 where I am co-host, 2 where I am a guest."""
    return session.world.find(Meeting, status="live")[place].id


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 10
    assert {name for name, spec in ENV.tools.items() if spec.sensitive} == {"schedule_meeting", "start_meeting"}


def test_conformance() -> None:
    check_component("environment", ENV)


FAILURES: list[tuple[str, Any]] = [
    ("NOT_HOST", lambda s: ("start_meeting", {"meeting_id": meeting(s, mine=False,
                                 invited_ids=("U00001", "U00004", "U00005"))})),
    ("NOT_HOST", lambda s: ("end_meeting", {"meeting_id": live(s, 1)})),
    ("NOT_HOST", lambda s: ("admit_participant", {"meeting_id": live(s, 2), "user": "U00004"})),
    ("NOT_HOST", lambda s: ("mute_participant", {"meeting_id": live(s, 2), "user": "U00013"})),
    ("NOT_HOST", lambda s: ("start_recording", {"meeting_id": live(s, 2)})),
    ("NOT_HOST", lambda s: ("stop_recording", {"meeting_id": live(s, 2)})),
    ("NOT_STARTED", lambda s: ("admit_participant", {"meeting_id": meeting(s, status="scheduled"), "user": "U00004"})),
    ("NOT_STARTED", lambda s: ("end_meeting", {"meeting_id": meeting(s, status="scheduled")})),
    ("NOT_STARTED", lambda s: ("start_recording", {"meeting_id": meeting(s, status="scheduled")})),
    ("ALREADY_ENDED", lambda s: ("start_meeting", {"meeting_id": meeting(s, status="ended")})),
    ("ALREADY_ENDED", lambda s: ("end_meeting", {"meeting_id": meeting(s, status="ended")})),
    ("ALREADY_ENDED", lambda s: ("stop_recording", {"meeting_id": meeting(s, status="ended")})),
    ("ALREADY_STARTED", lambda s: ("start_meeting", {"meeting_id": live(s, 0)})),
    ("BAD_PASSCODE", lambda s: ("start_meeting", {"meeting_id": meeting(s, passcode="0042")})),
    ("BAD_PASSCODE", lambda s: ("start_meeting", {"meeting_id": meeting(s, passcode="0042"), "passcode": "42"})),
    ("HOST_BUSY", lambda s: ("start_meeting", {"meeting_id": meeting(s, passcode="0042"), "passcode": "0042"})),
    ("RECORDING_DISABLED", lambda s: (executed(s, "end_meeting", meeting_id=live(s, 0)), _start(s, "nobody"))[1]),
    ("CAPACITY", lambda s: ("admit_participant", {"meeting_id": live(s, 0), "user": _waiting(s)})),
    ("CAPACITY", lambda s: ("schedule_meeting", {**LATER, "capacity": PLANS["pro"].capacity + 1})),
    ("DURATION_LIMIT", lambda s: ("schedule_meeting", {**LATER, "minutes": PLANS["pro"].minutes + 1})),
    ("NOT_IN_WAITING_ROOM", lambda s: ("admit_participant", {"meeting_id": live(s, 0), "user": "U00015"})),
    ("NOT_IN_WAITING_ROOM", lambda s: ("admit_participant", {"meeting_id": live(s, 0), "user": "U00002"})),
    ("NOT_IN_MEETING", lambda s: ("mute_participant", {"meeting_id": live(s, 0), "user": _waiting(s)})),
    ("NOT_IN_MEETING", lambda s: ("start_recording", {"meeting_id": live(s, 1)})),
    ("NOT_RECORDING", lambda s: ("stop_recording", {"meeting_id": live(s, 0)})),
    ("ALREADY_RECORDING", lambda s: (executed(s, "start_recording", meeting_id=live(s, 0)),
                                     ("start_recording", {"meeting_id": live(s, 0)}))[1]),
    ("PAST_TIME", lambda s: ("schedule_meeting", {**LATER, "starts_at": "2026-03-02T08:59Z"})),
    ("PAST_TIME", lambda s: ("schedule_meeting", {**LATER, "starts_at": "2899-01-01"})),
    ("BAD_TIME", lambda s: ("schedule_meeting", {**LATER, "starts_at": "tomorrow"})),
    ("PERMISSION_DENIED", lambda s: ("get_meeting", {"meeting_id": meeting(s, mine=False,
                                     invited_ids=("U00005", "U00006", "U00007"))})),
    ("NOT_FOUND", lambda s: ("get_meeting", {"meeting_id": "V99999"})),
    ("NOT_FOUND", lambda s: ("schedule_meeting", {**LATER, "invitees": ["Ida Lund"]})),
]  # fmt: skip


def _waiting(session: StatefulSession) -> str:
    return session.world.find(Waiting, meeting_id=live(session, 0))[0].user_id


def _start(session: StatefulSession, recording: str) -> tuple[str, dict[str, Any]]:
    """Start one of my meetings with this policy; the call records it."""
    one = meeting(session, status="scheduled", recording=recording)
    executed(session, "start_meeting", meeting_id=one)
    return "start_recording", {"meeting_id": one}


@pytest.mark.parametrize(("code", "case"), FAILURES)
def test_failures_leave_the_state(code: str, case: Any) -> None:
    session = ENV.open("adversarial")
    tool, arguments = case(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert outcome.message
    assert session.digest() == before


def test_free_plans_do_not_record() -> None:
    session = ENV.open("sparse")
    before = session.digest()
    assert session.call("schedule_meeting", {**LATER, "recording": "host"}).code == "RECORDING_DISABLED"
    assert session.call("schedule_meeting", {**LATER, "minutes": 41}).code == "DURATION_LIMIT"
    assert session.digest() == before


# Golden edges --------------------


def test_schedule_start_admit_mute_end() -> None:
    session = ENV.open("sparse")
    made = executed(session, "schedule_meeting", invitees=["U00002", "U00003"], passcode="1234", **LATER)["meeting_id"]
    assert session.call("admit_participant", {"meeting_id": made, "user": "U00002"}).code == "NOT_STARTED"
    assert session.call("start_meeting", {"meeting_id": made}).code == "BAD_PASSCODE"
    started = executed(session, "start_meeting", meeting_id=made, passcode="1234")
    assert [one["user_id"] for one in started["participants"]] == [ME]
    assert [one["user_id"] for one in started["waiting"]] == ["U00002", "U00003"]
    assert session.call("mute_participant", {"meeting_id": made, "user": "U00002"}).code == "NOT_IN_MEETING"
    executed(session, "admit_participant", meeting_id=made, user="U00002")
    assert executed(session, "mute_participant", meeting_id=made, user="U00002")["muted"] is True
    assert session.call("start_meeting", {"meeting_id": "V00001"}).code == "HOST_BUSY"
    ended = executed(session, "end_meeting", meeting_id=made)
    assert (ended["status"], ended["participants"], ended["waiting"]) == ("ended", [], [])
    executed(session, "start_meeting", meeting_id="V00001")


def test_start_record_stop_list() -> None:
    session = ENV.open("adversarial")
    executed(session, "end_meeting", meeting_id=live(session, 0))
    tool, arguments = _start(session, "host")
    assert session.call("list_recordings", arguments).kind == "empty"
    recording = executed(session, tool, **arguments)["recording_id"]
    session.helper("_advance_clock", {"seconds": 300})
    assert executed(session, "stop_recording", **arguments)["minutes"] == 5
    assert session.call("stop_recording", arguments).code == "NOT_RECORDING"
    listed = executed(session, "list_recordings", **arguments)["items"]
    assert [(one["recording_id"], one["minutes"]) for one in listed] == [(recording, 5)]


# The rules of the domain --------------------


def test_without_waiting_room_people_come_in_until_it_is_full() -> None:
    session = ENV.open("adversarial")
    executed(session, "end_meeting", meeting_id=live(session, 0))
    small = meeting(session, status="scheduled", capacity=2)
    outcome = session.call("start_meeting", {"meeting_id": small})
    assert (outcome.kind, outcome.code) == ("partial", "CAPACITY")
    assert len(outcome.value["participants"]) == 2
    assert len(outcome.value["waiting"]) == len(outcome.value["invited"]) - 1


def test_people_in_another_meeting_do_not_come() -> None:
    session = ENV.open("adversarial")
    inside = [one.user_id for one in session.world.find(Participant, meeting_id=live(session, 2), left_at=None)]
    other = next(one for one in inside if one != ME)
    executed(session, "end_meeting", meeting_id=live(session, 0))
    made = executed(session, "schedule_meeting", invitees=[other, "U00004"], **LATER)["meeting_id"]
    assert [one["user_id"] for one in executed(session, "start_meeting", meeting_id=made)["waiting"]] == ["U00004"]


def test_a_cohost_admits_and_a_guest_sees_nobody_wait() -> None:
    session = ENV.open("adversarial")
    helped = live(session, 1)
    waiting = executed(session, "get_meeting", meeting_id=helped)["waiting"]
    assert waiting
    executed(session, "admit_participant", meeting_id=helped, user=waiting[0]["email"])
    session.world.put(Waiting(live(session, 2), "U00015", session.world.now))
    assert executed(session, "get_meeting", meeting_id=live(session, 2))["waiting"] == []


def test_ending_stops_the_recording_and_keeps_it() -> None:
    session = ENV.open("adversarial")
    one = live(session, 0)
    recording = executed(session, "start_recording", meeting_id=one)["recording_id"]
    executed(session, "end_meeting", meeting_id=one)
    kept = session.world.need(Recording, recording)
    assert kept.stopped_at == session.world.now
    assert recording in {one["recording_id"] for one in executed(session, "list_recordings", limit=100)["items"]}


def test_recordings_of_others_show_only_if_shared() -> None:
    session = ENV.open()
    world = session.world
    listed = set()
    cursor = ""
    while True:
        got = executed(session, "list_recordings", limit=100, cursor=cursor)
        listed |= {one["recording_id"] for one in got["items"]}
        cursor = got["next_cursor"] or ""
        if not cursor:
            break
    for recording in world.rows(Recording):
        one = world.need(Meeting, recording.meeting_id)
        host = one.host_id == ME or ME in one.cohost_ids
        came = ME in one.invited_ids or world.get(Participant, (one.id, ME)) is not None
        assert (recording.id in listed) == (host or (came and one.share_recordings))


def test_passcodes_are_never_shown() -> None:
    session = ENV.open("adversarial")
    view = executed(session, "get_meeting", meeting_id=meeting(session, passcode="0042"))
    assert view["has_passcode"] is True
    assert "0042" not in str(view)


# Invariants --------------------

calls = st.lists(
    st.tuples(
        st.sampled_from(["schedule", "start", "admit", "mute", "record", "stop", "end"]),
        st.integers(0, 60),
        st.integers(0, 20),
    ),
    max_size=25,
)


@given(calls, st.sampled_from(["sparse", "adversarial"]))
@settings(max_examples=60)
def test_rooms_are_never_overfull_and_nobody_is_in_two(script: list[tuple[str, int, int]], scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    for kind, number, other in script:
        meetings = (
            [one for one in world.rows(Meeting) if one.host_id == ME] if number % 3 else list(world.rows(Meeting))
        )
        one = {"meeting_id": meetings[number % len(meetings)].id}
        users = list(world.rows(User))
        who = users[other % len(users)].id
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "schedule": ("schedule_meeting", {**LATER, "invitees": [one.id for one in users[: other]],
                         "capacity": 2 + other % 4, "waiting_room": number % 2 == 0, "recording": "nobody"}),
            "start": ("start_meeting", {**one, "passcode": "0042"}),
            "admit": ("admit_participant", {**one, "user": who}),

            "mute": ("mute_participant", {**one, "user": who}), "record": ("start_recording", one),
            "stop": ("stop_recording", one), "end": ("end_meeting", one),
        }  # fmt: skip
        before = session.digest()
        if session.call(*call[kind]).kind == "execution_error":
            assert session.digest() == before
        check(session)


def check(session: StatefulSession) -> None:
    world = session.world
    inside = [one for one in world.rows(Participant) if one.left_at is None]
    assert len(inside) == len({one.user_id for one in inside})
    for one in world.rows(Meeting):
        here = [each for each in inside if each.meeting_id == one.id]
        waiting = world.find(Waiting, meeting_id=one.id)
        runs = world.find(Recording, meeting_id=one.id, stopped_at=None)
        assert len(here) <= one.capacity <= PLANS[world.need(User, one.host_id).plan].capacity
        assert len(runs) <= 1
        assert {each.user_id for each in here}.isdisjoint({each.user_id for each in waiting})
        if one.status != "live":
            assert (here, waiting, runs) == ([], [], [])
        else:
            assert one.host_id in {each.user_id for each in here}
        assert one.recording != "nobody" or not world.find(Recording, meeting_id=one.id)
        assert (one.started_at is None) == (one.status == "scheduled")
        assert (one.ended_at is None) == (one.status != "ended")


# Scenarios --------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    session = environment(scale=2).open(scenario, seed)
    world = session.world
    assert world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    check(session)
    assert world.get(User, world.need(Profile, "me").user_id) is not None
    for one in world.rows(Meeting):
        assert {one.host_id, *one.cohost_ids, *one.invited_ids} <= {each.id for each in world.rows(User)}
        assert one.host_id not in one.invited_ids
        assert set(one.cohost_ids) <= set(one.invited_ids)
        assert one.status == "scheduled" or one.starts_at <= world.now
        assert one.ended_at is None or one.ended_at <= world.now
    for recording in world.rows(Recording):
        assert world.need(Meeting, recording.meeting_id).status != "scheduled"
        assert recording.started_at <= world.now


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 500
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    world = session.world
    one = next(
        each.id for each in world.find(Meeting, host_id=ME) if each.status == "scheduled" and each.waiting_room
        and not each.passcode and each.recording != "nobody"
        and any(not world.find(Participant, user_id=who, left_at=None) for who in each.invited_ids)
    )  # fmt: skip
    executed(session, "start_meeting", meeting_id=one)
    who = executed(session, "get_meeting", meeting_id=one)["waiting"][0]["user_id"]
    table: dict[str, dict[str, Any]] = {
        "list_meetings": {"role": "host"}, "get_meeting": {"meeting_id": one}, "list_recordings": {},
        "schedule_meeting": LATER, "admit_participant": {"meeting_id": one, "user": who},
        "mute_participant": {"meeting_id": one, "user": who}, "start_recording": {"meeting_id": one},
        "stop_recording": {"meeting_id": one}, "end_meeting": {"meeting_id": one},
    }  # fmt: skip
    assert {*table, "start_meeting"} == set(SURFACE)
    for tool, arguments in table.items():
        executed(session, tool, **arguments)


def test_sparse_answers_with_empty_pages() -> None:
    session = ENV.open("sparse")
    assert session.call("list_recordings", {}).kind == "empty"
    assert session.call("list_meetings", {"status": "live"}).kind == "empty"


def test_who_waits_for_two_meetings_is_let_into_one() -> None:
    session = ENV.open("adversarial")
    other = next(
        one["meeting_id"]
        for one in executed(session, "list_meetings", status="live", role="cohost")["items"]
        if executed(session, "get_meeting", meeting_id=one["meeting_id"])["waiting"]
    )
    who = executed(session, "get_meeting", meeting_id=other)["waiting"][0]["user_id"]
    for one in executed(session, "list_meetings", status="live", role="host")["items"]:
        executed(session, "end_meeting", meeting_id=one["meeting_id"])
    plan = {"topic": "x", "starts_at": "2026-03-09T09:00Z", "minutes": 30}
    mine = executed(session, "schedule_meeting", **plan, invitees=[who])["meeting_id"]
    executed(session, "start_meeting", meeting_id=mine)
    executed(session, "admit_participant", meeting_id=other, user=who)
    assert session.call("admit_participant", {"meeting_id": mine, "user": who}).code == "NOT_IN_WAITING_ROOM"
