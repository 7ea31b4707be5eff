"""``callwright grid``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.bars import reporter
from callwright.commands.failures import Stopped
from callwright.commands.options import RecipeName
from callwright.commands.safe_text import say
from callwright.commands.trust import TRAINED, allow
from callwright.errors import UsageError
from callwright_plugins.grid.plan import MOST, GridRun, Plan, read_over, read_seeds

if TYPE_CHECKING:
    from callwright.recipe_file import LoadedRecipe
    from callwright_plugins.grid.children import Ended
    from callwright_plugins.grid.results import Ledger


@click.command("grid")
@click.argument("recipe", type=RecipeName(), metavar="RECIPE")
@click.option("--over", multiple=True, metavar="A.B=V1,V2", help="A key and the values it is to have. May be repeated.")
@click.option("--seeds", default="0-2", show_default=True, metavar="0-2|1,5,9", help="The seeds of every setting.")
@options.override_options
@click.option("-o", "--output", metavar="DIR", help="The folder of the grid. Default: runs/<name of the recipe>-grid.")
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at a time, a core each."
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="A further figure: gain@2-4, kl, scores.answer."
)
@click.option("--dry-run", is_flag=True, help="Check every setting, list the runs, and train nothing.")
@options.yes_option
@options.json_option
@click.pass_obj
def grid(
    app: App,
    recipe: str,
    over: tuple[str, ...],
    seeds: str,
    overrides: tuple[str, ...],
    output: str | None,
    workers: int,
    metrics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Train by RECIPE under every combination of the values of --over, with every seed, and compare.

    Each run is an ordinary run folder in DIR, made by a process of its own. A finished run is not made again, one that
    was stopped goes on. At the end there are means over seeds with 95% intervals and differences over the same seeds:
    printed, in DIR/grid.json, and as a page in DIR/grid.html. Status 1: a run failed; the others were made.
    """
    from callwright.recipe_file import load_recipe
    from callwright.training.ledger.owner import owned
    from callwright.training.recipe_run import kept_text
    from callwright.training.run_folder import write_atomically
    from callwright_plugins.grid.metrics import check_names
    from callwright_plugins.grid.output import PAGE, RESULT, draw, draw_plan, plan_as_json
    from callwright_plugins.grid.page import write_page
    from callwright_plugins.grid.results import Ledger, collect

    names = check_names(metrics)
    loaded = load_recipe(recipe, overrides)
    plan = Plan(str(recipe), kept_text(loaded), overrides, read_over(over), read_seeds(seeds))
    if len(plan.settings) * len(plan.seeds) > MOST:
        raise UsageError(f"{len(plan.settings)} settings with {len(plan.seeds)} seeds are more than {MOST:,} runs")
    if both := [key for key, _ in plan.over if key in {one.partition("=")[0].strip() for one in overrides}]:
        raise UsageError(f"{both[0]} is given by --set and by --over; give it once")
    reaches = allow(loaded, app.registry, TRAINED, yes=yes, dry_run=dry_run)
    _check(app, plan, names)
    folder = Path(output) if output else Path("runs") / f"{loaded.recipe.name}-grid"
    if dry_run:
        ledger = Ledger.open(folder)
        if as_json:
            click.echo(json.dumps(plan_as_json(plan, ledger), indent=2))
        else:
            draw_plan(plan, ledger, workers)
        return
    with owned(folder, "grid folder") as before:
        if before is not None:
            say(f"taking over from {before}, which is gone")
        plan = plan.settle(folder)
        ledger = Ledger.open(folder)
        try:
            _carry_out(app, plan, folder, ledger, workers, names, ["--yes"] if reaches else [])
        finally:
            # Also of a grid that was stopped: what is finished can be looked at.
            results = collect(plan, folder, ledger, names)
            write_atomically(folder / RESULT, json.dumps(results.found, indent=2, allow_nan=False) + "\n")
            write_page(results, folder / PAGE, app.command)
    if as_json:
        click.echo(json.dumps(results.found, indent=2))
    else:
        draw(results.found)
        click.echo(f"page: {folder / PAGE}")
    missing = sum(not run["finished"] for setting in results.found["settings"] for run in setting["runs"])
    if missing:
        say(f"{missing} of {len(plan.runs)} runs failed; the same command tries them again")
        click.get_current_context().exit(1)


