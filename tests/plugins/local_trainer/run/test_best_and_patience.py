"""The checkpoint of the best evaluation is kept, and training ends where none gets better; stopped or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from safetensors.torch import load_file

from callwright.commands.file_formats import schema_of
from callwright.errors import UsageError
from callwright.options import read_options
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run import training
from callwright_plugins.local_trainer.run.choosing import is_best, since_best

Pipelines = Callable[..., Pipeline]
SETTINGS = (
    "trainer.warm_start=0", "trainer.steps=8", "trainer.evaluate_every=1", "trainer.checkpoint_every=3",
    "trainer.keep_checkpoints=9", 'trainer.best="accuracy"',
)  # fmt: skip


class Scripted:
    """Evaluations that say what they are told to, in the order of the weights that they see."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, accuracies: list[float]) -> None:
        self.accuracies, self.known = accuracies, dict[bytes, float]()
        self.made = training.evaluate_policy
        monkeypatch.setattr(training, "evaluate_policy", self)

    def __call__(self, pipeline: Any, policy: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        weights = policy.model.get_input_embeddings().weight.detach().numpy().tobytes()
        if weights not in self.known:
            self.known[weights] = self.accuracies[len(self.known)]
        return {**self.made(pipeline, policy, *arguments, **named), "overall": self.known[weights]}


def start(pipeline: Pipeline, folder: Path) -> Run:
    return Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})


def go(pipeline: Pipeline, run: Run) -> Run:
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def test_the_best_is_kept(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch, variety: Any
) -> None:
    """Best after step 3, and as good again after step 5: the earlier one stays."""
    Scripted(monkeypatch, [0.2, 0.1, 0.3, 0.6, 0.5, 0.6, 0.4, 0.4, 0.4])
    pipeline = make_pipeline(*SETTINGS, extra_rewards=[variety])
    run = go(pipeline, start(pipeline, tmp_path / "a"))
    best = load_file(run.checkpoints / "best" / "model.safetensors")
    third, final = (load_file(run.checkpoints / name / "model.safetensors") for name in ("train-000003", "final"))
    assert all((best[name] == third[name]).all() for name in best)
    assert any((best[name] != final[name]).any() for name in best)
    assert len(run.rows("metrics.jsonl")) == 8
    assert "stopped_early" not in run.read_json("evaluation.json")


def test_training_ends_where_nothing_gets_better(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch, variety: Any
) -> None:
    Scripted(monkeypatch, [0.2, 0.1, 0.3, 0.3, 0.2, 0.9, 0.9, 0.9, 0.9])
    pipeline = make_pipeline(*SETTINGS, "trainer.patience=2", extra_rewards=[variety])
    run = go(pipeline, start(pipeline, tmp_path / "a"))
    evaluation = run.read_json("evaluation.json")
    assert evaluation["stopped_early"] == 4
    assert [one["step"] for one in evaluation["during"]] == [1, 2, 3, 4]
    assert evaluation["after"]["overall"] == 0.2
    assert len(run.rows("metrics.jsonl")) == 4
    assert (run.checkpoints / "final").is_dir()
    Draft202012Validator(schema_of("evaluation")).validate(evaluation)
    go(pipeline, run)  # finished: nothing is left to do
    assert len(run.rows("metrics.jsonl")) == 4


@pytest.mark.parametrize("at", [3, 5, 7])
def test_a_run_that_was_cut_off_ends_alike(
    at: int, tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch, variety: Any
) -> None:
    """Cut off in the middle of an evaluation, before the best, after it, and in the last one."""
    accuracies = [0.2, 0.1, 0.3, 0.4, 0.2, 0.3, 0.9, 0.9, 0.9]
    pipeline = make_pipeline(*SETTINGS, "trainer.patience=2", extra_rewards=[variety])
    Scripted(monkeypatch, accuracies)
    whole = go(pipeline, start(pipeline, tmp_path / "whole"))
    scripted = Scripted(monkeypatch, accuracies)
    calls = 0

    def cut(*arguments: Any, **named: Any) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError("the machine went away")
        return scripted(*arguments, **named)

    monkeypatch.setattr(training, "evaluate_policy", cut)
    run = start(pipeline, tmp_path / "cut")
    with pytest.raises(OSError, match="went away"):
        go(pipeline, run)
    go(pipeline, run)
    names = ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/final/model.safetensors")
    for name in (*names, "checkpoints/best/model.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name


@pytest.mark.parametrize("measure", ["accuracy", "loss"])
def test_which_is_best(measure: str) -> None:
    key, sign = ("overall", 1) if measure == "accuracy" else ("loss", -1)
    made = [{key: None if value is None else sign * value} for value in (None, 1.0, 3.0, 3.0, None, 2.0)]
    assert [is_best(measure, one, made[:place]) for place, one in enumerate(made)] == [True, True, True] + [False] * 3
    assert [since_best(measure, made[:count]) for count in range(7)] == [0, 0, 0, 0, 1, 2, 3]


def test_patience_needs_evaluations() -> None:
    with pytest.raises(UsageError, match="'patience' counts evaluations during training, of which there are none"):
        read_options(Options, {"patience": 2}, "the trainer 'local'")
