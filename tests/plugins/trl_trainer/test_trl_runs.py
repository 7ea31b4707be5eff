"""Runs of the trainer ``trl``: kill and resume, several processes, what is written, what the end can be loaded with."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import distributed, multiprocessing

from callwright.errors import DataError, RunError
from callwright.training.recipe_run import run_recipe
from callwright.training.run_folder import Run
from callwright_plugins.trl_trainer.worker import leave_together

Train = Callable[..., Run]
LONGER = ("trainer.steps=5", "trainer.evaluate_every=2", "trainer.schedule=linear")
WRITTEN = ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/final/model.safetensors")


@pytest.fixture(scope="module")
def whole(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tmp_path_factory.mktemp("whole") / "run", *LONGER)


def _killed(recipe: str, folder: Path, plugin_folder: Path, step: int, *overrides: str) -> int:
    """Train in another process that is killed after it has written the rows of a step; its status."""
    program = f"""
import sys
sys.path.insert(0, {str(plugin_folder)!r})
from callwright.pipeline import build_pipeline
from callwright.plugins import load_plugins
from callwright.recipe_file import parse_recipe
from callwright.training.recipe_run import run_pipeline
from callwright_plugins import json_ir, local_trainer, policy_gradient, tier_rewards, toolworld, trl_trainer
import variety_rewards
modules = (json_ir, tier_rewards, toolworld, policy_gradient, local_trainer, trl_trainer, variety_rewards)
registry = load_plugins(entry_points=False, extra={{module.__name__: module for module in modules}})
loaded = parse_recipe({recipe!r}, "small.toml", {list(overrides)!r})
run_pipeline(build_pipeline(loaded, registry), output={str(folder)!r})
"""
    environment = {**os.environ, "KILLED_AT": str(step), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False).returncode


def test_a_killed_run_goes_on_to_the_same_bytes(
    train: Train, recipe: str, whole: Run, plugin_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    assert _killed(recipe, folder, plugin_folder, 3, *LONGER) == -signal.SIGKILL
    assert len(Run(folder).rows("metrics.jsonl")) == 3
    assert not (folder / "checkpoints" / "final").exists()
    again = train(folder, *LONGER)
    for name in WRITTEN:
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_a_run_that_is_stopped_while_it_samples_keeps_its_last_step(
    train: Train, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setenv("STOPPED_AT", "3")  # counted from 0: after three steps
        with pytest.raises(KeyboardInterrupt):
            train(folder, *LONGER)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["checkpoint-2", "checkpoint-3"]
    assert json.loads((folder / "checkpoints" / "checkpoint-3" / "callwright.json").read_text())["step"] == 3
    again = train(folder, *LONGER)
    for name in WRITTEN:
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_a_half_written_checkpoint_is_not_taken_and_a_damaged_one_is_set_aside(
    train: Train, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callwright_plugins.trl_trainer import course

    def never(*_: Any) -> None:
        raise RunError("the end is not written")

    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(course, "export", never)
        with pytest.raises(RunError, match="the end is not written"):
            train(folder, *LONGER)
    newest = folder / "checkpoints" / "checkpoint-5"
    (newest / "digests.json").unlink()
    older = folder / "checkpoints" / "checkpoint-4" / "model.safetensors"
    older.write_bytes(older.read_bytes()[:-4] + b"abcd")
    with pytest.raises(RunError, match="no checkpoint is whole"):
        train(folder, *LONGER)
    assert not newest.exists()
    for path in (folder / "checkpoints").glob("checkpoint-*"):
        path.rename(tmp_path / path.name)
    again = train(folder, *LONGER)  # from the beginning
    for name in WRITTEN:
        assert (again.path / name).read_bytes() == (whole.path / name).read_bytes(), name


def test_rows_evaluations_and_checkpoints_are_those_of_any_run(whole: Run) -> None:
    rows = whole.rows("metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["learning_rate"] for row in rows] == pytest.approx([1e-3, 1e-3, 7.75e-4, 5.5e-4, 3.25e-4])
    expected = {"reward", "kl", "entropy", "clip_fraction", "loss", "gradient_norm", "multi_call", "alarm"}
    assert expected <= rows[0].keys()
    evaluation = whole.read_json("evaluation.json")
    assert [one["step"] for one in evaluation["during"]] == [2, 4]
    assert evaluation["before"].keys() == evaluation["after"].keys()
    assert evaluation["before"]
    rollouts = whole.rows("rollouts.jsonl")
    assert len(rollouts) == 10
    assert {"task", "prompt", "completion", "advantage", "scores", "total"} <= rollouts[0].keys()
    found = sorted(path.name for path in whole.checkpoints.iterdir())
    assert found == ["checkpoint-4", "checkpoint-5", "final"]


def test_a_finished_run_is_left_alone(train: Train, whole: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.checkpoints.rglob("*") if path.is_file()}
    train(whole.path, *LONGER)
    assert {path: path.stat().st_mtime_ns for path in whole.checkpoints.rglob("*") if path.is_file()} == before


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_adapter_is_merged_into_what_transformers_loads(train: Train, recipe: str, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    run = train(tmp_path / "run", "trainer.lora.rank=4", "trainer.gradient_checkpointing=true")
    merged = AutoModelForCausalLM.from_pretrained(run.checkpoints / "final")
    base = AutoModelForCausalLM.from_pretrained(run.path / "warm_start" / "checkpoints" / "final")
    ids = torch.tensor([AutoTokenizer.from_pretrained(run.checkpoints / "final").encode("What is the weather?")])
    with torch.no_grad():
        plain = base(ids).logits
        adapted = PeftModel.from_pretrained(base, run.checkpoints / "adapter")(ids).logits
        assert float((merged(ids).logits - adapted).abs().max()) < 1e-5
        assert float((plain - adapted).abs().max()) > 1e-4
    note = json.loads((run.checkpoints / "final" / "callwright_policy.json").read_text())
    assert note == {"prompt": "compact", "corpus": "toolworld-mini-v1"}

    again = train(tmp_path / "again", "trainer.export=adapter", "trainer.lora.rank=2", "trainer.warm_start.steps=0",
                  text=_from_folder(recipe, run.path))  # fmt: skip
    assert (again.checkpoints / "final" / "adapter_model.safetensors").is_file()
    assert not (again.path / "warm_start").exists()


def _from_folder(recipe: str, folder: Path) -> str:
    return re.sub(r"\[model.tiny\][^\[]*", f'[model]\npath = "{folder}"\n\n', recipe)


def test_bfloat16_arithmetic_learns_in_float32_weights(train: Train, tmp_path: Path) -> None:
    run = train(tmp_path / "run", "trainer.dtype=bfloat16")
    found = load_file(run.checkpoints / "final" / "model.safetensors")
    assert {value.dtype for value in found.values()} == {torch.float32}
    assert all(row["loss"] is not None for row in run.rows("metrics.jsonl"))


def test_a_step_that_is_not_finite_is_left_out_and_ends_the_run_in_the_end(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callwright_plugins.trl_trainer.grpo import RecipeGRPOTrainer

    divide = RecipeGRPOTrainer._divisor
    monkeypatch.setattr(RecipeGRPOTrainer, "_divisor", lambda *arguments: divide(*arguments) * float("nan"))
    with pytest.raises(RunError, match="not finite"):
        train(tmp_path / "run", "trainer.steps=9", "trainer.checkpoint_every=1", "trainer.not_finite_limit=2")
    run = Run(tmp_path / "run")
    rows = run.rows("metrics.jsonl")
    assert len(rows) == 2
    assert rows[0]["loss"] is None
    assert "not_finite" in rows[0]
    begun = load_file(run.path / "warm_start" / "checkpoints" / "final" / "model.safetensors")
    now = load_file(run.checkpoints / "checkpoint-1" / "model.safetensors")
    assert all(torch.equal(now[name], begun[name]) for name in begun)


def _leaves(rank: int, store: str, waits: float) -> None:
    """One of two processes, of which one has something left to do."""
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    if rank == 0:
        time.sleep(waits)
        Path(f"{store}.written").touch()
    leave_together()
    assert not distributed.is_initialized()
    assert Path(f"{store}.written").exists(), "the other one left while this one was at work"


def test_processes_leave_when_all_have_done_their_part(tmp_path: Path) -> None:
    leave_together()  # alone, there is nobody to wait for
    multiprocessing.start_processes(_leaves, args=(str(tmp_path / "store"), 1.0), nprocs=2, start_method="spawn")


@pytest.mark.slow
def test_two_processes_end_in_the_weights_of_one(train: Train, tmp_path: Path) -> None:
    settings = ("trainer.micro_batches=1", "trainer.steps=3", "trainer.iterations=2")
    one = train(tmp_path / "one", *settings)
    two = train(tmp_path / "two", *settings, "trainer.processes=2")
    first, second = (load_file(run.checkpoints / "final" / "model.safetensors") for run in (one, two))
    begun = load_file(one.path / "warm_start" / "checkpoints" / "final" / "model.safetensors")
    assert max(float((first[name] - begun[name]).abs().max()) for name in first) > 1e-3
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-5
    assert one.rows("rollouts.jsonl") == two.rows("rollouts.jsonl")
    assert one.read_json("evaluation.json") == two.read_json("evaluation.json")


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_folder_without_a_model_is_said_to_be_one(processes: int, train: Train, recipe: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    settings = ("trainer.warm_start.steps=0", "trainer.micro_batches=1", f"trainer.processes={processes}")
    with pytest.raises((DataError, RunError), match="model cannot be loaded as a causal language model"):
        train(tmp_path / "run", *settings, text=_from_folder(recipe, tmp_path / "model"))


def test_a_recipe_of_the_local_trainer_runs_by_one_key(tmp_path: Path) -> None:
    run = run_recipe(
        "tier-mini",
        output=tmp_path / "run",
        overrides=[
            "trainer.name=trl", "trainer.steps=1", "trainer.warm_start.steps=2", "trainer.warm_start.count=4",
            "trainer.evaluation_tasks=1", "trainer.max_new_tokens=8", "trainer.prompts=2", "trainer.group=2",
            "model.tiny.width=16", "model.tiny.layers=1", "trainer.device=cpu",
        ],
    )  # fmt: skip
    assert (run.checkpoints / "final" / "config.json").is_file()
