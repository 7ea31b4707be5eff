"""Whole small runs: what they leave, what is masked, how they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from callwright.environments.protocol import Outcome
from callwright.errors import RecipeError, UnknownName, UsageError
from callwright.hookspecs import hookimpl
from callwright.pipeline import Pipeline, create_trainer
from callwright.plugins import Registry
from callwright.training.rollouts.task_stream import TaskStream
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.trainer import LocalTrainer
from callwright_plugins.policy_gradient.dapo import DAPO

Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def files(folder: Path) -> dict[str, bytes]:
    """What two runs of one seed must have in common."""
    names = (
        "metrics.jsonl",
        "rollouts.jsonl",
        "warm_start.jsonl",
        "evaluation.json",
        "checkpoints/final/model.safetensors",
    )
    return {name: (folder / name).read_bytes() for name in names}


def test_what_a_run_leaves(tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent) -> None:
    run = train(make_pipeline(extra_rewards=[variety]), tmp_path / "a")
    metrics = run.rows("metrics.jsonl")
    assert [row["step"] for row in metrics] == [1, 2, 3, 4]
    for row in metrics:
        assert row["rollouts"] == 6
        assert row["masked"] == 0
        assert set(row["scores"]) == {"format", "names", "parameters", "types", "execution", "answer", "variety"}
        assert 0 <= row["reward"] <= 1
        assert row["ratio_mean"] == pytest.approx(1.0)
        assert {"kl", "entropy", "clip_fraction", "learning_rate", "gradient_norm", "zero_variance"} <= row.keys()
        assert "seconds" not in row
    assert metrics[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert metrics[3]["kl"] > 0
    assert len(run.rows("rollouts.jsonl")) == 8
    logged = run.rows("rollouts.jsonl")[0]
    assert {"task", "prompt", "completion", "total", "scores", "advantage", "depth"} <= logged.keys()
    assert [row["step"] for row in run.rows("warm_start.jsonl")] == list(range(1, 13))
    evaluation = run.read_json("evaluation.json")
    assert set(evaluation["before"]["by_depth"]) == set("0123456")
    assert evaluation["after"]["n"] == 7
    assert [row["step"] for row in evaluation["during"]] == [2]
    assert sorted(path.name for path in run.checkpoints.iterdir()) == [
        "final",
        "reference",
        "train-000002",
        "train-000004",
    ]
    final = run.checkpoints / "final"
    model = AutoModelForCausalLM.from_pretrained(final, local_files_only=True)
    assert len(AutoTokenizer.from_pretrained(final, local_files_only=True)) == model.config.vocab_size
    before = load_file(run.checkpoints / "reference" / "model.safetensors")
    after = load_file(final / "model.safetensors")
    assert any((before[name] != after[name]).any() for name in before)


def test_a_seed_fixes_every_byte_and_a_finished_run_is_left_alone(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    first, second = (train(make_pipeline(extra_rewards=[variety]), tmp_path / name) for name in "ab")
    assert files(first.path) == files(second.path)
    other = train(make_pipeline("seed=8"), tmp_path / "c")
    assert files(first.path)["metrics.jsonl"] != files(other.path)["metrics.jsonl"]
    stamps = {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}
    train(make_pipeline(), tmp_path / "a")
    assert stamps == {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}


@pytest.mark.parametrize("algorithm", ["grpo", "dapo"])
def test_other_algorithms(algorithm: str, tmp_path: Path, make_pipeline: Pipelines) -> None:
    run = train(make_pipeline(f"algorithm={algorithm}", "trainer.iterations=2"), tmp_path / "a")
    assert len(run.rows("metrics.jsonl")) == 4
    assert (run.checkpoints / "reference").exists() == (algorithm == "grpo")


@pytest.mark.parametrize(("kept", "groups", "rounds"), [(0, 0, 3), (1, 2, 1), (2, 2, 0)])
def test_dynamic_sampling_draws_others_up_to_a_limit(
    kept: int, groups: int, rounds: int, tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every two groups the algorithm keeps ``kept``; two are wanted, and three more rounds allowed."""
    monkeypatch.setattr(DAPO, "keep_groups", lambda self, rewards, valid: torch.arange(len(rewards)) < kept)
    run = train(
        make_pipeline("algorithm=dapo", "trainer.warm_start=0", "trainer.resampling_rounds=3", "trainer.steps=2"),
        tmp_path,
    )
    for row in run.rows("metrics.jsonl"):
        assert (row["groups"], row["resampling_rounds"], row["rollouts"]) == (groups, rounds, (rounds + 1) * 2 * 3)
        assert ("loss" in row) == (groups > 0)


