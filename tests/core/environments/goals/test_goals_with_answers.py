"""Sessions whose verdict hears what the agent said in the end, wherever a goal is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import callwright as cw
from callwright.capability import has
from callwright.environments.functions import FunctionEnvironment, FunctionSession
from callwright.environments.goals.comparing import Comparison
from callwright.environments.protocol import ChecksAnswers, ChecksGoals
from callwright.errors import DataError
from callwright.walk import ListedCorpus
from callwright.walk.completion import Completion
from callwright.walk.components.goal_reached import GoalReached
from callwright.walk.users.world import WorldView


@cw.tool
def add(items: list[str], /, item: str) -> int:
    """Add an item."""
    items.append(item)
    return len(items)


def no_items(scenario: str, seed: int) -> list[str]:
    return []


class Basket(FunctionEnvironment):
    """Counts what is put into it; whoever is asked has to say how much that is."""

    def __init__(self) -> None:
        super().__init__("basket", [add], state=no_items)

    def __reduce__(self) -> Any:
        return Basket, ()

    def open(self, scenario: str = "", seed: int = 0) -> BasketSession:
        return BasketSession(self, no_items(scenario, seed))


class BasketSession(FunctionSession):
    """A session that hears the answer."""

    def check_answer(self, goal: Mapping[str, Any], answer: str) -> Comparison:
        said = {"how many": str(len(self.state)), "nothing": ""}[goal["said"]]
        return Comparison(int(answer == said), int(answer != said))


REWARD = cw.RewardRecipe("reached", (cw.Term(GoalReached()),))
ADD = cw.Program((cw.Call(0, "add", {"item": "tea"}),))


def task_of(environment: cw.Environment, said: str = "how many") -> cw.Task:
    facts = {"goal": {"said": said}}
    return cw.Task("one", "Add tea. How many is it?", environment.tools, cw.Answer(), environment, facts=facts)


def says(form: cw.Parser, words: str, thought: str = "") -> str:
    return form.render(cw.Program((), "one", thought, words))


def test_it_is_a_capability() -> None:
    session = Basket().open()
    assert has(session, ChecksAnswers)
    assert not has(session, ChecksGoals)


@pytest.mark.parametrize("form", ["json", "xml", "direct", "toolrl", "hermes"])
@pytest.mark.parametrize("isolation", ["none", "process"])
def test_it_hears_the_last_words_of_an_episode(form: str, isolation: str) -> None:
    parser = cw.parser(form)
    environment = cw.isolated(Basket()) if isolation == "process" else Basket()
    task = task_of(environment)
    conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=3))
    pipeline = cw.Pipeline(ListedCorpus("baskets", [task]), REWARD, parser, conditions=conditions)
    for words, total in (("1", 1.0), ("2", 0.0)):
        conversation = pipeline.conversation(task)
        conversation.accept(Completion(parser.render(ADD)))
        conversation.accept(Completion(says(parser, words, "It was empty before.")))
        assert pipeline.score(conversation.attempt).total == total
        written = cw.Attempt(task, [parser.render(ADD), says(parser, words, "It was empty before.")], parser)
        assert REWARD.score_attempt(written).total == total
    if isolation == "process":
        environment.close()  # type: ignore[attr-defined]


def test_who_ended_with_calls_said_nothing() -> None:
    form = cw.parser("hermes")
    attempt = cw.Attempt(task_of(Basket(), "nothing"), form.render(ADD), form)
    assert REWARD.score_attempt(attempt).total == 1.0
    words = cw.Attempt(task_of(Basket(), "nothing"), [form.render(ADD), "Done."], form)
    assert REWARD.score_attempt(words).total == 0.0


def test_nobody_asks_where_the_words_are_not_known() -> None:
    task = task_of(Basket())
    with cw.Log(task) as log:
        log.call("add", {"item": "tea"}, call_id="a")
    assert REWARD.score_attempt(log.episode()).masked == "no session says whether the task's goal is reached"
    execution = cw.Conditions().execution(task)
    try:
        with pytest.raises(DataError, match=r"neither check_goal\(\) nor goal_state\(\)"):
            WorldView(execution.look).check_goal({"said": "nothing"})
    finally:
        execution.close()
