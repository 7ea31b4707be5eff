"""``callwright synthesize``: tasks by a recipe, unit by unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.failures import Stopped
from callwright.commands.options import ComponentName, Finite, RecipeName
from callwright.commands.safe_text import say

#: Where tasks go if nothing else is said.
_FOLDER: Final = "synthesized"


@click.command("synthesize")
@click.argument("recipe", type=RecipeName(syntheses=True), metavar="RECIPE")
@options.override_options
@click.option("-o", "--output", metavar="DIR", help=f"The folder. Default: {_FOLDER}/ and the recipe's name.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Units at a time, in place of the recipe's.")
@click.option(
    "--executor",
    type=click.Choice(["serial", "thread", "process", "ray"]),
    help="What workers are, in place of the recipe's.",
)
@options.stuck_after_option(3600.0)
@click.option(
    "--teacher",
    type=ComponentName("teacher"),
    metavar="NAME",
    help="Who has the words, in place of the recipe's: the same plans in other words.",
)
@click.option("--teacher-option", "teacher_options", multiple=True, metavar="K=V", help="An option of that teacher.")
@click.option(
    "--max-cost",
    type=Finite(min=0, min_open=True),
    metavar="COST",
    help="Stop before the teacher costs more, over all starts, by its own prices.",
)
@click.option("--replies", metavar="FILE", help="Where the teacher's replies are kept. Default: in the folder.")
@click.option("--replay", is_flag=True, help="Take all replies from there, and ask nobody.")
@options.yes_option
@options.accept_changes_option
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@click.pass_obj
def synthesize(
    app: App,
    recipe: str,
    overrides: tuple[str, ...],
    output: str | None,
    workers: int | None,
    executor: str | None,
    stuck_after: float,
    teacher: str | None,
    teacher_options: tuple[str, ...],
    max_cost: float | None,
    replies: str | None,
    replay: bool,
    yes: bool,
    accept_changes: bool,
    as_json: bool,
) -> None:
    """Make tasks by RECIPE, a TOML file with a table [synthesis], and write them to a file of tasks.

    A synthesis that was stopped, however, goes on where it was when the same command is given again. Threads,
    processes and Ray actors make the same tasks, byte for byte. Every unit that became no task is in rejected.jsonl
    with the stage that said so and why. What a teacher replied is kept, so that nothing is paid twice.
    """
    from callwright.commands.bars import reporter
    from callwright.commands.trust import allow
    from callwright.errors import DataError, RunError
    from callwright.machines.executors import make_executor
    from callwright.machines.model_server.budget import BudgetSpent
    from callwright.plugins import PluginSource
    from callwright.recipe_file.toml_text import toml_value
    from callwright.training.spending import in_words
    from callwright.training.synthesis.folder import PLAN, REPLIES, Synthesis
    from callwright.training.synthesis.mixture import lines as mixture_lines
    from callwright.training.synthesis.recipe import load_synthesis
    from callwright.training.synthesis.work import SynthesisRequest
    from callwright.training.synthesis.yields import lines

    if teacher is None and teacher_options:
        raise click.UsageError("--teacher-option is for a --teacher")
    if teacher is not None:
        stated = {"name": teacher, **options.key_values(teacher_options, "--teacher-option")}
        overrides = (*overrides, f"synthesis.teacher={toml_value(stated)}")
    loaded = load_synthesis(recipe, overrides)
    table = loaded.table
    if table.teacher is None and (replay or replies or max_cost is not None):
        raise click.UsageError("--replay, --replies and --max-cost are about a teacher, and the recipe names none")
    if Path(recipe).absolute() not in app.typed:
        allow(loaded, app.registry, loaded.parts, yes=yes)
    count = workers or table.workers
    named = executor or table.executor
    if named == "serial" and count > 1:
        if executor == "serial" or workers is None:
            raise click.UsageError(f"{count} workers need an executor that has them: thread, process or ray")
        named = "process"
    kind = named if count > 1 or named == "ray" else "serial"
    folder = Path(output or f"{_FOLDER}/{loaded.recipe.name}")
    kept = None if table.teacher is None else Path(replies) if replies else folder / REPLIES
    if replay and kept is not None and not kept.exists():
        raise DataError(f"there are no replies to take from: {kept} does not exist; name it with --replies")
    request = SynthesisRequest(
        plugins=app.registry.description() if kind in ("process", "ray") else PluginSource(None),
        data=loaded.data,
        replies=kept,
        replay=replay,
        most_cost=max_cost,
    )
    try:
        here = request.open(app.registry, loaded)  # what is wrong is said before a folder is made
        work = Synthesis(
            here=here,
            request=request,
            executor=make_executor(kind, count),
            folder=folder,
            accept_changes=accept_changes,
            stuck_after=stuck_after,
            say=say,
        )
        with reporter() as bars, work.alone():
            found = work.run(bars)
        app.registry.hook.callwright_synthesis_finished(folder=folder)
    except KeyboardInterrupt as stop:
        if not (folder / PLAN).exists():  # a plan is written whole, and units come after it
            raise Stopped(
                "stopped before the plan was made: the same command begins planning anew, with what a cache of the "
                "synthesizer keeps"
            ) from stop
        raise Stopped(f"stopped; nothing in {folder} is lost; the same command goes on") from stop
    except BudgetSpent as spent:
        raise RunError(
            f"stopped before more than {max_cost:g} were spent; nothing in {folder} is lost; the same command with a "
            "higher --max-cost goes on"
        ) from spent
    if as_json:
        click.echo(json.dumps(found, indent=2, sort_keys=True))
        return
    for line in lines(found["yields"]):
        click.echo(line)
    if found["usage"]:
        click.echo(in_words(found["usage"]))
    mixture = found.get("mixture", [])
    for line in mixture_lines(mixture):
        click.echo(line)
    count = sum(part["made"] for part in mixture) if mixture else found["yields"]["kept"]
    fewer = f"; {table.count:,} were asked for" if count < table.count and not mixture else ""
    click.echo(f"{count:,} tasks in {folder / table.file}{fewer}")
