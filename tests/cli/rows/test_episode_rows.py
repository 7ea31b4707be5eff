"""Rows of episodes: whatever an episode and its user were, its row scores as it did."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.commands.row_files.episodes import episode_of
from callwright.episodes.conversation import Conversation
from callwright.errors import DataError
from callwright.measuring.rows import kept_row
from callwright.training.evaluation import judge

sys.path.append(str(Path(__file__).parents[2] / "core" / "episodes" / "support"))

import phone

HERMES = cw.parser("hermes")
LINE, RESET = (f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>' for name in ("line", "reset"))


def lived(texts: Sequence[str], **options: Any) -> cw.Attempt:
    task = phone.task(**options)
    conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=8, user_turns=6))
    talk = Conversation(task, HERMES, [cw.Message.user(task.query)], conditions)
    for text in texts:
        if not talk.over:
            talk.accept(cw.Completion(text))
    return talk.attempt


@pytest.mark.parametrize(
    "texts",
    [
        [LINE, "Please switch airplane mode off.", RESET, LINE, "Done."],
        ["Please switch airplane mode off.", "Done."],
        ["Hm."],
        [RESET, "<tool_call>"],
    ],
)
def test_an_evaluated_episode_is_scored_from_its_row_as_it_was(texts: Sequence[str]) -> None:
    attempt = lived(texts)
    row = kept_row(attempt, judge(attempt))
    read = episode_of(json.loads(json.dumps(row)))
    assert read is not None
    again = cw.Attempt(attempt.task, read.completions, HERMES, attempt.conditions, said=read.said)
    assert again.whole_trace == attempt.whole_trace
    assert [turn.user for turn in again.turns] == [turn.user for turn in attempt.turns]
    assert cw.reward("tier").score_attempt(again) == cw.reward("tier").score_attempt(attempt)


def test_a_row_of_a_run_says_the_same_as_one_of_an_evaluation() -> None:
    said = {"text": "I did.", "calls": [{"tool": "flip", "arguments": {"on": False}}]}
    run = {"completion": "b", "turns": [{"completion": "a", "calls": 0, "user": said}, {"completion": "b"}]}
    evaluated = {"completion": "b", "completions": ["a", "b"], "said": [said]}
    assert episode_of(run) is not None
    assert (one := episode_of(run)) is not None
    assert (other := episode_of(evaluated)) is not None
    assert one.completions == other.completions
    assert one.said[:1] == other.said[:1] == (cw.Said.from_json(said),)
    assert cw.Said.from_json(said).to_json() == said
    assert episode_of({"completion": "a"}) is None
    alone = episode_of({"completions": ["a", "b"], "truncated": True})
    assert alone is not None
    assert [one.truncated for one in alone.completions] == [False, True]
    assert alone.said == ()


@pytest.mark.parametrize(
    "row",
    [
        {"completions": "a"},
        {"completions": ["a", 1]},
        {"completions": ["a"], "said": [None, None]},
        {"completions": ["a"], "said": {}},
        {"completions": ["a"], "said": ["b"]},
        {"completions": ["a"], "said": [{"text": 3}]},
        {"completions": ["a"], "said": [{"text": "b", "calls": [{"name": "f"}]}]},
        {"turns": ["a"]},
        {"turns": [{}]},
    ],
)
def test_rows_that_are_wrong_are_bad_rows(row: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        episode_of(row)
