"""``callwright rescore``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import click
from attrs import define, field, frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.jsonl import BadRow, RowFile, RowSink, chunks_of, is_same_file
from callwright.commands.quarantine import STUCK_AFTER, NumberedRow, Quarantine, halves
from callwright.commands.safe_text import say
from callwright.commands.scored_rows import RewardWriter
from callwright.commands.tally import Tally
from callwright.machines.chunk_work import ChunkWork, Salvage
from callwright.machines.executors import make_executor
from callwright.plugins import PluginSource, Registry
from callwright.walk.reward import RewardRecipe
from callwright_plugins.lab.reading import Source, open_run
from callwright_plugins.lab.replay import Replay

#: Differences that are said one by one; --json has all of them.
_SHOWN = 5


@click.command("rescore")
@click.argument("run", metavar="RUN")
@options.reward_option
@options.truncation_options
@click.option("-o", "--output", metavar="OUT.jsonl", help="Write the rewards here ('-': stdout, '.gz': compressed).")
@options.executor_options
@options.stuck_after_option(STUCK_AFTER)
@options.json_option
@click.pass_obj
def rescore(
    app: App,
    run: str,
    reward: str,
    truncated: str | None,
    floor: float | None,
    output: str | None,
    workers: int,
    executor: str,
    stuck_after: float,
    as_json: bool,
) -> None:
    """Execute a run's rollouts again and score them.

    Every rollout of the run folder RUN is parsed and executed again in a fresh session of its scenario and the run's
    seed, stateful environments included. What the calls came to, the state after each of them, and the reward under
    the run's own recipe (for what was cut off, as in that run) are compared with what is recorded; the exit status is 1
    if anything differs. Then everything is scored with --recipe. OUT.jsonl gets rows as `callwright score` writes them;
    their id is the line of the rollout.
    """
    app.recall(run)
    kind = options.executor_name(executor, workers)
    elsewhere = kind in ("process", "ray")
    described = app.registry.description() if elsewhere else PluginSource(None)
    replaying = Replaying(described, run, reward, options.truncation_keys(truncated, floor))
    here = replaying.open(app.registry)
    source = here.source
    if output and is_same_file(source.path, output):
        raise click.UsageError(f"{output} is the run's own file of rollouts")
    opening = replaying.open if elsewhere else partial(replaying.open, app.registry, here)
    work = ChunkWork(opening, replay_rows, Salvage(halves, merged, set_aside), time_limit=stuck_after)
    quarantine = Quarantine(output if output and output != "-" else source.path)
    replay, tally = Replay(), Tally()
    with ExitStack() as stack:
        rows = stack.enter_context(RowFile(source.path))
        sink = stack.enter_context(RowSink(output)) if output else None
        workshop = stack.enter_context(make_executor(kind, workers))
        for found in workshop.map(work, chunks_of(rows)):
            for number, row, reason in found.lost:
                found.complaints.append((number, quarantine.add(number, row, reason)))
            for number, complaint in found.complaints:
                say(f"{rows.name}:{number}: {complaint}")
            replay.merge(found.replay)
            tally.merge(found.tally)
            if sink is not None:
                for line in found.lines:
                    sink.write(line)
    if as_json:
        click.echo(json.dumps({"replay": replay.to_json(), "scores": tally.to_json()}, indent=2), err=output == "-")
    else:
        for difference in replay.differences[:_SHOWN]:
            where = f"line {difference['id']}" + ("" if difference["call"] is None else f", call {difference['call']}")
            say(f"{where}: {difference['what']} was {difference['recorded']!r}, is now {difference['now']!r}")
        if len(replay.differences) > _SHOWN:
            say(f"… and {len(replay.differences) - _SHOWN:,} more; --json lists all")
        for sentence in (*replay.sentences(), f"Under {reward}: {tally.sentence()}."):
            click.echo(sentence, err=output == "-")
    if tally.bad or not replay.same:
        click.get_current_context().exit(1)


@frozen
class Replaying:
    """What a worker must know to execute rollouts again."""

    plugins: PluginSource
    run: str
    reward: str
    reward_options: Mapping[str, Any]

    def open(self, registry: Registry | None = None, made: Opened | None = None) -> Opened:
        """The run and the reward, unless they were ``made``."""
        if made is not None:
            return made
        registry = registry or self.plugins.load()
        recipe = registry.create("reward recipe", self.reward, **self.reward_options)
        return Opened(open_run(registry, self.run), recipe)


@frozen(eq=False)
class Opened:
    """What a worker has."""

    source: Source
    recipe: RewardRecipe
    writer: RewardWriter = field(factory=RewardWriter)


@define
class Replayed:
    """What came of some rollouts."""

    replay: Replay = field(factory=Replay)
    tally: Tally = field(factory=Tally)
    lines: list[str] = field(factory=list)
    complaints: list[tuple[int, str]] = field(factory=list)
    #: Rows that cost several workers, with how these were lost.
    lost: list[tuple[int, dict[str, Any], str]] = field(factory=list)


def merged(parts: Sequence[Replayed]) -> Replayed:
    """What came of the parts of a chunk, as what came of the chunk."""
    whole = Replayed()
    for part in parts:
        whole.replay.merge(part.replay)
        whole.tally.merge(part.tally)
        whole.lines += part.lines
        whole.complaints += part.complaints
        whole.lost += part.lost
    return whole


def set_aside(rows: Sequence[NumberedRow], reason: str) -> Replayed:
    """What comes of a row that costs workers: it is named, and counted among the bad ones."""
    found = Replayed(lost=[(number, row, reason) for number, row in rows if not isinstance(row, str)])
    found.tally.bad += len(found.lost)
    return found


def replay_rows(opened: Opened, rows: Sequence[tuple[int, dict[str, Any] | str]]) -> Replayed:
    """Execute rollouts again, compare them with what is recorded, and score them."""
    found, source = Replayed(), opened.source
    for number, row in rows:
        try:
            if isinstance(row, str):
                raise BadRow(row)
            sample = source.sample(row, number)
        except BadRow as bad:
            found.tally.bad += 1
            found.complaints.append((number, str(bad)))
            continue
        scored = opened.recipe.score_attempt(sample.attempt)
        own = source.pipeline.reward.score_attempt(sample.attempt)
        found.replay.check(sample.row_id, sample.row, sample.attempt, own)
        found.tally.add(scored)
        found.lines.append(opened.writer.line(sample.row_id, scored))
    return found
