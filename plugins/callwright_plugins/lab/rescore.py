"""``callwright rescore``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import define, field, frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.failures import Stopped
from callwright.commands.jsonl import ROWS, BadRow, RowFile, chunks_of
from callwright.commands.outputs.provenance import digests_of
from callwright.commands.outputs.unfinished import SUFFIX, UnfinishedOutput
from callwright.commands.pace import Pace
from callwright.commands.quarantine import STUCK_AFTER, NumberedRow, Quarantine, halves
from callwright.commands.safe_text import say
from callwright.commands.scoring.reward_rows import RewardWriter
from callwright.commands.tally import Tally
from callwright.language.long_numbers import json_value
from callwright.machines.chunk_work import FAREWELL, ChunkWork, Salvage
from callwright.machines.executors import make_executor
from callwright.machines.redaction import redacted_value
from callwright.plugins import PluginSource, Registry
from callwright.training.ledger.ingredients import plugin_digests
from callwright.training.ledger.named_files import file_digests
from callwright.training.run_folder import METRICS, ROLLOUTS
from callwright.training.spending import Meter
from callwright.walk.reward import RewardRecipe
from callwright_plugins.lab.reading import Source, allow_run, open_run
from callwright_plugins.lab.replay import Replay

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation

#: Differences that are said one by one; --json has all of them.
_SHOWN = 5
#: What runs write into their folders.
_OWN = (
    ROLLOUTS,
    METRICS,
    "recipe.toml",
    "manifest.json",
    "state.json",
    "evaluation.json",
    "timings.jsonl",
    "warm_start.jsonl",
)


@click.command("rescore")
@click.argument("run", metavar="RUN")
@options.reward_option
@options.recipe_settings
@options.truncation_options
@click.option(
    "-o", "--output", metavar="OUT.jsonl", help="Write the rewards here ('-': stdout, '.gz', '.zst': compressed)."
)
@options.overwrite_option
@options.executor_options
@options.stuck_after_option(STUCK_AFTER)
@options.yes_option
@options.time_limit_option
@options.isolation_option
@options.json_option
@click.pass_obj
def rescore(
    app: App,
    run: str,
    reward: str,
    recipe_options: tuple[str, ...],
    truncated: str | None,
    floor: float | None,
    output: str | None,
    overwrite: bool,
    workers: int,
    executor: str,
    stuck_after: float,
    yes: bool,
    time_limit: float | None,
    isolation: Isolation | None,
    as_json: bool,
) -> None:
    """Execute a run's rollouts again and score them.

    Every rollout of the run folder RUN is parsed and executed again in a fresh session of its scenario and the run's
    seed, stateful environments included. What the calls came to, the state after each of them, whether the answer is
    right and if not why, and the reward under the run's own recipe (its scores, total and stage; for what was cut off,
    as in that run) are compared with what is recorded; the exit status is 1 if anything differs. Then everything is
    scored with --recipe. OUT.jsonl gets rows as `callwright score` writes them; their id is the line of the rollout.

    A command that was stopped or killed goes on with OUT when it is given again; a finished OUT, and one of another
    command, are only replaced with --overwrite. No file of RUN that the run wrote is ever replaced.
    """
    app.recall(run)
    allow_run(app.registry, run, yes=yes)
    kind = options.executor_name(executor, workers)
    elsewhere = kind in ("process", "ray")
    described = app.registry.description() if elsewhere else PluginSource(None)
    keys = options.reward_keys(recipe_options, truncated, floor)
    replaying = Replaying(described, run, reward, keys, time_limit, isolation)
    here = replaying.open(app.registry)
    source = here.source
    _refuse_files_of(source, output)
    opening = replaying.open if elsewhere else partial(replaying.open, app.registry, here)
    recipes = (here.recipe, source.pipeline.reward)
    farewell = FAREWELL if any(recipe.lives for recipe in recipes) else 0.0
    work = ChunkWork(opening, replay_rows, Salvage(halves, merged, set_aside), stuck_after, farewell)
    quarantine = Quarantine(output if output and output != "-" else source.path)
    with ExitStack() as stack:
        rows = stack.enter_context(RowFile(source.path, json_value))
        about = replaying.about(app.registry, source)
        out = stack.enter_context(UnfinishedOutput(output, rows, about, overwrite=overwrite, beside=quarantine.path))
        summary = out.read_state(Summary.from_state)
        replay, tally = summary.replay, summary.tally
        for recipe in recipes if not elsewhere else ():
            stack.enter_context(recipe)
        workshop = stack.enter_context(make_executor(kind, workers))
        pace = Pace(ROWS if kind == "serial" else 1)  # what waits does so together, chunk by chunk
        try:
            for found in workshop.map(work, out.watched(chunks_of(rows, pace))) if not out.finished else ():
                if kind != "serial":
                    pace.learn(len(found.lines) + len(found.complaints), found.seconds)
                with out.part():
                    for number, row, reason in found.lost:
                        found.complaints.append((number, quarantine.add(number, row, reason)))
                    for number, complaint in found.complaints:
                        say(f"{rows.name}:{number}: {complaint}")
                    replay.merge(found.replay)
                    tally.merge(found.tally)
                    out.write(found.lines)
                out.keep(summary.to_state)
            out.finish(summary.to_state)
        except KeyboardInterrupt as stop:
            kept = f"; the rewards of {tally.rows} rows are in {output}" if output and output != "-" else ""
            again = "; the same command goes on" if out.resumable else ""
            raise Stopped(f"stopped after line {rows.number} of {source.path}{kept}{again}") from stop
    if out.finished:
        say(f"{output} is finished: {tally.rows:,} rows; --overwrite starts anew")
    if not rows.number:
        say(f"warning: {rows.name} is empty")
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
    time_limit: float | None = None
    isolation: Isolation | None = None

    def about(self, registry: Registry, source: Source) -> dict[str, Any]:
        """What the rewards and the comparison hang on besides the rollouts."""
        assert source.run is not None
        files = {name: str(source.run.path / name) for name in ("recipe.toml", "manifest.json")}
        recipe = source.pipeline.source.recipe if source.pipeline.source is not None else None
        options = recipe.corpus.options if recipe is not None else {}
        rewards = {"reward": self.reward_options, "run.reward": recipe.reward.options if recipe is not None else {}}
        return {
            "command": "rescore",
            "files": digests_of({**options, **files}),
            "reward": self.reward,
            "reward options": redacted_value(self.reward_options),
            "files of rewards": file_digests(rewards),
            "time limit": self.time_limit,
            "isolation": self.isolation or "auto",
            "plugins": plugin_digests(registry),
        }

    def open(self, registry: Registry | None = None, made: Opened | None = None) -> Opened:
        """The run and the reward, unless they were ``made``."""
        if made is not None:
            return made
        registry = registry or self.plugins.load()
        recipe = registry.create("reward recipe", self.reward, **self.reward_options)
        source = open_run(registry, self.run)
        source.under(self.time_limit, self.isolation)
        return Opened(source, recipe, Meter(recipe, source.pipeline.reward))


@define
class Summary:
    """What is said at the end, and kept on the way there."""

    replay: Replay
    tally: Tally

    def to_state(self) -> dict[str, Any]:
        """Both as JSON."""
        return {"replay": self.replay.to_json(), "tally": self.tally.to_state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Summary:
        """What :meth:`to_state` kept; nothing yet if it is empty."""
        return cls(Replay.from_state(state.get("replay", {})), Tally.from_state(state.get("tally", {})))


def _refuse_files_of(source: Source, output: str | None) -> None:
    """Raises :class:`click.UsageError` where the output is a file that the run wrote or will write."""
    assert source.run is not None
    if output is None or output == "-":
        return
    target, folder = Path(output), source.run.path
    own = target.name in _OWN and target.parent.resolve() == folder.resolve()
    if target.exists() and not Path(output + SUFFIX).exists():  # under whatever name
        own = own or any(path.is_file() and path.samefile(target) for path in folder.rglob("*"))
    if own:
        raise click.UsageError(f"{output} is the run's own file; choose another name")


@frozen(eq=False)
class Opened:
    """What a worker has."""

    source: Source
    recipe: RewardRecipe
    meter: Meter
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
    #: How long it took.
    seconds: float = 0.0


def merged(parts: Sequence[Replayed]) -> Replayed:
    """What came of the parts of a chunk, as what came of the chunk."""
    whole = Replayed()
    for part in parts:
        whole.replay.merge(part.replay)
        whole.tally.merge(part.tally)
        whole.lines += part.lines
        whole.complaints += part.complaints
        whole.lost += part.lost
        whole.seconds += part.seconds
    return whole


def set_aside(rows: Sequence[NumberedRow], reason: str) -> Replayed:
    """What comes of a row that costs workers: it is named, and counted among the bad ones."""
    found = Replayed(lost=[(number, row, reason) for number, row in rows if not isinstance(row, str)])
    found.tally.bad += len(found.lost)
    return found


def replay_rows(opened: Opened, rows: Sequence[tuple[int, dict[str, Any] | str]]) -> Replayed:
    """Execute rollouts again, compare them with what is recorded, and score them."""
    found, source, began = Replayed(), opened.source, time.monotonic()
    samples = []
    for number, row in rows:
        try:
            if isinstance(row, str):
                raise BadRow(row)
            samples.append(source.sample(row, number))
        except BadRow as bad:
            found.tally.bad += 1
            found.complaints.append((number, str(bad)))
    attempts = [sample.attempt for sample in samples]
    under = opened.recipe.scoring(attempts)
    recorded = source.pipeline.reward.scoring(attempts)
    for sample, scored, own in zip(samples, under, recorded, strict=True):
        found.replay.check(sample.row_id, sample.row, sample.attempt, own)
        found.tally.add(scored)
        found.lines.append(opened.writer.line(sample.row_id, scored))
    found.tally.spend(opened.meter.take())
    found.seconds = time.monotonic() - began
    return found
