"""The benchmark ``zebra``: whether the first call names the right tool, over tasks that come with Callwright.

``judge`` is total: whatever was written is judged. ``aggregate`` adds up as an official table would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import callwright as cw
from callwright.measuring.benchmark import CorpusBenchmark, Judged, Judgement, mean, shares


class Zebra(CorpusBenchmark):
    """Categories are the structures of the tasks."""

    name = "zebra"
    versions = ("1",)
    unofficial = ("nobody has agreed on it yet",)

    def __init__(self, registry: cw.Registry, version: str | None = None) -> None:
        super().__init__(registry.create("corpus", "toolworld-mini-v1"), "evaluation", version)

    def category_of(self, task: cw.Task) -> str:
        """The category of a task."""
        return task.structure

    def judge(self, task: cw.Task, attempt: cw.Attempt) -> Judgement:
        """Right if the first call is of the tool that the reference calls first."""
        if attempt.program is None:
            return Judgement(correct=False, score=0.0, error="unreadable")
        wanted = [call.tool for call in (task.program or cw.Program()).calls[:1]]
        found = [call.tool for call in attempt.program.calls[:1]]
        if found == wanted:
            return Judgement(correct=True, score=1.0)
        return Judgement(correct=False, score=0.0, error="wrong_tool" if found else "no_call")

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """The mean of the categories, and each of them."""
        found = {category: mean(values) for category, values in shares(judged).items()}
        known = [value for value in found.values() if value is not None]
        return {"overall": mean(known), **{category: found.get(category) for category in self.categories}}
