"""Run a recipe with fresh seeds and print accuracy per depth before and after, and what was gained.

    python benchmarks/seeds.py recipes/tier-mini.toml --seeds 101-108 --output runs/seeds --json seeds.json

Each run is the command ``callwright run RECIPE --set seed=N`` in a process of its own, one after the other or two at a
time (``--workers 2``). Runs that are finished in ``--output`` are not run again; those that stopped go on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from callwright.training.run_folder import Run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--seeds", default="101-108", help="such as 101-108 or 3,5,9")
    parser.add_argument("--output", type=Path, default=Path("runs/seeds"))
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument("--depths", default="2-4", help="depths over which the gain is averaged")
    parser.add_argument("--threshold", type=float, default=30.0, help="points that count as a gain")
    parser.add_argument("--json", type=Path, help="write the rows here")
    arguments = parser.parse_args()
    depths = [str(depth) for depth in numbers(arguments.depths)]

    def one(seed: int) -> dict[str, Any]:
        return run(arguments.recipe, seed, arguments.output / f"seed-{seed}", arguments.overrides, depths)

    rows = []
    with ThreadPoolExecutor(arguments.workers) as pool:
        for row in pool.map(one, numbers(arguments.seeds)):
            rows.append(row)
            if len(rows) == 1:
                print(header(row))
            print(line(row), flush=True)
    gains = [row["gain"] for row in rows]
    enough = sum(gain >= arguments.threshold for gain in gains)
    print(
        f"\n{enough} of {len(rows)} seeds gained {arguments.threshold:g} points or more, averaged over depths "
        f"{arguments.depths}; mean {sum(gains) / len(gains):.1f}, least {min(gains):.1f}, most {max(gains):.1f}"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def run(recipe: str, seed: int, folder: Path, overrides: Iterable[str], depths: list[str]) -> dict[str, Any]:
    """One run, and its row of the table. Raises :class:`SystemExit` with what the run said if it fails."""
    options = [word for override in [f"seed={seed}", *overrides] for word in ("--set", override)]
    command = [sys.executable, "-m", "callwright", "run", recipe, "--output", str(folder), *options]
    folder.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    log = folder.with_suffix(".log")
    with log.open("ab") as file:
        process = subprocess.Popen(
            command,
            stdout=file,
            stderr=file,
            env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(encoding='utf-8')[-2000:]}")
    done = Run.open(folder)
    evaluation, metrics = done.read_json("evaluation.json"), done.rows("metrics.jsonl")
    before, after = (
        {depth: 100 * cell["accuracy"] for depth, cell in evaluation[when]["by_depth"].items()}
        for when in ("before", "after")
    )
    alarms = [row["step"] for row in metrics if row["alarm"]]
    return {
        "seed": seed,
        "before": before,
        "after": after,
        "gain": sum(after[depth] - before[depth] for depth in depths) / len(depths),
        "steps": len(metrics),
        "alarms": alarms,
        "wall_seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_memory_mb": round(usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)),
    }


def header(row: dict[str, Any]) -> str:
    width = max(len(shown(row["before"])), len(shown(row["after"])))
    title = "/".join(f"d{depth}" for depth in row["before"])
    names = f"{'seed':>6}  {'before':<{width}}  {'after':<{width}}  {'gain':>6}  wall s   cpu s    MB  alarm at step"
    return f"{title}\n{names}"


def line(row: dict[str, Any]) -> str:
    width = max(len(shown(row["before"])), len(shown(row["after"])))
    alarm = str(row["alarms"][0]) if row["alarms"] else "-"
    return (
        f"{row['seed']:>6}  {shown(row['before']):<{width}}  {shown(row['after']):<{width}}  {row['gain']:>+6.1f}  "
        f"{row['wall_seconds']:>6.0f}  {row['cpu_seconds']:>6.0f}  {row['peak_memory_mb']:>4}  {alarm}"
    )


def shown(accuracies: dict[str, float]) -> str:
    return "/".join(f"{value:3.0f}" for value in accuracies.values())


if __name__ == "__main__":
    main()
