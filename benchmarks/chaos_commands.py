"""The commands that chaos.py kills, and the processes that belong to one."""

from __future__ import annotations

import importlib.util
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
CORPUS = "toolworld-mini-v1"
SCORED_ROWS = 6000
#: A run of seconds: every kind of row, checkpoints between, and enough rollouts for rescore.
RUN = """
trainer.steps=6 trainer.prompts=4 trainer.group=8 trainer.max_new_tokens=32 trainer.evaluate_every=0
trainer.checkpoint_every=2 trainer.rollouts_per_step=32 trainer.warm_start.steps=24 trainer.warm_start.batch=8
trainer.warm_start.count=100 trainer.evaluation_tasks=6
""".split()
CRITIC = [*RUN, "algorithm=ppo", "trainer.group=1", "trainer.prompts=32"]
VERDICT_FILES = ("verdicts.jsonl", "verdicts.jsonl.sha256", "evaluation.json")
#: Units of a few seconds, the tasks that come of them and the others.
SYNTHESIS = "synthesis.toml"
SYNTHESIS_RECIPE = """
[synthesis]
synthesizer = "chaos-prices"
environments = ["sample-shop"]
count = 120
"""
SYNTHESIS_FILES = ("units.jsonl", "units.jsonl.sha256", "tasks.jsonl", "rejected.jsonl", "plan.jsonl", "manifest.json")
#: The other trainer of the package, for which a run is one pass over a few demonstrations.
SUPERVISED = """
corpus.train_size=480 trainer.epochs=1 trainer.evaluate_every=0 trainer.checkpoint_every=5 trainer.max_new_tokens=32
trainer.evaluation_tasks=6
""".split()
RUN_FILES = "metrics.jsonl rollouts.jsonl warm_start.jsonl evaluation.json checkpoints/final/model.safetensors".split()
SUPERVISED_FILES = [name for name in RUN_FILES if name != "warm_start.jsonl"]
#: How each kind of run is called in the table, its recipe, what is set, its files, how often it is drawn.
RUNS = (
    ("grpo", "tier-mini", RUN, RUN_FILES, 1),
    ("ppo", "tier-mini", CRITIC, RUN_FILES, 1),
    ("sft", "tier-cpu-sft", SUPERVISED, SUPERVISED_FILES, 1),
)
#: What the other commands do their work with.
EXECUTORS = (("serial", 2), ("process", 2), ("ray", 1))
#: Executors whose workers are processes of their own.
SPREAD = ("process", "ray")
#: Seconds after which a process that is left is an orphan: what a cluster leaves is looked for during ten.
GRACE = {"ray": 15.0}
MARK = "CALLWRIGHT_CHAOS"


@dataclass(frozen=True)
class Workload:
    """A command that fills the folder ``out``, and which of its files must be what they would have been."""

    name: str
    executor: str
    words: Callable[[Path], list[str]]
    files: Sequence[str]
    #: How often it is drawn.
    share: int
    #: Whatever has the same must leave the same.
    like: str = ""

    @property
    def title(self) -> str:
        return f"{self.name}, {self.executor}"


def workloads(base: Path) -> list[Workload]:
    """What is killed. ``base`` holds the run that is scored again and the rows that are scored."""

    made = []
    for kind, recipe, settings, files, share in RUNS:

        def run(out: Path, recipe: str = recipe, settings: Sequence[str] = settings) -> list[str]:
            return ["run", recipe, "--output", str(out), *(word for one in settings for word in ("--set", one))]

        made.append(Workload("run", kind, run, files, share, f"run-{kind}"))
    for executor, share in EXECUTORS:
        if executor == "ray" and importlib.util.find_spec("ray") is None:
            print("Ray is not installed: its workers are left out", file=sys.stderr)
            continue
        many = [] if executor == "serial" else ["--workers", "2", "--executor", executor]

        def evaluate(out: Path, many: list[str] = many) -> list[str]:
            sampled = ["--sampler", "chaos-sampler", "--split", "evaluation", "--batch", "8"]
            return ["-p", "chaos_world", "evaluate", "--corpus", CORPUS, *sampled, "-o", str(out), *many]

        def score(out: Path, many: list[str] = many) -> list[str]:
            what = [str(base / "rows.jsonl"), "--corpus", CORPUS, "--recipe", "chaos-slow"]
            return ["-p", "chaos_world", "score", *what, "-o", str(out / "rewards.jsonl"), *many]

        def rescore(out: Path, many: list[str] = many) -> list[str]:
            what = [str(base / "run"), "--recipe", "chaos-slower"]
            return ["-p", "chaos_world", "rescore", *what, "-o", str(out / "rewards.jsonl"), *many]

        def synthesize(out: Path, many: list[str] = many) -> list[str]:
            plugins = ["-p", "chaos_world", "-p", "callwright.testing.synthesis.shop"]
            return [*plugins, "synthesize", str(base / SYNTHESIS), "-o", str(out), *many]

        made += [
            Workload("synthesize", executor, synthesize, SYNTHESIS_FILES, share, "synthesize"),
            Workload("evaluate", executor, evaluate, VERDICT_FILES, share, "evaluate"),
            Workload("score", executor, score, ("rewards.jsonl",), share, "score"),
            Workload("rescore", executor, rescore, ("rewards.jsonl",), share, "rescore"),
        ]

    def survive(out: Path) -> list[str]:
        what = [str(base / "mischief.jsonl"), "--corpus", "chaos-v1", "--time-limit", "1"]
        return ["-p", "chaos_world", "score", *what, "-o", str(out / "rewards.jsonl")]

    return [*made, Workload("score", "bad tools", survive, ("rewards.jsonl",), 1, "mischief")]


