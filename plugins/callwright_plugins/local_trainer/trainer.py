"""``trainer = "local"``: what a recipe names. The work is in :mod:`.run.training`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callwright.errors import MissingExtra, UsageError
from callwright.options import read_options
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.local_trainer.checking import mistakes, model_mistakes
from callwright_plugins.local_trainer.garbage import imports_set_apart
from callwright_plugins.local_trainer.memory import plan
from callwright_plugins.local_trainer.options import Options

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe
    from callwright.training.run_folder import Run


class LocalTrainer:
    """Trains in this process, on the CPU or one GPU. Options: :class:`.options.Options`.

    Raises :class:`callwright.UsageError` for an option that does not exist or has an impossible value.
    """

    name = "local"

    def __init__(self, **options: Any) -> None:
        self.options = read_options(Options, options, "the trainer 'local'")

    @property
    def group(self) -> int:
        """Completions a prompt: :class:`callwright.training.trainer.SamplesGroups`."""
        return self.options.group

    model_mistakes = staticmethod(model_mistakes)

    def check(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> list[UsageError]:
        """The mistakes that training would end with, told without torch."""
        return mistakes(self.name, self.options, loaded, pipeline)

    def memory_plan(self, pipeline: Pipeline) -> list[dict[str, Any]]:
        """The rows of a plan of memory; a tiny model needs none."""
        return plan(self.options, pipeline)

    def train(self, pipeline: Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Warm start, reinforcement learning and evaluation, from the newest checkpoint of ``run`` if there is one.

        Raises :class:`callwright.CallwrightError` in all foreseen cases. Stopped by a signal, it writes a checkpoint of
        the last completed step on its way out. Killed at any moment, the same call resumes and
        writes the bytes of an uninterrupted run (on the CPU; ``timings.jsonl`` apart).
        """
        with imports_set_apart() as imported:
            try:
                from callwright_plugins.local_trainer.randomness import steady
                from callwright_plugins.local_trainer.run.training import Training
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("callwright"):
                    raise
                raise MissingExtra("the trainer 'local'", "train", error.name or "torch") from error
            imported()
            with steady(self.options.threads, pipeline.conditions.seed):
                Training(self.options, pipeline, run, reporter).run()
