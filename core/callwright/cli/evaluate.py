"""``callwright evaluate``: accuracy of a sampler, by depth and structure, with intervals."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.cli.benchmarks import package_option, settings_option
from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite, RecipeName, SuiteName
from callwright.commands.safe_text import say

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation

#: Seconds that a batch may take: a model may be slow, and a tool that hangs has limits of its own.
_STUCK_AFTER: Final = 3600.0


@click.command("evaluate")
@click.option(
    "--recipe", type=RecipeName(), metavar="RECIPE", help="A pipeline recipe: its corpus, form and sampler are used."
)
@options.override_options
@click.option("--corpus", type=ComponentName("corpus"), metavar="NAME", help="The corpus, instead of a recipe.")
@click.option(
    "--benchmark",
    type=ComponentName("benchmark"),
    metavar="NAME[:VERSION]",
    help="A benchmark with its official metric, instead of a corpus.",
)
@click.option(
    "--suite",
    type=SuiteName(),
    metavar="NAME|FILE.toml",
    help="The benchmarks of a paper's tables with its settings: tier, toolrl, prove; or a suite of your own.",
)
@options.data_option
@options.corpus_settings
@package_option
@settings_option
@click.option(
    "--ir",
    type=ComponentName("parser"),
    metavar="NAME",
    help="The form of the completions, with --corpus. Default: json.",
)
@click.option(
    "--split",
    metavar="NAME",
    help="Default: the recipe's evaluation split; with --corpus: validation, evaluation, test, or the only one.",
)
@click.option(
    "--sampler",
    type=ComponentName("sampler"),
    metavar="NAME",
    help="What makes the completions. Default: the recipe's sampler.",
)
@click.option("--sampler-option", "sampler_options", multiple=True, metavar="K=V", help="An option of the sampler.")
@click.option(
    "--agent",
    metavar="COMMAND",
    help="An agent of yours does each task; --sampler is the model behind it (its OPENAI_BASE_URL).",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only N tasks, evenly over depths.")
@click.option(
    "--samples", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Attempts at each task."
)
@click.option(
    "--turns", type=click.IntRange(min=1), metavar="N", help="Completions of an episode, with --corpus. Of agents: 64."
)
@click.option("--by", multiple=True, metavar="KEY[,KEY]", help="A further table by these keys. May be repeated.")
@click.option(
    "--reward",
    type=ComponentName("reward recipe"),
    metavar="NAME",
    help="Keep this reward's total, too; own: that of --recipe.",
)
@click.option("--instances", is_flag=True, help="Judge in all worlds of a task, with --corpus.")
@click.option("--temperature", type=Finite(min=0), default=0.0, show_default=True, help="0: greedy.")
@click.option("--shots", type=click.IntRange(min=0), default=0, show_default=True, help="Examples in every prompt.")
@options.seed_option
@options.executor_options
@options.stuck_after_option(_STUCK_AFTER)
@options.time_limit_option
@options.isolation_option
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Tasks of which a sampler in this process makes one batch; with --workers, tasks given to a worker at a time.",
)
@click.option(
    "--max-cost",
    type=Finite(min=0, min_open=True),
    metavar="COST",
    help="Stop before the evaluation costs more, counted with the sampler's prices over all starts with -o.",
)
@click.option(
    "--keep-replies/--no-keep-replies",
    default=True,
    help="With -o, keep each answer of a server as it comes, so that none is paid twice. Default: keep.",
)
@click.option("-o", "--output", metavar="DIR", help="Keep completions and verdicts there, and go on from them.")
@options.yes_option
@options.accept_changes_option
@options.json_option
@click.pass_obj
def evaluate(
    app: App,
    recipe: str | None,
    overrides: tuple[str, ...],
    corpus: str | None,
    benchmark: str | None,
    suite: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    package: str | None,
    given: tuple[str, ...],
    ir: str | None,
    split: str | None,
    sampler: str | None,
    sampler_options: tuple[str, ...],
    agent: str | None,
    limit: int | None,
    samples: int,
    turns: int | None,
    by: tuple[str, ...],
    reward: str | None,
    instances: bool,
    temperature: float,
    shots: int,
    seed: int,
    workers: int,
    executor: str,
    stuck_after: float,
    time_limit: float | None,
    isolation: Isolation | None,
    batch: int,
    max_cost: float | None,
    keep_replies: bool,
    output: str | None,
    yes: bool,
    accept_changes: bool,
    as_json: bool,
) -> None:
    """Measure a sampler: attempts at tasks, one each unless --samples says more, judged by whether the answer is right.

    Accuracies come with 95% intervals. A task whose machinery failed is counted apart. With -o, an evaluation
    that was stopped goes on where it was when the same command is given again, and callwright report makes a page.
    A sampler that asks a server is asked for a task when another one ends, as many at a time as its 'concurrency'.
    With --suite, every benchmark of a paper's tables is measured as the paper did, each in a folder of its own, and the
    tables are printed with the numbers of the paper beside. --data is then the folder of all data.
    With --agent, a command of yours is run for each task, and the sampler is the model that it talks to.
    With --workers, batches are sampled and judged by several processes, threads or Ray actors; the result is the same.
    """
    from callwright.cli.benchmarks import draw_values
    from callwright.cli.evaluation_run import Doing
    from callwright.cli.evaluation_tables import draw_accuracies
    from callwright.cli.evaluation_work import MOST, OWN, EvaluationRequest
    from callwright.cli.suites import (
        SuiteRequest,
        allow_suite,
        draw_tables,
        evaluate_suite,
        given_by_run,
        refuse_what_it_says,
    )
    from callwright.commands.trust import SAMPLED, SCORED, allow
    from callwright.measuring.suites.finding import load_suite
    from callwright.plugins import PluginSource
    from callwright.recipe_file import load_recipe

    chosen, keys = sampler, options.key_values(sampler_options, "--sampler-option")
    if suite is not None:
        refuse_what_it_says(click.get_current_context())
    elif sum(one is not None for one in (recipe, corpus, benchmark)) != 1:
        raise click.UsageError(
            "name one thing to evaluate on: --recipe RECIPE, --corpus NAME, --benchmark NAME or --suite NAME"
        )
    if benchmark is not None and split is not None:
        raise click.UsageError("--split goes with --recipe and --corpus; a benchmark says which tasks are its own")
    if benchmark is None and suite is None and (package or given):
        raise click.UsageError("--package and --benchmark-option go with --benchmark")
    if recipe is not None and (ir or data or corpus_options or instances):
        raise click.UsageError("--ir, --data, --corpus-option, --instances go with --corpus; use --set with a recipe")
    if recipe is not None and turns is not None:
        raise click.UsageError("--turns goes with --corpus; use --set turns.assistant_turns=N with a recipe")
    if recipe is None and overrides:
        raise click.UsageError("--set and --unset go with --recipe")
    if recipe is not None:
        loaded = load_recipe(recipe, overrides)
        parts, stated = (SAMPLED, [f"sampler.{key}" for key in keys]) if chosen is None else (SCORED, [])
        allow(loaded, app.registry, parts, yes=yes, given=stated)
    if recipe is None and reward == OWN:
        raise click.UsageError("--reward own is that of a recipe: give --recipe, or the name of a reward")
    if agent is not None:
        chosen, keys = _behind_an_agent(agent, chosen, keys)
    tables = [tuple(key.strip() for key in keys_of.split(",") if key.strip()) for keys_of in by]
    if not all(tables):
        raise click.UsageError("--by needs the name of a key, such as 'kind' or 'depth,structure'")
    if samples > 1 and temperature == 0:
        say("at temperature 0 a sampler usually writes the same text for every sample; --temperature 1 varies it")
    if max_cost is not None and suite is None:
        keys |= {MOST: max_cost}
    kind = options.executor_name(executor, workers)
    doing = Doing(app, kind, workers, stuck_after, keep_replies, accept_changes, tables)
    asked = EvaluationRequest(
        plugins=app.registry.description() if doing.elsewhere else PluginSource(None),
        recipe=recipe,
        overrides=overrides,
        corpus=corpus,
        benchmark=benchmark,
        options={
            **options.corpus_keys(data, corpus_options),
            **({} if package is None else {"package": package}),
            **options.key_values(given, "--benchmark-option"),
            **({"instances": True} if instances else {}),
        }
        if suite is None
        else {},
        ir=ir or "json",
        split=split,
        sampler=chosen,
        sampler_options=keys,
        limit=limit,
        temperature=temperature,
        shots=shots,
        seed=seed,
        batch=batch,
        time_limit=time_limit,
        isolation=isolation,
        samples=samples,
        turns=turns,
        reward=reward,
        workers=1 if kind == "serial" else workers,
    )
    if suite is not None:
        loaded_suite = load_suite(suite, app.registry)
        allow_suite(loaded_suite, app.registry, yes=yes)
        by_run = given_by_run(loaded_suite, options.key_values(given, "--benchmark-option"))
        wanted = SuiteRequest(loaded_suite, asked, None if data is None else Path(data), by_run, max_cost)
        made = evaluate_suite(wanted, doing, app.registry, output)
        if as_json:
            click.echo(json.dumps(made.to_json(), indent=2))
        else:
            draw_tables(made)
            if output:
                click.echo(str(Path(output) / "tables.html"))
        return
    here = asked.open(app.registry)  # also where the work is done elsewhere: what is wrong is said at once
    result = doing.evaluate(here, output)
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        marked = ", oracle shots" if result.get("shots") == "oracle" else ""
        title = f"{here.sampler_name} on {here.pipeline.corpus.name}, {here.split}{marked}"
        draw_accuracies(result, title, remedy=here.longer_answers())
        if here.benchmark is not None:
            draw_values(result)
        if output and "report" in app.registry.names("command"):
            click.echo(f"report: {shlex.join(['callwright', *app.plugin_options(), 'report', output])}")
    if result["masked"] and not result["n"]:
        say("every task is masked: their machinery failed, and nothing was measured")
        click.get_current_context().exit(1)


#: Options of the sampler ``agent`` itself; all others are those of the model behind it.
_OF_AGENTS: Final = ("concurrency", "time_limit", "environment")


def _behind_an_agent(agent: str, sampler: str | None, keys: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The sampler that runs an agent, with the one that was chosen behind it."""
    if sampler is None:
        raise click.UsageError("--agent needs --sampler, the model that the agent talks to")
    own: dict[str, Any] = {name: keys[name] for name in _OF_AGENTS if name in keys}
    behind = {name: value for name, value in keys.items() if name not in own}
    return "agent", {"command": agent, "engine": sampler, "engine_options": behind, **own}