class Process:
    """A command at work, in a session of its own, with everything that it starts."""

    def __init__(self, words: Sequence[str], log: Path, most: int | None = None) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.log, self.results = log, log.with_name(f"{log.name}.stdout")
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": str(HERE), "PYTHONHASHSEED": "0"}
        environment.setdefault("OMP_NUM_THREADS", "1")
        environment["RAY_DEDUP_LOGS"] = environment["RAY_USAGE_STATS_ENABLED"] = "0"

        def prepare() -> None:
            for number in SIGNALS[1:]:  # whoever starts this in the background may have them ignored
                signal.signal(number, signal.SIG_DFL)
            if most is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        command = [sys.executable, "-m", "callwright", *words]
        with log.open("ab") as file, self.results.open("wb") as results:
            file.write(f"$ callwright {shlex.join(words)}\n".encode())
            file.flush()
            self.start = log.stat().st_size
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=results,
                stderr=file,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
                preexec_fn=prepare,
            )
        self.seen: set[tuple[int, str]] = set()
        #: What those were that lived on.
        self.left: list[str] = []

    @property
    def said(self) -> str:
        """What it wrote to stderr."""
        return self.log.read_bytes()[self.start :].decode("utf-8", "replace")

    def watch(self, until: Callable[[], bool], seconds: float = 1e9) -> bool:
        """Wait, noting its processes, until something holds or the time is up or it ended. Whether it still works."""
        end, noted = time.monotonic() + seconds, 0.0
        while self.popen.poll() is None and time.monotonic() < end and not until():
            if time.monotonic() > noted + 0.2:  # a look at all processes takes a while
                self.note()
                noted = time.monotonic()
            time.sleep(0.02)
        self.note()
        return self.popen.poll() is None

    def finish(self, patience: float) -> int | None:
        """Its exit status as shells have it; ``None`` if it had to be killed for it."""
        if self.watch(lambda: False, patience):
            self.popen.kill()
            self.popen.wait()
            return None
        status = self.popen.wait()
        return 128 - status if status < 0 else status

    def note(self) -> set[tuple[int, str]]:
        """Its processes that live: of its session, with its mark, or started by one that was seen."""
        living = set()
        table = dict(processes())
        known = {pid for pid, born in self.seen if pid in table and table[pid].born == born} | {self.popen.pid}
        grown = True
        while grown:
            grown = False
            for pid, row in table.items():
                if pid not in known and (row.parent in known or row.session == self.popen.pid):
                    known.add(pid)
                    grown = True
        for pid, row in table.items():
            if pid != self.popen.pid and (pid in known or self._marked(pid)):
                living.add((pid, row.born))
        self.seen |= living
        return living

    def _marked(self, pid: int) -> bool:
        try:
            return f"{MARK}={self.mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False

    def workers(self) -> list[int]:
        """The processes that do the work: Ray's actors, or those that were spawned."""
        found = []
        for pid, _ in self.note():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            # Ray's own agents are named like actors, and a node ends with them.
            name = words.partition(b"\0")[0]
            actor = name.startswith(b"ray::") and not name.startswith(b"ray::IDLE") and not name.endswith(b"Agent")
            if actor or (b"multiprocessing" in words and b"spawn_main" in words):
                found.append(pid)
        return found

    def orphans(self, grace: float) -> int:
        """How many of its processes are left after a while; they are ended."""
        end = time.monotonic() + grace
        while (left := self.note()) and time.monotonic() < end:
            time.sleep(0.1)
        for pid, _ in left:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                self.left.append(words.decode("utf-8", "replace").strip()[:80])
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                continue
        return len(left)


@dataclass(frozen=True)
class Row:
    """A line of the table of processes."""

    parent: int
    session: int
    born: str


def processes() -> Iterator[tuple[int, Row]]:
    """Every process that is not a zombie."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                yield int(path.name), Row(int(fields[1]), int(fields[3]), fields[19])
