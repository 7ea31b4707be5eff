"""Kill commands at random moments, fill their disk, start them twice, let tools and workers die: what is lost?

    python benchmarks/chaos.py [--kills 100] [--minutes 25] [--seed 0] [--only score] [--output runs/chaos]

``run``, ``evaluate``, ``synthesize``, ``score`` and ``rescore`` are killed with KILL, TERM, HUP and INT, half of the
time the process alone and half of it with its group, as a terminal does; the first with the trainer ``local``, without
and with a critic, and with ``sft``, the others in one process, in processes and as Ray actors (where Ray is installed);
``score`` also where every hundredth row calls a tool that forks, dies or hangs. Then the same command is given again,
and what it leaves is compared with what a command left that nobody touched. With every tenth kill (and for each command
once) goes a full disk, two owners in one folder and a worker killed; and every tool of chaos_world.py is called once by
each executor, those that a process can bear (``BORNE``) with ``--isolation none``, too. All of it comes in a drawn
order, so that with ``--minutes`` a share of each kind is tried; the table says how many of how many were. Counted are

- rows lost, and rows twice: against the untouched output, as multisets;
- orphans: processes of the command that live on after it;
- wrong statuses: anything but what the command line's table of statuses promises, a traceback, a signal without a word
  of what is kept, a second owner who is let in;
- other bytes: files that differ after the same command was given again, or that after a signal or on a full disk
  hold anything but the first whole lines.

The table is Markdown. What failed is listed below it, its folder is kept. Exit status 1 if any count is not 0.
A disk is full on a small tmpfs, and where mounting is not allowed at a limit of file size.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import chaos_world
from chaos_commands import (
    GRACE,
    SCORED_ROWS,
    SIGNALS,
    SPREAD,
    SYNTHESIS,
    SYNTHESIS_RECIPE,
    Process,
    Workload,
    workloads,
)

# Judging --------------------------------------------------------------------------------------------------------------


@dataclass
class Findings:
    """One line of the table."""

    trials: int = 0
    lost: int = 0
    twice: int = 0
    orphans: int = 0
    statuses: int = 0
    bytes: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.twice or self.orphans or self.statuses or self.bytes)

    def add(self, other: Findings) -> None:
        for name in ("trials", "lost", "twice", "orphans", "statuses", "bytes", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.notes += other.notes

    def wait_for(self, process: Process, grace: float) -> None:
        """Count the processes that live on after a command, and say what they are."""
        self.orphans += process.orphans(grace)
        self.notes += [f"an orphan: {words}" for words in process.left]

    def wrong(self, why: str) -> None:
        self.statuses += 1
        self.notes.append(why)

    def compare(self, out: Path, whole: Path, files: Sequence[str]) -> None:
        """What a finished command left, with what it would have left."""
        for name in files:
            expected, found = (whole / name).read_bytes(), read(out / name)
            if name.endswith(".jsonl"):
                right, here = Counter(expected.splitlines()), Counter(found.splitlines())
                self.lost += (lost := (right - here).total())
                self.twice += (twice := sum(count for row, count in (here - right).items() if row in right))
                if lost or twice:
                    self.notes.append(f"{name}: {lost} rows lost, {twice} twice")
            if expected != found:
                self.bytes += 1
                self.notes.append(f"{name}: other bytes")

    def beginning(self, out: Path, whole: Path, files: Sequence[str], torn: bool) -> None:
        """What a stopped command left: the first lines, the last one ``torn`` at most where nobody could help it."""
        for name in files:
            if name.endswith(".jsonl") and (found := read(out / name)):
                found = found[: found.rfind(b"\n") + 1] if torn else found
                if not (whole / name).read_bytes().startswith(found) or (found and found[-1:] != b"\n"):
                    self.bytes += 1
                    self.notes.append(f"{name}: not the first whole lines of the untouched file when it was stopped")


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def size(folder: Path, files: Sequence[str]) -> int:
    return sum(len(read(folder / name)) for name in files)


# Trials ---------------------------------------------------------------------------------------------------------------


@dataclass
class Chaos:
    """What every trial needs."""

    output: Path
    rng: random.Random
    patience: float
    #: Seconds that the untouched command took.
    took: dict[str, float] = field(default_factory=dict)
    number: int = 0

    def whole(self, work: Workload) -> Path:
        """The folder of the command that nobody touched. All executors must leave the same, which is judged here."""
        return self.output / "whole" / work.like

    def untouched(self, work: Workload) -> Findings:
        """Run the command alone: the measure of all others."""
        folder = self.output / "whole" / f"{work.name}-{work.executor}"
        folder.mkdir(parents=True)
        began = time.monotonic()
        process = Process(work.words(folder), self.output / "whole" / f"{folder.name}.log")
        status = process.finish(self.patience)
        self.took[work.title] = time.monotonic() - began
        if status:
            raise SystemExit(f"the untouched command ended with status {status}; see {process.log}")
        if not self.whole(work).exists():
            self.whole(work).symlink_to(folder.name)
        found = Findings(trials=1)
        found.wait_for(process, GRACE.get(work.executor, 5.0))
        found.compare(folder, self.whole(work), work.files)
        return found

    def fresh(self, kind: str, work: Workload) -> Path:
        self.number += 1
        folder = self.output / f"{self.number:03d}-{kind}-{work.name}-{work.executor}"
        (folder / "out").mkdir(parents=True)
        return folder

    def again(self, work: Workload, out: Path, log: Path, found: Findings) -> None:
        """Give the same command again, and compare what it leaves."""
        finished = all(read(out / name) == read(self.whole(work) / name) for name in work.files)
        process = Process(work.words(out), log)
        status = process.finish(self.patience)
        # A finished output may be refused: nothing is left to do, and nothing is written over.
        if status is None or (status and not (finished and status in (1, 2))) or "Traceback" in process.said:
            found.wrong(f"the same command again ended with {status}: {last(process.said)}")
        found.wait_for(process, GRACE.get(work.executor, 5.0))
        found.compare(out, self.whole(work), work.files)

    def kill(self, work: Workload, number: signal.Signals) -> Findings:
        """A signal at a random moment, then the same command again."""
        late = 1.0
        for _ in range(12):
            folder, group = self.fresh(f"{number.name.lower()}", work), self.rng.random() < 0.5
            out, found = folder / "out", Findings(trials=1)
            process = Process(work.words(out), folder / "log")
            if self.rng.random() < 0.5:  # anywhere, the start too; or when so much is written, and a little later
                moment = self.rng.uniform(0.05, late * self.took[work.title])
                working = process.watch(lambda: False, moment)
            else:
                share = self.rng.uniform(0, late) * size(self.whole(work), work.files)
                process.watch(lambda share=share, out=out: size(out, work.files) > share)
                working = process.watch(lambda: False, self.rng.uniform(0, 0.2))
            if working:
                break
            process.orphans(1.0)
            shutil.rmtree(folder)
            late *= 0.7
        else:  # none of the planned kills, which the table says
            print(f"{work.title} was always done before it was killed", flush=True)
            return Findings(trials=0)
        begun = any(read(out / name) for name in work.files)
        (os.killpg if group else os.kill)(process.popen.pid, number)
        status = process.finish(self.patience)
        ended = all(read(out / name) == read(self.whole(work) / name) for name in work.files)
        if status != 128 + number and not (status == 0 and number != signal.SIGKILL):
            found.wrong(f"{number.name} ended it with {status}: {last(process.said)}")
        elif begun and not ended and status and number != signal.SIGKILL and "\nstopped" not in f"\n{process.said}":
            found.wrong(f"{number.name}: no word about what is kept: {last(process.said)}")
        elif begun and "Traceback" in process.said:
            found.wrong(f"{number.name}: a traceback")
        found.wait_for(process, GRACE.get(work.executor, 5.0))
        found.beginning(out, self.whole(work), work.files, torn=number == signal.SIGKILL)
        self.again(work, out, folder / "log", found)
        return self.done(folder, found)

    def full_disk(self, work: Workload) -> Findings:
        """No room at a random moment, then the same command again with room."""
        folder, found = self.fresh("full", work), Findings(trials=1)
        out, share = folder / "out", self.rng.uniform(0.1, 0.9)
        whole = self.whole(work)
        mounted = os.geteuid() == 0 and shutil.which("mount") is not None
        if mounted:
            everything = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
            room = f"size={max(8, int(share * everything) // 1024)}k"
            mounted = not subprocess.run(
                ["mount", "-t", "tmpfs", "-o", room, "chaos", str(out)], capture_output=True
            ).returncode
        most = None if mounted else int(share * max(path.stat().st_size for path in whole.rglob("*") if path.is_file()))
        try:
            process = Process(work.words(out), folder / "log", most)
            status = process.finish(self.patience)
            if status != 1 or "Traceback" in process.said:
                found.wrong(f"a full disk ended it with {status}: {last(process.said)}")
            found.wait_for(process, GRACE.get(work.executor, 5.0))
            found.beginning(out, whole, work.files, torn=False)
            if mounted:
                subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
            self.again(work, out, folder / "log", found)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", str(out)], check=True)
        return self.done(folder, found)

    def two_owners(self, work: Workload) -> Findings:
        """The same command twice at once. The second is refused in words; the first does not notice."""
        folder, found = self.fresh("two", work), Findings(trials=1)
        out = folder / "out"
        first = Process(work.words(out), folder / "log")
        first.watch(lambda: False, self.rng.uniform(0.3, 0.6) * self.took[work.title])
        second = Process(work.words(out), folder / "second.log")
        refused = second.finish(self.patience)
        overlapped = first.popen.poll() is None
        status = first.finish(self.patience)
        if status:
            found.wrong(f"the first of two owners ended with {status}: {last(first.said)}")
        if refused == 0 and not overlapped:  # it found what the first had finished; the bytes below tell whether it did
            found.notes.append("the first owner was done before the second asked for the folder")
        elif refused not in (1, 2) or "Traceback" in second.said:
            found.wrong(f"the second of two owners ended with {refused}: {last(second.said)}")
        elif not overlapped:
            found.notes.append("the first owner was done before the second was answered")
        for process in (first, second):
            found.wait_for(process, GRACE.get(work.executor, 5.0))
        found.compare(out, self.whole(work), work.files)
        return self.done(folder, found)

    def lost_worker(self, work: Workload) -> Findings:
        """A process or an actor dies at work. Nobody is to notice."""
        folder, found = self.fresh("worker", work), Findings(trials=1)
        out = folder / "out"
        process = Process(work.words(out), folder / "log")
        process.watch(lambda: bool(process.workers()), self.patience)
        process.watch(lambda: False, self.rng.uniform(0, 0.2) * self.took[work.title])
        if workers := process.workers():
            os.kill(self.rng.choice(workers), signal.SIGKILL)
        else:
            found.notes.append("there was no worker to kill")
        if status := process.finish(self.patience):
            found.wrong(f"a dead worker ended it with {status}: {last(process.said)}")
        found.wait_for(process, GRACE.get(work.executor, 5.0))
        found.compare(out, self.whole(work), work.files)
        return self.done(folder, found)

    def done(self, folder: Path, found: Findings) -> Findings:
        """Put a clean trial away; keep another one, and say where."""
        if found.clean:
            shutil.rmtree(folder)
        else:
            found.notes = [f"{folder.name}: {note}" for note in found.notes or ["orphans"]]
        return found


def last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "(nothing said)"


def mischief(chaos: Chaos, tool: str, executor: str, isolation: str = "auto") -> Findings:
    """Rows of sums, and one in their middle that calls ``tool``: what becomes of the others, how the command ends."""
    chaos.number += 1
    folder, found = chaos.output / f"{chaos.number:03d}-tool-{tool}-{executor}-{isolation}", Findings(trials=1)
    folder.mkdir(parents=True)
    tasks = chaos_world.Corpus()["train"]
    rows = [{"id": task.id, "task": task.id, "completion": written(task)} for task in tasks]
    bad = {"id": "bad", "task": tasks[0].id, "completion": chaos_world.mischievous(tool)}
    middle = len(rows) // 2
    lines = {"good": rows, "bad": [*rows[:middle], bad, *rows[middle:]]}
    many = [] if executor == "serial" else ["--workers", "2", "--executor", executor, "--stuck-after", "20"]
    many += ["--isolation", isolation]
    for name, chosen in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chosen), encoding="utf-8")
    outputs = {}
    for name, extra in (("good", []), ("bad", many)):
        words = ["-p", "chaos_world", "score", str(folder / f"{name}.jsonl"), "--corpus", "chaos-v1"]
        process = Process([*words, "-o", str(folder / f"{name}-rewards.jsonl"), *extra], folder / f"{name}.log")
        status = process.finish(chaos.patience)
        if (
            status is None
            or status > (name == "bad")
            or "Traceback" in process.said
            or (isolation == "auto" and b"shouted" in read(process.results))
        ):
            ended = "had to be killed" if status is None else f"ended with {status}"
            found.wrong(f"score of {name} rows {ended}: {last(process.said)}")
        found.wait_for(process, GRACE.get(executor, 5.0))
        outputs[name] = read(folder / f"{name}-rewards.jsonl").splitlines()
    mine = [line for line in outputs["bad"] if b'"bad"' in line]
    others = Counter(line for line in outputs["bad"] if b'"bad"' not in line)
    found.lost = (Counter(outputs["good"]) - others).total()
    found.twice = (others - Counter(outputs["good"])).total() + max(0, len(mine) - 1)
    if found.lost or found.twice:
        found.notes.append(f"{found.lost} rows of sums lost, {found.twice} twice or different")
    return chaos.done(folder, found)


def written(task: object) -> str:
    """The reference program of a task, as a completion."""
    import callwright as cw

    return cw.parser("json").render(task.program)  # type: ignore[attr-defined]


def timed(found: Findings, began: float) -> Findings:
    found.seconds = time.monotonic() - began
    return found


# The table ------------------------------------------------------------------------------------------------------------


Trial = Callable[[], Findings]


def trials(chaos: Chaos, works: list[Workload], given: argparse.Namespace) -> list[tuple[str, Trial]]:
    """Every trial in a drawn order, with the line of the table that it belongs to."""
    made: list[tuple[str, Trial]] = []
    deck = [work for work in works for _ in range(work.share)]
    chaos.rng.shuffle(deck)
    for kill in range(given.kills if "kill" in given.kinds else 0):
        work, number = deck[kill % len(deck)], SIGNALS[(kill + kill // len(deck)) % len(SIGNALS)]
        made.append((f"{work.title}: killed", partial(chaos.kill, work, number)))
    alone = [work for work in works if work.executor not in SPREAD]
    spread = [work for work in works if work.executor in SPREAD]
    several: list[tuple[str, list[Workload], Callable[[Workload], Findings]]] = [
        ("disk", alone, chaos.full_disk),
        ("owners", alone, chaos.two_owners),
        ("workers", spread, chaos.lost_worker),
    ]
    words = {"disk": "full disk", "owners": "two owners", "workers": "a worker killed"}
    for kind, among, trial in several:
        for index in range(max(len(among), given.kills // 10) if kind in given.kinds and among else 0):
            work = among[index % len(among)]
            made.append((f"{work.title}: {words[kind]}", partial(trial, work)))
    executors = dict.fromkeys(work.executor for work in works if work.like == "score")
    for executor in executors if "tools" in given.kinds else ():
        for tool in chaos_world.MISCHIEF:
            if not given.tool or tool in given.tool:
                made.append((f"score, {executor}: a bad tool", partial(mischief, chaos, tool, executor)))
                if executor == "serial" and tool in chaos_world.BORNE:
                    borne = partial(mischief, chaos, tool, executor, "none")
                    made.append(("score, serial, in its own process: a bad tool", borne))
    chaos.rng.shuffle(made)
    return made


HEAD = (
    "| what | trials | rows lost | rows twice | orphans | wrong statuses | other bytes | s |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


def line(title: str, found: Findings, planned: int) -> str:
    trials = str(found.trials) if found.trials == planned else f"{found.trials} of {planned}"
    counts = (trials, found.lost, found.twice, found.orphans, found.statuses, found.bytes)
    return f"| {title} | {' | '.join(map(str, counts))} | {found.seconds:.0f} |"


def prepare(base: Path, *, rows_too: bool) -> None:
    """The recipe of the synthesis; the run whose rollouts are scored again, and the rows that are scored."""
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    (base / SYNTHESIS).write_text(SYNTHESIS_RECIPE, encoding="utf-8")
    if not rows_too:
        return
    made = {work.title: work for work in workloads(base)}
    for title, folder in (("run, grpo", base / "run"), ("evaluate, serial", base / "evaluation")):
        process = Process(made[title].words(folder), base / "log")
        if process.finish(3600):
            raise SystemExit(f"what the trials start from could not be made; see {process.log}")
    rows = [json.loads(row) for row in (base / "evaluation" / "verdicts.jsonl").read_bytes().splitlines()]
    sums, bad = chaos_world.Corpus()["train"] * 30, ("fork", "die", "hang")
    with (base / "mischief.jsonl").open("w", encoding="utf-8") as file:
        for index, task in enumerate(sums):
            met = bad[index // 100 % len(bad)] if index % 100 == 50 else ""
            chosen = {
                "id": index,
                "task": task.id,
                "completion": chaos_world.mischievous(met) if met else written(task),
            }
            file.write(json.dumps(chosen) + "\n")
    with (base / "rows.jsonl").open("w", encoding="utf-8") as file:
        for index in range(SCORED_ROWS):
            row = rows[index % len(rows)]
            chosen = {"id": f"{row['id']}/{index}", "task": row["id"], "completion": row["completion"]}
            file.write(json.dumps(chosen) + "\n")


#: Words of --only that say where a command does its work.
SPREAD_WORDS = {"serial", "process", "ray"}
KINDS = ("kill", "disk", "owners", "workers", "tools")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, help="after which nothing new is tried")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="commands or executors, repeatable")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of trials")
    parser.add_argument("--tool", action="append", default=[], choices=chaos_world.MISCHIEF, help="only these tools")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds after which a command hangs")
    parser.add_argument("--output", type=Path, default=Path("runs/chaos"))
    given = parser.parse_args()
    output = given.output.resolve()
    if output.exists() and any(output.iterdir()) and not (output / "base" / SYNTHESIS).exists():
        parser.error(f"{output} holds something else")
    shutil.rmtree(output, ignore_errors=True)
    prepare(output / "base", rows_too={*given.only} - SPREAD_WORDS != {"synthesize"})
    chaos = Chaos(output, random.Random(given.seed), given.patience)
    words = set(given.only)
    works = [
        work
        for work in workloads(output / "base")
        if not words
        or (
            (words & {work.name} or not words & {"run", "evaluate", "synthesize", "score", "rescore"})
            and (words & {work.executor} or not words & {*SPREAD_WORDS, "grpo", "ppo", "sft"})
        )
    ]
    if not works:
        parser.error(f"--only {' '.join(given.only)} leaves nothing")
    end = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    rows: dict[str, Findings] = {}
    for work in works:
        began = time.monotonic()
        rows[f"{work.title}: untouched"] = timed(chaos.untouched(work), began)
    planned = Counter(rows.keys())
    for title, trial in trials(chaos, works, given):
        planned[title] += 1
        if (began := time.monotonic()) > end:
            continue
        found = timed(trial(), began)
        print(f"{title}: {'clean' if found.clean else '; '.join(found.notes)}", file=sys.stderr, flush=True)
        rows.setdefault(title, Findings()).add(found)
    total = Findings()
    print(HEAD)
    for title in sorted(planned):
        found = rows.get(title, Findings())
        print(line(title, found, planned[title]))
        total.add(found)
    print(line("**all**", total, planned.total()))
    for note in total.notes:
        print(f"- {note}")
    return 0 if total.clean else 1


if __name__ == "__main__":
    sys.exit(main())
