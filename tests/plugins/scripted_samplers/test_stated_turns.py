"""The sampler ``gold`` on tasks whose reference is stated turn by turn."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.episodes import Conversation
from callwright.errors import DataError
from callwright.testing.sample import sample_tasks
from callwright.walk.sampling import SamplingRequest


def task_of(gold: Any) -> cw.Task:
    task = sample_tasks()[0]
    return evolve(task, facts={**task.facts, "gold": gold})


def written(task: cw.Task, form: str = "json") -> list[str]:
    """What the sampler writes turn by turn; nobody answers it."""
    sampler, parser = cw.sampler("gold", ir=form), cw.parser(form)
    made = Conversation(task, parser, [cw.Message.user(task.query)], cw.Conditions(limits=cw.TurnLimits()))
    while not made.over:
        request = SamplingRequest(tuple(made.messages), task, made.turns, parser)
        made.accept(sampler.sample([request])[0][0])
    return [turn.completion.text for turn in made.turns]


def calls_of(task: cw.Task) -> list[dict[str, Any]]:
    from callwright.language.program import plain

    assert task.program is not None
    return [{"tool": call.tool, "arguments": plain(call.arguments)} for call in task.program.calls]


def test_turns_come_one_after_the_other_and_then_everything_is_settled() -> None:
    task = next(task for task in sample_tasks() if task.program is not None and task.program.calls)
    gold = [{"calls": calls_of(task)}]
    texts = written(evolve(task, facts={"gold": gold}))
    assert len(texts) == 2
    assert texts[1].endswith("Everything is settled.")


def test_what_is_said_to_the_user_stands_after_the_blocks() -> None:
    (text,) = written(task_of([{"say": "Which one?"}]))
    assert text.endswith("\nWhich one?")


@pytest.mark.parametrize("wrong", ["calls", 4, [3], [{"calls": [{"tool": "a"}]}], [{}]])
def test_turns_that_are_none_name_the_task(wrong: Any) -> None:
    with pytest.raises(DataError, match="its fact 'gold'"):
        written(task_of(wrong))
