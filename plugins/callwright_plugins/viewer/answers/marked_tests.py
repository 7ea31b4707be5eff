"""Marked rollouts as tests: what was marked as bad must score below what was marked as good."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.errors import UsageError
from callwright_plugins.viewer.answers.curves import recipe_of
from callwright_plugins.viewer.sources.entries import table, text_of
from callwright_plugins.viewer.sources.finding import Source

_TEXT = '''"""Completions that people marked in the viewer, of {name}: rewards are held to what they saw."""

from __future__ import annotations

import callwright as cw
import pytest

CORPUS = cw.corpus({corpus}{corpus_options})
PARSER = cw.parser({ir})
REWARD = cw.reward({reward}{reward_options})

#: A task, a completion marked as bad, and one marked as good; without one, the most that can be earned.
MARKED: list[tuple[str, str, str | None]] = [
{rows}]


def total(task: str, completion: str) -> float:
    found = REWARD.score(CORPUS.task(task), completion, ir=PARSER).total
    assert found is not None
    return found


@pytest.mark.parametrize(("task", "bad", "good"), MARKED)
def test_what_is_bad_scores_below_what_is_good(task: str, bad: str, good: str | None) -> None:
    assert total(task, bad) < (REWARD.high if good is None else total(task, good))
'''


def tests_of(source: Source, good: Mapping[int, Any], bad: Mapping[int, Any]) -> str:
    """A file of tests for pytest. Raises :class:`callwright.UsageError` where nothing is marked as bad."""
    recipe = recipe_of(source)
    settings = table(source.json("settings.json"))
    corpus = table(recipe.get("corpus")) or {"name": recipe.get("corpus")} if recipe else table(settings.get("corpus"))
    reward = table(recipe.get("reward")) or {"name": recipe.get("reward", "tier")} if recipe else {"name": "tier"}
    ir = recipe.get("ir") or settings.get("ir") or "json"
    rows = []
    for row in bad.values():
        if not isinstance(row.get("completion"), str) or not isinstance(row.get("task"), str):
            continue
        better: list[str | None] = [
            text_of(one.get("completion")) for one in good.values() if one.get("task") == row["task"]
        ]
        for text in better or [None]:
            rows.append(f"    ({row['task']!a}, {row['completion']!a}, {text!a}),\n")
    if not rows or not text_of(corpus.get("name")):
        raise UsageError(
            "mark a row of a run or an evaluation as bad: the test says that it must score below a good one"
        )
    return _TEXT.format(
        name=source.name.replace('"', "'"),
        corpus=ascii(corpus["name"]),
        corpus_options=_options(
            {key: value for key, value in corpus.items() if key not in ("name", "train", "evaluation", "split")}
        ),
        ir=ascii(ir),
        reward=ascii(reward.get("name", "tier")),
        reward_options=_options({key: value for key, value in reward.items() if key != "name"}),
        rows="".join(rows),
    )


def _options(options: Mapping[str, Any]) -> str:
    return "".join(f", {name}={value!a}" for name, value in options.items() if name.isidentifier())
