"""What the tests of trackers share: a small run of the local trainer, stopped and gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.plugins import load_plugins
from callwright.training import Run

RECIPE: dict[str, Any] = {
    "name": "tracked",
    "corpus": "toolworld-mini-v1",
    "model": {"tiny": {"width": 16, "layers": 1, "heads": 2, "ffn": 16}},
    "trainer": {
        "name": "local",
        "steps": 4,
        "prompts": 2,
        "group": 2,
        "max_new_tokens": 12,
        "checkpoint_every": 2,
        "evaluate_every": 2,
        "evaluation_tasks": 1,
        "rollouts_per_step": 2,
    },
    "reward": {"name": "tier", "truncated": "as_is"},
}


class StopsAt:
    """A plugin that stops a run as Ctrl-C does, after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    @cw.hookimpl
    def callwright_training_step(self, metrics: Any) -> None:
        if metrics["step"] == self.step:
            raise cw.errors.RunError("stopped on purpose")


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Run]:
    """Train with a tracker (options by name): ``stop`` after a step, then go on to the end."""

    def trained(tracker: Any, folder: str = "run", stop: int | None = None) -> Run:
        recipe = {**RECIPE, "tracker": tracker}
        if stop is not None:
            registry = load_plugins(extra={"stops": StopsAt(stop)})
            with pytest.raises(cw.errors.RunError, match="stopped on purpose"):
                cw.train(recipe, output=tmp_path / folder, registry=registry)
        return cw.train(recipe, output=tmp_path / folder)

    return trained


@pytest.fixture
def kept() -> Callable[[Run, str], dict[str, Any]]:
    """What the run folder knows of a tracker."""

    def read(run: Run, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((run.path / "trackers" / f"{name}.json").read_text(encoding="utf-8"))
        return found

    return read
