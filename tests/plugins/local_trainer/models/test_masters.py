"""Weights of bfloat16 and their float32 masters: small steps add up, micro-batches too, runs resume alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from safetensors.torch import load_file

from callwright.errors import UsageError
from callwright.options import read_options
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.learning.demonstrations import Example
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.supervised import supervised_step
from callwright_plugins.local_trainer.models.masters import stepped, to_bfloat16
from callwright_plugins.local_trainer.models.policy import Policy, set_weights, weights
from callwright_plugins.local_trainer.options import Options, SupervisedOptions
from callwright_plugins.local_trainer.run import checkpoints, training
from callwright_plugins.local_trainer.run.training import frozen_copy

Make = Callable[[str], Policy]
Pipelines = Callable[..., Pipeline]
SHOWN = [Example((9, 30, 41), (4, 5, 6, 2)), Example((17, 3), (8, 2)), Example((5, 6, 7), (44, 45, 2))]
HALF = ("trainer.weights=bfloat16", "trainer.dtype=bfloat16")


def halved(policy: Policy) -> Policy:
    mine = evolve(policy, model=copy.deepcopy(policy.model), dtype=torch.bfloat16)
    to_bfloat16(mine.model)
    return mine


def test_the_model_is_rounded_and_the_masters_are_not(make_policy: Make) -> None:
    policy = make_policy("llama")
    mine = halved(policy)
    originals = weights(policy.model)
    for name, parameter in mine.model.named_parameters():
        assert parameter.dtype == torch.bfloat16
        assert torch.equal(weights(mine.model)[name], originals[name])
        assert torch.equal(parameter, originals[name].bfloat16())


def test_small_steps_add_up(make_policy: Make) -> None:
    """A hundredth of the last bit of a weight at each of 60 steps, as in float32."""
    policy = make_policy("llama")
    full, half = evolve(policy, model=copy.deepcopy(policy.model)), halved(policy)
    bare = evolve(half, model=copy.deepcopy(half.model))  # a copy has no masters
    before, rate = weights(policy.model), 4e-5
    moved = {}
    for name, one in (("full", full), ("half", half), ("bare", bare)):
        optimiser = adamw(one.model, 0.0, (0.9, 0.95))
        for _ in range(60):
            supervised_step(one, optimiser, SHOWN, 2, rate, 1e9)
        moved[name] = {key: tensor.float() - before[key] for key, tensor in weights(one.model).items()}
    key = "model.layers.0.mlp.up_proj.weight"
    scale = float(moved["full"][key].norm())
    assert float((moved["half"][key] - moved["full"][key]).norm()) < 0.15 * scale
    rounding = before[key].bfloat16().float() - before[key]
    assert float((moved["bare"][key] - rounding - moved["full"][key]).norm()) > 0.7 * scale
    for parameter, master in zip(half.model.parameters(), stepped(half.model).values(), strict=True):
        assert torch.equal(parameter, master.bfloat16())


def test_micro_batches_are_summed_in_float32(make_policy: Make) -> None:
    """The masters get the float32 sum of what each micro-batch left in bfloat16, and the weights keep none of it."""
    mine = halved(make_policy("llama"))
    alone = []
    for example in SHOWN:
        (-sum_of(mine, [example])).backward()  # type: ignore[no-untyped-call]
        alone.append({name: tensor.grad for name, tensor in stepped(mine.model).items()})
        for tensor in stepped(mine.model).values():
            tensor.grad = None
    for example in SHOWN:
        (-sum_of(mine, [example])).backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in mine.model.parameters())
    for name, master in stepped(mine.model).items():
        assert master.grad is not None
        assert torch.equal(master.grad, sum(one[name] for one in alone))
        assert all(torch.equal(one[name], one[name].bfloat16().float()) for one in alone)


def sum_of(policy: Policy, part: list[Example]) -> torch.Tensor:
    from callwright_plugins.local_trainer.learning.supervised import negative_log_likelihood

    return negative_log_likelihood(policy, part)


def test_a_reference_is_rounded_and_has_no_masters(make_policy: Make, tmp_path: Path) -> None:
    mine = halved(make_policy("llama"))
    checkpoints.save_weights(mine.model, tmp_path / "model.safetensors")
    assert all(tensor.dtype == torch.float32 for tensor in load_file(tmp_path / "model.safetensors").values())
    reference = frozen_copy(mine, tmp_path / "model.safetensors")
    assert all(tensor.dtype == torch.bfloat16 for tensor in stepped(reference.model).values())
    for theirs, ours in zip(reference.model.parameters(), mine.model.parameters(), strict=True):
        assert torch.equal(theirs, ours)
        assert not theirs.requires_grad


def test_what_is_restored_is_rounded_into_the_model(make_policy: Make) -> None:
    mine = halved(make_policy("llama"))
    others = {name: tensor + 0.001 for name, tensor in weights(mine.model).items()}
    set_weights(mine.model, others)
    for name, parameter in mine.model.named_parameters():
        assert torch.equal(stepped(mine.model)[name], others[name])
        assert torch.equal(parameter, others[name].bfloat16())


def go(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


@pytest.mark.parametrize("algorithm", ["bn-grpo", "ppo"])
def test_a_run_and_one_that_was_cut_off(
    algorithm: str, tmp_path: Path, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch, variety: Any
) -> None:
    pipeline = make_pipeline(f"algorithm={algorithm}", "trainer.evaluate_every=0", *HALF, extra_rewards=[variety])
    whole = go(pipeline, tmp_path / "whole")
    assert all(row["gradient_norm"] > 0 for row in whole.rows("metrics.jsonl"))
    final = load_file(whole.checkpoints / "final" / "model.safetensors")
    assert {tensor.dtype for tensor in final.values()} == {torch.bfloat16}
    kept = load_file(whole.checkpoints / "train-000004" / "model.safetensors")
    assert {tensor.dtype for tensor in kept.values()} == {torch.float32}
    assert any((kept[name].bfloat16().float() != kept[name]).any() for name in kept)
    told = training.descend

    def cut(*arguments: Any, **named: Any) -> Any:
        if arguments[5] == 3e-4 * 4 / 10:  # the rate of the fourth step of the warm-up
            raise OSError("the machine went away")
        return told(*arguments, **named)

    run = Run.create(tmp_path / "cut", recipe_text=pipeline.recipe.effective_text(), manifest={})
    monkeypatch.setattr(training, "descend", cut)
    with pytest.raises(OSError, match="went away"):
        create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    assert len(run.rows("metrics.jsonl")) == 3
    monkeypatch.setattr(training, "descend", told)
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    for name in ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/final/model.safetensors"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name


@pytest.mark.parametrize("table", [Options, SupervisedOptions])
def test_the_arithmetic_is_not_finer_than_the_weights(table: Any) -> None:
    with pytest.raises(UsageError, match="set dtype = 'bfloat16', too"):
        read_options(table, {"weights": "bfloat16"}, "the trainer")
