"""``callwright score``: a file of completions in, a file of rewards out, in constant memory."""

from __future__ import annotations

import gc
import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import define, field, frozen

from callwright.cli.score_logs import LogRequest, form_of, score_logs, summary
from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.bars import Bars, bars_for_bytes
from callwright.commands.failures import Stopped
from callwright.commands.file_formats import schema_of
from callwright.commands.jsonl import BadRow, RowFile, chunks_of, is_same_file, own_stdout
from callwright.commands.options import ComponentName
from callwright.commands.outputs.provenance import digests_of
from callwright.commands.outputs.unfinished import UnfinishedOutput
from callwright.commands.pace import Pace
from callwright.commands.pipelines import find_task, make_pipeline
from callwright.commands.quarantine import STUCK_AFTER, NumberedRow, Quarantine, halves
from callwright.commands.row_corpus import RowCorpus, make_row_pipeline
from callwright.commands.row_files.episodes import as_masked, episode_of
from callwright.commands.row_files.logs import LogSource
from callwright.commands.row_files.remarks import RowRemarks
from callwright.commands.safe_text import say
from callwright.commands.scored_rows import EVIDENCE, EvidenceKept, RewardWriter
from callwright.commands.tally import Tally
from callwright.errors import DataError, UsageError
from callwright.machines.chunk_work import FAREWELL, ChunkWork, Salvage
from callwright.machines.executors import make_executor
from callwright.machines.redaction import redacted_value
from callwright.plugins import PluginSource
from callwright.training.ledger.ingredients import plugin_digests
from callwright.training.ledger.named_files import file_digests
from callwright.training.spending import Meter
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward
    from callwright.walk.tasks import Task

Part = TypeVar("Part")


