"""``callwright score``: a file of completions in, a file of rewards out, in constant memory."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from callwright.cli.score_logs import LogRequest, form_of, score_logs, summary
from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.bars import Bars, bars_for_bytes
from callwright.commands.failures import Stopped
from callwright.commands.jsonl import RowFile, chunks_of, own_stdout
from callwright.commands.options import ComponentName
from callwright.commands.outputs.unfinished import UnfinishedOutput
from callwright.commands.pace import Pace
from callwright.commands.quarantine import STUCK_AFTER, Quarantine, halves
from callwright.commands.row_files.logs import LogSource
from callwright.commands.row_files.remarks import RowRemarks
from callwright.commands.safe_text import say
from callwright.commands.scoring.completion_rows import known_keys
from callwright.commands.scoring.reward_rows import EVIDENCE, EvidenceKept
from callwright.commands.scoring.scorer import (
    Scorer,
    ScoringRequest,
    make_scoring_pipeline,
    merged,
    score_rows,
    score_streaming,
    set_aside,
)
from callwright.commands.tally import Tally
from callwright.machines.chunk_work import FAREWELL, ChunkWork, Salvage
from callwright.machines.executors import make_executor
from callwright.plugins import PluginSource

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation

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
    each, in the same order; a row whose machinery failed has a null total and "masked", and the commonest reasons are
    said on stderr; where that is every row, the exit status is 1. With "truncated": true a row
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
    if output and options.is_same_file(source, output):
        raise click.UsageError(f"IN and OUT are the same file: {output}")
    options.refuse_inputs(output, tools, truths)
    if log_format is not None:
        if workers > 1:
            raise click.UsageError("logs are scored by one worker: leave --workers out, or split the file")
        form = form_of(click.get_current_context(), ir)
        terms = options.reward_keys(recipe_options, truncated, floor)
        logs = LogSource(source, log_format, tools, truths, format_options, corpus, keys)
        asked = LogRequest(logs, form, reward, terms, evidence)
        of_logs = score_logs(app.registry, asked, output, overwrite=overwrite)
        summary(of_logs, output, as_json=as_json, draw=_draw, title=f"{reward} on logs")
        _end(of_logs)
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
    remarks = RowRemarks(known_keys())
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
    _end(tally)


def _end(tally: Tally) -> None:
    """Say why rows are masked. Status 1 where one is bad, and where every one is masked, as of an evaluation."""
    for sentence in tally.why_masked():
        say(sentence)
    if tally.bad or (tally.masked and not tally.counted):
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


def _draw(tally: Tally, title: str) -> None:
    from callwright.commands.terminal import percent, screen, table, text

    console = screen()
    if not tally.counted:  # no table, since no row has a part in it
        console.print(tally.sentence())
        return
    parts = table("component", "mean", "range", "weight", right=(1, 2, 3), title=title)
    for name, part in tally.to_json()["components"].items():
        parts.add_row(text(name), f"{part['mean']:.4f}", f"{part['low']:g}–{part['high']:g}", f"{part['weight']:.4g}")
    console.print(parts)
    stages = table("first point lost at", "rows", "share", right=(1, 2))
    for stage, count in tally.to_json()["stages"].items():
        stages.add_row("nowhere" if stage == "done" else stage, f"{count:,}", percent(count / tally.counted))
    console.print(stages)
    console.print(tally.sentence())
