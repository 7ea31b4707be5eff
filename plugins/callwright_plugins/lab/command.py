"""``callwright lab``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.bars import reporter
from callwright.commands.safe_text import say
from callwright.errors import UsageError
from callwright.training.run_folder import write_atomically
from callwright_plugins.lab.figures import TRUTH, figures
from callwright_plugins.lab.ledger import STAGES, Ledger, open_ledger
from callwright_plugins.lab.probing import Probing, probe_tasks, spread
from callwright_plugins.lab.reading import Source, open_source
from callwright_plugins.lab.remarks import remarks

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = "tier,toolrl,prove,simple"


@click.command("lab")
@click.argument("source", metavar="ROLLOUTS|RUN")
@click.option("--recipes", default=DEFAULT, show_default=True, metavar="A,B,…", help="The rewards to compare.")
@click.option("--corpus", metavar="NAME", help="The corpus that the rows' tasks are of.")
@options.data_option
@options.corpus_settings
@options.ir_option
@options.seed_option
@click.option("--probe-tasks", default=200, show_default=True, metavar="N", help="Tasks that probes are made of.")
@click.option("-o", "--output", metavar="FILE.html", help="Write the page here. Default for a run: lab.html in it.")
@click.option("--open/--no-open", "show", default=False, help="Show the page in the browser.")
@options.json_option
@click.pass_obj
def lab(
    app: App,
    source: str,
    recipes: str,
    corpus: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    seed: int,
    probe_tasks: int,
    output: str | None,
    show: bool,
    as_json: bool,
) -> None:
    """Compare rewards on the same rollouts.

    ROLLOUTS is a file ('-': stdin; '.gz' is read too) of rows {"id", "task", "completion"}, with "group" where a task
    was sampled more than once in different batches, and "step" and "total_steps" for rewards with a schedule; or the
    folder of a run, whose recipe then says what the corpus and the form are. Attempts at the same task (and step) are a
    group.

    Every attempt is parsed and executed once and scored under every recipe. Then probes are made from the tasks'
    reference programs: programs that are right in another way, or wrong in one known way. A recipe that cannot score
    the corpus is named and left out.
    """
    names = [name.strip() for name in recipes.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--recipes names no recipe")
    keys = options.corpus_keys(data, corpus_options)
    opened = open_source(app.registry, source, corpus=corpus, options=keys, ir=ir, seed=seed)
    ledger, probing = examine(opened, names, probe_tasks, quiet=as_json)
    found = figures(ledger, probing)
    found["source"] = opened.name
    found["corpus"] = opened.pipeline.corpus.name
    found["bad"] = opened.bad
    found["warnings"] = remarks(found, probing)
    page = output or (str(opened.run.path / "lab.html") if opened.run is not None else None)
    if page is not None:
        from callwright_plugins.lab.page import render

        write_atomically(Path(page), render(found))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _draw(found)
        click.echo(page if page is not None else "With -o lab.html there is a page with plots.")
    if show and page is not None:
        click.launch(str(Path(page).resolve()))
    if opened.bad:
        click.get_current_context().exit(1)


def examine(opened: Source, names: Sequence[str], count: int, *, quiet: bool = False) -> tuple[Ledger, Probing]:
    """Score every row and every probe. Raises :class:`callwright.UsageError` if no recipe can score the corpus."""
    ledger = open_ledger(opened.pipeline.registry, names)
    with reporter() as bars:
        for position, sample in enumerate(opened.samples(bars.say)):
            ledger.enter(sample)
            if not ledger.accounts:
                break
            if not quiet and (position + 1) % 20_000 == 0:
                bars.say(f"{position + 1:,} attempts scored")
        tasks = spread(list(ledger.tasks.values()), count)
        probing = probe_tasks(opened.pipeline, ledger, tasks)
    if not ledger.accounts:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in ledger.skipped.items())
        raise UsageError(f"None of these recipes can score {opened.name}. {reasons}")
    if not ledger.stages:
        raise UsageError(f"{opened.name} holds no rollout that can be scored")
    return ledger, probing


def _draw(found: dict[str, Any]) -> None:
    from callwright.commands.terminal import percent, screen, table, text

    console = screen()
    recipes = found["recipes"]
    for name, reason in found["skipped"].items():
        say(f"{name} is left out: {reason}")
    title = f"{found['attempts']:,} attempts at {found['tasks']:,} tasks of {found['corpus']}"
    main = table(
        "recipe", "range", "mean", "at max", "at min", "spread", "flat groups", right=(1, 2, 3, 4, 5, 6), title=title
    )
    for name, row in recipes.items():
        main.add_row(
            text(name),
            f"{row['low']:.3g} to {row['high']:.3g}",
            f"{row['mean']:.3f}",
            percent(row["at_high"]),
            percent(row["at_low"]),
            "–" if row["groups"]["spread"] is None else f"{row['groups']['spread']:.3f}",
            percent(row["groups"]["without_signal"]),
        )
    console.print(main)
    columns = range(1, len(recipes) + 1)
    probes = table("probe: mean reward", *recipes, right=columns, title=f"Probes of {found['probes']['tasks']} tasks")
    for name, probe in found["probes"]["probes"].items():
        if probe["recipes"]:
            cells = (probe["recipes"].get(recipe) for recipe in recipes)
            probes.add_row(f"{name} ({probe['kind']})", *("–" if c is None else f"{c['mean']:.3f}" for c in cells))
    console.print(probes)
    stages = table("attempts that …: mean reward", "n", *recipes, right=range(1, len(recipes) + 2))
    for stage, count in found["stages"].items():
        cells = (row["stages"].get(stage) for row in recipes.values())
        stages.add_row(STAGES[stage], f"{count:,}", *("–" if cell is None else f"{cell:.3f}" for cell in cells))
    console.print(stages)
    parts = table("component", "mean", "of at most", "of the variance", "at its most", "shut", right=(1, 2, 3, 4, 5))
    for name, row in recipes.items():
        for part, cell in row["components"].items():
            parts.add_row(
                text(f"{name}: {part}"),
                f"{cell['mean']:.3f}",
                f"{cell['high']:.3g}",
                percent(cell["variance_share"]),
                percent(cell["full"]),
                percent(cell["closed"]),
            )
    console.print(parts)
    agreement = table("rank agreement (tau-b)", "", "in groups", "overall", right=(2, 3))
    for pair in found["agreement"]:
        first, second = pair["recipes"]
        inner, outer = ("–" if tau is None else f"{tau:.2f}" for tau in (pair["tau_within"], pair["tau"]))
        agreement.add_row(text(first), text(second if second != TRUTH else "whether the answer is right"), inner, outer)
    console.print(agreement)
    if found["masked"]:
        console.print(f"{found['masked']:,} attempts are masked and left out: their tools or servers failed.")
    for warning in found["warnings"]:
        console.print(text(f"! {warning['text']}", "yellow"))