@click.command("score")
@click.argument("source", metavar="IN.jsonl")
@click.option(
    "--corpus",
    type=ComponentName("corpus"),
    metavar="NAME",
    help="The corpus that the tasks are of, unless the rows say what is right.",
)
@options.data_option
@options.corpus_settings
@options.ir_option
@options.reward_option
@options.recipe_settings
@options.truncation_options
@click.option(
    "-o", "--output", metavar="OUT.jsonl", help="Write the rewards here ('-': stdout, '.gz', '.zst': compressed)."
)
@options.overwrite_option
@click.option(
    "--evidence",
    type=click.Choice(EVIDENCE),
    default="all",
    show_default=True,
    help="Whose evidence OUT gets: of all terms, of those that lost points themselves, or of none (empty lists).",
)
@options.seed_option
@options.executor_options
@options.log_options
@options.stuck_after_option(STUCK_AFTER)
@options.time_limit_option
@options.isolation_option
@options.json_option
@click.pass_obj
def score(
    app: App,
    source: str,
    corpus: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    reward: str,
    recipe_options: tuple[str, ...],
    truncated: str | None,
    floor: float | None,
    output: str | None,
    overwrite: bool,
    evidence: EvidenceKept,
    seed: int,
    workers: int,
    executor: str,
    log_format: str | None,
    tools: str | None,
    truths: str | None,
    format_options: tuple[str, ...],
    stuck_after: float,
    time_limit: float | None,
    isolation: Isolation | None,
    as_json: bool,
) -> None:
    """Score completions.

    IN.jsonl ('-': stdin; gzip and Zstandard are read, whatever the name) has rows {"id", "task", "completion"}, and for
    rewards with a schedule "step" and "total_steps". OUT.jsonl gets one row {"id", "total", "scores", "stage"} for
    each, in the same order; a row whose machinery failed has a null total and "masked". With "truncated": true a row
    says that a limit of tokens cut its completion off; what that earns is the reward's choice, or --truncated's. A row
    that cannot be scored is reported on stderr with its line and left out; the exit status is then 1. Without -o a
    summary is printed.

    Recipes that compare with a ground truth (toolrl and its variants) need no corpus: without --corpus the rows are
    {"id", "completion", "ground_truth"}.

    With --format IN is a log of what agents of other stacks did: OpenAI rows, OpenTelemetry spans, trajectories, runs
    of tracers. What they called and what it came to is scored as it was; nothing is executed, and a reward that needs
    what the log does not say is masked. --tools are those that were offered, --truths what would have been right; with
    --corpus the logs name their tasks.

    With --workers the rows are scored by several processes, threads or Ray actors; the output is the same. A row that
    kills or hangs its workers is named with its line and set aside in OUT.quarantine.jsonl; the others are scored.

    A command that was stopped or killed goes on with OUT when it is given again, and OUT ends in the same bytes;
    OUT.ledger.json keeps how far it has come. A finished OUT, and one of another command, are only replaced with
    --overwrite.
    """
    keys = options.corpus_keys(data, corpus_options)
    if corpus is None and keys:
        raise click.UsageError("--data and --corpus-option are a corpus' options: name it with --corpus")
    if output and is_same_file(source, output):
        raise click.UsageError(f"IN and OUT are the same file: {output}")
    if log_format is not None:
        if workers > 1:
            raise click.UsageError("logs are scored by one worker: leave --workers out, or split the file")
        form = form_of(click.get_current_context(), ir)
        terms = options.reward_keys(recipe_options, truncated, floor)
        logs = LogSource(source, log_format, tools, truths, format_options, corpus, keys)
        asked = LogRequest(logs, form, reward, terms, evidence)
        of_logs = score_logs(app.registry, asked, output, overwrite=overwrite)
        summary(of_logs, output, as_json=as_json, draw=_draw, title=f"{reward} on logs")
        return
    if tools or truths or format_options:
        raise click.UsageError("--tools, --truths and --format-option are for logs: name their format with --format")
    kind = options.executor_name(executor, workers)
    elsewhere = kind in ("process", "ray")
    described = app.registry.description() if elsewhere else PluginSource(None)
    terms = options.reward_keys(recipe_options, truncated, floor)
    scoring = ScoringRequest(described, corpus, keys, ir, reward, terms, seed, time_limit, isolation, evidence)
    pipeline = make_scoring_pipeline(app.registry, scoring)  # here too: what is wrong with the request is said at once
    opening = scoring.open if elsewhere else partial(Scorer, pipeline, evidence, counts=False)
    farewell = FAREWELL if pipeline.reward.lives else 0.0
    work = ChunkWork(opening, score_rows, Salvage(halves, merged, set_aside), stuck_after, farewell)
    quarantine = Quarantine(output if output and output != "-" else "callwright-score" if source == "-" else source)
    remarks = RowRemarks(_known_keys())
    gc.freeze()  # the corpus is never garbage: full collections need not search it
    with ExitStack() as stack:
        rows = stack.enter_context(RowFile(source))
        about = scoring.about(app.registry)
        out = stack.enter_context(
            UnfinishedOutput(output, rows, about, overwrite=overwrite, beside=quarantine.path, see=remarks.see)
        )
        tally = out.read_state(Tally.from_state)
        bars = bars_for_bytes(rows.size, busy=output == "-")
        complain = say if bars is None else stack.enter_context(bars).say
        if not elsewhere:
            stack.enter_context(pipeline)
        if output != "-":  # whose rows have it for themselves; a summary is nobody else's either
            stack.enter_context(own_stdout())
        workshop = stack.enter_context(make_executor(kind, workers))
        try:
            # Alone, each row is written as it comes; others get enough to be worth sending. Of what may come slowly,
            # as from a pipe, no row is kept waiting for the next ones.
            pace = Pace()
            alone = workers == 1 and not elsewhere
            chunks = out.watched(remarks.seen(chunks_of(rows, 1 if alone else pace)))
            at_hand = alone and (pipeline.reward.waits or rows.size > 0)
            parts = score_streaming(opening(), chunks) if at_hand else workshop.map(work, chunks)
            for found in watched(parts, rows, bars) if not out.finished else ():
                pace.learn(len(found.lines) + len(found.complaints), found.seconds)
                with out.part():
                    for number, row, reason in found.lost:
                        found.complaints.append((number, quarantine.add(number, row, reason)))
                    for number, complaint in found.complaints:
                        complain(f"{rows.name}:{number}: {complaint}")
                    out.write(found.lines)
                    for attempt, rewarded in found.uncounted:
                        tally.add(rewarded)
                        tally.tools.add(attempt)
                    if found.counted is not None:
                        tally.merge(found.counted)
                out.keep(tally.to_state)
            out.finish(tally.to_state)
        except KeyboardInterrupt as stop:
            kept = f"; the rewards of {tally.rows} rows are in {output}" if output and output != "-" else ""
            again = "; the same command goes on" if out.resumable else ""
            raise Stopped(f"stopped after line {rows.number} of {source}{kept}{again}") from stop
    if out.finished:
        say(f"{output} is finished: {tally.rows:,} rows; --overwrite starts anew")
    for remark in remarks.sentences():
        say(remark)
    if not rows.number:
        say(f"warning: {rows.name} is empty")
    elif not tally.rows and not tally.bad:
        say(f"warning: {rows.name} holds no rows, only blank lines")
    if output:
        say(tally.sentence())
    if as_json:
        click.echo(json.dumps(tally.to_json(), indent=2), err=output == "-")
    elif not output:
        _draw(tally, title=f"{reward} on {corpus or 'rows with their ground truth'}")
    if tally.tools.alarm is not None:
        say(f"alarm: {tally.tools.alarm}")
    if tally.bad:
        click.get_current_context().exit(1)


