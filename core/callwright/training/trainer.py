"""Trainers: what runs an algorithm over a pipeline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from callwright.training.reporter import SILENT, Reporter

if TYPE_CHECKING:
    from callwright.errors import UsageError
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe
    from callwright.training.run_folder import Run


@runtime_checkable
class Trainer(Protocol):
    """Trains a policy. Everything it produces goes into the run folder, from which it can also go on."""

    @property
    def name(self) -> str:
        """The registered name."""

    def train(self, pipeline: Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Train until the recipe's last step, resuming from the run folder's newest checkpoint if there is one.

        ``reporter`` hears of the stages and of what a person should know.
        Writes ``metrics.jsonl``, ``rollouts.jsonl``, ``evaluation.json`` and ``checkpoints/``.
        """


@runtime_checkable
class SamplesGroups(Protocol):
    """What a trainer offers in addition if it samples, so that an algorithm which compares samples can be checked."""

    @property
    def group(self) -> int:
        """How many completions it samples for each prompt."""


@runtime_checkable
class Planning(Protocol):
    """What a trainer offers in addition if it can say beforehand what it would do, and where it would do otherwise.

    ``callwright run RECIPE --dry-run`` prints it, and ``--strict`` refuses what is not exactly as the recipe says.
    """

    def dry_run(
        self, pipeline: Pipeline, *, strict: bool = False, strict_except: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """What training would do, as JSON: ``argv`` of another program, say, and lists of differences and files.

        Nothing is written. Raises :class:`callwright.UsageError` with ``strict`` where the recipe is not followed
        to the letter, but for the keys of ``strict_except``. A trainer without that argument has no
        ``--strict-except``.
        """


@runtime_checkable
class PlansMemory(Protocol):
    """What a trainer offers in addition that has no plan of its own but can say what memory training will take.

    ``callwright run RECIPE --dry-run`` prints it under the recipe. One that is :class:`Planning` has it in its plan,
    under ``memory``.
    """

    def memory_plan(self, pipeline: Pipeline) -> list[dict[str, Any]]:
        """Its :class:`callwright.training.dry_runs.memory_plan.MemoryPlan`, as rows, without torch; empty for none."""


@runtime_checkable
class Checking(Protocol):
    """What a trainer offers in addition if it can tell the mistakes of a recipe before it trains, without torch."""

    def check(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> Iterable[UsageError]:
        """Every mistake that training would end with: of the table ``[model]``, of depths that the split lacks.

        ``pipeline`` is ``None`` where the other components cannot be made. Raises
        :class:`callwright.errors.MissingExtra` where nothing is wrong but a package is missing that training needs.
        """


@runtime_checkable
class ChecksModel(Protocol):
    """What the class of a trainer offers in addition if it can tell the mistakes of ``[model]`` without its options.

    It is asked where the options of the trainer are wrong, so that no :class:`Checking` trainer is there to be asked.
    """

    def model_mistakes(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> Iterable[UsageError]:
        """Every mistake of the table ``[model]``; a static method. ``pipeline`` is as in :meth:`Checking.check`."""
