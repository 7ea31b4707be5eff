"""Calls of users: they meet the same world as those of the agent, and are told apart from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments import ClockPolicy, EventKind, Fault, Hazards, Notice, RateLimit
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.episodes.conversation import Conversation
from callwright.pipeline import event_caller
from callwright.plugins import Lazy, Registry, load_plugins
from callwright.walk import replay
from callwright.walk.limits import TurnLimits
from callwright.walk.users.kinds import kinds_of

HERMES = cw.parser("hermes")
LINE = '<tool_call>\n{"name": "line", "arguments": {}}\n</tool_call>'
MEND = '<tool_call>\n{"name": "mend", "arguments": {}}\n</tool_call>'


@cw.row("phones", prefix="P")
class Phone:
    id: str
    airplane: bool
    rings_at: int


@cw.tool(read_only=True)
def line(world: cw.World, /) -> bool:
    """Whether the line works."""
    return not world.need(Phone, "P1").airplane


@cw.tool(cost=30, latency=5)
def mend(world: cw.World, /) -> bool:
    """Mend the line."""
    return line.function(world)


@cw.tool(cost=900, latency=40, irreversible=True)
def flip(world: cw.World, /, on: bool) -> bool:
    """Switch airplane mode."""
    return world.update(world.need(Phone, "P1"), airplane=on).airplane


@cw.tool(read_only=True)
def peek(world: cw.World, /) -> dict[str, bool]:
    """Look at the screen."""
    return {"airplane": world.need(Phone, "P1").airplane}


def phones(rng: Random, scale: float) -> Iterator[Phone]:
    yield Phone("P1", True, 1_772_442_030)


def _due(world: cw.World, since: Any) -> Any:
    at = world.need(Phone, "P1").rings_at
    return (at, 0) if (at, 0) > since else None


RINGS = EventKind("rings", "the phone rings", _due, lambda world, key, came: [Notice("Your phone rings.")])
PHONES = cw.StatefulEnvironment(
    "phones",
    rows=[Phone],
    tools=[line, mend],
    scenarios={"typical": cw.Scenario(phones)},
    user_tools=[flip, peek],
    events=[RINGS],
)
BEGINS = PHONES.open().tell_time()


class Busy:
    """A user that calls: for each turn its rounds, each a list of calls. It says what came of them."""

    name = "busy"

    def __init__(self, turns: Sequence[Sequence[Sequence[Any]]] = ()) -> None:
        self.turns = turns

    def begin(self, task: cw.Task, seed: int) -> BusyNow:
        return BusyNow([list(rounds) for rounds in self.turns])


class BusyNow:
    def __init__(self, turns: list[list[Sequence[Any]]]) -> None:
        self.turns = turns

    def reply(self, messages: Sequence[cw.Message], session: Any) -> cw.Said:
        if self.turns and self.turns[0]:
            calls = [cw.Call(at, tool, given) for at, (tool, given) in enumerate(self.turns[0].pop(0))]
            return cw.Said(calls=tuple(calls))
        self.turns = self.turns[1:]
        return cw.Said("Go on.", done=not self.turns)


class Plugin:
    @cw.hookimpl
    def callwright_users(self) -> list[Lazy]:
        return [Lazy(Busy.name, Busy, "a test user")]


REGISTRY = load_plugins(extra={"busy": Plugin()})


def play(
    turns: Sequence[Sequence[Sequence[Any]]],
    texts: Sequence[str],
    environment: Any = PHONES,
    *,
    facts: Any = None,
    registry: Registry = REGISTRY,
    **more: Any,
) -> Conversation:
    task = cw.Task(
        "t",
        "It does not work.",
        environment.tools,
        cw.Answer(),
        environment,
        user=cw.UserSpec("busy", {"turns": turns}),
        facts=facts or {},
    )
    limits = TurnLimits(assistant_turns=9, user_turns=9)
    conditions = cw.Conditions(limits=limits, users=kinds_of(registry), caller=event_caller(registry), **more)
    talk = Conversation(task, HERMES, [cw.Message.user(task.query)], conditions)
    for text in texts:
        talk.accept(cw.Completion(text))
    return talk


def of_users(talk: Conversation) -> list[str]:
    """What came of the user's calls: the code of what failed, else the kind."""
    traces = [turn.user.trace for turn in talk.turns if turn.user is not None and turn.user.trace is not None]
    return [record.outcome.code or record.outcome.kind for trace in traces for record in trace.records]


OFF = ["flip", {"on": False}]
PEEK = ["peek", {}]


def test_a_users_call_takes_its_time_and_the_latency_of_its_tool() -> None:
    session = PHONES.open()
    session.keep_time(ClockPolicy(call=10))
    assert session.user_call("flip", {"on": False}).notices == ()
    assert session.now == BEGINS + 50
    assert session.user_call("peek", {}).kind == "ok"
    assert session.user_call("flip", {"on": "no"}).kind == "schema_error"
    assert session.now == BEGINS + 110
    assert session.user_call("line", {}).kind == "unknown_tool"
    assert session.now == BEGINS + 110
    told = session.call("line", {})
    assert (told.value, told.notices) == (True, ("Your phone rings.",)), "the agent reads what happened meanwhile"


