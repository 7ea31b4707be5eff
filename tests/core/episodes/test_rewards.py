"""Rewards that could not find out: who is asked again, how often, and what is still known then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.goals import Comparison
from callwright.episodes.rewards import asked_again, asked_until_known
from callwright.walk.completion import Completion
from callwright.walk.turn import Turn

CORPUS = cw.corpus("toolworld-mini-v1")
TASK = next(task for task in CORPUS["train"] if task.program is not None and task.program.calls)
PARSER = cw.parser("json")


class Late(cw.RewardComponent):
    """A judge that answers the second time it is asked about a text, or as often as it says."""

    name = "late"

    def __init__(self, fails: int = 1) -> None:
        self.fails = fails
        self.asked: list[str] = []

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.asked.append(attempt.completion.text)
        if self.asked.count(attempt.completion.text) <= self.fails and "at once" not in attempt.completion.text:
            raise cw.InfrastructureFailure("the judge is busy")
        return cw.Score(1.0)


def pipeline_of(judge: Late, **settings: Any) -> cw.Pipeline:
    return cw.Pipeline(CORPUS, cw.RewardRecipe("judged", (cw.Term(judge),), **settings), PARSER)


def test_those_that_are_not_known_are_asked_again_and_no_others() -> None:
    judge = Late()
    scoring = pipeline_of(judge).scoring
    attempts = [cw.Attempt(TASK, text, PARSER) for text in ("a", "at once", "b")]
    found = asked_again(scoring(attempts), 5, scoring)
    assert [attempt.completion.text for attempt, _ in found] == ["a", "at once", "b"]
    assert [reward.total for _, reward in found] == [1.0, 1.0, 1.0]
    assert judge.asked == ["a", "at once", "b", "a", "b"]


@pytest.mark.parametrize("retries", [0, 2])
def test_what_stays_unknown_is_masked_after_as_many_questions(retries: int) -> None:
    judge = Late(fails=9)
    scoring = pipeline_of(judge).scoring
    ((_, reward),) = asked_again(scoring([cw.Attempt(TASK, "a", PARSER)]), retries, scoring)
    assert reward.total is None
    assert "the judge is busy" in str(reward.masked)
    assert len(judge.asked) == 1 + retries


def test_nobody_asks_again_about_what_was_cut_off_or_lost() -> None:
    judge = Late(fails=9)
    scoring = pipeline_of(judge, truncated="mask").scoring
    lost = cw.Attempt.of(TASK, PARSER, (Turn(Completion("b"), cw.Program()),), stop="machinery", masked="it went away")
    cut = cw.Attempt(TASK, Completion("cut, told at once", truncated=True), PARSER)
    found = asked_again(scoring([cut, lost]), 3, scoring)
    assert [reward.total for _, reward in found] == [None, None]
    assert len(judge.asked) == len(set(judge.asked))


def test_the_event_loop_asks_as_often() -> None:
    judge = Late(fails=2)
    pipeline = pipeline_of(judge)
    attempt = cw.Attempt(TASK, "a", PARSER)
    _, reward = asyncio.run(asked_until_known(attempt, 1, pipeline.ascore))
    assert (reward.total, len(judge.asked)) == (None, 2)
    _, reward = asyncio.run(asked_until_known(attempt, 1, pipeline.ascore))
    assert (reward.total, len(judge.asked)) == (1.0, 3)


def turns(task: cw.Task) -> Sequence[Turn]:
    assert task.program is not None
    text = PARSER.render(task.program)
    return cw.Attempt(task, text, PARSER).turns


def test_what_the_session_said_at_its_end_is_still_known() -> None:
    """Only where it could not say is a fresh session asked."""
    opened: list[int] = []

    class Counted:
        name, pure = "counted", False
        tools = TASK.environment.tools

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            opened.append(seed)
            return TASK.environment.open(scenario, seed)

    task = evolve(TASK, environment=Counted(), facts={**TASK.facts, "goal": {"nothing_else": True}})
    lived = turns(TASK)
    known = cw.Attempt.of(task, PARSER, lived, goal=Comparison(right=3, wrong=1)).again()
    assert (known.turns, known.goal) == (lived, Comparison(right=3, wrong=1))
    assert opened == []
    lost = cw.Attempt.of(task, PARSER, lived, goal=cw.InfrastructureFailure("the session failed")).again()
    assert lost.goal is None  # this world checks no goals, and says so
    assert opened == [0]


def test_a_log_has_no_session_that_could_be_asked_again() -> None:
    told = cw.Attempt.told(TASK, PARSER, turns(TASK))
    assert told.again() is told


def test_written_attempts_keep_what_users_said() -> None:
    said = cw.Attempt(TASK, ["a", "b"], PARSER, said=(None, None))
    again = said.again()
    assert (again.task, again.completions, again.said, again.conditions) == (
        TASK,
        said.completions,
        said.said,
        said.conditions,
    )
