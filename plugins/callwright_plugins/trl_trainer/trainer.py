"""``trainer = "trl"``: what a recipe names. The work is in :mod:`.course`, in this process or several others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from callwright.errors import DataError, MissingExtra, UsageError, raise_together
from callwright.options import read_options
from callwright.training.dry_runs.memory_plan import prompt_tokens
from callwright.training.reporter import SILENT, Reporter
from callwright.training.rollouts.task_stream import outlasts_the_run
from callwright_plugins.trl_trainer.base import FINAL, is_cached, local_trainer, make_base, needs_local, resolved
from callwright_plugins.trl_trainer.memory import plan
from callwright_plugins.trl_trainer.options import Model, Options
from callwright_plugins.trl_trainer.settings import Translation, foreign, refuse_inexact, translate

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe
    from callwright.training.run_folder import Run

logger = structlog.get_logger(__name__)


class TRLTrainer:
    """Trains by TRL, on the CPU, one GPU or several. Options: :class:`.options.Options`.

    Raises :class:`callwright.UsageError` for an option that does not exist or has an impossible value.
    """

    name = "trl"

    def __init__(self, **options: Any) -> None:
        self.options = read_options(Options, options, "the trainer 'trl'")

    @property
    def group(self) -> int:
        """Completions a prompt: :class:`callwright.training.trainer.SamplesGroups`."""
        return self.options.group

    def check(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> list[UsageError]:
        """The mistakes that training would end with, told without torch. A curriculum that outlasts it is warned of."""
        found: list[UsageError] = []
        ends = [stage.last(self.options.steps) for stage in self.options.curriculum]
        if (reason := outlasts_the_run(ends, self.options.steps)) is not None:
            logger.warning("the curriculum outlasts the run", reason=reason)
        try:
            model = read_options(Model, loaded.recipe.model, "the table [model]")
            if model.path is not None:
                found += _of_folder(model.path, loaded)
        except UsageError as error:
            found.append(loaded.error(str(error), "model", *getattr(error, "path", ())))
        if pipeline is not None and pipeline.algorithm is not None:
            try:
                wrong = foreign(self._translated(pipeline).differences)
            except UsageError as error:
                wrong = [error]
            found += [loaded.error(str(one), *getattr(one, "path", ("algorithm",))) for one in wrong]
            if not found and needs_local(self.options, model):
                try:
                    local_trainer(self.options, pipeline)
                except UsageError as error:
                    found.append(loaded.error(str(error), "trainer", *getattr(error, "path", ("warm_start",))))
        for package in ("trl", "datasets", *(["peft"] if self.options.lora is not None else [])):
            if not found and find_spec(package) is None:
                raise MissingExtra(f"the trainer {self.name!r}", "trl", package)
        return found

    def dry_run(
        self, pipeline: Pipeline, *, strict: bool = False, strict_except: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """``arguments`` of TRL's ``GRPOConfig``, ``differences``, and a plan of ``memory``; nothing is written.

        Raises :class:`callwright.UsageError` for what TRL cannot be told, and with ``strict`` where anything but the
        keys of ``strict_except`` is not exact.
        """
        translated = self._translated(pipeline)
        raise_together(foreign(translated.differences))
        if strict or self.options.strict:
            refuse_inexact(translated.differences, {*strict_except, *self.options.strict_except})
        model = read_options(Model, pipeline.recipe.recipe.model, "the table [model]")
        return {
            "arguments": translated.arguments,
            "adapter": None if self.options.lora is None else self.options.lora.model_dump(),
            "differences": [one.to_json() for one in translated.differences],
            "memory": plan(
                self.options,
                model,
                pipeline.conditions.limits,
                prompt=prompt_tokens(pipeline),
                kl=translated.arguments["beta"] > 0,
            ),
        }

    def train(self, pipeline: Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Warm start, reinforcement learning and evaluation, from the newest checkpoint of ``run`` if there is one.

        Raises :class:`callwright.CallwrightError` in all foreseen cases. A run that was stopped or killed goes on from
        its newest checkpoint, and on the CPU ends in the weights and rows of an uninterrupted one.
        """
        if (run.checkpoints / FINAL).is_dir():
            return
        translated = self._translated(pipeline)
        raise_together(foreign(translated.differences))
        if self.options.strict:
            refuse_inexact(translated.differences, self.options.strict_except)
        for one in translated.differences:
            reporter.say(f"not as the recipe says: {one}")
        model = read_options(Model, pipeline.recipe.recipe.model, "the table [model]")
        base = make_base(self.options, model, pipeline, run, reporter)
        if self.options.processes > 1 or self.options.launch:
            from callwright_plugins.trl_trainer.launching import launch

            launch(self.options, pipeline, run, base, reporter)
            return
        try:
            from callwright_plugins.trl_trainer.course import Course
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("callwright"):
                raise
            raise MissingExtra("the trainer 'trl'", "trl", error.name or "trl") from error
        Course(self.options, pipeline, run, base, reporter).go()

    def _translated(self, pipeline: Pipeline) -> Translation:
        if pipeline.algorithm is None:
            raise UsageError("the trainer 'trl' needs a pipeline with an algorithm")
        return translate(
            self.options,
            pipeline.algorithm,
            pipeline.conditions.limits,
            seed=pipeline.conditions.seed % 2**32,
            folder="RUN/checkpoints",
        )


def _of_folder(path: str, loaded: LoadedRecipe) -> list[UsageError]:
    """What is wrong with where a model is to be. That transformers will have to fetch it is said."""
    try:
        folder = resolved(path)
    except DataError as error:
        return [loaded.error(str(error), "model", "path")]
    if folder == path and not Path(path).is_dir() and not is_cached(path):
        logger.warning("the model is fetched before training begins", reason=f"there is no folder {path}")
    return []
