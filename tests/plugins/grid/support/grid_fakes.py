"""A world in which training is arithmetic, registered like any plugin: its results are known beforehand."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import callwright as cw
from callwright.errors import UsageError
from callwright.training.reporter import SILENT, Reporter


class Nowhere:
    """A corpus without tasks."""

    name = "nowhere-v1"
    splits: Mapping[str, int] = {"train": 0, "evaluation": 0}

    def __init__(self) -> None:
        self.environment = cw.environment("nowhere", tools=[])

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        return []


class Nothing:
    """An algorithm that nobody asks for anything."""

    name = "nothing"
    kl_weight = 0.0


class Format(cw.RewardComponent):
    name, stage = "format", "format"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(1.0)


def accuracy(rate: float, seed: int, depth: int) -> float:
    """What training comes to: the rate counts, and the seed, which does the same to every rate."""
    return (0.2 + rate + 0.05 * seed**2) / (depth + 1)


def result(value: float) -> dict[str, object]:
    cells = {str(depth): {"accuracy": value / (depth + 1), "n": 10, "low": 0.0, "high": 1.0} for depth in (0, 1)}
    return {"overall": value, "by_depth": cells, "by_structure": {}, "failures": {}}


class Arithmetic:
    """Goes on from its metrics, and notes every process that worked on a run.

    Where there is a file ``hold``, seeds above 0 wait after their second step.
    """

    name = "arithmetic"

    def __init__(self, steps: int = 4, rate: float = 0.1, fails: int = -1) -> None:
        if rate < 0:
            raise UsageError("'rate' must not be negative")
        self.steps, self.rate, self.fails = steps, rate, fails

    def train(self, pipeline: cw.Pipeline, run: cw.Run, *, reporter: Reporter = SILENT) -> None:
        seed = pipeline.conditions.seed
        with (run.path / "processes.txt").open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {os.environ.get('OMP_NUM_THREADS')}\n")
        if seed == self.fails and not (run.path / "mended").exists():
            raise UsageError(f"the seed {seed} is unlucky")
        for step in range(len(run.rows("metrics.jsonl")), self.steps):
            while step == 2 and seed > 0 and Path("hold").exists():
                time.sleep(0.02)
            run.append("metrics.jsonl", [{"step": step + 1, "reward": self.rate * (step + 1) + seed}])
        before, after = result(0.1), result(accuracy(self.rate, seed, 0))
        run.write_json("evaluation.json", {"before": before, "during": [], "after": after})


def recipe() -> cw.RewardRecipe:
    return cw.RewardRecipe("flat", (cw.Term(Format()),))


def other() -> cw.RewardRecipe:
    return cw.RewardRecipe("other", (cw.Term(Format(), weight=2),))


@cw.hookimpl
def callwright_corpora() -> Iterator[cw.Lazy]:
    yield cw.Lazy("nowhere-v1", Nowhere, "no tasks")


@cw.hookimpl
def callwright_algorithms() -> Iterator[cw.Lazy]:
    yield cw.Lazy("nothing", Nothing, "nothing")


@cw.hookimpl
def callwright_reward_recipes() -> Iterator[cw.Lazy]:
    yield cw.Lazy("flat", recipe, "always 1")
    yield cw.Lazy("other", other, "always 2")


@cw.hookimpl
def callwright_trainers() -> Iterator[cw.Lazy]:
    yield cw.Lazy("arithmetic", Arithmetic, "adds")
