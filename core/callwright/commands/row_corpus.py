"""Rows that bring their own ground truth: a stand-in for the corpus where the reward recipe makes each row's task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from callwright.environments.functions import FunctionEnvironment
from callwright.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.reward import RewardRecipe
    from callwright.walk.tasks import Task


@runtime_checkable
class RowTasks(Protocol):
    """A reward recipe that needs no corpus: what is right stands in the row, such as its ``ground_truth``."""

    def row_task(self, row: Mapping[str, Any]) -> Task:
        """The task of a row. Raises :class:`callwright.errors.DataError`, which says what the row lacks."""


class RowCorpus:
    """No tasks of its own; ``row_task`` has the recipe make one of a row."""

    name = "the rows"
    splits: Mapping[str, int] = {}

    def __init__(self, recipe: RowTasks) -> None:
        self.row_task = recipe.row_task
        self.environment: Environment = FunctionEnvironment("nowhere", ())

    def __getitem__(self, split: str) -> Sequence[Task]:
        raise UnknownName("split", split, self.splits)

    def task(self, task_id: str) -> Task:
        raise UnknownName("task", task_id, ())


def make_row_pipeline(
    registry: Registry, *, ir: str, reward: str, reward_options: Mapping[str, Any] | None = None, seed: int = 0
) -> Pipeline:
    """A pipeline without a corpus. Raises :class:`callwright.UsageError` if the recipe needs one."""
    from callwright.pipeline import Pipeline
    from callwright.walk.conditions import Conditions

    recipe: RewardRecipe = registry.create("reward recipe", reward, **(reward_options or {}))
    if not isinstance(recipe, RowTasks):
        raise UsageError(f"The reward recipe {reward!r} scores tasks of a corpus. Name it: --corpus NAME")
    conditions = Conditions(seed=seed)
    return Pipeline(RowCorpus(recipe), recipe, ir, conditions=conditions, registry=registry)
