"""Training with a reward that waits: the samples of a step wait together, and the run is that of one that does not."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callwright import InfrastructureFailure
from callwright.pipeline import build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.waiting import AsyncRewardComponent, BatchRewardComponent
from callwright_plugins.local_trainer.sampling import episodes
from callwright_plugins.local_trainer.trainer import LocalTrainer

STEP = ("trainer.prompts=8", "trainer.group=4", "trainer.steps=2")
SAMPLES = 32


def variety(attempt: Attempt) -> Score:
    """How many different tokens there are; of some nobody knows."""
    kinds = len(set(attempt.completion.token_ids))
    if sum(attempt.completion.token_ids) % 5 == 0:
        raise InfrastructureFailure("the judge is down")
    value = kinds / 12
    return Score(value, 0.0, 1.0, () if value == 1 else (Evidence("repeats", "some tokens repeat"),))


class AtOnce(RewardComponent):
    """The oracle."""

    name = "variety"

    def score(self, attempt: Attempt) -> Score:
        return variety(attempt)


class Waits(AsyncRewardComponent):
    """Waits until all samples of the first step wait, then the longer the less there is to say."""

    name = "variety"
    concurrency = 64

    def __init__(self) -> None:
        self.at_once = self.most_at_once = 0
        self.all_are_here = asyncio.Event()
        self.said: list[str] = []

    def setup(self) -> None:
        self.said.append("setup")

    async def score(self, attempt: Attempt) -> Score:  # type: ignore[override]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.most_at_once == SAMPLES:
            self.all_are_here.set()
        async with asyncio.timeout(300):  # a trainer that has only some of them wait fails here
            await self.all_are_here.wait()
        await asyncio.sleep(0.05 - 0.002 * len(set(attempt.completion.token_ids)))
        self.at_once -= 1
        return variety(attempt)

    def close(self) -> None:
        self.said.append("close")


class Batches(BatchRewardComponent):
    """Seven at a time."""

    name = "variety"
    batch_size = 7

    def score_many(self, attempts: Sequence[Attempt]) -> list[Score | Exception]:
        found: list[Score | Exception] = []
        for attempt in attempts:
            try:
                found.append(variety(attempt))
            except InfrastructureFailure as error:
                found.append(error)
        return found


def train(folder: Path, component: RewardComponent, recipe: str, registry: Registry, corpus: Any) -> dict[str, bytes]:
    loaded = parse_recipe(recipe, "small.toml", STEP)
    pipeline = build_pipeline(loaded, registry, corpus=corpus, extra_rewards=[component])
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    with pipeline:
        LocalTrainer(**loaded.recipe.trainer.options).train(pipeline, run)
    return {name: (folder / name).read_bytes() for name in ("metrics.jsonl", "rollouts.jsonl", "evaluation.json")}


@pytest.mark.parametrize("make", [Waits, Batches])
def test_a_run_is_that_of_a_reward_that_does_not_wait(
    tmp_path: Path, small_recipe: str, small_corpus: Any, registry: Registry, make: type[Any]
) -> None:
    expected = train(tmp_path / "expected", AtOnce(), small_recipe, registry, small_corpus)
    component = make()
    assert train(tmp_path / "found", component, small_recipe, registry, small_corpus) == expected
    masked = [json.loads(row)["masked"] for row in expected["metrics.jsonl"].splitlines()]
    assert all(0 < some < SAMPLES for some in masked)
    if isinstance(component, Waits):
        assert component.most_at_once == SAMPLES
        assert component.said == ["setup", "close"]


class Hears(AsyncRewardComponent):
    """Holds what was sampled by the time that it was asked."""

    name = "hears"

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.sampled = 0

    async def score(self, attempt: Attempt) -> Score:  # type: ignore[override]
        self.batches.append(self.sampled)
        return Score(1.0)


def test_what_has_ended_is_scored_while_others_are_sampled(
    tmp_path: Path, small_recipe: str, small_corpus: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third batch of a step is not begun before the reward of the first was asked for."""
    component = Hears()
    real = episodes.continue_contexts

    def sampling(*given: Any, **more: Any) -> Any:
        until = time.monotonic() + 120
        while component.sampled == 2 and not component.batches and time.monotonic() < until:
            time.sleep(0.005)
        component.sampled += 1
        return real(*given, **more)

    monkeypatch.setattr(episodes, "continue_contexts", sampling)
    loaded = parse_recipe(small_recipe, "small.toml", (*STEP, "trainer.steps=1", "trainer.sampling_rows=8"))
    pipeline = build_pipeline(loaded, registry, corpus=small_corpus, extra_rewards=[component])
    run = Run.create(tmp_path, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**loaded.recipe.trainer.options).train(pipeline, run)
    assert len(component.batches) == 32
    assert min(component.batches) < 3


class Counts(AsyncRewardComponent):
    """Says what it has asked for."""

    name = "counts"

    def __init__(self) -> None:
        self.usage = {"requests": 3, "cost": 1.0}  # before the run

    async def score(self, attempt: Attempt) -> Score:  # type: ignore[override]
        self.usage = {"requests": self.usage["requests"] + 1, "cost": self.usage["cost"] + 0.25}
        return variety(attempt)


def test_what_a_step_has_asked_for_is_in_its_row(
    tmp_path: Path, small_recipe: str, small_corpus: Any, registry: Registry
) -> None:
    component = Counts()
    rows = train(tmp_path / "run", component, small_recipe, registry, small_corpus)["metrics.jsonl"].splitlines()
    found = [json.loads(row)["usage"] for row in rows]
    assert all(usage["requests"] >= SAMPLES and usage["cost"] == usage["requests"] / 4 for usage in found)
    assert sum(usage["requests"] for usage in found) == component.usage["requests"] - 3
