"""A run whose files were damaged goes on from what is not, or says what is wrong, and ends in the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from callwright.errors import RunError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.ledger.seals import examine, set_aside
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright_plugins.local_trainer.run import checkpoints

Pipelines = Callable[..., Pipeline]
NAMES = (
    "metrics.jsonl",
    "rollouts.jsonl",
    "warm_start.jsonl",
    "evaluation.json",
    "checkpoints/final/model.safetensors",
)


class Heard:
    def __init__(self) -> None:
        self.said: list[str] = []

    def start(self, stage: str, total: int, done: int = 0) -> None: ...

    def advance(self, units: int = 1, **figures: float) -> None: ...

    def say(self, text: str) -> None:
        self.said.append(text)

    def finish(self) -> None: ...


def test_damaged_files_of_a_run(tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent) -> None:
    pipeline = make_pipeline(extra_rewards=[variety])
    run = Run.create(tmp_path, recipe_text=pipeline.recipe.effective_text(), manifest={})
    trainer = create_trainer(pipeline.recipe, pipeline.registry)
    trainer.train(pipeline, run)
    whole = {name: (tmp_path / name).read_bytes() for name in NAMES}
    assert examine(tmp_path).damage == []
    final, weights = run.checkpoints / "final", run.checkpoints / "train-000004" / "model.safetensors"

    # 400 bytes of the newest weights: the checkpoint before it, by itself, with a word.
    data = bytearray(weights.read_bytes())
    data[-400:] = bytes(400)
    weights.write_bytes(data)
    set_aside(final)
    heard = Heard()
    trainer.train(pipeline, run, reporter=heard)
    assert any("train-000004/model.safetensors is damaged" in said and "train-000002" in said for said in heard.said)
    assert {name: (tmp_path / name).read_bytes() for name in NAMES} == whole

    # A file of rows that is gone: refused by its name, and not made of what is left.
    (tmp_path / "rollouts.jsonl").unlink()
    set_aside(final)
    with pytest.raises(RunError, match=r"rollouts\.jsonl is not as train-000004 left it: it is missing"):
        trainer.train(pipeline, run)
    assert checkpoints.take_up(evolve(run, accept_changes=True), heard) == run.checkpoints / "train-000004"
    assert "rollouts.jsonl is not as" in heard.said[-1]

    # What doctor --repair does: the last checkpoint that fits is none, so the run begins again, to the same bytes.
    found = examine(tmp_path)
    assert found.good.startswith("warm-") or found.good == ""
    for bad in found.bad:
        set_aside(bad)
    trainer.train(pipeline, run)
    assert {name: (tmp_path / name).read_bytes() for name in NAMES} == whole
