"""``callwright run``: train by a pipeline recipe, or go on with a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.failures import Stopped
from callwright.commands.options import RecipeName
from callwright.commands.safe_text import say

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe
    from callwright.training.trainer import Trainer


@click.command("run")
@click.argument("recipe", type=RecipeName(runs=True), metavar="RECIPE")
@options.override_options
@click.option("-o", "--output", metavar="DIR", help="The run folder. Default: runs/<name of the recipe>-<time>.")
@click.option(
    "--dry-run", is_flag=True, help="Check the recipe and its components; print it, or what the trainer would do."
)
@click.option("--strict", is_flag=True, help="Refuse a recipe that the trainer would not follow to the letter.")
@click.option(
    "--strict-except",
    "strict_except",
    metavar="KEY,...",
    help="As --strict, but let the differences of these keys pass.",
)
@options.yes_option
@options.accept_changes_option
@options.json_option
@click.pass_obj
def run(
    app: App,
    recipe: str,
    overrides: tuple[str, ...],
    output: str | None,
    dry_run: bool,
    strict: bool,
    strict_except: str | None,
    yes: bool,
    accept_changes: bool,
    as_json: bool,
) -> None:
    """Train by RECIPE: a TOML file, the name of a shipped recipe, or a run folder to go on with.

    Given the folder of a run that was stopped or killed, the command resumes it. Resuming is deterministic: checkpoints
    and logs are the same bytes as those of an uninterrupted run. At the end the run's report.html is written.

    A recipe that did not come with the package and starts programs or sends a variable somewhere is asked about first.
    """
    from callwright.cli.run_output import show_plan, show_result
    from callwright.commands.bars import reporter
    from callwright.commands.trust import TRAINED, allow
    from callwright.training.recipe_run import default_folder, prepare, run_pipeline
    from callwright.training.run_folder import refuse_other_files

    recipe, output = _recipe_and_folder(recipe, output)
    if output is not None:
        app.recall(output)
    loaded = _loaded(recipe, overrides, app)
    folder = Path(output) if output else default_folder(loaded.recipe.name)
    refuse_other_files(folder)
    allow(loaded, app.registry, TRAINED, yes=yes, dry_run=dry_run, run_folder=folder)
    with _a_stop_loses_nothing(app, folder):
        pipeline, trainer = prepare(loaded, app.registry, planning=dry_run)
        allowed = [key.strip() for key in (strict_except or "").split(",") if key.strip()]
        strict = strict or bool(allowed)
        plan = _plan(pipeline, trainer, strict, allowed) if dry_run or strict else None
        if dry_run:
            show_plan(plan, pipeline, trainer, as_json)
            return
        headline = f"{'going on with' if (folder / 'recipe.toml').exists() else 'run folder'} {folder}"
        if (nothing_left := _finished(folder, loaded, app)) is not None:
            say(nothing_left)
        with reporter(headline) as bars:
            finished = run_pipeline(
                pipeline,
                trainer,
                output=folder,
                command=app.command,
                reporter=bars,
                accept_changes=accept_changes,
            )
    show_result(finished, as_json)


def _loaded(recipe: str, overrides: Sequence[str], app: App) -> LoadedRecipe:
    """The recipe. Raises one error for everything that is wrong with it, where keys are wrong and components too.

    Of a recipe that would reach for something outside no component is made for that: nobody was asked.
    """
    from callwright.commands.trust import TRAINED, wishes
    from callwright.errors import CallwrightError, RecipeError, UsageError
    from callwright.recipe_file import load_recipe
    from callwright.training.recipe_run import prepare

    try:
        return load_recipe(recipe, overrides)
    except RecipeError as error:
        lines = str(error).splitlines()
        if error.rest is None or wishes(error.rest, app.registry, TRAINED):
            raise
        try:
            prepare(error.rest, app.registry, planning=True)
        except UsageError as more:
            raise RecipeError("\n".join(dict.fromkeys([*lines, *str(more).splitlines()]))) from error
        except CallwrightError:  # an extra is missing, say, which is not the recipe's mistake
            pass
        raise


def _recipe_and_folder(recipe: str, output: str | None) -> tuple[str, str | None]:
    """A run folder is the recipe in it, and its own output."""
    if not (Path(recipe) / "recipe.toml").is_file():
        return recipe, output
    if output is not None and Path(output) != Path(recipe):
        raise click.UsageError(f"{recipe} is a run folder; it is its own --output")
    return str(Path(recipe) / "recipe.toml"), recipe


def _finished(folder: Path, loaded: LoadedRecipe, app: App) -> str | None:
    """What is to be said of a run that is finished, in one line; ``None`` of one that is not, or not known to be."""
    from callwright.training.recipe_run import kept_text

    final, recipe = folder / "checkpoints" / "final", folder / "recipe.toml"
    if not recipe.exists() or not final.is_dir():
        return None
    if recipe.read_bytes() != kept_text(loaded).encode():  # another recipe, which is refused
        return None
    page = folder / "report.html"
    more = ["run", str(recipe), "--set", f"model={final}"]
    if "warm_start" in loaded.recipe.trainer.options:  # which the model has behind it
        more += ["--unset", "trainer.warm_start"]
    longer = shlex.join(["callwright", *app.plugin_options(), *more])
    return (
        f"{folder} is finished{_steps_of(folder)}{f'; its report is {page}' if page.exists() else ''}. Nothing is left "
        f"to do: more steps are another run, from its model: {longer} --output ANOTHER"
    )


def _steps_of(folder: Path) -> str:
    """After how many steps a run ended, in words; empty where its rows do not say."""
    from callwright.errors import DataError
    from callwright.training.run_folder import METRICS, Run

    try:
        steps = [step for row in Run(folder).rows(METRICS) if type(step := row.get("step")) is int]
    except DataError:  # of a finished run nobody reads them
        return ""
    return f" after {max(steps):,} steps" if steps else ""


@contextmanager
def _a_stop_loses_nothing(app: App, folder: Path) -> Iterator[None]:
    """Say how to go on if the user stops a run that was begun."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not (folder / "recipe.toml").exists():
            raise
        go_on = shlex.join(["callwright", *app.plugin_options(), "run", str(folder)])
        raise Stopped(f"stopped; nothing is lost; go on with: {go_on}") from stop


def _plan(pipeline: Pipeline, trainer: Trainer, strict: bool, allowed: Sequence[str]) -> Mapping[str, Any] | None:
    """What the trainer says that it would do; ``None`` if it says nothing of it.

    Raises :class:`callwright.UsageError` with ``strict`` where the recipe would not be followed to the letter, but for
    the keys that are ``allowed``.
    """
    from inspect import signature

    from callwright.errors import UsageError
    from callwright.training.trainer import Planning

    if isinstance(trainer, Planning):
        if not allowed:
            return trainer.dry_run(pipeline, strict=strict)
        if "strict_except" not in signature(trainer.dry_run).parameters:
            raise UsageError(f"the trainer {trainer.name!r} was written for --strict alone; it has no --strict-except")
        return trainer.dry_run(pipeline, strict=strict, strict_except=allowed)
    if strict:
        raise UsageError(f"the trainer {trainer.name!r} follows every recipe to the letter; it has no --strict")
    return None