def watched(parts: Iterator[Part], rows: RowFile, bars: Bars | None) -> Iterator[Part]:
    """The same parts, with a bar over the kilobytes of the file that were read."""
    if bars is None:
        yield from parts
        return
    bars.start("scoring, KB", rows.size // 1024)
    done = 0
    for part in parts:
        read = rows.position // 1024
        bars.advance(read - done)
        done = read
        yield part
    bars.advance(rows.position // 1024 - done)
    bars.finish()


@frozen
class ScoringRequest:
    """What a worker must know to score rows."""

    plugins: PluginSource
    corpus: str | None
    options: Mapping[str, Any]
    ir: str
    reward: str
    reward_options: Mapping[str, Any]
    seed: int
    time_limit: float | None = None
    isolation: Isolation | None = None
    evidence: EvidenceKept = "all"

    def about(self, registry: Registry) -> dict[str, Any]:
        """What the rewards hang on besides the rows. Workers do not change them, so they are not among it."""
        return {
            "command": "score",
            "corpus": self.corpus,
            "corpus options": self.options,
            "files of the corpus": digests_of(self.options),
            "form": self.ir,
            "reward": self.reward,
            "reward options": redacted_value(self.reward_options),
            "files of the reward": file_digests(self.reward_options),
            "seed": self.seed,
            "time limit": self.time_limit,
            "isolation": self.isolation or "auto",
            "evidence": self.evidence,
            "plugins": plugin_digests(registry),
        }

    def open(self) -> Scorer:
        """The scorer, in this process."""
        return Scorer(make_scoring_pipeline(self.plugins.load(), self), self.evidence)


def make_scoring_pipeline(registry: Registry, scoring: ScoringRequest) -> Pipeline:
    """The pipeline that the command line describes. Raises :class:`callwright.UsageError` for what does not exist."""
    ir, reward, terms, seed = scoring.ir, scoring.reward, scoring.reward_options, scoring.seed
    if scoring.corpus is None:
        return make_row_pipeline(registry, ir=ir, reward=reward, reward_options=terms, seed=seed)
    return make_pipeline(
        registry,
        scoring.corpus,
        scoring.options,
        ir=ir,
        reward=reward,
        reward_options=terms,
        seed=seed,
        time_limit=scoring.time_limit,
        isolation=scoring.isolation,
    )


class Scorer:
    """A pipeline, with what is remembered from row to row.

    One that does not count leaves that to the command, in the same process: a summary for each row and adding it to
    the whole would take a tenth of the time.
    """

    def __init__(self, pipeline: Pipeline, evidence: EvidenceKept = "all", *, counts: bool = True) -> None:
        self.pipeline = pipeline
        self.writer = RewardWriter(evidence)
        self.counts = counts
        self.meter = Meter(pipeline.reward)
        self.tasks: dict[str, Task | str] = {}

    def taken(self, number: int, row: dict[str, Any] | str, found: Scored) -> tuple[str | int, Attempt] | None:
        """The id and the attempt of a row; ``None`` for a bad one, about which ``found`` has a complaint then."""
        pipeline = self.pipeline
        try:
            if isinstance(row, str):
                raise BadRow(row)
            row_id, task, completion, progress = _read(pipeline, self.tasks, row)
            episode = episode_of(row) if "completions" in row or "turns" in row else None
        except (BadRow, DataError) as bad:
            found.tally.bad += 1
            found.complaints.append((number, str(bad)))
            return None
        if episode is not None:
            return row_id, pipeline.attempt(task, as_masked(row, episode.completions), progress, said=episode.said)
        if row.get("masked") is True:
            (completion,) = as_masked(row, [Completion(completion) if isinstance(completion, str) else completion])
        return row_id, pipeline.attempt(task, completion, progress)

    def keep(self, found: Scored, row_id: str | int, attempt: Attempt, reward: Reward) -> None:
        """Put a reward where it belongs."""
        if self.counts:
            found.tally.add(reward)
            found.tally.tools.add(attempt)
        else:
            found.uncounted.append((attempt, reward))
        found.lines.append(self.writer.line(row_id, reward))

    def spent(self, found: Scored) -> None:
        """Count what the reward has asked of servers since the last rows."""
        if usage := self.meter.take():
            found.tally.spend(usage)


@define
class Scored:
    """What came of some rows: lines of output, what is wrong with the others, and their part of the summary."""

    lines: list[str] = field(factory=list)
    complaints: list[tuple[int, str]] = field(factory=list)
    counted: Tally | None = None
    #: Attempts and rewards that are not in the summary yet.
    uncounted: list[tuple[Attempt, Reward]] = field(factory=list)
    #: Rows that cost several workers, with how these were lost.
    lost: list[tuple[int, dict[str, Any], str]] = field(factory=list)
    #: How long it took, if somebody looked at the clock.
    seconds: float = 0.0

    @property
    def tally(self) -> Tally:
        """The part of the summary, made when something is counted."""
        if self.counted is None:
            self.counted = Tally()
        return self.counted


def merged(parts: Sequence[Scored]) -> Scored:
    """What came of the parts of a chunk, as what came of the chunk."""
    whole = Scored()
    for part in parts:
        whole.lines += part.lines
        whole.complaints += part.complaints
        whole.lost += part.lost
        whole.uncounted += part.uncounted
        whole.seconds += part.seconds
        if part.counted is not None:
            whole.tally.merge(part.counted)
    return whole


def set_aside(rows: Sequence[NumberedRow], reason: str) -> Scored:
    """What comes of a row that costs workers: it is named, and counted among the bad ones."""
    found = Scored(lost=[(number, row, reason) for number, row in rows if not isinstance(row, str)])
    found.tally.bad += len(found.lost)
    return found


def score_rows(scorer: Scorer, rows: Sequence[NumberedRow]) -> Scored:
    """Score rows, each with its line number; a text in place of a row says why there is none."""
    began = time.monotonic()
    if scorer.pipeline.reward.waits:
        found = merged(list(score_streaming(scorer, ([row] for row in rows))))
    else:
        found, ids = Scored(), deque[str | int]()

        def attempts() -> Iterator[Attempt]:
            for number, row in rows:
                taken = scorer.taken(number, row, found)
                if taken is not None:
                    ids.append(taken[0])
                    yield taken[1]

        for attempt, reward in scorer.pipeline.scoring(attempts()):
            scorer.keep(found, ids.popleft(), attempt, reward)
    scorer.spent(found)
    found.seconds = time.monotonic() - began
    return found


def score_streaming(scorer: Scorer, chunks: Iterable[Sequence[NumberedRow]]) -> Iterator[Scored]:
    """Score chunks of one row each, those that wait for something together. What comes of them comes in their order."""
    under_way = deque[tuple[Scored, str | int | None]]()

    def attempts() -> Iterator[Attempt]:
        for ((number, row),) in chunks:
            found = Scored()
            taken = scorer.taken(number, row, found)
            under_way.append((found, None if taken is None else taken[0]))
            if taken is not None:
                yield taken[1]

    for attempt, reward in scorer.pipeline.scoring(attempts()):
        while under_way[0][1] is None:
            yield under_way.popleft()[0]
        found, row_id = under_way.popleft()
        assert row_id is not None
        scorer.keep(found, row_id, attempt, reward)
        scorer.spent(found)
        yield found
    for found, _ in under_way:
        yield found


def _read(
    pipeline: Pipeline, tasks: dict[str, Task | str], row: dict[str, Any]
) -> tuple[str | int, Task, str | Completion, Progress | None]:
    row_id, name, completion = row.get("id"), row.get("task"), row.get("completion")
    if type(row_id) is not str and type(row_id) is not int:
        raise BadRow(_expected(row, "id", "a string or an integer"))
    if type(completion) is not str:
        raise BadRow(_expected(row, "completion", "a string"))
    if "truncated" in row:
        if type(row["truncated"]) is not bool:
            raise BadRow(_expected(row, "truncated", "true or false"))
        completion = Completion(completion, truncated=row["truncated"])
    progress = _progress(row) if "step" in row or "total_steps" in row else None
    if isinstance(pipeline.corpus, RowCorpus):
        try:
            return row_id, pipeline.corpus.row_task(row), completion, progress
        except DataError as error:
            raise BadRow(str(error)) from error
    if type(name) is int:
        name = str(name)
    if type(name) is not str:
        raise BadRow(_expected(row, "task", "the id of a task"))
    task = tasks.get(name)
    if task is None:
        try:
            task = find_task(pipeline, name)
        except UsageError as error:  # remembered, since looking for similar names takes a while
            task = str(error)
        tasks[name] = task
    if isinstance(task, str):
        raise BadRow(task)
    return row_id, task, completion, progress


def _known_keys() -> set[str]:
    """Keys of rows that are read, or that other commands write into rows which may be scored."""
    return {
        "group",
        "completions",
        "said",
        *(key for name in ("score-input", "rollouts", "verdicts") for key in schema_of(name)["properties"]),
    }


def _expected(row: dict[str, Any], key: str, what: str) -> str:
    if key not in row:
        return f"the row has no {key!r}"
    return f"{key!r} is {type(row[key]).__name__}, expected {what}"


def _progress(row: dict[str, Any]) -> Progress:
    step, total = row.get("step"), row.get("total_steps")
    if type(step) is not int or type(total) is not int or step < 0 or total < 1:
        raise BadRow("'step' and 'total_steps' must be integers, step >= 0 and total_steps >= 1")
    return Progress(step, total)


def _draw(tally: Tally, title: str) -> None:
    from callwright.commands.terminal import percent, screen, table, text

    console = screen()
    parts = table("component", "mean", "range", "weight", right=(1, 2, 3), title=title)
    for name, part in tally.to_json()["components"].items():
        parts.add_row(text(name), f"{part['mean']:.4f}", f"{part['low']:g}–{part['high']:g}", f"{part['weight']:.4g}")
    console.print(parts)
    stages = table("first point lost at", "rows", "share", right=(1, 2))
    for stage, count in tally.to_json()["stages"].items():
        stages.add_row("nowhere" if stage == "done" else stage, f"{count:,}", percent(count / tally.counted))
    console.print(stages)
    console.print(tally.sentence())
