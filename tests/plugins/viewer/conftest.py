"""A run, an evaluation, scored rows and tasks to look at: real rows of a real reward, made without training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.training.rollouts.written import calls_of
from callwright.walk.sampling import SamplingRequest
from callwright.walk.trace import observations
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.sources.finding import sources_of

GROUP = 4


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    return path


def rollouts(steps: int, prompts: int = 3, *, first: int = 1, right: float = 0.6) -> Iterator[dict[str, Any]]:
    """Rows of ``rollouts.jsonl``, whole groups."""
    tasks = cw.corpus("toolworld-mini-v1")["evaluation"]
    sampler, reward, parser = cw.sampler("noisy-gold", p=right), cw.reward("tier"), cw.parser("json")
    for step in range(first, first + steps):
        for place in range(prompts):
            task = tasks[(16 + 41 * (step * prompts + place)) % len(tasks)]
            request = SamplingRequest((cw.Message.user(task.query),), task)
            [drawn] = sampler.sample([request], n=GROUP, seed=step)
            attempts = [cw.Attempt(task, one.text, parser) for one in drawn]
            rewards = [reward.score_attempt(attempt) for attempt in attempts]
            mean = sum(one.total or 0.0 for one in rewards) / GROUP
            for sample, (attempt, scored) in enumerate(zip(attempts, rewards, strict=True)):
                yield {
                    "step": step,
                    "task": task.id,
                    "group": f"{step}-{place}",
                    "sample": sample,
                    "depth": task.depth,
                    "structure": task.structure,
                    "query": task.query,
                    "prompt": f"Q {task.query} A",
                    "completion": attempt.completion.text,
                    "truncated": False,
                    "advantage": round((scored.total or 0.0) - mean, 6),
                    "answered": scored.total == 1.0,
                    "failure": "" if scored.total == 1.0 else f"{scored.stage}:wrong",
                    **scored.to_json(),
                    "observations": observations(attempt.trace),
                    "trace": list(calls_of(attempt)),
                }


def make_run(folder: Path, steps: int = 6, **options: Any) -> Path:
    """A run folder as trainers leave it."""
    write_rows(folder / "rollouts.jsonl", rollouts(steps, **options))
    write_rows(folder / "metrics.jsonl", metrics(steps))
    write_rows(
        folder / "timings.jsonl",
        (
            {"phase": "train", "step": step, "seconds": 0.5, "sampling": 0.3, "training": 0.2, "memory": 5e8}
            for step in range(1, steps + 1)
        ),
    )
    (folder / "recipe.toml").write_text(
        'name = "seen"\nseed = 3\nir = "json"\n[corpus]\nname = "toolworld-mini-v1"\n[reward]\nname = "tier"\n', "utf-8"
    )
    (folder / "manifest.json").write_text("{}", "utf-8")
    return folder


def metrics(steps: int, first: int = 1) -> Iterator[dict[str, Any]]:
    for step in range(first, first + steps):
        yield {"step": step, "reward": step / 10, "tokens": 100, "scores": {"format": 1.0}, "kl": None, "alarm": None}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with three groups of four each. Do not write into it."""
    return make_run(tmp_path_factory.mktemp("runs") / "first")


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tasks, better answered. Do not write into it."""
    return make_run(tmp_path_factory.mktemp("runs") / "second", right=0.9)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A run that may be written into."""
    return make_run(tmp_path / "own", 2)


def board_of(*paths: Path) -> Board:
    """A board over paths, everything read."""
    registry = cw.default_registry()
    board = Board(sources_of(paths, registry), registry)
    board.read_all()
    return board


@pytest.fixture
def board(run: Path, other: Path) -> Iterator[Board]:
    made = board_of(run, other)
    yield made
    made.close()
