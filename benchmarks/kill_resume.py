"""Kill a run with SIGKILL at random moments, resume it each time, and compare with a run that was never stopped.

    python benchmarks/kill_resume.py recipes/tier-mini.toml --kills 5 --output runs/kill

The moments are drawn over the rows of the warm start and of the training, half of them over each, with a random delay
after the row, so that they fall between writes and into them. Compared are the final weights, metrics, rollouts, warm
start and evaluation, byte by byte. Exit status 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

COMPARED = (
    "checkpoints/final/model.safetensors",
    "metrics.jsonl",
    "rollouts.jsonl",
    "warm_start.jsonl",
    "evaluation.json",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--output", type=Path, default=Path("runs/kill"))
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    arguments = parser.parse_args()
    options = [word for override in arguments.overrides for word in ("--set", override)]
    arguments.output.mkdir(parents=True, exist_ok=True)

    def start(folder: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "callwright", "run", arguments.recipe, "--output", str(folder), *options]
        log = (arguments.output / f"{folder.name}.log").open("ab")
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    whole, killed = arguments.output / "whole", arguments.output / "killed"
    began = time.monotonic()
    if start(whole).wait():
        raise SystemExit(f"the uninterrupted run failed; see {whole}.log")
    wall = time.monotonic() - began
    print(f"uninterrupted: {wall:.0f} s", flush=True)

    rng = random.Random(arguments.seed)
    rows = {name: len(lines(whole / name)) for name in ("warm_start.jsonl", "metrics.jsonl")}
    targets = [("metrics.jsonl" if kill % 2 else "warm_start.jsonl", rng.random()) for kill in range(arguments.kills)]
    for name, share in sorted(targets, key=lambda target: (target[0] == "metrics.jsonl", target[1])):
        process = start(killed)
        delay = rng.uniform(0, 4 if name == "warm_start.jsonl" else 0.5)
        while process.poll() is None and len(lines(killed / name)) < share * rows[name]:
            time.sleep(0.02)
        time.sleep(delay)
        if process.poll() is not None:
            raise SystemExit(f"the run ended with status {process.returncode} before it could be killed")
        process.kill()
        process.wait()
        newest = max((path.name for path in (killed / "checkpoints").glob("*-*")), default=None, key=order)
        print(
            f"killed with {len(lines(killed / 'warm_start.jsonl'))} rows of the warm start and "
            f"{len(lines(killed / 'metrics.jsonl'))} of the training written; newest checkpoint {newest}",
            flush=True,
        )
    if start(killed).wait():
        raise SystemExit(f"the resumed run failed; see {killed}.log")

    different = 0
    for name in COMPARED:
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] for folder in (whole, killed)]
        different += digests[0] != digests[1]
        print(f"{name}: {digests[0]} {'==' if digests[0] == digests[1] else '!='} {digests[1]}")
    sys.exit(1 if different else 0)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def order(name: str) -> tuple[bool, str]:
    return name.startswith("train"), name


if __name__ == "__main__":
    main()
