"""Time that moves: what falls due between calls, in which order, who is told, and that forks and replays agree."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import ClockPolicy, EventKind, Notice
from callwright.environments.clock import TimedSession
from callwright.environments.functions import FunctionEnvironment
from callwright.environments.living.asking import keep_time, user_turn
from callwright.environments.living.events import LAST, Moment, after
from callwright.environments.living.passing import MOST_NOTICES
from callwright.environments.living.policy import read_policy
from callwright.environments.telling import told
from callwright.errors import ComponentError, DataError, NameClash, UsageError
from callwright.language.program import Call, Program
from callwright.tools.spec import Refused
from callwright.walk import Answer, Attempt, Conditions, Execution, Task, execute, replay
from callwright.walk.completion import Completion
from callwright.walk.conditions import DEFAULT_CONDITIONS
from callwright.walk.turn import Turn


@cw.row("parcels", prefix="P")
class Parcel:
    """What follows from the clock alone: it is there from ``at`` on."""

    id: str
    at: int
    whose: str


@cw.row("alarms", prefix="A")
class Alarm:
    """What moves on when it happens: it rings every ``every`` seconds, ``left`` times more."""

    id: str
    at: int
    every: int
    left: int
    rang: int = 0


@cw.tool(read_only=True)
def look(world: cw.World, /) -> dict[str, int]:
    """What is there."""
    return {"now": world.now, "rang": sum(one.rang for one in world.rows(Alarm))}


@cw.tool
def send(world: cw.World, /, after_s: int, whose: str = "me") -> str:
    """Send a parcel."""
    if after_s < 0:
        raise cw.ToolError("PAST", "parcels arrive later")
    return world.put(Parcel(world.new_id(Parcel), world.now + after_s, whose)).id


@cw.tool
def guess(world: cw.World, /) -> str:
    """Always refused."""
    raise Refused("WRONG", "that is wrong")


def moment_of(parcel: Parcel) -> Moment:
    return parcel.at, parcel.id


def parcel_due(world: cw.World, since: Moment) -> Moment | None:
    return next(iter(after(world.prepared(Parcel, moment_of, moment_of), since)), None)


def parcel_tells(world: cw.World, key: Any, came: Any) -> Iterable[Notice]:
    whose = world.need(Parcel, key).whose
    yield Notice(f"parcel {key} is there", *(() if whose == "me" else (whose,)))


def alarm_due(world: cw.World, since: Moment) -> Moment | None:
    return min(((one.at, one.id) for one in world.rows(Alarm) if one.left), default=None)


def ring(world: cw.World, key: Any) -> int:
    alarm = world.need(Alarm, key)
    world.update(alarm, at=alarm.at + alarm.every, left=alarm.left - 1, rang=alarm.rang + 1)
    return world.random().randint(1, 6)


def alarm_tells(world: cw.World, key: Any, came: Any) -> Iterable[Notice]:
    yield Notice(f"alarm {key} rings, and the die shows {came}")


EVENTS = (
    EventKind("arrived", "The person is told of a parcel of theirs.", parcel_due, parcel_tells),
    EventKind("rang", "The person hears every alarm.", alarm_due, alarm_tells, ring),
)


def build(rng: random.Random, scale: float) -> Iterator[Any]:
    now = 1_772_442_000
    yield Parcel("P1", now, "me")  # was there before
    yield Parcel("P2", now + 30, "me")
    yield Parcel("P3", now + 30, "me")
    yield Parcel("P4", now + 35, "you")
    yield Alarm("A1", now + 30, 100, 2)


def world_of(**more: Any) -> cw.StatefulEnvironment:
    return cw.StatefulEnvironment(
        "post",
        rows=[Parcel, Alarm],
        tools=[look, send, guess],
        scenarios={
            "typical": cw.Scenario(build),
            "moving": cw.Scenario(build, clock=ClockPolicy(call=30)),
        },
        **{"events": EVENTS, **more},
    )


ENVIRONMENT = world_of()
USUAL = ClockPolicy()


def opened(policy: ClockPolicy | None = USUAL) -> Any:
    session = ENVIRONMENT.open("typical")
    session.keep_time(policy)
    return session


def test_without_a_policy_time_stands_still_and_nothing_is_told() -> None:
    session, bare = ENVIRONMENT.open("typical"), world_of(events=()).open("typical")
    for tool, arguments in (("look", {}), ("send", {"after_s": 5}), ("guess", {}), ("send", {"after_s": -1})):
        found, same = session.call(tool, arguments), bare.call(tool, arguments)
        assert found == same
        assert found.notices == ()
        assert "notices" not in told(found)
    session.user_turn()
    for one in (session, bare):
        one.helper("_advance_clock", {"seconds": 500})
    assert session.digest() == bare.digest()
    assert session.call("look", {}).value == {"now": 1_772_442_500, "rang": 0}
    with pytest.raises(UsageError, match="stands still"):
        session.elapse(5)


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("look", {}, "ok"),
        ("send", {"after_s": 5000}, "ok"),
        ("send", {"after_s": -1}, "execution_error"),
        ("send", {"after_s": "soon"}, "schema_error"),
        ("guess", {}, "refused"),
    ],
)
def test_every_call_that_reaches_a_tool_takes_its_time_and_tells_what_happened(
    tool: str, arguments: dict[str, Any], kind: str
) -> None:
    session = opened(ClockPolicy(call=30))
    outcome = session.call(tool, arguments)
    assert outcome.kind == kind
    assert [words.partition(",")[0] for words in outcome.notices] == [
        "parcel P2 is there",
        "parcel P3 is there",
        "alarm A1 rings",
    ]
    assert told(outcome)["notices"] == list(outcome.notices)
    assert session.world.now == 1_772_442_030
    assert session.call("look", {}).notices == ()  # P4 is not theirs


def test_a_tool_that_is_not_there_takes_no_time_and_keeps_what_is_to_be_told() -> None:
    session = opened()
    session.elapse(30)
    missing = session.call("nothing", {})
    assert (missing.kind, missing.notices, session.world.now) == ("unknown_tool", (), 1_772_442_030)
    assert len(session.call("look", {}).notices) == 3


def test_tools_see_the_time_at_which_they_began_and_events_their_own() -> None:
    session = opened(ClockPolicy(call=1000))
    assert session.call("look", {}).value == {"now": 1_772_442_000, "rang": 0}
    assert session.call("look", {}).value == {"now": 1_772_443_000, "rang": 2}
    assert session.world.get(Alarm, "A1").at == 1_772_442_230


def test_a_users_turn_passes_with_its_jump_and_is_told_with_the_next_outcome() -> None:
    session = opened(ClockPolicy(call=0, user_turn=10, jumps=(0, 90)))
    session.user_turn()
    assert session.call("look", {}).notices == ()
    session.user_turn()
    assert session.world.now == 1_772_442_110
    assert len(session.call("look", {}).notices) == 3


def test_what_is_told_is_bounded_and_says_how_much_is_not() -> None:
    session = opened(ClockPolicy(call=0))
    for _ in range(100):
        session.call("send", {"after_s": 10})
    session.elapse(10)
    notices = session.call("look", {}).notices
    assert len(notices) == MOST_NOTICES
    assert notices[0] == f"{101 - MOST_NOTICES} earlier notices are not shown"


def test_spreads_are_drawn_from_the_seed_and_the_time() -> None:
    policy = ClockPolicy(call=20, call_spread=19, seed=3)
    taken = {policy.of_call(now) for now in range(2000)}
    assert taken == set(range(1, 40))
    assert [policy.of_call(now) for now in range(50)] == [policy.of_call(now) for now in range(50)]
    assert [ClockPolicy(20, 19, seed=4).of_call(now) for now in range(50)] != [policy.of_call(n) for n in range(50)]


steps = st.lists(
    st.one_of(
        st.just(("call", "look", {})),
        st.builds(lambda s: ("call", "send", {"after_s": s}), st.integers(-1, 200)),
        st.just(("call", "guess", {})),
        st.just(("call", "nothing", {})),
        st.just(("user",)),
        st.builds(lambda s: ("elapse", s), st.integers(0, 300)),
    ),
    max_size=12,
)


def take(session: Any, taken: list[Any]) -> list[Any]:
    seen: list[Any] = []
    for step in taken:
        if step[0] == "call":
            seen.append(session.call(step[1], step[2]))
        elif step[0] == "user":
            session.user_turn()
        else:
            session.elapse(step[1])
        seen.append(session.digest())
    return seen


@settings(max_examples=60, deadline=None)
@given(steps, steps, st.integers(0, 5))
def test_forks_copies_resets_and_repetitions_go_the_same_way(first: Any, second: Any, seed: int) -> None:
    policy = ClockPolicy(call_spread=7, user_turn_spread=9, jumps=(50,), seed=seed)
    session = opened(policy)
    before = take(session, first)
    fork, copy = session.fork(), pickle.loads(pickle.dumps(session))
    found = take(session, second)
    assert take(fork, second) == found
    assert [getattr(one, "value", one) for one in take(copy, second)] == [getattr(one, "value", one) for one in found]
    session.reset()
    assert take(session, first + second) == before + found
    assert session.digest() == session.fork().digest()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 120), max_size=8))
def test_one_long_stretch_and_many_short_ones_come_to_the_same(stretches: list[int]) -> None:
    once, often = opened(ClockPolicy(call=0)), opened(ClockPolicy(call=0))
    once.elapse(sum(stretches))
    for seconds in stretches:
        often.elapse(seconds)
    assert once.digest() == often.digest()
    assert once.call("look", {}) == often.call("look", {})


def test_an_event_that_fails_is_a_bug_and_undoes_the_stretch() -> None:
    def fails(world: cw.World, key: Any) -> None:
        world.update(world.need(Alarm, key), rang=99)
        raise ValueError("broken spring")

    session = world_of(events=[EventKind("rang", "", alarm_due, alarm_tells, fails)]).open("typical")
    session.keep_time(ClockPolicy())
    before = session.digest()
    with pytest.raises(ComponentError, match="bug of the event 'rang'"):
        session.elapse(60)
    assert session.digest() == before


def test_an_event_that_never_moves_on_is_a_bug() -> None:
    session = world_of(events=[EventKind("rang", "", alarm_due, alarm_tells)]).open("typical")
    session.keep_time(ClockPolicy())
    with pytest.raises(ComponentError, match="must move it on"):
        session.elapse(60)


def test_two_kinds_of_events_of_one_name_clash() -> None:
    with pytest.raises(NameClash):
        world_of(events=[EVENTS[0], EVENTS[0]])


def test_the_last_key_comes_after_every_other() -> None:
    assert after([(1, "a"), (2, "a"), (2, "b"), (3, "a")], (2, LAST)) == [(3, "a")]
    assert after([(1, "a"), (2, "a"), (2, "b"), (3, "a")], (2, "a")) == [(2, "b"), (3, "a")]


@pytest.mark.parametrize(
    "stated",
    ["call", "call=x", "call=-1", "colour=3", "call=5,call_spread=5", 7, {"jumps": 3}, {"call": 1.5}],
)
def test_what_is_no_policy_is_said_to_be_none(stated: Any) -> None:
    with pytest.raises(DataError):
        read_policy(stated)


def test_policies_are_read_from_texts_and_objects() -> None:
    assert read_policy("off") is None is read_policy(None)
    assert read_policy("on") == ClockPolicy() == read_policy({})
    assert read_policy("call=5, user_turn=60,jumps=0+7200") == ClockPolicy(5, 0, 60, jumps=(0, 7200))
    policy = ClockPolicy(5, 2, 60, 3, (1, 2), 4)
    assert read_policy(policy.to_json()) == policy


# Attempts -------------------------------------------------------------------------------------------------------------


def task_of(clock: ClockPolicy | None, scenario: str = "typical", **more: Any) -> Task:
    return Task("t", "?", ENVIRONMENT.tools, Answer(), ENVIRONMENT, scenario=scenario, clock=clock, **more)


def program(*calls: tuple[str, dict[str, Any]]) -> Program:
    return Program(tuple(Call(number, *call) for number, call in enumerate(calls)))


LOOKS = program(("look", {}), ("look", {}))


def test_a_tasks_clock_moves_its_session_and_a_scenarios_where_the_task_names_none() -> None:
    def nows(**more: Any) -> list[int]:
        trace = execute(LOOKS, ENVIRONMENT, ENVIRONMENT.tools, **more)
        return [record.outcome.value["now"] - 1_772_442_000 for record in trace.records]

    assert nows(scenario="typical") == [0, 0]
    assert nows(scenario="typical", clock=ClockPolicy(call=7)) == [0, 7]
    assert nows(scenario="moving") == [0, 30]
    assert nows(scenario="moving", clock=ClockPolicy(call=7)) == [0, 7]


def test_a_clock_where_time_cannot_move_is_a_mistake() -> None:
    plain = FunctionEnvironment("plain", [cw.tool(lambda: 1, name="one", description="One.")])
    with pytest.raises(UsageError, match="time does not move"):
        execute(program(("one", {})), plain, plain.tools, clock=ClockPolicy())


def test_a_turn_without_calls_is_followed_by_a_turn_of_the_user() -> None:
    policy = ClockPolicy(call=1, user_turn=50)
    execution = Execution(ENVIRONMENT, ENVIRONMENT.tools, scenario="typical", clock=policy)
    traces = [execution.run(one) for one in (LOOKS, Program(()), Program(()), LOOKS)]
    assert [record.outcome.value["now"] - 1_772_442_000 for trace in traces for record in trace.records] == [
        0,
        1,
        102,
        103,
    ]
    execution.close()


def lived(clock: ClockPolicy | None, conditions: Conditions = DEFAULT_CONDITIONS) -> Attempt:
    task = task_of(clock)
    execution = Execution(task.environment, task.tools, scenario=task.scenario, clock=clock or conditions.clock)
    turns = []
    for one in (LOOKS, Program(()), LOOKS):
        turns.append(Turn(Completion(""), one, execution.run(one)))
    execution.close()
    return Attempt.of(task, cw.parser("json"), turns, conditions)


def test_replays_live_through_the_users_turns_too() -> None:
    attempt = lived(ClockPolicy(call=3, call_spread=1, user_turn=40))
    assert attempt.whole_trace.records[2].outcome.value["now"] > 1_772_442_040
    found = replay(attempt)
    assert found.same
    assert found.compared == 4
    under = lived(None, Conditions(clock=ClockPolicy(call=3)))
    assert replay(under).same
    assert under.whole_trace.records[1].outcome.value["now"] == 1_772_442_003


def test_a_replay_under_another_clock_differs() -> None:
    attempt = lived(ClockPolicy(call=3))
    attempt.task = task_of(ClockPolicy(call=4))
    assert not replay(attempt).same


def test_time_moves_under_a_time_limit_and_in_other_processes_as_it_does_here() -> None:
    policy = ClockPolicy(call=15, user_turn=10)
    here = opened(policy)
    timed = TimedSession(ENVIRONMENT, "typical", 0, 30.0)
    keep_time(timed, policy, "post")
    for session in (here, timed):
        user_turn(session)
    assert timed.call("look", {}) == here.call("look", {})
    assert timed.call("look", {}).notices == here.call("look", {}).notices != ()
    assert timed.digest() == here.digest()
