"""``callwright import``: logs of other stacks in our own format, as trajectories, as scores, as rows for training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from attrs import define, field
from click.core import ParameterSource

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.jsonl import RowSink
from callwright.commands.options import ComponentName, Finite
from callwright.commands.row_files.logs import LogSource, read_logs
from callwright.commands.row_files.unread_forms import UnreadForms
from callwright.commands.safe_text import say
from callwright.commands.tally import Tally
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.writing import log_line
from callwright.errors import UsageError
from callwright.language.long_numbers import json_text
from callwright.language.native import NATIVE_FORM
from callwright.walk.reward import Reward, RewardRecipe
from callwright_plugins.log_formats import outputs
from callwright_plugins.log_formats.parquet_rows import ParquetSink


@define
class _Seen:
    """What came of the logs so far."""

    forms: UnreadForms
    tally: Tally = field(factory=Tally)
    logs: int = 0
    written: int = 0


@click.command("import")
@click.argument("source", metavar="LOG")
@click.option("--format", "form", default="auto", show_default=True, metavar="NAME", help="The format of LOG.")
@click.option("--tools", metavar="FILE.json", help="The tools that the agents of the log were offered.")
@click.option("--truths", metavar="FILE.jsonl", help='What would have been right: rows {"id", "truth"}.')
@click.option("--format-option", "format_options", metavar="K=V", multiple=True, help="An option of the log's format.")
@click.option("--corpus", type=ComponentName("corpus"), metavar="NAME", help="The corpus whose tasks the logs name.")
@options.data_option
@options.corpus_settings
@click.option("--atif", is_flag=True, help="Write trajectories of ATIF.")
@click.option("--otel", is_flag=True, help="Write rewards as OTLP events on the spans they are about.")
@click.option("--sft", is_flag=True, help="Write rows for supervised training, of rewarded logs.")
@click.option("--pairs", is_flag=True, help="Write preferences between logs of one beginning.")
@click.option("--recipe", "reward", type=ComponentName("reward recipe"), metavar="NAME", help="The reward.")
@options.recipe_settings
@click.option(
    "--ir",
    type=ComponentName("parser"),
    default=NATIVE_FORM,
    show_default=True,
    metavar="NAME",
    help="The form that the reward reads calls in which stand in a text.",
)
@click.option("--at-least", type=Finite(), metavar="X", help="With --sft: only logs with this reward, or more.")
@click.option(
    "--margin", type=Finite(), default=0.0, show_default=True, help="With --pairs: by how much rewards differ."
)
@click.option("-o", "--output", required=True, metavar="OUT.jsonl", help="'-': stdout; also .gz, .zst, .parquet.")
@click.option("--overwrite", is_flag=True, help="Replace OUT.")
@click.pass_obj
def import_(
    app: App,
    source: str,
    form: str,
    tools: str | None,
    truths: str | None,
    format_options: tuple[str, ...],
    corpus: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    atif: bool,
    otel: bool,
    sft: bool,
    pairs: bool,
    reward: str | None,
    recipe_options: tuple[str, ...],
    ir: str,
    at_least: float | None,
    margin: float,
    output: str,
    overwrite: bool,
) -> None:
    """Read what agents of other stacks recorded, and write it as callwright logs.

    LOG is a file of OpenAI rows, OpenTelemetry spans, trajectories, runs of tracers; without --format it is recognised.
    OUT holds all of it, one line a log, and is read by callwright score --format callwright. What LOG does not say is
    not guessed. An OUT whose name ends in .parquet has a column for each key of a row.

    With --sft, --pairs and --otel the logs are scored by --recipe; logs whose reward is masked are left out of rows for
    training, and counted.
    """
    kind = _kind(atif=atif, otel=otel, sft=sft, pairs=pairs)
    options.refuse_inputs(output, source, tools, truths)
    if output != "-" and Path(output).exists() and not overwrite:
        raise UsageError(f"{output} is there already: name another file, or replace it with --overwrite")
    if kind in ("sft", "pairs", "otel") and reward is None:
        raise click.UsageError(f"--{kind} is of scored logs: name the reward with --recipe")
    if kind == "otel" and output.endswith(".parquet"):
        raise click.UsageError("--otel writes one document of OTLP, not rows: name a .json")
    if reward is None and click.get_current_context().get_parameter_source("ir") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--ir is the form that a reward reads calls in: name the reward with --recipe")
    keys = options.corpus_keys(data, corpus_options)
    logs = read_logs(app.registry, LogSource(source, form, tools, truths, format_options, corpus, keys))
    seen = _Seen(UnreadForms(app.registry, ir))
    recipe: RewardRecipe | None = None
    if reward is not None:
        recipe = app.registry.create("reward recipe", reward, **options.key_values(recipe_options, "--recipe-option"))
    with _sink(output, kind) as sink:
        for line in _lines(kind, logs, recipe, seen, at_least, margin):
            sink.write(line)
            seen.written += not otel  # whose one document holds events
    for remark in (*seen.forms.remarks(), *seen.tally.why_masked()):
        say(remark)
    masked = f", {seen.tally.masked:,} of them masked" if recipe is not None else ""
    say(f"{seen.logs:,} logs read{masked}; {seen.written:,} {'events' if otel else 'rows'} written")
    if otel and not seen.written:
        say("warning: no log is of a span, so that the export holds no event: rewards go on the spans of traces")


def _kind(**flags: bool) -> str | None:
    """Which output is asked for; ``None``: logs. Raises ``click.UsageError`` for more than one."""
    asked = [name for name, given in flags.items() if given]
    if len(asked) > 1:
        raise click.UsageError(f"--{' and --'.join(asked)} are different outputs: ask for one of them")
    return asked[0] if asked else None


def _sink(output: str, kind: str | None) -> RowSink | ParquetSink:
    if not output.endswith(".parquet"):
        return RowSink(output)
    return ParquetSink(output, outputs.CONVERSATIONS if kind in ("sft", "pairs") else ())


def _lines(
    kind: str | None,
    logs: Iterator[Log],
    recipe: RewardRecipe | None,
    seen: _Seen,
    at_least: float | None,
    margin: float,
) -> Iterator[str]:
    if recipe is None:
        for log in logs:
            seen.logs += 1
            yield log_line(log).decode("utf-8") if kind is None else _line(outputs.trajectory(log))
        return
    scored = _scored(logs, recipe, seen)
    if kind == "otel":
        export = outputs.evaluations(scored, recipe.name, time.time_ns())
        yield _line(export)
        seen.written = outputs.events_of(export)
    elif kind == "pairs":
        yield from map(_line, outputs.pairs(scored, margin))
    else:
        for log, reward in scored:
            if kind == "sft":
                if reward.total is not None and (at_least is None or reward.total >= at_least):
                    yield _line(outputs.chat(log, reward))
            else:
                yield log_line(log).decode("utf-8") if kind is None else _line(outputs.trajectory(log, reward))


def _scored(logs: Iterator[Log], recipe: RewardRecipe, seen: _Seen) -> Iterator[tuple[Log, Reward]]:
    with recipe:
        for log in logs:
            attempt = log.episode(parser=seen.forms.parser)
            seen.forms.see(attempt)
            reward = recipe.score_attempt(attempt)
            seen.logs += 1
            seen.tally.add(reward)
            yield log, reward


def _line(row: Any) -> str:
    return json_text(row, ensure_ascii=False, allow_nan=False) + "\n"