class _Failing:
    """The environment with machinery that fails, always or the first time for each session opened."""

    def __init__(self, inner: Any, always: bool) -> None:
        self.inner, self.always, self.opened = inner, always, 0
        self.name, self.tools, self.pure = inner.name, inner.tools, inner.pure

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened += 1
        session = self.inner.open(scenario, seed)
        if self.always or self.opened % 2:
            session = _Down(session)
        return session


class _Down:
    def __init__(self, inner: Any) -> None:
        self.digest, self.close = inner.digest, inner.close

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return Outcome("infrastructure_error", code="server_down", message="the server is down")


OVERFIT = (
    "model.tiny.width=32",
    "model.tiny.ffn=64",
    "trainer.warm_start={steps=60, count=30, batch=12, warm_up=5, learning_rate=0.01, demonstrations={simple=1.0}}",
    "trainer.max_new_tokens=24",
    "trainer.depths=[1]",
    "trainer.steps=2",
)


def test_failures_of_the_machinery_are_masked_and_counted(
    tmp_path: Path, make_pipeline: Pipelines, small_corpus: Any
) -> None:
    down = _Failing(small_corpus.environment, always=True)
    run = train(make_pipeline(*OVERFIT, environment=down), tmp_path)
    masked = sum(row["masked"] for row in run.rows("metrics.jsonl"))
    assert masked > 0
    assert all(row["answered"] in (0, None) for row in run.rows("metrics.jsonl"))
    logged = [row for row in run.rows("rollouts.jsonl") if row["total"] is None]
    assert all("server_down" in row["masked"] and row["advantage"] == 0 for row in logged)


def test_the_length_of_thoughts_is_that_of_the_logged_completions(
    tmp_path: Path, make_pipeline: Pipelines, small_corpus: Any
) -> None:
    """A mean over the rollouts that are not masked and have a thought; all of them are logged here."""
    flaky = _Failing(small_corpus.environment, always=True)
    overrides = (*OVERFIT, "trainer.rollouts_per_step=1000")
    run = train(make_pipeline(*overrides, environment=flaky), tmp_path)
    logged, known = run.rows("rollouts.jsonl"), 0
    for row in run.rows("metrics.jsonl"):
        rollouts = [one for one in logged if one["step"] == row["step"]]
        assert len(rollouts) == row["rollouts"]
        counted = [one for one in rollouts if one["total"] is not None and "</think>" in one["completion"]]
        words = [len(one["completion"].split("<think>")[1].split("</think>")[0].split()) for one in counted]
        assert [one["thought_words"] for one in counted] == words
        assert row["thought_words"] == (pytest.approx(sum(words) / len(words)) if words else None)
        known += len(words)
    assert known > 0
    assert any(one["total"] is None for one in logged)


def test_failures_of_the_machinery_are_tried_again(tmp_path: Path, make_pipeline: Pipelines, small_corpus: Any) -> None:
    flaky = _Failing(small_corpus.environment, always=False)
    steady = train(make_pipeline(*OVERFIT), tmp_path / "steady")
    retried = train(make_pipeline(*OVERFIT, environment=flaky), tmp_path / "flaky")
    assert flaky.opened > 0
    assert sum(row["masked"] for row in retried.rows("metrics.jsonl")) == 0
    assert files(steady.path)["metrics.jsonl"] == files(retried.path)["metrics.jsonl"]


def test_the_step_hook_is_fired(
    tmp_path: Path, make_pipeline: Pipelines, fresh_registry: Callable[[], Registry]
) -> None:
    heard: list[Any] = []

    class Listener:
        @hookimpl
        def callwright_training_step(self, metrics: Any) -> None:
            heard.append(metrics)

    registry = fresh_registry()
    registry.add(Listener(), name="listener")
    run = train(make_pipeline("trainer.steps=2", registry=registry), tmp_path)
    assert [json.loads(json.dumps(row)) for row in heard] == run.rows("metrics.jsonl")


