"""Rewards that compare with calls, on conversations that were held elsewhere and on several turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

import callwright as cw

_ADD = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "add", "parameters": _ADD}}]
DUE = [{"name": "add", "arguments": {"a": 1, "b": 2}}, {"name": "add", "arguments": {"a": 3, "b": 4}}]
WRITTEN = "\n".join(
    [
        "<think></think>",
        "<tool_call>",
        *(json.dumps({"name": one["name"], "parameters": one["arguments"]}) for one in DUE),
        "</tool_call>",
    ]
)


def conversation() -> list[dict[str, Any]]:
    """Both calls at once, and words about what they came to."""
    calls = [
        {"id": str(at), "type": "function", "function": {**one, "arguments": json.dumps(one["arguments"])}}
        for at, one in enumerate(DUE)
    ]
    return [
        {"role": "user", "content": "add twice"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "0", "content": "3"},
        {"role": "tool", "tool_call_id": "1", "content": "7"},
        {"role": "assistant", "content": "3 and 7"},
    ]


@pytest.mark.parametrize("recipe", ["toolrl", "toolrl-guarded", "toolrl-finegrained"])
def test_a_truth_as_a_text_and_one_as_a_list_are_worth_the_same(recipe: str) -> None:
    listed, written = (cw.score_messages(conversation(), TOOLS, truth, recipe) for truth in (DUE, WRITTEN))
    assert listed.total == written.total == cw.reward(recipe).score_pair(WRITTEN, WRITTEN).total


def test_turns_of_its_own_form_are_one_program_for_toolrl() -> None:
    """A right call and, a turn later, what came of it: 4 in every other form."""
    task, form = cw.corpus("toolworld-mini-v1").task("evaluation-1"), cw.parser("toolrl")
    turns = [form.render(task.program), "<think>done</think>\n<response>In the United States.</response>"]
    assert cw.reward("toolrl").score_attempt(cw.Attempt(task, turns, form)).total == 4.0


@pytest.mark.parametrize("recipe", ["toolrl", "prove", "tier-efficiency", "state", "worlds"])
def test_a_log_whose_truth_states_no_calls_is_masked_by_rewards_that_need_them(recipe: str) -> None:
    reward = cw.score_messages(conversation(), TOOLS, {"answer": [3, 7]}, recipe, failed="^Error")
    assert reward.total is None
    assert "does not say which calls were due" in (reward.masked or "")


def test_what_a_truth_leaves_out_is_named_by_the_reward_that_needs_it() -> None:
    masked = {
        recipe: cw.score_messages(conversation(), TOOLS, truth, recipe, failed="^Error").masked or ""
        for recipe, truth in (("tier", DUE), ("toolrl", None), ("prove", None))
    }
    assert "which answer would have been right" in masked["tier"]
    assert all("which calls were due" in masked[one] for one in ("toolrl", "prove")), masked


@pytest.mark.parametrize("key", ["parameters", "args", "argument"])
def test_arguments_of_a_truth_under_another_name_are_not_none(key: str) -> None:
    """ToolRL's own rows say ``parameters``; right calls of a log were held against calls without arguments."""
    with pytest.raises(cw.errors.DataError, match=f"call 0 of a truth has its arguments under 'arguments', .* '{key}'"):
        cw.score_messages(conversation(), TOOLS, [{"name": "add", key: {"a": 1, "b": 2}}], "toolrl")


def test_a_task_of_a_corpus_without_calls_is_still_an_error_of_whoever_chose_the_reward() -> None:
    world = cw.environment("toolworld-mini-v1")
    task = cw.Task("mine", "", world.tools, cw.Answer(("USA",)), world)
    with pytest.raises(cw.errors.DataError, match="neither a reference program"):
        cw.reward("toolrl").score(task, "<think></think>", ir="toolrl")
