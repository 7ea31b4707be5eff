"""The folder of ``callwright evaluate -o``: one row a task, in the order of tasks, from which it goes on."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from callwright.cli.evaluation_work import (
    Batch,
    Judged,
    Opened,
    asked_so_far,
    evaluate_batch,
    evaluate_tasks,
    halves_of_batch,
    joined,
    lost_task,
)
from callwright.commands.safe_text import say
from callwright.errors import DataError, FolderTaken, RunError
from callwright.machines.chunk_work import ChunkWork, Salvage
from callwright.measuring.benchmark import about, judged_of
from callwright.measuring.rows import Row, rewards_of, verdict_of, with_groups
from callwright.training.evaluation import Verdict, asked_one_by_one, summarise
from callwright.training.ledger.account import settle
from callwright.training.ledger.ingredients import Ingredients
from callwright.training.ledger.owner import LOCK, owned
from callwright.training.ledger.row_digests import DigestedRows
from callwright.training.ledger.weights import weight_digests
from callwright.training.run_folder import Run, append_jsonl, describe_process, write_atomically
from callwright.training.spending import total_of_rows
from callwright.walk.sampling import KeepsReplies
from callwright.walk.undeclared import ToolCalls

if TYPE_CHECKING:
    from callwright.machines.chunk_work import Executor
    from callwright.training.reporter import Reporter

SETTINGS: Final = "settings.json"
VERDICTS: Final = "verdicts.jsonl"
#: How long each attempt took. A task that was attempted again after a stop stands there again; the last one counts.
SECONDS: Final = "seconds.jsonl"
RESULT: Final = "evaluation.json"
MANIFEST: Final = "manifest.json"
#: What is to be done where the budget is spent.
GO_ON: Final = "the same command with a higher --max-cost goes on"


@define
class Evaluation:
    """One evaluation. With a folder, a row is on the disk as soon as all before it are; a new start goes on there."""

    here: Opened
    executor: Executor
    #: Whether the work is done in other processes, which open for themselves what was asked for.
    elsewhere: bool
    #: Seconds that a batch may take.
    stuck_after: float
    folder: Path | None
    #: The command line, kept for the report.
    command: str
    settings: dict[str, Any]
    accept_changes: bool
    #: The keys of each further table.
    by: Sequence[Sequence[str]] = ()
    #: What a server was asked by this start, in all processes.
    asked: Counter[str] = field(factory=Counter, init=False)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one that writes into the folder, if there is one."""
        if self.folder is None:
            yield
            return
        with owned(self.folder, "evaluation folder") as before:
            if before is not None:
                say(f"taking over from {before}, which is gone")
            yield

    def run(self, reporter: Reporter) -> dict[str, Any]:
        """Evaluate what is left. Batches are those of an uninterrupted run, so the completions are the same, too."""
        calls = ToolCalls()
        verdicts: list[Verdict] = []
        rewards: dict[tuple[str, int], float] = {}
        kept = DigestedRows(self.folder / VERDICTS) if self.folder else None
        rows = self._resume(kept) if kept else []
        usages = [_only_usage(row) for row in rows]
        tasks, samples = self.here.tasks, self.here.asked.samples
        for line, row in enumerate(rows, 1):
            verdicts.append(with_groups(verdict_of(row, line, Path(VERDICTS)), tasks[(line - 1) // samples]))
            calls.add_row(row)
        rewards |= rewards_of(rows)
        judged = list(map(judged_of, rows))
        reporter.start("evaluation", len(tasks) * samples, len(verdicts))
        try:
            if self.folder and len(rows) < len(tasks) * samples:
                self._open_replies(bool(rows))
                self._limit_cost(rows)
            with self.executor as executor:
                for made in self._made(executor, len(verdicts) // samples):
                    if kept:
                        kept.append(made.rows)
                        self._keep_seconds(made)
                    verdicts += made.verdicts
                    self.asked.update(made.asked)
                    rewards |= rewards_of(made.rows)
                    judged += map(judged_of, made.rows)
                    for row in made.rows:
                        calls.add_row(row)
                        usages.append(_only_usage(row))
                    reporter.advance(len(made.rows))
        finally:
            self._close_replies()
        reporter.finish()
        result = self.here.shot_marks() | self.here.context_marks() | summarise(verdicts, self.by, rewards)
        if (benchmark := self.here.benchmark) is not None:
            known = [one for one in judged if one is not None]
            result |= {"benchmark": about(benchmark, known), "values": dict(benchmark.aggregate(known))}
        if calls.undeclared:
            result["undeclared"] = calls.to_json()
        if (usage := total_of_rows(usages)) is not None:
            result["usage"] = usage
        if self.folder:
            write_atomically(self.folder / RESULT, json.dumps(result, indent=2) + "\n")
        return result

    def _keep_seconds(self, made: Judged) -> None:
        """Write down beside the rows how long they took: in them no two evaluations would be the same."""
        assert self.folder is not None
        if len(made.seconds) == len(made.rows):
            pairs = zip(made.rows, made.seconds, strict=True)
            taken = [{"task": row["task"], "sample": row["sample"], "seconds": round(one, 6)} for row, one in pairs]
            append_jsonl(self.folder / SECONDS, taken)

    def _made(self, executor: Executor, done: int) -> Iterator[Judged]:
        here, asked = self.here, self.here.asked
        if executor.name == "serial":  # in this process, which takes what is there
            before = asked_so_far(here.sampler)
            try:
                yield from evaluate_tasks(here, (done, len(here.tasks)))
            finally:
                after = asked_so_far(here.sampler)
                self.asked.update({name: value - before.get(name, 0) for name, value in after.items()})
            return
        salvage = Salvage(halves_of_batch, joined, partial(lost_task, here))
        prepare = asked.open if self.elsewhere else partial(asked.open, here.pipeline.registry, here)
        work: ChunkWork[Opened, Batch, Judged] = ChunkWork(prepare, evaluate_batch, salvage, self.stuck_after)
        batches = [
            (start, min(start + asked.batch, len(here.tasks))) for start in range(done, len(here.tasks), asked.batch)
        ]
        yield from executor.map(work, batches)

    # Replies and what they cost ---------------------------------------------------------------------------------------

    def _open_replies(self, begun: bool) -> None:
        """Look over the file of replies, and say what is to be known of it."""
        replies = self.here.asked.replies
        if replies is None:
            return
        if begun and not replies.path.exists():
            say(f"{replies.path} is not there: answers that have no row yet are asked for again")
        try:
            kept, lost = replies.open()
        except DataError as error:
            aside = replies.begin_anew()
            say(f"{error}. It is {aside.name} now; answers that have no row yet are asked for again")
            return
        if kept:
            say(f"{kept:,} answers are kept in {replies.path.name}, and not asked for again")
        if lost:
            were = "requests were" if lost > 1 else "request was"
            say(f"{lost:,} {were} under way when the last start ended: what was answered of that is not known")
        if self.here.most_cost is not None and (perhaps := replies.perhaps_paid()):
            say(f"requests whose answers were lost may have cost {perhaps:g}: that counts against --max-cost")

    def _close_replies(self) -> None:
        replies = self.here.asked.replies
        if replies is not None:
            replies.close()
            if replies.damage:
                say(f"answers were no longer kept: {replies.damage}")

    def _limit_cost(self, rows: list[Row]) -> None:
        """Of the most that the evaluation may cost, leave what earlier starts did not spend."""
        most = self.here.most_cost
        if most is None:
            return
        paid = self.paid(rows)
        if paid >= most:
            raise RunError(f"{paid:g} were spent on {self.folder}, at most, and it may cost {most:g}; {GO_ON}")
        if paid:
            say(f"{paid:g} of {most:g} were spent before, at most")
            self.here = self.here.at_most(most - paid)

    def paid(self, rows: list[Row]) -> float:
        """What was paid at most: rows say it, kept answers whose rows are not there yet, and requests of which nothing
        is known count for the most that they may have cost.
        """
        costs = [(total_of_rows(rows) or {}).get("cost", 0.0)]
        replies, sampler = self.here.asked.replies, self.here.sampler
        if replies is not None and isinstance(sampler, KeepsReplies):
            done = {row["task"] for row in rows}
            costs += (
                sampler.paid_for(answer) for asker, answer in replies.askers() if asker.rpartition("\n")[0] not in done
            )
            costs.append(replies.perhaps_paid())
        return math.fsum(costs)

    def _resume(self, kept: DigestedRows) -> list[Row]:
        """The rows of an earlier start, of whole batches where a sampler is asked for batches.

        Raises :class:`FolderTaken` if it was another evaluation.
        """
        assert self.folder is not None
        here, run = self.here, Run(self.folder)
        stated = json.dumps(self.settings, indent=2, sort_keys=True) + "\n"
        before = run.read_json(SETTINGS)
        if before is None:
            if any(not path.name.startswith(LOCK) for path in self.folder.iterdir()):
                raise FolderTaken(f"{self.folder} is not empty and holds no evaluation; choose another folder (-o)")
            write_atomically(self.folder / SETTINGS, stated)
        elif before != json.loads(stated):
            differing = sorted(key for key in {*before, *self.settings} if before.get(key) != self.settings.get(key))
            raise FolderTaken(
                f"{self.folder} holds an evaluation with other settings ({', '.join(differing)}); choose another (-o)"
            )
        begun = before is not None and (self.folder / VERDICTS).exists()
        weights = weight_digests(self.folder, tuple(here.sampler_options.values()))
        named = {"sampler": here.sampler_options}
        made_of = Ingredients.of(here.pipeline, {here.split: here.tasks}, weights=weights, options=named)
        settle(self.folder, made_of, begun=begun, accept=self.accept_changes, say=say)
        if not (self.folder / MANIFEST).exists():  # a start may have been killed before it was written
            about = describe_process(
                here.pipeline.registry, command=self.command, seed=here.asked.seed, tasks=len(here.tasks)
            )
            write_atomically(self.folder / MANIFEST, json.dumps(about, indent=2, sort_keys=True) + "\n")
        samples = here.asked.samples
        batch = (1 if asked_one_by_one(here.sampler) else here.asked.batch) * samples
        kept.resume(
            lambda count: count if count == len(here.tasks) * samples else count - count % batch,
            accept=self.accept_changes,
            say=say,
        )
        rows = run.rows(VERDICTS)
        for line, row in enumerate(rows, 1):
            verdict_of(row, line, run.path / VERDICTS)
        planned = [(task.id, sample) for task in here.tasks for sample in range(samples)]
        if [(row["task"], row.get("sample", 0)) for row in rows] != planned[: len(rows)]:
            raise RunError(f"{self.folder / VERDICTS} holds other tasks than the split; choose another folder (-o)")
        if rows:
            what = "tasks" if samples == 1 else "attempts"
            say(f"going on after {len(rows)} of {len(planned)} {what} in {self.folder}")
        return rows


def _only_usage(row: Row) -> Row:
    """What is added up of a row; the rest is on the disk."""
    return {"usage": row["usage"]} if "usage" in row else {}