def test_the_alarm_stands_in_the_metrics_and_is_logged_when_it_begins(
    tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [None, "collapsing", "collapsing", None]
    seen: list[list[int]] = []

    def collapse(rows: Any, window: int) -> str | None:
        seen.append([row["step"] for row in rows])
        return said[len(seen) - 1]

    monkeypatch.setattr("callwright_plugins.local_trainer.run.training.collapse", collapse)
    with structlog.testing.capture_logs() as logs:
        run = train(make_pipeline(), tmp_path)
    assert [row["alarm"] for row in run.rows("metrics.jsonl")] == said
    assert seen == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert [(log["log_level"], log["step"], log["reason"]) for log in logs] == [("warning", 2, "collapsing")]


def test_the_reporter_hears_of_every_stage(tmp_path: Path, make_pipeline: Pipelines) -> None:
    heard: list[tuple[Any, ...]] = []

    class Listening:
        def start(self, stage: str, total: int, done: int = 0) -> None:
            heard.append((stage, total, done, []))

        def advance(self, units: int = 1, **figures: float) -> None:
            heard[-1][3].append(units)

        def say(self, text: str) -> None: ...

        def finish(self) -> None: ...

    pipeline = make_pipeline()
    run = Run.create(tmp_path, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run, reporter=Listening())
    assert [(stage, total, done, sum(units)) for stage, total, done, units in heard] == [
        ("demonstrations", 20, 0, 20),
        ("warm start", 12, 0, 12),
        ("evaluation before", 7, 0, 7),
        ("training", 4, 0, 4),
        ("evaluation after", 7, 0, 7),
    ]


def test_mixed_precision_keeps_weights_in_full_precision(tmp_path: Path, make_pipeline: Pipelines) -> None:
    run = train(make_pipeline("trainer.dtype=bfloat16", "trainer.steps=2"), tmp_path)
    assert len(run.rows("metrics.jsonl")) == 2
    weights = load_file(run.checkpoints / "final" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_a_directory_is_trained_further(tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent) -> None:
    first = train(make_pipeline(extra_rewards=[variety]), tmp_path / "a")
    path = first.checkpoints / "final"
    data = f'model={{path="{path}"}}'
    second = train(make_pipeline(data, "trainer.warm_start=0", "trainer.steps=2"), tmp_path / "b")
    assert second.read_json("evaluation.json")["before"] == first.read_json("evaluation.json")["after"]
    assert (tmp_path / "b" / "checkpoints" / "reference" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.grup=3", "--set trainer.grup=3: There is no option .* named 'grup'. Did you mean 'group'"),
        ("trainer.steps=-1", "--set trainer.steps=-1: .*'steps'.*greater than or equal to 0"),
        ("trainer.warm_start.stepz=3", "trainer.*'stepz'. Did you mean 'steps'"),
        ('trainer.device="tpu"', "'device'"),
    ],
)
def test_wrong_options_name_their_place(override: str, message: str, make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline(override)
    with pytest.raises(RecipeError, match=message):
        create_trainer(pipeline.recipe, pipeline.registry)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('model={path="/nowhere"}', "--set model=.*not a Hugging Face model directory"),
        ("model={}", "--set model={}: .*either path"),
        ("model.tiny.width=30", "small.toml:15 with --set model.tiny.width=30: .*width 30 is not a multiple"),
        ("model.tiny.widht=30", "--set model.tiny.widht=30: .*'widht'. Did you mean 'width'"),
        ("model.tiny.heads=0", "--set model.tiny.heads=0: .*greater than or equal to 1"),
        ('model={tiny={}, path="x"}', "--set model=.*either path"),
    ],
)
def test_wrong_models_name_their_place(override: str, message: str, tmp_path: Path, make_pipeline: Pipelines) -> None:
    with pytest.raises(RecipeError, match=message):
        train(make_pipeline(override), tmp_path)


def test_a_depth_that_is_not_there(small_corpus: Any) -> None:
    with pytest.raises(UsageError, match="depth 9"):
        TaskStream(small_corpus["train"], [1, 9], seed=0)


def test_depths_come_in_turn(small_corpus: Any) -> None:
    stream = TaskStream(small_corpus["train"], [0, 1, 2, 2], seed=0)
    drawn: list[Task] = [task for step in range(4) for task in stream.draw(3, step)]
    assert sorted(task.depth for task in drawn) == [0] * 3 + [1] * 3 + [2] * 6
    assert drawn == [task for step in range(4) for task in stream.draw(3, step)]


def test_unknown_options_are_unknown_names() -> None:
    with pytest.raises(UnknownName, match="'steps'"):
        LocalTrainer(stepps=3)


@pytest.mark.parametrize("floor", [0.0, 0.1, 0.5])
def test_a_schedule_falls_to_its_floor(
    floor: float, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    options = ("schedule='cosine'", "warm_up=0", "learning_rate=0.001", f"schedule_floor={floor}")
    run = train(make_pipeline(*(f"trainer.{one}" for one in options), extra_rewards=[variety]), tmp_path)
    rates = [row["learning_rate"] for row in run.rows("metrics.jsonl")]
    left = (1, 0.853553, 0.5, 0.146447)  # (1 + cos(pi t / 4)) / 2
    assert rates == pytest.approx([0.001 * (floor + (1 - floor) * share) for share in left], rel=1e-5)