def test_faults_befall_users_and_limits_count_them_apart() -> None:
    talk = play([[[OFF, PEEK]]], ["Switch it off."], hazards=Hazards((Fault("unavailable", 1.0, ("flip",)),)))
    assert of_users(talk) == ["UNAVAILABLE", "ok"]
    alone = Hazards(limits=(RateLimit(2),))
    clock = ClockPolicy(call=1, user_turn=1)
    talk = play([[[PEEK, PEEK, PEEK]]], [LINE, LINE, LINE, "Look."], hazards=alone, clock=clock)
    codes = [record.outcome.code for record in talk.attempt.whole_trace.records]
    assert codes == ["", "", "RATE_LIMITED"]
    assert of_users(talk) == ["ok", "ok", "RATE_LIMITED"]
    assert replay(talk.attempt).same


def test_where_time_stands_still_one_answer_of_a_user_is_one_turn() -> None:
    limited = Hazards(limits=(RateLimit(2),))
    talk = play([[[PEEK], [PEEK], [PEEK]], [[PEEK]]], [LINE, "Look.", LINE, "Again."], hazards=limited)
    assert of_users(talk) == ["ok", "ok", "RATE_LIMITED", "ok"]
    assert [record.outcome.kind for record in talk.attempt.whole_trace.records] == ["ok", "ok"]
    assert replay(talk.attempt).same
    lived = talk.attempt
    written = cw.Attempt(lived.task, lived.completions, HERMES, lived.conditions, said=lived.said)
    assert written.turns == lived.turns


def test_a_failure_that_was_injected_befalls_a_user() -> None:
    session = PHONES.open()
    assert session.helper("_inject_fault", {"tool": "flip", "code": "STUCK"}).kind == "ok"
    assert session.user_call("flip", {"on": False}).code == "STUCK"
    assert session.user_call("flip", {"on": False}).kind == "ok"


def test_a_stale_read_of_a_user_is_as_before_the_last_change_whoever_made_it() -> None:
    session = PHONES.open()
    session.meet_hazards(Hazards((Fault("stale_read", 1.0),)))
    assert session.user_call("flip", {"on": False}).kind == "ok"
    assert session.user_call("peek", {}).code == "STALE_READ"
    assert session.call("line", {}).value is False


def test_in_a_composed_world_users_meet_the_hazards_of_their_parts() -> None:
    other = cw.StatefulEnvironment(
        "others", rows=[Phone], tools=[mend], scenarios={"typical": cw.Scenario(phones)}, user_tools=[peek]
    )
    both = ComposedEnvironment([PHONES, other])
    session = both.open()
    session.keep_time(ClockPolicy(call=10))
    session.meet_hazards(Hazards((Fault("timeout", 1.0, ("phones__peek",), seconds=25),), (RateLimit(1, tool="flip"),)))
    assert session.user_call("phones__peek", {}).code == "TIMED_OUT"
    assert session.now == BEGINS + 35
    assert session.user_call("others__peek", {}).kind == "ok"
    assert session.user_call("flip", {"on": False}).kind == "ok"
    assert session.now == BEGINS + 95
    assert session.user_call("flip", {"on": True}).code == "RATE_LIMITED"
    assert session.call("others__mend", {}).notices == ("Your phone rings.",)


class Listener:
    """Hears every call, and answers those of users that switch something on."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    @cw.hookimpl(tryfirst=True)
    def callwright_tool_call(self, call: cw.Call, by: str) -> cw.Outcome | None:
        self.heard.append((call.tool, by))
        return cw.Outcome("refused", None, "NOT_NOW", "later") if call.arguments.get("on") is True else None


@pytest.mark.parametrize("isolation", ["none", None])
def test_whoever_listens_to_calls_hears_whose_they_are(isolation: Any) -> None:
    listener = Listener()
    registry = load_plugins(extra={"busy": Plugin(), "listener": listener})
    turns = [[[OFF, ["flip", {"on": True}]]]]
    talk = play(turns, [LINE, "Switch it off."], registry=registry, isolation=isolation)
    assert listener.heard == [("line", "agent"), ("flip", "user"), ("flip", "user")]
    assert of_users(talk) == ["ok", "NOT_NOW"]


def test_what_a_users_calls_cost_is_not_held_against_the_agent() -> None:
    from callwright_plugins.cost_rewards.components import Cost, Latency
    from callwright_plugins.cost_rewards.irreversible import Irreversible

    facts = {"budget": {"cents": 0, "seconds": 0}}
    talk = play([[[OFF]]], [LINE, "Switch it off."], facts=facts)
    for component in (Cost(), Latency(), Irreversible()):
        assert component.score(talk.attempt).value == 1
    wasted = play([[[OFF]]], [MEND, "Switch it off."], facts=facts)
    assert (Cost().score(wasted.attempt).value, Latency().score(wasted.attempt).value) == (0, 0)
    user = talk.turns[1].user
    assert user is not None
    assert user.trace is not None
    assert [record.by for record in user.trace.records] == ["user"]
    assert [record.by for record in talk.attempt.whole_trace.records] == ["agent"]
    (row,) = user.to_json()["observations"]
    assert (row["by"], row["kind"]) == ("user", "ok")
