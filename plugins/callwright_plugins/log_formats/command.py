"""``callwright import``: logs of other stacks read, scored, and written as rows to train on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.commands.safe_text import say
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import format_of, outcome_row, row_of, tools_of
from callwright.errors import UsageError
from callwright.walk.reward import Reward
from callwright_plugins.log_formats.training_rows import preference_rows, sft_rows
from callwright_plugins.log_formats.writing_atif import trajectory_of

_SHAPES = ("callwright", "openai", "atif", "rewards", "sft", "preferences")


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path), metavar="LOG")
@click.option(
    "--format", "form", type=ComponentName("log format"), metavar="NAME", help="Default: the one that knows the file."
)
@click.option(
    "--tools",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The tools that were offered (OpenAI's or MCP's list).",
)
@click.option("--reward", type=ComponentName("reward recipe"), metavar="NAME", help="Score each log.")
@click.option(
    "--as", "shape", type=click.Choice(_SHAPES), default="callwright", show_default=True, help="What to write."
)
@click.option(
    "--at-least", type=float, metavar="TOTAL", help="With --as sft: the least reward of a row. Default: the best."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to ('-' is not needed: JSONL)."
)
@click.option("--overwrite", is_flag=True, help="Replace FILE.")
@click.pass_obj
def import_logs(
    app: App,
    source: Path,
    form: str | None,
    tools: Path | None,
    reward: str | None,
    shape: str,
    at_least: float | None,
    output: Path | None,
    overwrite: bool,
) -> None:
    """Read logs of other stacks: OpenAI rows and items, OpenTelemetry, ATIF, LangChain, Langfuse, Inspect, MCP records.

    Without -o a line for each log says how many turns and calls it has, and with --reward what it earns. What a file
    does not say is not guessed: a reward that needs it is masked, with the reason.

    With -o the logs are written: as our own rows, which keep everything, as chat rows (openai), as trajectories
    (atif), as rewards with their evidence, as rows for supervised fine-tuning (the logs that earn enough), or as
    pairs of a better and a worse log of the same query (preferences).
    """
    if shape in ("rewards", "sft", "preferences") and reward is None:
        raise click.UsageError(f"--as {shape} needs --reward")
    if output is not None and output.exists() and not overwrite:
        raise UsageError(f"{output} exists; --overwrite replaces it")
    given = tools_of(tools)
    read = format_of(source, form, app.registry).read(source, given)
    recipe = None if reward is None else app.registry.create("reward recipe", reward)

    def scored() -> Iterator[tuple[Log, Reward | None]]:
        for log in read:
            yield log, None if recipe is None else recipe.score_attempt(log.episode())

    if output is None:
        _list(scored())
        return
    rows = _rows(scored(), shape, at_least)
    count = 0
    with output.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            count += 1
    say(f"{count} rows in {output}")


def _list(logs: Iterable[tuple[Log, Reward | None]]) -> None:
    count = masked = 0
    for log, reward in logs:
        attempt = log.episode()
        told = f"{log.task.id}: {len(attempt.turns)} turns, {len(attempt.whole.calls)} calls"
        if reward is not None:
            masked += reward.total is None
            told += f", {reward.explain()}"
        click.echo(told)
        for finding in log.findings():
            click.echo(f"  {finding}")
        count += 1
    say(f"{count} logs" + (f", {masked} of them masked" if masked else ""))


def _rows(logs: Iterable[tuple[Log, Reward | None]], shape: str, at_least: float | None) -> Iterator[dict[str, Any]]:
    if shape == "sft":
        yield from sft_rows([(log, one) for log, one in logs if one is not None], at_least)
        return
    if shape == "preferences":
        yield from preference_rows([(log, one) for log, one in logs if one is not None])
        return
    for log, reward in logs:
        if shape == "callwright":
            yield row_of(log)
        elif shape == "atif":
            yield trajectory_of(log, reward)
        elif shape == "openai":
            tools = [spec.to_openai() for spec in log.task.tools.values()]
            yield {"id": log.task.id, "messages": [one.to_openai() for one in log.messages], "tools": tools}
        elif reward is not None:
            yield {
                "id": log.task.id,
                "total": reward.total,
                "masked": reward.masked,
                "stage": reward.stage,
                "scores": {name: one.contribution for name, one in reward.scores.items()},
                "why": reward.explain(),
                "findings": list(log.findings()),
                "outcomes": [outcome_row(one.outcome) for one in log.calls],
            }
