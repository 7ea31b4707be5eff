"""What a recipe has wrong that the trainers would find later, told before torch is imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from callwright.capability import has
from callwright.errors import DataError, MissingExtra, SeveralMistakes, UsageError
from callwright.options import read_options
from callwright.training.rollouts.task_stream import outlasts_the_run
from callwright.walk.corpora.capabilities import HasVocabulary, WritesPrompts
from callwright.walk.tasks import depths_of
from callwright_plugins.local_trainer.models.folder import check_folder, model_folder
from callwright_plugins.local_trainer.options import Model, Options, SupervisedOptions

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe
    from callwright.walk.tasks import Corpus

logger = structlog.get_logger(__name__)


def mistakes(
    name: str, options: Options | SupervisedOptions, loaded: LoadedRecipe, pipeline: Pipeline | None
) -> list[UsageError]:
    """Every mistake in the table ``[model]``, in the depths and in the turns that are asked for, with file and line.

    A curriculum that outlasts the run is warned of. Raises :class:`callwright.errors.MissingExtra` where there is no
    mistake and torch or transformers is missing.
    """
    found = model_mistakes(loaded, pipeline)
    if pipeline is not None and isinstance(options, Options):
        found += _of_depths(options, loaded, pipeline)
        found += _of_agents(options, loaded, pipeline)
    if isinstance(options, Options):
        ends = [stage.last(options.steps) for stage in options.curriculum]
        if (reason := outlasts_the_run(ends, options.steps)) is not None:
            logger.warning("the curriculum outlasts the run", reason=reason)
    for package in ("torch", "transformers"):
        if not found and find_spec(package) is None:
            raise MissingExtra(f"the trainer {name!r}", "train", package)
    return found


def model_mistakes(loaded: LoadedRecipe, pipeline: Pipeline | None) -> list[UsageError]:
    """Every mistake in the table ``[model]``, with file and line."""
    try:
        model = read_options(Model, loaded.recipe.model, "the table [model]")
    except UsageError as error:
        each = error.each if isinstance(error, SeveralMistakes) else (error,)
        return [loaded.error(str(one), "model", *getattr(one, "path", ())) for one in each]
    return list(_of_model(model, loaded, pipeline.corpus if pipeline is not None else None))


def _of_model(model: Model, loaded: LoadedRecipe, corpus: Corpus | None) -> Iterator[UsageError]:
    if model.path is not None:
        try:
            check_folder(model_folder(Path(model.path)))
        except DataError as error:
            yield loaded.error(str(error), "model", "path")
    if corpus is None:
        return
    if model.tiny is not None and not has(corpus, HasVocabulary):
        yield loaded.error(
            f"a tiny model needs a vocabulary, and the corpus {corpus.name!r} has none; give a model directory: "
            'path = "DIRECTORY"; for a file of tasks, corpus.name = "compact-tasks" has one',
            "model",
        )
    if model.prompt == "compact" and not has(corpus, WritesPrompts):
        yield loaded.error(f"the corpus {corpus.name!r} has no compact prompt", "model", "prompt")


def _of_depths(options: Options, loaded: LoadedRecipe, pipeline: Pipeline) -> Iterator[UsageError]:
    asked = [("depths", options.depths or [])] + [("curriculum", stage.depths) for stage in options.curriculum]
    if not options.steps or not any(depths for _, depths in asked):
        return
    known = sorted(set(depths_of(pipeline.tasks(pipeline.train))))
    for option, depths in asked:
        for depth in sorted(set(depths) - set(known)):
            listed = ", ".join(map(str, known))
            message = f"{option!r} asks for depth {depth}, but the split to train on only has {listed}"
            yield loaded.error(message, "trainer", option)


def _of_agents(options: Options, loaded: LoadedRecipe, pipeline: Pipeline) -> Iterator[UsageError]:
    if options.agent is not None and loaded.recipe.turns is None and pipeline.conditions.limits.single:
        yield loaded.error(
            "without a table [turns] the model answers an agent once, and no agent reads what its calls came to; "
            "say how many answers a rollout may have: [turns] assistant_turns = 6",
            "trainer",
            "agent",
        )
