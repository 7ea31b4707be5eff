"""A run whose files were damaged goes on from what is not, or says what is wrong, and ends in the same bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import RunError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.ledger.seals import SEAL, examine, set_aside
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


def test_after_a_repair_a_run_ends_as_one_that_goes_on_from_the_checkpoint_that_is_left(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    """The last and the next-to-last checkpoint are damaged, each in another file."""
    pipeline = make_pipeline(
        "trainer.checkpoint_every=1", "trainer.keep_checkpoints=4", "trainer.steps=3", extra_rewards=[variety]
    )
    damaged = tmp_path / "damaged"
    run = Run.create(damaged, recipe_text=pipeline.recipe.effective_text(), manifest={})
    trainer = create_trainer(pipeline.recipe, pipeline.registry)
    trainer.train(pipeline, run)
    whole = {name: (damaged / name).read_bytes() for name in NAMES}
    left = tmp_path / "left"  # where the same two were never written
    shutil.copytree(damaged, left)
    for name in ("final", "train-000003", "train-000002"):
        shutil.rmtree(left / "checkpoints" / name)

    for checkpoint, name, at in (("train-000003", "model.safetensors", 500), ("train-000002", "training.pt", -100)):
        path = damaged / "checkpoints" / checkpoint / name
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def doctor(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(root, ["doctor", str(damaged), *words], obj=App(registry=pipeline.registry))
        return done.exit_code, done.stdout

    status, told = doctor("--json")
    found = json.loads(told)
    assert status == 1
    assert found["last_good"] == "train-000001"
    assert [reason.partition(" is damaged")[0] for reason in found["damage"]] == [
        "train-000003/model.safetensors",
        "train-000002/training.pt",
    ]
    assert found["to_set_aside"] == ["train-000003", "train-000002", "final"]
    assert found["rows_lost"]["metrics.jsonl"] == 2
    assert doctor("--repair")[0] == 0
    status, told = doctor("--json")
    assert (status, json.loads(told)["damage"]) == (0, [])

    stages: dict[str, list[tuple[str, int]]] = {}
    for folder in (damaged, left):
        heard = Steps()
        trainer.train(pipeline, Run.open(folder), reporter=heard)
        stages[folder.name] = heard.begun
    assert stages["damaged"] == stages["left"]
    assert ("training", 1) in stages["left"]  # neither begins again
    assert contents(damaged) == contents(left)
    assert {name: (damaged / name).read_bytes() for name in NAMES} == whole


class Steps(Heard):
    """Remembers how much of each stage was done when it began."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[str, int]] = []

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self.begun.append((stage, done))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run but what was set aside, and but those that hold times, or digests of such a file."""
    timed = ("timings.jsonl", SEAL)
    paths = [path for path in folder.rglob("*") if path.is_file() and "set-aside-" not in path.as_posix()]
    paths = [path for path in paths if path.name not in timed]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
