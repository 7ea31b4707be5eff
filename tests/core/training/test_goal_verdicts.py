"""Verdicts on tasks with a goal: what was left counts, whatever the last call returned."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import ClockPolicy, EventKind
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import drive
from callwright.episodes.pool import EpisodePool
from callwright.errors import DataError, InfrastructureFailure
from callwright.pipeline import build_pipeline, open_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.verdicts import goal_reached, judge
from callwright.walk.limits import SINGLE_TURN, TurnLimits, limits_of
from callwright.walk.users.said import Said


@cw.row("lamps", prefix="L")
class Lamp:
    """A lamp."""

    id: str
    on: bool


@cw.tool
def switch(world: cw.World, /, lamp_id: str, on: bool) -> str:
    """Switch a lamp."""
    return world.update(world.need(Lamp, lamp_id), on=on).id


@cw.tool
def lose(world: cw.World, /) -> str:
    """Break the machine."""
    raise InfrastructureFailure("the house is gone")


@cw.tool
def own_switch(world: cw.World, /, lamp_id: str) -> str:
    """The switch at the wall, which only whoever is there reaches."""
    return world.update(world.need(Lamp, lamp_id), on=True).id


def lamps(rng: Random, scale: float) -> Iterator[Lamp]:
    yield from (Lamp(f"L{number:05d}", False) for number in (1, 2))


CALLED: list[str] = []


@cw.tool
def ring(world: cw.World, /, lamp_id: str) -> str:
    """Ring at the door, and switch the lamp there."""
    CALLED.append(lamp_id)
    return world.update(world.need(Lamp, lamp_id), on=True).id


@cw.tool
def knock(world: cw.World, /) -> int:
    """Knock, as a user."""
    CALLED.append("")
    return world.count(Lamp)


HOUSE = cw.StatefulEnvironment(
    "house", rows=[Lamp], tools=[switch, lose], scenarios={"dark": cw.Scenario(lamps)}, user_tools=[own_switch]
)
BEGINS = HOUSE.open().tell_time()
LIT = {"holds": [{"table": "lamps", "where": {"id": "L00001"}, "has": {"on": True}}]}
PARSER = cw.parser("json")


def task(goal: Any = LIT) -> cw.Task:
    facts = {} if goal is None else {"goal": goal}
    return cw.Task("lamp", "light", HOUSE.tools, cw.Answer(("L00002",)), HOUSE, facts=facts)


def attempt(*calls: tuple[str, dict[str, Any]], of: cw.Task | None = None, **more: Any) -> cw.Attempt:
    program = cw.Program(tuple(cw.Call(at, *call) for at, call in enumerate(calls)))
    return cw.Attempt(of or task(), PARSER.render(program), PARSER, **more)


def test_what_was_left_counts_and_not_what_was_returned() -> None:
    lit = attempt(("switch", {"lamp_id": "L00001", "on": True}))
    assert (judge(lit).answer, judge(lit).valid, judge(lit).failure) == (True, True, "")
    other = attempt(("switch", {"lamp_id": "L00002", "on": True}))  # which returns what the answer would be
    assert (judge(other).answer, judge(other).failure) == (False, "goal:missed")
    assert judge(evolve_task(other, None)).answer


def evolve_task(made: cw.Attempt, goal: Any) -> cw.Attempt:
    return cw.Attempt(task(goal), made.completion.text, PARSER)


def test_doing_nothing_is_right_where_nothing_is_to_change() -> None:
    assert judge(attempt(of=task({}))).answer
    assert judge(attempt()).failure == "goal:missed"
    spoilt = attempt(("switch", {"lamp_id": "L00001", "on": True}), of=task({}))
    assert judge(spoilt).failure == "goal:missed"


def test_a_failure_that_was_put_right_makes_an_answer_right_but_not_valid() -> None:
    calls = [("switch", {"lamp_id": "L00009", "on": True}), ("switch", {"lamp_id": "L00001", "on": True})]
    verdict = judge(attempt(*calls))
    assert (verdict.answer, verdict.valid) == (True, False)


def test_what_the_user_did_counts() -> None:
    said = Said("I did it.", (cw.Call(0, "own_switch", {"lamp_id": "L00001"}),))
    made = cw.Attempt(task(), [PARSER.render(cw.Program())], PARSER, said=[said])
    assert goal_reached(made) is True


def test_a_lost_machine_is_masked() -> None:
    assert judge(attempt(("switch", {"lamp_id": "L00001", "on": True}), ("lose", {}))).masked


def test_a_goal_of_another_world_names_the_task() -> None:
    with pytest.raises(DataError, match=r"task 'lamp'.*lamps"):
        judge(attempt(of=task({"holds": [{"table": "lmps"}]})))


def test_worlds_without_goals_are_judged_by_the_answer() -> None:
    @cw.tool
    def answer() -> str:
        """The answer."""
        return "L00002"

    plain = cw.environment("plain", tools=[answer])
    made = evolve(task(), environment=plain, tools=plain.tools)
    assert goal_reached(attempt(("answer", {}), of=made)) is None
    assert judge(attempt(("answer", {}), of=made)).answer


# What was executed is asked ------------------------------------------------------------------------------------------

DOORS = cw.StatefulEnvironment(
    "doors", rows=[Lamp], tools=[switch, ring], scenarios={"dark": cw.Scenario(lamps)}, user_tools=[knock]
)
RINGS = [("ring", {"lamp_id": "L00001"}), ("ring", {"lamp_id": "L00002"})]
KNOCKS = cw.UserSpec("replayed", {"says": [{"say": "Go on.", "calls": [{"tool": "knock", "arguments": {}}]}]})


def doors(user: cw.UserSpec | None = None) -> cw.Task:
    facts = {"goal": {**LIT, "nothing_else": False}}
    return cw.Task("doors", "light", DOORS.tools, cw.Answer(("?",)), DOORS, facts=facts, user=user)


def written(*calls: tuple[str, dict[str, Any]]) -> str:
    return PARSER.render(cw.Program(tuple(cw.Call(at, *call) for at, call in enumerate(calls))))


def judged(made: cw.Attempt) -> list[str]:
    """What was called while an attempt was judged and rewarded; it reaches its goal."""
    CALLED.clear()
    assert judge(made).answer
    assert cw.reward("state").score_attempt(made).total == 1
    assert goal_reached(made) is True
    assert judge(made).answer
    return [*CALLED]


def test_a_written_attempt_is_executed_once_for_its_goal_its_rewards_and_its_trace() -> None:
    assert judged(cw.Attempt(doors(), written(*RINGS), PARSER)) == ["L00001", "L00002"]
    several = cw.Attempt(doors(), [written(RINGS[1]), written(RINGS[0]), written()], PARSER)
    assert judged(several) == ["L00002", "L00001"]
    said = [None, Said("Go on.", (cw.Call(0, "knock", {}),)), None]
    with_user = cw.Attempt(doors(KNOCKS), [written(RINGS[1]), written(), written(RINGS[0])], PARSER, said=said)
    assert judged(with_user) == ["L00002", "", "L00001"]
    nothing = cw.Attempt(evolve(doors(), facts={"goal": {}}), written(), PARSER)
    assert judged(nothing) == []


@pytest.mark.parametrize("executor", [None, "thread"])
def test_a_lived_attempt_is_not_executed_again(executor: str | None) -> None:
    CALLED.clear()
    limits = TurnLimits(assistant_turns=4, user_turns=4)
    texts = [written(RINGS[1]), written(), written(RINGS[0]), written()]
    talk = Conversation(doors(KNOCKS), PARSER, [cw.Message.user("light")], cw.Conditions(limits=limits))

    def ask(live: list[Conversation]) -> list[cw.Completion]:
        return [cw.Completion(texts[len(one.history)]) for one in live]

    if executor is None:
        drive([talk], ask)
    else:
        with EpisodePool(PARSER, cw.reward("state"), executor=executor, workers=2) as pool:
            drive([talk], ask, pool=pool)
    assert talk.stop == "answered"
    assert CALLED == ["L00002", "", "L00001"]
    assert judged(talk.attempt) == []
    at_the_limit = Conversation(
        doors(), PARSER, [cw.Message.user("light")], cw.Conditions(limits=TurnLimits(assistant_turns=1))
    )
    texts[0] = written(*RINGS)
    if executor is None:
        drive([at_the_limit], ask)
    else:
        with EpisodePool(PARSER, cw.reward("state"), executor=executor, workers=1) as pool:
            drive([at_the_limit], ask, pool=pool)
    assert at_the_limit.stop == "assistant_turns"
    assert judged(at_the_limit.attempt) == []


def test_an_attempt_of_which_nobody_asked_the_session_is_executed_again_once() -> None:
    CALLED.clear()
    lived = cw.Attempt(doors(), written(*RINGS), PARSER)
    made = cw.Attempt.of(lived.task, PARSER, lived.turns, lived.conditions)
    assert judged(made) == ["L00001", "L00002"]
    copied = pickle.loads(pickle.dumps(made)).under(cw.Conditions(seed=3))
    assert judged(copied) == []


def test_a_goal_is_asked_before_anybody_else_has_a_turn() -> None:
    """Time that passes when all is said is nothing that the attempt has left."""

    def due(world: cw.World, since: Any) -> Any:
        moment = BEGINS + 100, 0
        return moment if moment > since else None

    def run(world: cw.World, key: Any) -> None:
        world.update(world.need(Lamp, "L00001"), on=False)

    off = EventKind("off", "the lamp goes out", due, lambda world, key, came: (), run)
    timed = cw.StatefulEnvironment(
        "timed", rows=[Lamp], tools=[switch], scenarios={"dark": cw.Scenario(lamps)}, events=[off]
    )
    for seconds, answer in ((50, True), (100, False)):
        made = cw.Attempt(
            evolve(task(), environment=timed, tools=timed.tools),
            [written(("switch", {"lamp_id": "L00001", "on": True})), written()],
            PARSER,
            cw.Conditions(clock=ClockPolicy(call=seconds, user_turn=500)),
        )
        assert goal_reached(made) is answer


def test_a_corpus_of_conversations_brings_its_limits(tmp_path: Path) -> None:
    corpus = cw.corpus("worlds-mini-v1")
    assert limits_of(corpus) == corpus.limits != SINGLE_TURN
    assert limits_of(cw.corpus("toolworld-mini-v1")) == SINGLE_TURN
    assert open_pipeline(cw.reward("worlds"), corpus).conditions.limits == corpus.limits
    path = tmp_path / "worlds.toml"
    path.write_text(
        'reward = "worlds"\ncorpus = { name = "worlds-mini-v1", train = "validation", evaluation = "validation" }\n',
        encoding="utf-8",
    )
    loaded = load_recipe(path)
    assert build_pipeline(loaded, with_algorithm=False).conditions.limits == corpus.limits
    fewer = load_recipe(path, ["turns.assistant_turns=3"])
    assert build_pipeline(fewer, with_algorithm=False).conditions.limits.assistant_turns == 3
