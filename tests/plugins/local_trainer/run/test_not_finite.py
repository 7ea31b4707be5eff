"""Steps that are not finite are left out, counted and told; after some in a row the run stops, and can go on."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright.errors import RunError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.algorithm import LossOutput
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright_plugins.local_trainer.learning import supervised
from callwright_plugins.local_trainer.learning.steps import adamw, clipped_step
from callwright_plugins.local_trainer.learning.update import Batch, update
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.report.page import write_report

Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


def state_of(model: Any, optimiser: torch.optim.Optimizer) -> tuple[Any, Any]:
    return copy.deepcopy(model.state_dict()), copy.deepcopy(optimiser.state_dict())


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize(
    ("gradient", "loss", "sound", "words"),
    [
        (math.nan, 1.0, True, "gradient norm nan"),
        (math.inf, 1.0, True, "gradient norm inf"),
        (1.0, math.nan, True, "loss nan"),
        (1.0, -math.inf, True, "loss -inf"),
        (1.0, 1.0, False, "log-probabilities not finite"),
    ],
)
def test_a_step_that_is_not_finite_leaves_weights_and_optimiser_as_they_were(
    gradient: float, loss: float, sound: bool, words: str
) -> None:
    model = torch.nn.Linear(3, 2)
    optimiser = adamw(model, 0.1, (0.9, 0.95))

    def step(value: float, *more: Any) -> tuple[float, str | None]:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, value)
        return clipped_step(optimiser, model, 0.1, 1.0, *more)

    assert step(0.5)[1] is None
    before = state_of(model, optimiser)
    _, fault = step(gradient, loss, sound)
    assert words in str(fault)
    assert same(before, state_of(model, optimiser))
    assert all(parameter.grad is None for parameter in model.parameters()), "nothing of it is left for the next step"
    assert step(0.5, 1.0, True) == (pytest.approx(0.5 * 8**0.5), None)
    assert not same(before, state_of(model, optimiser))


def test_one_mini_batch_is_left_out_and_the_others_are_not(make_policy: Callable[[str], Policy]) -> None:
    class Broken(BatchNormalisedGRPO):
        def loss(self, batch: Any) -> LossOutput:
            made = super().loss(batch)
            return evolve(made, loss=made.loss * math.inf) if float(batch.advantages.max()) == 3.0 else made

    policy = make_policy("llama")
    model = copy.deepcopy(policy.model).requires_grad_(True)
    optimiser = adamw(model, 0.0, (0.9, 0.95))
    batch = Batch([(5, 9), (6,)], [0, 0, 1, 1], [(4, 2), (7, 2), (8, 2), (9, 2)], torch.tensor([1.0, -1, 3, -3]))
    options = Options(mini_batches=2, micro_batches=1)
    row = update(evolve(policy, model=model), None, Broken(kl_weight=0), optimiser, batch, options, 1e-2)
    assert row["not_finite"]["updates"] == 1
    assert row["not_finite"]["of"] == 2
    assert math.isnan(row["loss"])
    assert {int(one["step"]) for one in optimiser.state.values()} == {1}
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_log_probabilities_that_a_loss_clips_away_are_seen(make_policy: Callable[[str], Policy]) -> None:
    """A sampled token of probability 0 makes a ratio without bound, which the clip of the loss hides."""
    policy = make_policy("llama")
    model = copy.deepcopy(policy.model).requires_grad_(True)
    optimiser = adamw(model, 0.0, (0.9, 0.95))
    batch = Batch([(5, 9)], [0, 0], [(4, 2), (7, 2)], torch.tensor([1.0, -1.0]))

    class Clips(BatchNormalisedGRPO):
        def loss(self, batch: Any) -> LossOutput:
            batch.old_logprobs[0, 0] = -math.inf
            return LossOutput(batch.logprobs.clamp(-1, 0).sum(), {})

    row = update(evolve(policy, model=model), None, Clips(kl_weight=0), optimiser, batch, Options(iterations=2), 1e-2)
    assert (row["not_finite"]["updates"], row["not_finite"]["of"]) == (1, 2), "they are infinite in the second"
    assert row["not_finite"]["found"][0].endswith(", log-probabilities not finite")
    assert "inf" not in row["not_finite"]["found"][0].removesuffix("log-probabilities not finite")


@pytest.fixture
def broken_steps(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The optimiser steps of reinforcement learning, counted from 1, whose loss is infinite."""
    steps: set[int] = set()
    calls = 0
    loss = BatchNormalisedGRPO.loss

    def sometimes(self: BatchNormalisedGRPO, batch: Any) -> LossOutput:
        nonlocal calls
        calls += 1
        made = loss(self, batch)
        return evolve(made, loss=made.loss * math.inf) if calls in steps else made

    monkeypatch.setattr(BatchNormalisedGRPO, "loss", sometimes)
    return steps


