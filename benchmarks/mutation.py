"""Would the tests notice? Change one thing at a time in the walk, the episodes, run folders and parsers, and run them.

    make mutants                                  # 300 mutants, two processes, at most an hour
    python benchmarks/mutation.py --sample 40 --seed 3 --only core/callwright/walk

First every test of FOLDERS is run alone and traced: which lines of the modules does it execute, and how long does it
take? A mutant is then given to the tests that execute its lines, the quick ones first, until one fails; one that never
ends is noticed, too. A mutant on lines that run when the module is imported goes to the tests that execute anything of
the module. The mutated module is compiled in memory: nothing of the checkout is written.

At least 90% of the mutants must be noticed. Each survivor must stand in mutation_survivors.toml with the reason why no
test could or should tell it from the original; the exit status is 1 if one does not, or if a mutant that stands there
was noticed or cannot be made any more.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import multiprocessing
import os
import random
import signal
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from mutants import Mutant, mutants, mutated

ROOT = Path(__file__).resolve().parents[1]
SURVIVORS = Path(__file__).with_name("mutation_survivors.toml")
#: What is changed.
TARGETS = (
    "core/callwright/walk",
    "core/callwright/episodes",
    "core/callwright/training/run_folder.py",
    "core/callwright/language",
    "plugins/callwright_plugins/json_ir",
    "plugins/callwright_plugins/xml_ir",
    "plugins/callwright_plugins/direct_ir",
    "plugins/callwright_plugins/chat_ir",
)
#: Whose tests may notice. Tests that work in other processes would not see the change.
FOLDERS = (
    "tests/core/walk",
    "tests/core/episodes",
    "tests/core/training",
    "tests/core/language",
    "tests/core/commands",
    "tests/core/environments",
    "tests/core/test_pipeline.py",
    "tests/core/test_pickling.py",
    "tests/plugins/ir",
    "tests/plugins/tier_rewards",
    "tests/plugins/toolrl_rewards",
    "tests/plugins/prove_rewards",
    "tests/plugins/scripted_samplers",
)
GOAL = 0.9
#: Seconds of tests that a mutant is worth, by the time they take without one, and the most that they may then take.
WORTH, LONGEST = 20.0, 60.0


def files(targets: Sequence[str]) -> list[str]:
    """The modules, as paths relative to the checkout."""
    found = [path for target in targets for path in sorted([*(ROOT / target).rglob("*.py"), ROOT / target])]
    return [str(path.relative_to(ROOT)) for path in found if path.suffix == ".py" and path.name != "__init__.py"]


def pytest_arguments(paths: Sequence[str]) -> list[str]:
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--no-summary", "--tb=no"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis was imported before the fork
    return [*quiet, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *paths]


# Which test executes what ---------------------------------------------------------------------------------------------


class Tracer:
    """A plugin of pytest: the lines of some files that each test executes, and its seconds."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = {str(ROOT / path): path for path in paths}
        self.lines: set[tuple[str, int]] = set()
        self.found: dict[str, dict[str, Any]] = {}

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        name = self.paths.get(frame.f_code.co_filename)
        if name is None:
            return None

        def line(frame: FrameType, event: str, argument: object) -> Any:
            self.lines.add((name, frame.f_lineno))
            return line

        return line

    def pytest_runtest_protocol(self, item: Any) -> None:
        self.lines.clear()
        sys.settrace(self.trace)

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = self.found.setdefault(report.nodeid, {"seconds": 0.0, "lines": [], "passed": True})
        test["seconds"] += report.duration
        test["passed"] &= report.passed
        if report.when == "teardown":
            sys.settrace(None)
            test["lines"] = sorted(self.lines)


