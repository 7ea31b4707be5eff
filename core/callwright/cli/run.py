"""``callwright run``: train by a pipeline recipe, or go on with a run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.failures import Stopped

if TYPE_CHECKING:
    from callwright.recipe_file import LoadedRecipe


@click.command("run")
@click.argument("recipe", metavar="RECIPE")
@click.option(
    "--set", "overrides", multiple=True, metavar="A.B=C", help="Override a value of the recipe. May be repeated."
)
@click.option("-o", "--output", metavar="DIR", help="The run folder. Default: runs/<name of the recipe>-<time>.")
@click.option(
    "--dry-run", is_flag=True, help="Check the recipe and its components; print it, or what the trainer would do."
)
@click.option("--strict", is_flag=True, help="Refuse a recipe that the trainer would not follow to the letter.")
@options.json_option
@click.pass_obj
def run(
    app: App,
    recipe: str,
    overrides: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Train by RECIPE: a TOML file, the name of a shipped recipe, or a run folder to go on with.

    A run that was stopped or killed goes on where it was when the command is given its folder again, and ends in the
    same bytes as if it had not been. At the end the run's report.html is written.
    """
    from callwright.cli.run_output import show_plan, show_result
    from callwright.commands.bars import reporter
    from callwright.recipe_file import load_recipe
    from callwright.training.recipe_run import default_folder, run_recipe

    if (Path(recipe) / "recipe.toml").is_file():
        if output is not None and Path(output) != Path(recipe):
            raise click.UsageError(f"{recipe} is a run folder; it is its own --output")
        recipe, output = str(Path(recipe) / "recipe.toml"), recipe
    loaded = load_recipe(recipe, overrides)
    if dry_run or strict:
        planned = _plan(app, loaded, strict)
        if dry_run:
            show_plan(planned, loaded, as_json)
            return
    folder = Path(output) if output else default_folder(loaded.recipe.name)
    go_on = shlex.join(["callwright", *app.plugin_options(), "run", str(folder)])
    headline = f"{'going on with' if (folder / 'recipe.toml').exists() else 'run folder'} {folder}"
    try:
        with reporter(headline) as bars:
            finished = run_recipe(
                recipe, output=folder, overrides=overrides, registry=app.registry, command=app.command, reporter=bars
            )
    except KeyboardInterrupt as stop:
        if not (folder / "recipe.toml").exists():
            raise
        raise Stopped(f"stopped; nothing is lost; go on with: {go_on}") from stop
    show_result(finished, as_json)


def _plan(app: App, loaded: LoadedRecipe, strict: bool) -> tuple[Mapping[str, Any], bool]:
    """What the trainer says that it would do, or the components of the recipe; and whether the trainer said it."""
    from callwright.errors import UsageError
    from callwright.pipeline import build_pipeline, create_trainer
    from callwright.training.trainer import Planning

    pipeline = build_pipeline(loaded, app.registry)
    trainer = create_trainer(loaded, app.registry)
    if isinstance(trainer, Planning):
        return trainer.dry_run(pipeline, strict=strict), True
    if strict:
        raise UsageError(f"the trainer {trainer.name!r} follows every recipe to the letter; it has no --strict")
    sizes = dict(pipeline.corpus.splits)
    made = {"trainer": trainer.name, "splits": sizes, "reward_terms": list(pipeline.reward.weights)}
    return {"recipe": loaded.recipe.model_dump(mode="json"), **made}, False
