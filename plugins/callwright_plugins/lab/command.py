"""``callwright lab``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.bars import reporter
from callwright.commands.options import ComponentName
from callwright.errors import UnknownName, UsageError
from callwright.training.run_folder import write_atomically
from callwright.training.spending import Meter, in_words
from callwright.walk.tasks import Task
from callwright_plugins.lab.fewer_calls import Dropping, Skipping
from callwright_plugins.lab.figures import figures
from callwright_plugins.lab.ledger import kind_of, open_ledger
from callwright_plugins.lab.probes import PROBES, Probe, chosen
from callwright_plugins.lab.probing import Probing, probe_tasks, spread
from callwright_plugins.lab.reading import Source, allow_run, open_source
from callwright_plugins.lab.remarks import remarks
from callwright_plugins.lab.weighting.comparing import compare_schemes
from callwright_plugins.lab.weighting.recording import Recording
from callwright_plugins.lab.weighting.schemes import make_schemes, read_penalties, read_weights

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation

DEFAULT = "tier,toolrl,prove,simple"
#: Work of at least so many pieces has a bar of its own.
_LONG: Final = 2_000


@click.command("lab")
@click.argument("source", metavar="[ROLLOUTS|RUN]", required=False)
@click.option("--recipes", default=DEFAULT, show_default=True, metavar="A,B,…", help="The rewards to compare.")
@click.option(
    "--recipe-option",
    "recipe_options",
    multiple=True,
    metavar="RECIPE.K=V",
    help="An option of one of them (tier-judged.model=…). May be repeated.",
)
@click.option(
    "--corpus",
    type=ComponentName("corpus"),
    metavar="NAME",
    help="The corpus that the rows' tasks are of; without rows, that is probed.",
)
@click.option(
    "--format", "log_format", metavar="NAME", help="ROLLOUTS is a log of other agents, of this format ('auto': any)."
)
@click.option("--split", metavar="NAME", help="Without rows: the split that is probed. Default: all.")
@options.data_option
@options.corpus_settings
@options.ir_option
@options.seed_option
@click.option("--probe-tasks", default=200, show_default=True, metavar="N", help="Tasks that probes are made of.")
@click.option("--probe", "probe_names", multiple=True, metavar="NAME", help="Only this probe. May be repeated.")
@click.option(
    "--weights",
    "weight_specs",
    multiple=True,
    metavar="TERM=W,W,…",
    help="Try these weights of a term of the first recipe. May be repeated.",
)
@click.option("--lambda", "penalties", metavar="L,L,…", help="Try these costs of a mismatch under the first recipe.")
@click.option("-o", "--output", metavar="FILE.html", help="Write the page here. Default for a run: lab.html in it.")
@click.option("--overwrite", is_flag=True, help="Replace a page that -o names. A run's own lab.html always is.")
@click.option("--open/--no-open", "show", default=False, help="Show the page in the browser.")
@options.time_limit_option
@options.isolation_option
@options.yes_option
@options.json_option
@click.pass_obj
def lab(
    app: App,
    source: str | None,
    recipes: str,
    recipe_options: tuple[str, ...],
    corpus: str | None,
    log_format: str | None,
    split: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    seed: int,
    probe_tasks: int,
    probe_names: tuple[str, ...],
    weight_specs: tuple[str, ...],
    penalties: str | None,
    output: str | None,
    overwrite: bool,
    show: bool,
    time_limit: float | None,
    isolation: Isolation | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Compare rewards on the same rollouts.

    ROLLOUTS is a file ('-': stdin; gzip and Zstandard are read) of rows {"id", "task", "completion"}, with "group"
    where a task was sampled more than once in different batches, and "step" and "total_steps" for rewards with a
    schedule; or the folder of a run, whose recipe then says what the corpus and the form are. Attempts at the same task
    (and step) are a group. With --format it is a log of what agents of other stacks did, whose tasks are of --corpus.

    Every attempt is parsed and executed once and scored under every recipe. Then probes are made from the tasks'
    reference programs: programs that are right in another way, or wrong in one known way. A recipe that cannot score
    the corpus is named and left out. With --corpus and no rollouts, its tasks are probed.

    --weights and --lambda show how much the first recipe hangs on its weights and on what a mismatch costs: each value
    alone and, where they are few, all combinations, over the same attempts.
    """
    names = [name.strip() for name in recipes.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--recipes names no recipe")
    options.refuse_inputs(output, source)
    grids, costs = read_weights(weight_specs), read_penalties(penalties)
    if output is not None and not overwrite and _holds_something(Path(output)):
        raise click.UsageError(f"{output} exists: name another -o, or replace it with --overwrite")
    recording = None
    if grids or costs:
        if source is None:
            raise click.UsageError("--weights and --lambda compare rewards over rollouts: give a run or their file")
        recording = Recording(make_schemes(app.registry, names[0], grids, costs))
    if split is not None and source is not None:
        raise click.UsageError("--split is for probing a corpus without rollouts; rows say which tasks they are of")
    keys = options.corpus_keys(data, corpus_options)
    if source is not None and source != "-" and Path(source).is_dir():
        app.recall(source)
    if source is not None:
        allow_run(app.registry, source, yes=yes)
    opened = open_source(app.registry, source, corpus=corpus, options=keys, ir=ir, seed=seed, log_format=log_format)
    opened.under(time_limit, isolation)
    asked = Asked(
        names, probe_tasks, chosen(probe_names), split if source is None else None, _by_recipe(recipe_options, names)
    )
    found, probing = examine(opened, asked, recording, quiet=as_json)
    found["warnings"] = remarks(found, probing)
    page = output or (str(opened.run.path / "lab.html") if opened.run is not None else None)
    if page is not None:
        from callwright_plugins.lab.page import render

        write_atomically(Path(page), render(found))
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        from callwright_plugins.lab.drawing import draw

        draw(found)
        if usage := found.get("usage"):
            click.echo(f"Asked of servers: {in_words(usage)}.")
        click.echo(page if page is not None else "With -o lab.html there is a page with plots.")
    if show and page is not None:
        click.launch(str(Path(page).resolve()))
    if opened.bad:
        click.get_current_context().exit(1)


def _holds_something(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return False


@frozen
class Asked:
    """What to look at: recipes, how many tasks to probe with what, and the split of a corpus without rollouts.

    ``options`` are those of the recipes, by name.
    """

    names: Sequence[str]
    count: int = 200
    probes: Sequence[Probe] = PROBES
    split: str | None = None
    options: Mapping[str, Mapping[str, Any]] = {}


def _by_recipe(pairs: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``["tier-judged.model=m"]`` as ``{"tier-judged": {"model": "m"}}``; a name of a recipe holds no dot."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in options.key_values(pairs, "--recipe-option").items():
        recipe, dot, option = key.partition(".")
        if not dot or not option:
            raise click.UsageError(f"--recipe-option {key}: expected RECIPE.OPTION=VALUE")
        if recipe not in names:
            raise UnknownName("recipe of --recipes", recipe, names)
        found.setdefault(recipe, {})[option] = value
    return found


def examine(
    opened: Source, asked: Asked, recording: Recording | None = None, *, quiet: bool = False
) -> tuple[dict[str, Any], Probing]:
    """Score every row and every probe, and compute the figures.

    Raises :class:`callwright.UsageError` if no recipe can score the corpus, or there is nothing to score.
    """
    ledger = open_ledger(opened.pipeline.registry, asked.names, asked.options)
    skipping, dropping = Skipping(), Dropping(asked.count)
    meter = Meter(*(account.recipe for account in ledger.accounts))
    with ExitStack() as stack, reporter() as bars:
        for account in ledger.accounts:
            stack.enter_context(account.recipe)
        if opened.path:
            for position, (sample, entry) in enumerate(ledger.entering(opened.samples(bars.say))):
                if not ledger.accounts:
                    break
                if entry is not None:
                    skipping.enter(entry)
                    dropping.enter(sample.attempt, entry.rewards)
                    if recording is not None:
                        name = recording.schemes.name
                        if name not in entry.rewards:
                            raise UsageError(f"--weights: {name} cannot score {opened.name}: {ledger.skipped[name]}")
                        kind = kind_of(entry.verdict)
                        recording.enter(sample.attempt, kind, sample.group, sample.row_id, entry.rewards[name])
                if not quiet and (position + 1) % 20_000 == 0:
                    bars.say(f"{position + 1:,} attempts scored")
            known = list(ledger.tasks.values())
        else:
            known = _tasks(opened, asked.split)
        tasks = spread(known, asked.count)
        long = not quiet and len(tasks) * len(asked.probes) >= _LONG
        if long:
            bars.start("tasks probed", len(tasks))
        probing = probe_tasks(opened.pipeline, ledger, tasks, bars.advance if long else _unheard, asked.probes)
        if not ledger.accounts:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in ledger.skipped.items())
            raise UsageError(f"None of these recipes can score {opened.name}. {reasons}")
        if opened.path and not ledger.stages:
            raise UsageError(f"{opened.name} holds no rollout that can be scored")
        if not opened.path and not tasks:
            raise UsageError(f"{opened.name} has no task with a reference program to make probes of")
        found = figures(ledger, probing)
        found["source"] = opened.name + (f", {asked.split}" if asked.split else "")
        found["corpus"] = opened.pipeline.corpus.name
        found["bad"] = opened.bad
        found["skips"] = skipping.figures()
        if usage := meter.take():
            found["usage"] = usage
        found["dropping"] = dropping.figures(opened.pipeline, ledger)
        if recording is not None:
            recording.finish()
            long = not quiet and len(recording.cells) * len(recording.schemes.all) >= 100 * _LONG
            if long:
                bars.start("schemes compared", len(recording.schemes.all))
            found["sensitivity"] = compare_schemes(recording, bars.advance if long else _unheard)
    return found, probing


def _unheard() -> None:
    """Nobody listens."""


def _tasks(opened: Source, split: str | None) -> list[Task]:
    corpus = opened.pipeline.corpus
    if split is not None and split not in corpus.splits:
        raise UnknownName(f"split of {corpus.name}", split, corpus.splits)
    return [task for name in ([split] if split is not None else corpus.splits) for task in corpus[name]]