def _check(app: App, plan: Plan, names: Sequence[str]) -> None:
    """Make the components of every setting once, so that what is wrong is said before anything is trained."""
    from callwright.errors import RecipeError
    from callwright.pipeline import build_pipeline
    from callwright.recipe_parts import create_trainer
    from callwright.training.recipe_run import check_tasks
    from callwright_plugins.grid.metrics import check_depths

    corpora: list[tuple[Any, Any]] = []
    seen: dict[str, str] = {}
    for setting in plan.settings:
        try:
            loaded = _load(plan, setting.overrides)
            asked_for = json.dumps(loaded.data, sort_keys=True, default=repr)
            same = seen.setdefault(asked_for, setting.name)
            if same != setting.name:
                raise UsageError(f"the settings {same} and {setting.name} are one and the same; name it once")
            chosen = loaded.recipe.corpus
            corpus = next((made for asked, made in corpora if asked == chosen), None)
            pipeline = build_pipeline(loaded, app.registry, corpus=corpus)
            if corpus is None:
                corpora = [(chosen, pipeline.corpus)]  # the last one: settings differ in little
            create_trainer(loaded, app.registry)
            check_tasks(pipeline)
            check_depths(names, {task.depth for task in pipeline.tasks(pipeline.evaluation)})
        except RecipeError as error:
            message = str(error)
            for override in setting.overrides:
                key, _, value = override.partition("=")
                message = message.replace(f"--set {key}={value}", f"--over {key}={value}")
            raise RecipeError(message) from error


def _load(plan: Plan, overrides: Sequence[str]) -> LoadedRecipe:
    from callwright.recipe_file import load_recipe

    return load_recipe(plan.recipe, (*plan.fixed, *overrides, f"seed={plan.seeds[0]}"))


def _carry_out(
    app: App, plan: Plan, folder: Path, ledger: Ledger, workers: int, names: Sequence[str], agreed: Sequence[str]
) -> None:
    from callwright.recipe_file import override_words
    from callwright.training.run_folder import Run
    from callwright_plugins.grid.children import carry_out
    from callwright_plugins.grid.metrics import read_figures
    from callwright_plugins.grid.output import brief, duration, estimate

    waiting = [run for run in plan.runs if not ledger.finished(run)]
    done = len(plan.runs) - len(waiting)

    def words(run: GridRun) -> list[str]:
        overrides = (*plan.fixed, *run.setting.overrides, f"seed={run.seed}")
        changes = override_words(overrides)
        return [*app.plugin_options(), "run", plan.recipe, *agreed, *changes, "--output", str(folder / run.key)]

    many = {"setting": len(plan.settings), "seed": len(plan.seeds)}
    said = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in many.items())
    with reporter(f"grid {folder}: {said}") as bars:
        bars.start("runs", len(plan.runs), done)

        def heard(ended: Ended) -> None:
            nonlocal done
            ledger.add(ended.to_json())
            if ended.status == 130:
                return
            done += 1
            what = f"failed with status {ended.status}: {ended.said} ({folder / ended.run.key}.log)"
            if ended.status == 0:
                figures = read_figures(Run(folder / ended.run.key))
                what = brief({name: figures.value(name) for name in ("before", "after")})
            left = len(plan.runs) - done
            tail = f"; {estimate(ledger, left, workers).partition(' by ')[0]} left" if left and ledger.seconds() else ""
            took = duration(ended.wall_seconds).removeprefix("about ")
            bars.say(f"{done}/{len(plan.runs)} {ended.run.name}: {what}, {took}{tail}")
            bars.advance()

        try:
            carry_out(waiting, folder, workers, words, heard)
        except KeyboardInterrupt as stop:
            finished = sum(map(ledger.finished, plan.runs))
            go_on = shlex.join(["callwright", *app.argv])
            raise Stopped(
                f"stopped; {finished} of {len(plan.runs)} runs are finished, and nothing is lost; go on with: {go_on}"
            ) from stop
        bars.finish()