SETTINGS = ("trainer.warm_start=0", "trainer.micro_batches=1", "trainer.evaluate_every=0")


def test_a_run_goes_on_past_a_step_that_is_not_finite(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, broken_steps: set[int]
) -> None:
    broken_steps.add(2)
    run = train(make_pipeline(*SETTINGS, extra_rewards=[variety]), tmp_path)
    rows = run.rows("metrics.jsonl")
    assert [row["loss"] is None for row in rows] == [False, True, False, False]
    assert [row["gradient_norm"] is None for row in rows] == [False, True, False, False]
    told = rows[1]["not_finite"]
    assert (told["updates"], told["of"], told["tasks"]) == (1, 1, ["train-17", "train-1"])
    assert "inf, gradient norm nan" in told["found"][0]
    assert "its update was left out (step 2: " in rows[1]["alarm"]
    assert [row["alarm"] for row in (rows[0], *rows[2:])] == [None] * 3
    assert rows[2]["kl"] == pytest.approx(rows[1]["kl"] or 0, abs=1), "the policy is still sound"


def test_after_three_in_a_row_it_stops_in_words_and_goes_on_when_asked(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, broken_steps: set[int]
) -> None:
    broken_steps |= {2, 3, 4}
    pipeline = make_pipeline(*SETTINGS, "trainer.steps=6", "trainer.checkpoint_every=50", extra_rewards=[variety])
    with pytest.raises(RunError) as raised:
        train(pipeline, tmp_path)
    said = str(raised.value)
    rows = Run.open(tmp_path).rows("metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert said.startswith("stopped after step 4: 3 steps in a row were not finite")
    assert "gradient norm" in said
    assert all(task in said for row in rows[1:] for task in row["not_finite"]["tasks"])
    assert raised.value.exit_status == 1
    page = write_report(Run.open(tmp_path)).read_text(encoding="utf-8")
    assert "Alarm in the last step, 4: 3 steps in a row were not finite" in page
    assert "3 of 4 steps were not finite; their updates were left out." in page
    run = train(pipeline, tmp_path)
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4, 5, 6]
    assert json.loads((tmp_path / "evaluation.json").read_text())["after"] is not None


def test_the_limit_is_an_option(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, broken_steps: set[int]
) -> None:
    broken_steps |= {1}
    with pytest.raises(RunError, match="stopped after step 1: a step was not finite"):
        train(make_pipeline(*SETTINGS, "trainer.not_finite_limit=1", extra_rewards=[variety]), tmp_path)


@pytest.mark.parametrize("trainer", ["warm start", "sft"])
def test_supervised_steps_that_are_not_finite(
    trainer: str, tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = supervised.negative_log_likelihood

    def sometimes(policy: Policy, part: Any) -> torch.Tensor:
        nonlocal calls
        calls += torch.is_grad_enabled()
        return real(policy, part) * (math.inf if calls in (2, 4, 5, 6) else 1)

    monkeypatch.setattr(supervised, "negative_log_likelihood", sometimes)
    if trainer == "sft":
        settings: tuple[str, ...] = ('trainer={name="sft", source="references", steps=8, batch=4, max_new_tokens=8}',)
        name = "metrics.jsonl"
    else:
        settings, name = ("trainer.steps=0", "trainer.warm_start.steps=8"), "warm_start.jsonl"
    pipeline = make_pipeline(*settings)
    with pytest.raises(RunError, match=r"stopped after step 6.*: 3 steps in a row were not finite") as raised:
        train(pipeline, tmp_path)
    rows = Run.open(tmp_path).rows(name)
    assert [row["loss"] is None for row in rows] == [False, True, False, True, True, True]
    assert all(task in str(raised.value) for row in rows[3:] for task in row["not_finite"]["tasks"][:4])
    assert "3 steps in a row were not finite" in write_report(Run.open(tmp_path)).read_text(encoding="utf-8")
    run = train(pipeline, tmp_path)
    assert [row["step"] for row in run.rows(name)] == list(range(1, 9))
    assert (run.checkpoints / "final").is_dir()
