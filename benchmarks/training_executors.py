"""Seconds a step of the local trainer where calls take their time, by executor and number of workers.

    OMP_NUM_THREADS=1 python benchmarks/training_executors.py [fast] [computes] [waits] [--repeats 3] [--ray] [--ahead]

``computes``: each call takes 20 ms of CPU. ``waits``: each sleeps for 50 ms. ``fast``: as the environment is, so that
workers only cost. Each row is a run of the same recipe with the same seed, from a tiny model that was taught to call,
made ``--repeats`` times in turn with the others. What is printed is the mean over its steps but for the first, in which
workers start, of the least that each took: a step, and of it sampling (which calls are part of), scoring and the
update. ``--ray`` adds Ray with two actors. Sessions live in the worker (``isolation = "none"``), but for the rows that
say otherwise: there each has a process. ``--ahead`` has rows with a ``staleness`` of 1 in their place: what a step
takes is then what it waits for its samples, and the update.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.recipe_run import run_pipeline

HERE = Path(__file__)
#: Seconds of CPU and of sleep of a call.
KINDS = {"fast": (0.0, 0.0), "computes": (0.02, 0.0), "waits": (0.0, 0.05)}
RECIPE: dict[str, Any] = {
    "name": "executors",
    "seed": 7,
    "corpus": "toolworld-mini-v1",
    "algorithm": {"name": "grpo"},
}
TINY = {"tiny": {"width": 32, "layers": 1, "heads": 2, "ffn": 64}}
WARM = {"steps": 400, "batch": 12, "count": 200, "warm_up": 5, "learning_rate": 0.01}
STEPS = 4
PARTS = ("seconds", "sampling", "scoring", "training")
TRAINER: dict[str, Any] = {
    "name": "local",
    "prompts": 8,
    "group": 16,
    "depths": [1, 2, 3],
    "max_new_tokens": 100,
    "evaluation_tasks": 1,
    "steps": STEPS,
}


class Slow(cw.Environment):
    """Another environment whose calls take longer."""

    def __init__(self, inner: cw.Environment, cpu: float, sleep: float) -> None:
        self.inner, self.cpu, self.sleep = inner, cpu, sleep

    @property
    def name(self) -> str:
        return f"slow-{self.inner.name}"

    @property
    def tools(self) -> Mapping[str, Any]:
        return self.inner.tools

    @property
    def pure(self) -> bool:
        return self.inner.pure

    def open(self, scenario: str = "", seed: int = 0) -> cw.Session:
        return SlowSession(self.inner.open(scenario, seed), self.cpu, self.sleep)


class SlowSession(cw.Session):
    """Its session."""

    def __init__(self, inner: cw.Session, cpu: float, sleep: float) -> None:
        self.inner, self.cpu, self.sleep = inner, cpu, sleep

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        time.sleep(self.sleep)
        until = time.thread_time() + self.cpu
        while time.thread_time() < until:
            pass
        return self.inner.call(tool, arguments)

    def digest(self) -> str:
        return self.inner.digest()

    def close(self) -> None:
        self.inner.close()


def warm(folder: Path) -> Path:
    """A model that makes calls."""
    trainer = {**TRAINER, "steps": 0, "warm_start": WARM}
    run = run_pipeline(build_pipeline(load_recipe({**RECIPE, "model": TINY, "trainer": trainer})), output=folder)
    return run.path / "checkpoints" / "final"


def measure(
    model: Path, kind: str, executor: str, workers: int, isolation: str, staleness: int = 0
) -> tuple[list[list[float]], bytes]:
    """The seconds of the parts of each step after the first, and what the run wrote about its steps."""
    trainer = {**TRAINER, "executor": executor, "workers": workers, "staleness": staleness}
    loaded = load_recipe({**RECIPE, "model": str(model), "trainer": trainer, "isolation": isolation})
    slow: Any = importlib.import_module(HERE.stem)  # by a name that workers find, not as the script that runs
    environment = None
    if any(KINDS[kind]):
        environment = slow.Slow(build_pipeline(loaded).tasks("train", 1)[0].environment, *KINDS[kind])
    pipeline = build_pipeline(loaded, environment=environment)
    with tempfile.TemporaryDirectory() as folder:
        run = run_pipeline(pipeline, output=Path(folder, "run"))
        timings = [json.loads(line) for line in (run.path / "timings.jsonl").read_text().splitlines()]
        metrics = (run.path / "metrics.jsonl").read_bytes()
    return [[row[part] for part in PARTS] for row in timings[1:]], metrics


def compare(model: Path, kind: str, repeats: int, ray: bool, ahead: bool) -> None:
    """Print a table."""
    configurations: list[tuple[str, int, str, int]] = [("serial", 1, "none", 0), ("thread", 16, "none", 0)]
    if ahead:
        configurations += [("serial", 1, "none", 1), ("thread", 16, "none", 1)]
    else:
        configurations[1:1] = [("thread", 2, "none", 0)]
        configurations += [("process", 2, "none", 0)]
        configurations += [("thread", 2, "process", 0)] if kind != "fast" else []
    configurations += [("ray", 2, "none", 0)] if ray else []
    least: dict[Any, list[list[float]]] = {}
    written: dict[int, set[bytes]] = {}
    for _ in range(repeats):
        for configuration in configurations:
            found, metrics = measure(model, kind, *configuration)
            written.setdefault(configuration[3], set()).add(metrics)
            known = least.get(configuration, found)
            least[configuration] = [[*map(min, one, other)] for one, other in zip(known, found, strict=True)]
    assert all(len(found) == 1 for found in written.values()), "the runs differ"
    first = json.loads(written[0].pop().splitlines()[0])
    print(f"{kind}: {first['rollouts']} rollouts a step, {first['calls']:.1f} calls in each that is a program")
    for (executor, workers, isolation, staleness), steps in least.items():
        name = f"{executor} {workers}" + (", sessions in processes" if isolation == "process" else "")
        name += f", staleness {staleness}" if staleness else ""
        print(
            f"  {name:<32}" + "".join(f"{sum(part) / len(part):9.3f}" for part in zip(*steps, strict=True)), flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--ahead", action="store_true")
    given = parser.parse_args()
    if unknown := set(given.kinds) - set(KINDS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(KINDS)}")
    sys.path.insert(0, str(HERE.parent))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        model = warm(Path(folder, "warm"))
        print(f"{'':<34}" + "".join(f"{part:>9}" for part in PARTS))
        for kind in given.kinds or KINDS:
            compare(model, kind, given.repeats, given.ray, given.ahead)


if __name__ == "__main__":
    main()
