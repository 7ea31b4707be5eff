"""BFCL's multi-turn answers judged here and by the official checker, in turn, on one core.

    python benchmarks/bfcl_multi_turn_speed.py --version v4 --data DIR --package WHEEL --answers ROWS.jsonl.gz

``--data`` holds the files of that version, ``--package`` is its wheel or the folder in which it was unpacked, and
``--answers`` are rows ``{"id", "calls"}``, whose calls are turns of steps of texts. The official checker runs in this
process, as its own runner does; ours asks its process of the classes, which is counted with it, on the same core. Each
round is a chunk of rows for one and then for the other; instances that the official one leaves behind are taken out
between chunks, so that they do not slow it down. The verdicts of both have to be equal, or the exit status is 1.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import callwright as cw
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

#: What both say: whether it is right, and the class of the error.
Verdict = tuple[bool, str | None]


def unpacked(package: Path) -> Path:
    """The folder of a wheel that was unpacked, or is now."""
    if package.is_dir():
        return package
    folder = Path(tempfile.mkdtemp(prefix="bfcl-official-"))
    with zipfile.ZipFile(package) as wheel:
        wheel.extractall(folder)
    return folder


class Official:
    """The official checker of an unpacked wheel, in this process."""

    def __init__(self, folder: Path, questions: Mapping[str, Any], gold: Mapping[str, Any]) -> None:
        sys.path.insert(0, str(folder))
        package = "bfcl_eval.eval_checker.multi_turn_eval"
        self._check = importlib.import_module(f"{package}.multi_turn_checker").multi_turn_checker
        self._globals = vars(importlib.import_module(f"{package}.multi_turn_utils"))
        self._questions, self._gold = questions, gold
        self._runs = 0

    def verdict(self, key: str, calls: list[list[list[str]]]) -> Verdict:
        """What the runner says: another number of turns is not checked any further."""
        if len(calls) != len(self._gold[key]):
            return False, "multi_turn:force_terminated"
        self._runs += 1
        found = self._check(calls, self._gold[key], self._questions[key], key.rpartition("_")[0], f"m{self._runs}")
        return found["valid"], found.get("error_type")

    def forget(self) -> None:
        """Take out the instances of earlier runs."""
        for name in [name for name in self._globals if name.endswith("_instance")]:
            del self._globals[name]


def read(data: Path, version: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of questions and the gold calls of all categories, by id."""
    questions, gold = {}, {}
    for category in CATEGORIES:
        name = f"BFCL_{version}_{category}.json"
        questions |= {row["id"]: row for row in map(json.loads, (data / name).read_text().splitlines())}
        lines = (data / "possible_answer" / name).read_text().splitlines()
        gold |= {row["id"]: row["ground_truth"] for row in map(json.loads, lines)}
    return questions, gold


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Rows of JSON, plain or ``.gz``."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def timed(work: Callable[[], list[Verdict]]) -> tuple[list[Verdict], float]:
    """What came of it, and how many seconds it took."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=["v3", "v4"], required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--category", choices=CATEGORIES, default=CATEGORIES[0])
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="times that all rows are judged")
    parser.add_argument("--core", type=int, help="the core; that on which it runs now, if left out")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core if options.core is not None else min(os.sched_getaffinity(0))})
    official = Official(unpacked(options.package), *read(options.data, options.version))
    suite = MultiTurn(options.version, options.data, options.package)
    assert suite.classes is not None
    suite.classes.methods(next(iter(suite.entries.values())))  # begins its process
    tasks = {task.id: task for task in suite.tasks(options.category)}
    rows = [row for row in rows_of(options.answers) if row["id"] in tasks]
    form = cw.parser("json")

    def checked(some: Sequence[Mapping[str, Any]]) -> list[Verdict]:
        return [official.verdict(row["id"], row["calls"]) for row in some]

    def ours(some: Sequence[Mapping[str, Any]]) -> list[Verdict]:
        asked = []
        for row in some:
            attempt = suite.answer(row, tasks[row["id"]], form)
            assert attempt is not None
            asked.append((tasks[row["id"]], attempt))
        return [(one.correct, one.error or None) for one in suite.judge_together(asked)]

    spent: dict[str, list[float]] = {"official": [], "ours": [], "ours, gold sides kept": []}
    different = 0
    for number in range(options.rounds):
        seconds = {"official": 0.0, "ours": 0.0}
        for at in range(0, len(rows), options.chunk):
            some = rows[at : at + options.chunk]
            theirs, took = timed(partial(checked, some))
            seconds["official"] += took
            official.forget()
            found, took = timed(partial(ours, some))
            seconds["ours"] += took
            different += sum(one != other for one, other in zip(theirs, found, strict=True))
        spent["official"].append(seconds["official"])
        spent["ours" if number == 0 else "ours, gold sides kept"].append(seconds["ours"])
    print(f"{options.category} of {options.version}: {len(rows)} answers, {options.rounds} rounds, {different} differ")
    for name, times in spent.items():
        if times:
            print(f"{name:>24}: {len(rows) / median(times):8,.0f} entries/s")
    whole = sum(spent["ours"] + spent["ours, gold sides kept"])
    print(f"{'ratio, all rounds':>24}: {sum(spent['official']) / whole:8.1f}")
    print(f"{'ratio, first round':>24}: {spent['official'][0] / spent['ours'][0]:8.1f}")
    suite.close()
    if different:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
