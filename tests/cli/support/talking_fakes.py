"""A benchmark with turns of every kind, registered like any plugin: the shelf of the tests of episodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import callwright as cw
from callwright.measuring.benchmark import CorpusBenchmark, Judgement

sys.path.append(str(Path(__file__).parents[2] / "core" / "episodes" / "support"))

from shelf import TASK, Shelves


class ShelfBenchmark(CorpusBenchmark):
    """Right if the books are sorted in the end; an episode that was ended by its steps is wrong, whatever it left."""

    name = "shelf"

    def __init__(self, version: str | None = None) -> None:
        super().__init__(Shelves(), "evaluation", version)

    def category_of(self, task: cw.Task) -> str:
        return str(task.facts["category"])

    def judge(self, task: cw.Task, attempt: cw.Attempt) -> Judgement:
        if attempt.masked is not None:
            return Judgement(correct=False, score=0.0, masked=attempt.masked)
        turns = {"turns": float(len(attempt.user_turns))}
        if attempt.stop == "steps":
            return Judgement(correct=False, score=0.0, error="force_terminated", parts=turns)
        seen: Sequence[object] = [record.outcome.value for record in attempt.whole_trace.records]
        right = bool(seen) and seen[-1] == sorted(map(str, seen[-1] if isinstance(seen[-1], list) else ["b", "a"]))
        return Judgement(right, float(right), "" if right else "state", turns)


@cw.hookimpl
def callwright_benchmarks() -> list[cw.Lazy]:
    return [cw.Lazy("shelf", ShelfBenchmark, "a shelf of books")]


__all__ = ["TASK", "ShelfBenchmark"]
