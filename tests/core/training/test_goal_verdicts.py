"""Verdicts on tasks with a goal: what was left counts, whatever the last call returned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError, InfrastructureFailure
from callwright.pipeline import build_pipeline, open_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.verdicts import goal_reached, judge
from callwright.walk.limits import SINGLE_TURN, limits_of
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


HOUSE = cw.StatefulEnvironment(
    "house", rows=[Lamp], tools=[switch, lose], scenarios={"dark": cw.Scenario(lamps)}, user_tools=[own_switch]
)
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
