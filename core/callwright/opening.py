"""Opening a pipeline for other programs: a reward recipe with a corpus, or a pipeline recipe, as one that scores."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from callwright.errors import DataError, RecipeError, UsageError
from callwright.language.parser import Parser
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import load_recipe, parse_recipe, write_toml
from callwright.walk.reward import RewardRecipe
from callwright.walk.tasks import Corpus, Task


def open_pipeline(
    recipe: str | Path | RewardRecipe | Pipeline,
    corpus: str | Corpus | None,
    ir: str | Parser = "json",
    *,
    seed: int = 0,
    registry: Registry | None = None,
) -> Pipeline:
    """A pipeline of a reward recipe with a corpus, or of a pipeline recipe without one.

    Raises :class:`callwright.UsageError` for names that do not exist, and for a reward recipe without a corpus.
    """
    registry = registry or default_registry()
    if isinstance(recipe, Pipeline):
        return recipe
    if corpus is None:
        if isinstance(recipe, RewardRecipe):
            raise UsageError(f"the reward recipe {recipe.name!r} needs a corpus: pass corpus='…' with it")
        if str(recipe) in registry.names("reward recipe"):
            raise UsageError(f"{recipe!r} is a reward recipe; pass corpus='…' with it, or name a pipeline recipe")
        return build_pipeline(load_recipe(recipe), registry, with_algorithm=False)
    made: Corpus = registry.create("corpus", corpus) if isinstance(corpus, str) else corpus
    parser: Parser = registry.create("parser", ir) if isinstance(ir, str) else ir
    reward = recipe if isinstance(recipe, RewardRecipe) else registry.create("reward recipe", str(recipe))
    data = {"seed": seed, "corpus": made.name, "ir": parser.name, "reward": reward.name}
    try:
        loaded = parse_recipe(write_toml(data), "the arguments")
    except RecipeError as error:
        raise UsageError(str(error)) from error
    return Pipeline(loaded, registry, made, parser, reward)


def task_of(pipeline: Pipeline, task_id: object) -> Task:
    """The task of a row. Raises :class:`callwright.errors.DataError` for an id that the corpus does not know."""
    if not isinstance(task_id, str):
        raise DataError(f"the id of a task is a text, not {task_id!r:.60}")
    task = pipeline.corpus.task(task_id)
    return task if pipeline.environment is None else evolve(task, environment=pipeline.environment)
