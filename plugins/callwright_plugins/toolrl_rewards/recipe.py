"""Recipes over ToolRL's ground truths: rewards that also score a bare pair of completion and ground truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

from attrs import field, frozen

from callwright.environments.functions import FunctionEnvironment
from callwright.errors import Abstention, DataError, UsageError
from callwright.language.parser import ParseFailure
from callwright.language.program import Program
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.tasks import Answer, Task
from callwright_plugins.toolrl_rewards.truth import FACT, BadGroundTruth, Truths

_REMEMBERED = 4096


class _NoForm:
    """Stands for the parser where a text is scored as it is; what it would parse is never asked."""

    name: ClassVar[str] = "toolrl"

    def parse(self, text: str) -> Program | ParseFailure:
        return ParseFailure("envelope", "not_read", "the text is scored without a form", (0, len(text)))

    def render(self, program: Program) -> str:
        raise UsageError("a pair of completion and ground truth has no form to render to")

    def instructions(self) -> str:
        return ""


_NO_FORM = _NoForm()
_NOWHERE = FunctionEnvironment("nowhere", ())


@frozen(slots=False)
class ToolRLRecipe(RewardRecipe):
    """A recipe that knows its ground truths; ``scheduled`` says that it needs a progress.

    It scores attempts of any task that has the fact ``ground_truth`` (text in ToolRL's form) or a reference program,
    and rows ``{"completion", "ground_truth", "step"?, "total_steps"?}`` without a corpus: ``row_task`` makes the task.
    """

    truths: Truths[Any] = field(kw_only=True, repr=False, eq=False)
    scheduled: bool = field(default=False, kw_only=True)

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return {}

    def row_task(self, row: Mapping[str, Any]) -> Task:
        """The task of a row.

        Raises :class:`callwright.errors.DataError` if its ground truth is missing or cannot be read, or if it lacks the
        progress that a schedule needs.
        """
        text = row.get("ground_truth")
        if type(text) is not str:
            raise DataError("the row has no 'ground_truth', or it is not a string")
        if self.scheduled and ("step" not in row or "total_steps" not in row):
            raise DataError(f"{self.name!r} has a schedule: the row needs 'step' and 'total_steps'")
        return self._tasks.get(text) or self._task(str(row.get("id", "")), text)

    def _task(self, task_id: str, text: str) -> Task:
        task = Task(task_id, "", {}, Answer(), _NOWHERE, facts={FACT: text})
        self.truths.of(task)
        if len(self._tasks) >= _REMEMBERED:
            self._tasks.clear()
        self._tasks[text] = task
        return task

    def check(self, tasks: Iterable[Task]) -> None:
        """Read every task's ground truth, before training. Raises :class:`BadGroundTruth` for the first bad one."""
        for task in tasks:
            self.truths.of(task)

    def score_pair(self, completion: str, ground_truth: str, progress: Progress | None = None) -> Reward:
        """The reward of a completion, given the text of its ground truth. Raises :class:`BadGroundTruth`."""
        task = self._tasks.get(ground_truth) or self._task("", ground_truth)
        return self.score_attempt(Attempt(task, completion, _NO_FORM, Conditions(progress=progress)))

    def check_attempt(self, attempt: Attempt) -> None:
        """Raises :class:`BadGroundTruth`, and ``UsageError`` for a schedule without progress."""
        if self.scheduled and attempt.progress is None:
            raise UsageError(f"reward recipe {self.name!r} has a schedule: it needs 'step' and 'total_steps'")
        with suppress(Abstention):  # of a log without a truth, where the terms abstain
            self.truths.of(attempt.task)


__all__ = ["BadGroundTruth", "ToolRLRecipe"]
