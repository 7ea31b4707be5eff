"""Files of tasks: how long they take to be written, looked through and read, and what they hold in memory.

    python benchmarks/task_files.py [--tasks 100000] [--form .jsonl .jsonl.gz .parquet]

The tasks are 2,000 of toolworld-mini-v1, over and over under other ids. Each form is read in a process of its own,
first looked through (the corpus ``tasks`` is opened), then every task is made once; the memory is what the process has
grown by since the environment was made (Linux).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import evolve

import callwright as cw

READING = """
import gc, json, sys, time
from pathlib import Path
import callwright as cw

environment = cw.environment("toolworld-mini-v1")
environment.tools
cw.corpus("toolworld-mini-v1")["train"][0]


def held_now():
    gc.collect()
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


before = held_now()
began = time.perf_counter()
corpus = cw.corpus("tasks", file=sys.argv[1])
opened, held = time.perf_counter() - began, held_now() - before
began = time.perf_counter()
count = sum(len(task.tools) > 0 for split in corpus.splits for task in corpus[split])
print(json.dumps({"tasks": count, "opened": opened, "held": held, "read": time.perf_counter() - began,
                  "most": held_now() - before}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--form", nargs="+", default=[".jsonl", ".jsonl.gz", ".parquet"])
    given = parser.parse_args()
    drawn = cw.corpus("toolworld-mini-v1")["train"][:2000]
    tasks = [evolve(drawn[number % len(drawn)], id=f"task-{number}") for number in range(given.tasks)]
    print("| form | MB | written in s | opened in s | MB held | all read in s | MB then |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for form in given.form:
            path = Path(folder) / f"tasks{form}"
            began = time.perf_counter()
            cw.write_tasks(path, tasks)
            written = time.perf_counter() - began
            done = subprocess.run(
                [sys.executable, "-c", READING, str(path)], capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout)
            assert found["tasks"] == given.tasks
            print(
                f"| {form} | {path.stat().st_size / 1e6:.0f} | {written:.1f} | {found['opened']:.2f} | "
                f"{found['held']:.0f} | {found['read']:.1f} | {found['most']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