def in_a_fork(work: Any, arguments: Sequence[Any], limit: float) -> Any:
    """What a function returns in a child of this process, which has the expensive libraries imported already.

    ``None`` if the child had to be ended, or ended itself.
    """

    def child(connection: Connection) -> None:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.chdir(ROOT)
        connection.send(work(*arguments))
        connection.close()
        os._exit(0)

    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(limit) else None
    except EOFError:
        return None
    finally:
        try:
            os.killpg(process.pid or 0, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.join()


def traced(test_file: str, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    import pytest

    tracer = Tracer(paths)
    arguments = [word for word in pytest_arguments([test_file]) if word != "-x"]
    pytest.main(arguments, plugins=[tracer])
    return tracer.found


def coverage(paths: Sequence[str], workers: int) -> dict[str, dict[str, Any]]:
    """For each test that passes: its seconds and lines."""
    tests = [path for folder in FOLDERS for path in sorted([*(ROOT / folder).rglob("test_*.py"), ROOT / folder])]
    names = [str(path.relative_to(ROOT)) for path in tests if path.suffix == ".py"]
    found: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(workers) as threads:
        for name, tests_of in zip(
            names, threads.map(lambda name: in_a_fork(traced, (name, paths), 900.0), names), strict=True
        ):
            if tests_of is None:
                print(f"{name} came to no end and is left out", file=sys.stderr)
                continue
            found |= {test: row for test, row in tests_of.items() if row["passed"] and row["lines"]}
    return found


# One mutant -----------------------------------------------------------------------------------------------------------


class Chosen:
    """A plugin of pytest: only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: position for position, test in enumerate(tests)}
        self.failed: str | None = None
        self.ran = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda it: self.order[it.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ran += report.when == "call"
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid} (cannot be imported)"


def run_mutant(path: str, source: str, tests: Sequence[str]) -> tuple[str | None, int]:
    """The first test that notices, if one does, and how many ran."""
    import pytest

    place, ordinary = str(ROOT / path), importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if loader.path == place:
            return compile(source, place, "exec", dont_inherit=True)
        return ordinary(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    chosen = Chosen(tests)
    status = pytest.main(pytest_arguments(sorted({test.partition("::")[0] for test in tests})), plugins=[chosen])
    if status != 0 and chosen.failed is None:
        return f"pytest ended with {status!r}", chosen.ran
    return chosen.failed, chosen.ran


Index = dict[str, dict[int, set[str]]]


def index_of(covered: dict[str, dict[str, Any]]) -> Index:
    """The tests that execute each line of each module."""
    found: Index = defaultdict(lambda: defaultdict(set))
    for test, row in covered.items():
        for path, line in row["lines"]:
            found[path][line].add(test)
    return found


def tests_of(mutant: Mutant, covered: dict[str, dict[str, Any]], index: Index) -> list[str]:
    """Tests that execute the mutant, the quick ones first, within what it is worth."""
    lines = index[mutant.path]
    touched = set().union(*(lines.get(line, ()) for line in range(mutant.first, mutant.last + 1)))
    if not mutant.function or not touched:  # executed at import, if at all
        touched = set().union(*lines.values())
    chosen, seconds = [], 0.0
    for test in sorted(touched, key=lambda test: (covered[test]["seconds"], test)):
        seconds += covered[test]["seconds"]
        if chosen and seconds > WORTH:
            break
        chosen.append(test)
    return chosen


def judge(chosen: Sequence[Mutant], covered: dict[str, dict[str, Any]], workers: int) -> Iterator[tuple[Mutant, str]]:
    """Each mutant, with what became of it: the test that noticed, or nothing."""
    index = index_of(covered)

    def one(mutant: Mutant) -> str:
        tests = tests_of(mutant, covered, index)
        if not tests:
            return ""
        result = in_a_fork(run_mutant, (mutant.path, mutated(ROOT, mutant), tests), LONGEST)
        if result is None:
            return "it never ended, or ended its process"
        return result[0] or ""

    with ThreadPoolExecutor(workers) as threads:
        yield from zip(chosen, threads.map(one, chosen), strict=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=TARGETS, metavar="PATH", help="mutate these files or folders")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop then, with what there is")
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="keep which test executes what, for next time")
    given = parser.parse_args()
    began = time.monotonic()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in ("attrs", "hypothesis", "jsonschema_rs", "numpy", "pluggy", "pydantic", "pytest", "rich"):
        __import__(name)  # once, for all the children

    paths = files(TARGETS)
    if given.coverage and given.coverage.exists():
        covered = json.loads(given.coverage.read_text(encoding="utf-8"))
    else:
        covered = coverage(paths, given.workers)
        if given.coverage:
            given.coverage.write_text(json.dumps(covered), encoding="utf-8")
    if not covered:
        raise SystemExit("no test passes here without a mutant; run them: make tests")
    everything = [mutant for path in paths for mutant in mutants(ROOT, path)]
    among = [mutant for mutant in everything if any(mutant.path.startswith(only) for only in given.only)]
    chosen = random.Random(given.seed).sample(among, min(given.sample, len(among)))
    print(f"{len(covered)} tests traced in {time.monotonic() - began:.0f} s; {len(chosen)} of {len(among)} mutants")

    survived, done = [], []
    for mutant, noticed in judge(chosen, covered, given.workers):
        done.append(mutant)
        if not noticed:
            survived.append(mutant)
        print(
            f"{'killed  ' if noticed else 'SURVIVED'} {mutant.key}  [{mutant.path}:{mutant.first}] {noticed}",
            flush=True,
        )
        if time.monotonic() - began > 60 * given.minutes:
            print(f"the time is up after {len(done)} of {len(chosen)}", flush=True)
            os._exit(report(done, survived, everything, complete=False))
    print(f"{time.monotonic() - began:.0f} s")
    return report(done, survived, everything, complete=True)


def report(done: Sequence[Mutant], survived: Sequence[Mutant], everything: Sequence[Mutant], *, complete: bool) -> int:
    """Say how many were noticed, and hold the survivors against the file of reasons."""
    reasons = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
    killed, keys = len(done) - len(survived), {mutant.key for mutant in survived}
    possible, judged = {mutant.key for mutant in everything}, {mutant.key for mutant in done}
    unexplained = sorted(keys - reasons.keys())
    stale = sorted(key for key in reasons if key not in possible or (key in judged and key not in keys))
    print(f"{killed} of {len(done)} killed ({killed / max(1, len(done)):.1%}); the goal is {GOAL:.0%}")
    for key in sorted(keys & reasons.keys()):
        print(f"survives, with a reason: {key}: {reasons[key]}")
    for key in unexplained:
        print(f"survives without a reason: {key}")
    for key in stale:
        print(f"in {SURVIVORS.name}, but killed or impossible: {key}")
    sys.stdout.flush()
    return int(killed < GOAL * len(done) or bool(unexplained or stale) or not complete)


if __name__ == "__main__":
    sys.exit(main())
