"""The lab over rewards that wait: the same figures, with many samples waiting together."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError
from callwright.pipeline import Pipeline
from callwright_plugins.lab.fewer_calls import Dropping
from callwright_plugins.lab.ledger import Account, Ledger
from callwright_plugins.lab.probing import probe_tasks
from callwright_plugins.lab.reading import Sample
from callwright_plugins.lab.weighting.recording import Recording

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


TOGETHER = 16
"""As many as a component has waiting that does not say otherwise."""


class Waits(cw.AsyncRewardComponent):
    """The same later: the longer the more there is to say."""

    name = "judged"
    at_once = most_at_once = 0

    def __init__(self, last: int = -1) -> None:
        self.last = last

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.wait(attempt)
        self.at_once -= 1
        return judged(attempt, self.last)

    async def wait(self, attempt: cw.Attempt) -> None:
        await asyncio.sleep(0.001 * (len(attempt.completion.text) % 3))


class Meets(Waits):
    """Waits first until as many wait as may, so that what is counted hangs on no clock."""

    def __init__(self, last: int = -1) -> None:
        super().__init__(last)
        self.all_are_here = asyncio.Event()
        self.patience = 60.0

    async def wait(self, attempt: cw.Attempt) -> None:
        if self.most_at_once == TOGETHER:
            self.all_are_here.set()
        if self.patience:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.patience):
                    await self.all_are_here.wait()
            self.all_are_here.set()  # where fewer are asked for together, the assertion says so
        await super().wait(attempt)


def ledger_of(kind: type[Any]) -> Ledger:
    """Three recipes, of which the second cannot score row 9."""
    components = [kind(), kind(9), AtOnce()]
    return Ledger([Account(cw.RewardRecipe(f"r{n}", (cw.Term(one),)), f"r{n}") for n, one in enumerate(components)])


def be_patient(ledger: Ledger, seconds: float) -> None:
    for account in ledger.accounts:
        account.recipe.terms[0].component.patience = seconds  # type: ignore[attr-defined]


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline("toolworld-mini-v1", "tier")


def test_entries_and_accounts_are_those_of_one_by_one(pipeline: Pipeline) -> None:
    (task,) = pipeline.tasks("evaluation", 1)
    texts = ["masked" if number % 6 == 5 else f"row {number}" for number in range(30)]
    samples = [Sample(number, pipeline.attempt(task, text), number // 4, {}) for number, text in enumerate(texts)]
    expected, found = ledger_of(AtOnce), ledger_of(Meets)
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
    assert isinstance(component, Meets)
    assert component.most_at_once == TOGETHER


def test_probes_are_scored_together_with_the_same_result(pipeline: Pipeline) -> None:
    tasks = pipeline.tasks("evaluation", 6)
    expected = probe_tasks(pipeline, ledger_of(AtOnce), tasks)
    found = probe_tasks(pipeline, ledger_of(Waits), tasks)
    assert found.to_json() == expected.to_json()
    assert found.rewards == expected.rewards
    assert len(found.rewards["r0"]) > 5


def test_programs_with_fewer_calls_are_scored_together_with_the_same_result(pipeline: Pipeline) -> None:
    tasks = [task for task in pipeline.tasks("train", 40) if task.program is not None and len(task.program.calls) > 1]
    broken = [
        pipeline.attempt(task, pipeline.parser.render(task.program).replace(task.program.calls[-1].tool, "no_such"))
        for task in tasks
        if task.program is not None
    ]

    def dropped(ledger: Ledger) -> dict[str, Any]:
        dropping = Dropping(50)
        be_patient(ledger, 0.0)  # these are scored one by one
        for attempt in broken:
            rewards = ledger.score(attempt)
            dropping.enter(attempt, {one.name: it for one, it in zip(ledger.accounts, rewards, strict=True)})
        be_patient(ledger, 60.0)
        return dropping.figures(pipeline, ledger)

    found = ledger_of(Meets)
    assert dropped(found) == dropped(ledger_of(AtOnce))
    assert found.accounts[0].recipe.terms[0].component.most_at_once == TOGETHER  # type: ignore[attr-defined]


def test_values_under_penalties_are_asked_for_together(pipeline: Pipeline) -> None:
    (task,) = pipeline.tasks("evaluation", 1)
    attempts = [pipeline.attempt(task, f"row {number}") for number in range(300)]

    def recorded(reference: cw.RewardComponent, penalised: cw.RewardComponent) -> Recording:
        first, second = (cw.RewardRecipe("r", (cw.Term(one),)) for one in (reference, penalised))
        schemes: Any = SimpleNamespace(
            name="r", penalised={None: first, 1.0: second}, reference=SimpleNamespace(recipe=first, penalty=None)
        )
        recording = Recording(schemes)
        for number, attempt in enumerate(attempts):
            recording.enter(attempt, "kind", number // 4, number, first.score_attempt(attempt))
        recording.finish()
        return recording

    component = Meets()
    found, expected = recorded(AtOnce(), component), recorded(AtOnce(), AtOnce())
    assert len(found.cells) == 300
    assert (found.cells, found.groups) == (expected.cells, expected.groups)
    assert [one.row_id for one in found.said.values()] == [one.row_id for one in expected.said.values()]
    assert [cell.values for cell in found.known] == [cell.values for cell in expected.known]
    assert component.most_at_once == TOGETHER
