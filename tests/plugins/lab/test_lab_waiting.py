"""The lab over rewards that wait: the same figures, with many samples waiting together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError
from callwright.pipeline import Pipeline
from callwright_plugins.lab.ledger import Account, Ledger
from callwright_plugins.lab.probing import probe_tasks
from callwright_plugins.lab.reading import Sample

WHY = (cw.Evidence("short", "it is short"),)


def judged(attempt: cw.Attempt, last: int) -> cw.Score:
    text = attempt.completion.text
    if text.startswith("masked"):
        raise cw.InfrastructureFailure("the judge is down")
    if text == f"row {last}":
        raise DataError("the task lacks what it needs")
    return cw.Score((len(text) % 5) / 4, evidence=WHY)


class AtOnce(cw.RewardComponent):
    """The oracle."""

    name = "judged"

    def __init__(self, last: int = -1) -> None:
        self.last = last

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return judged(attempt, self.last)


class Waits(cw.AsyncRewardComponent):
    """The same later."""

    name = "judged"
    at_once = most_at_once = 0

    def __init__(self, last: int = -1) -> None:
        self.last = last

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001 * (len(attempt.completion.text) % 3))
        self.at_once -= 1
        return judged(attempt, self.last)


def ledger_of(kind: type[Any]) -> Ledger:
    """Three recipes, of which the second cannot score row 9."""
    components = [kind(), kind(9), AtOnce()]
    return Ledger([Account(cw.RewardRecipe(f"r{n}", (cw.Term(one),)), f"r{n}") for n, one in enumerate(components)])


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline("toolworld-mini-v1", "tier")


def test_entries_and_accounts_are_those_of_one_by_one(pipeline: Pipeline) -> None:
    (task,) = pipeline.tasks("evaluation", 1)
    texts = ["masked" if number % 6 == 5 else f"row {number}" for number in range(30)]
    samples = [Sample(number, pipeline.attempt(task, text), number // 4, {}) for number, text in enumerate(texts)]
    expected, found = ledger_of(AtOnce), ledger_of(Waits)
    entered = [(sample, expected.enter(sample)) for sample in samples]
    together = list(found.entering(samples))
    assert [sample.row_id for sample, _ in together] == list(range(30))
    for (_, ours), (_, theirs) in zip(together, entered, strict=True):
        assert (ours is None) is (theirs is None)
        assert ours is None or theirs is None or ours.rewards == theirs.rewards
    assert (found.skipped, found.masked, found.groups) == (expected.skipped, expected.masked, expected.groups)
    assert list(found.skipped) == ["r1"]
    assert [account.totals for account in found.accounts] == [account.totals for account in expected.accounts]
    component = found.accounts[0].recipe.terms[0].component
    assert isinstance(component, Waits)
    assert component.most_at_once == 16


def test_probes_are_scored_together_with_the_same_result(pipeline: Pipeline) -> None:
    tasks = pipeline.tasks("evaluation", 6)
    expected = probe_tasks(pipeline, ledger_of(AtOnce), tasks)
    found = probe_tasks(pipeline, ledger_of(Waits), tasks)
    assert found.to_json() == expected.to_json()
    assert found.rewards == expected.rewards
    assert len(found.rewards["r0"]) > 5
