"""Losses, gradients, diagnostics and advantages against TRL's: its numbers on file, and TRL itself where installed."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright.training.algorithm import TokenBatch
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.grpo import GRPO

specification = importlib.util.spec_from_file_location(
    "make_trl_golden", Path(__file__).with_name("make_trl_golden.py")
)
trl_side = importlib.util.module_from_spec(specification)
sys.modules["make_trl_golden"] = trl_side
specification.loader.exec_module(trl_side)

ALGORITHMS = {"grpo": GRPO, "bn-grpo": BatchNormalisedGRPO, "dapo": DAPO}
CASES, METRICS, random_tensors, random_rewards = (
    trl_side.CASES,
    trl_side.METRICS,
    trl_side.random_tensors,
    trl_side.random_rewards,
)
ROUNDED = 1e-7  # TRL's deviation holds n / (n - 1) in float32, whatever the type of the rewards
golden = json.loads(trl_side.GOLDEN.read_text())


def ours(case: str) -> Any:
    name, options, _ = CASES[case]
    return ALGORITHMS[name](**options)


def our_loss(algorithm: Any, tensors: Any, normaliser: float | None = None) -> tuple[Any, Any, dict[str, float]]:
    logprobs = tensors.logprobs.clone().requires_grad_()
    output = algorithm.loss(
        TokenBatch(
            logprobs=logprobs,
            old_logprobs=tensors.old_logprobs,
            mask=tensors.mask,
            advantages=tensors.advantages,
            ref_logprobs=tensors.ref_logprobs if algorithm.kl_weight else None,
            entropy=tensors.entropy,
            normaliser=normaliser,
        )
    )
    output.loss.backward()
    return output.loss.detach(), logprobs.grad, dict(output.diagnostics)


def our_advantages(algorithm: Any, rewards: list[list[float | None]], dtype: torch.dtype = torch.float64) -> Any:
    values = torch.tensor([[torch.nan if r is None else r for r in group] for group in rewards], dtype=dtype)
    return algorithm.advantages(values, ~values.isnan())


def golden_tensors(index: int) -> Any:
    values = golden["batches"][index]
    dtypes = {name: torch.int64 if name == "mask" else torch.float64 for name in values}
    return trl_side.Tensors(**{name: torch.tensor(rows, dtype=dtypes[name]) for name, rows in values.items()})


def assert_same(
    found: tuple[Any, Any, dict[str, float]], expected: tuple[Any, Any, dict[str, float]], tol: float
) -> None:
    loss, gradient, diagnostics = found
    expected_loss, expected_gradient, metrics = expected
    assert abs(float(loss) - float(expected_loss)) < tol
    assert (gradient - expected_gradient).abs().max() < tol
    for name, value in metrics.items():
        assert diagnostics[name] == pytest.approx(value, abs=1e-6), name  # TRL takes these means in float32


# On file ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("index", range(len(golden["batches"])))
def test_loss_equals_the_golden_file(case: str, index: int) -> None:
    expected = golden["losses"][case][index]
    expected = expected["loss"], torch.tensor(expected["gradient"], dtype=torch.float64), expected["metrics"]
    assert_same(our_loss(ours(case), golden_tensors(index)), expected, 1e-12)
    assert expected[2].keys() >= METRICS.keys() - {"kl"}


def test_golden_batches_reach_both_ends_of_the_clip_range() -> None:
    for case, results in golden["losses"].items():
        assert max(result["metrics"]["clip_fraction_low"] for result in results) > 0, case
        assert max(result["metrics"]["clip_fraction_high"] for result in results) > 0, case


@pytest.mark.parametrize("std", ["group", "batch", "none"])
@pytest.mark.parametrize("algorithm", [GRPO, BatchNormalisedGRPO])
def test_advantages_equal_the_golden_file(std: str, algorithm: Any) -> None:
    for rewards, expected in zip(golden["rewards"], golden["advantages"][std], strict=True):
        found = our_advantages(algorithm(std=std), rewards)
        assert (found - torch.tensor(expected, dtype=torch.float64)).abs().max() < ROUNDED


def test_dapo_advantages_equal_the_golden_file() -> None:
    for rewards, expected in zip(golden["rewards"], golden["advantages"]["group"], strict=True):
        assert (our_advantages(DAPO(), rewards) - torch.tensor(expected, dtype=torch.float64)).abs().max() < ROUNDED


# Live ---------------------------------------------------------------------------------------------------------------

live = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None,
    reason="TRL is not installed: pip install trl==1.16.0 (its numbers on file were compared all the same)",
)


@functools.cache
def oracle(rows: int, generations: int, options: tuple[tuple[str, Any], ...]) -> Any:
    return trl_side.Trl(rows, generations, **dict(options))


def trl_for(case: str, **more: Any) -> Any:
    return oracle(6, 2, tuple((CASES[case][2] | more).items()))


@live
@pytest.mark.parametrize("case", CASES)
def test_weighing_the_advantages_of_tokens_is_trls_importance_correction(case: str) -> None:
    """TRL multiplies the surrogate of each token, before the KL term is added."""
    for index in range(len(golden["batches"])):
        tensors = golden_tensors(index)
        generator = torch.Generator().manual_seed(index)
        weights = 3 * torch.rand(tensors.logprobs.shape, dtype=torch.float64, generator=generator)
        weights[weights < 0.5] = 0  # those that a mask leaves out
        loss, gradient, _ = trl_for(case).loss(tensors, importance=weights)
        weighed = evolve(tensors, advantages=tensors.advantages.unsqueeze(1) * weights)
        found, slope, _ = our_loss(ours(case), weighed)
        plain, _, _ = our_loss(ours(case), tensors)
        assert abs(float(found) - float(loss)) < 1e-12 < abs(float(plain) - float(loss))
        assert (slope - gradient).abs().max() < 1e-12


@live
@pytest.mark.parametrize("case", CASES)
def test_golden_file_is_what_trl_says(case: str) -> None:
    for index, expected in enumerate(golden["losses"][case]):
        loss, gradient, metrics = trl_for(case).loss(golden_tensors(index))
        assert loss.item() == pytest.approx(expected["loss"], abs=1e-12)
        assert (gradient - torch.tensor(expected["gradient"], dtype=torch.float64)).abs().max() < 1e-12
        assert metrics == pytest.approx(expected["metrics"], abs=1e-6)


@live
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tol"), [(torch.float32, 1e-6), (torch.float64, 1e-12)], ids=["float32", "float64"])
def test_loss_equals_trl(case: str, dtype: torch.dtype, tol: float) -> None:
    for seed in range(10, 40):
        tensors = random_tensors(seed, rows=1 + seed % 7, tokens=1 + seed % 11, dtype=dtype)
        assert_same(our_loss(ours(case), tensors), trl_for(case).loss(tensors), tol)


@live
@pytest.mark.parametrize("std", ["group", "batch", "none"])
def test_advantages_equal_trl(std: str) -> None:
    trl = oracle(32, 4, (("scale_rewards", std), ("beta", 0.0)))
    for seed in range(10):
        rewards = random_rewards(seed, 8, 4)
        for algorithm in [GRPO(std=std), BatchNormalisedGRPO(std=std), *([DAPO()] if std == "group" else [])]:
            assert (our_advantages(algorithm, rewards) - trl.advantages(rewards)).abs().max() < ROUNDED


@live
def test_equal_rewards_leave_rounding_in_trl_and_nothing_here() -> None:
    rewards: list[float | None] = [0.225] * 3 + [0.7] * 3  # the float32 mean of the first three is off by 1.5e-8
    theirs = oracle(6, 3, (("beta", 0.0),)).step(rewards, [[trl_side.END]] * 6, [[1]] * 6)["advantages"]
    assert 1e-5 < theirs.abs().max() < 1e-3
    assert our_advantages(GRPO(), [rewards[:3], rewards[3:]], torch.float32).flatten().tolist() == [0.0] * 6


@live
def test_accumulated_dapo_equals_trl() -> None:
    """TRL's ``dapo`` divides each micro-batch by the tokens of the accumulated batch: our normaliser."""
    trl = trl_for("dapo, with KL", gradient_accumulation_steps=3)
    algorithm, whole = ours("dapo, with KL"), random_tensors(3, 6, 9)
    total = algorithm.normaliser(whole.mask)
    parts = [whole[0:1], whole[1:4], whole[4:6]]
    for part in parts:
        assert_same(our_loss(algorithm, part, total), trl.loss(part, tokens_of_whole=int(total)), 1e-12)
    accumulated = sum(trl.loss(part, tokens_of_whole=int(total))[0] for part in parts)
    assert float(accumulated) == pytest.approx(float(our_loss(algorithm, whole)[0]), abs=1e-12)


@live
def test_accumulated_bnpo_of_trl_is_a_mean_over_local_batches() -> None:
    """TRL's ``bnpo`` divides by the tokens of the micro-batch and by their number; so do we, if told to."""
    trl = trl_for("bn-grpo", gradient_accumulation_steps=2)
    algorithm, whole = ours("bn-grpo"), random_tensors(4, 6, 9)
    parts = [whole[0:2], whole[2:6]]
    for part in parts:
        assert_same(our_loss(algorithm, part, 2 * algorithm.normaliser(part.mask)), trl.loss(part), 1e-12)
    local = sum(float(trl.loss(part)[0]) for part in parts)
    assert abs(local - float(our_loss(algorithm, whole)[0])) > 1e-3  # it is another objective than the whole batch's


@live
def test_accumulated_grpo_equals_trl_for_equal_micro_batches() -> None:
    trl = trl_for("grpo", gradient_accumulation_steps=2)
    algorithm, whole = ours("grpo"), random_tensors(5, 6, 9)
    for part in (whole[0:3], whole[3:6]):
        assert_same(our_loss(algorithm, part, algorithm.normaliser(whole.mask)), trl.loss(part), 1e-12)


@live
def test_a_sequence_without_active_tokens_is_counted_by_trl_and_not_by_us() -> None:
    tensors = random_tensors(6, 4, 5)
    tensors.mask[2] = 0
    theirs = trl_for("grpo").loss(tensors)
    assert float(our_loss(ours("grpo"), tensors)[0]) == pytest.approx(float(theirs[0]) * 4 / 3, abs=1e-12)
    loss, gradient, _ = our_loss(ours("grpo"), tensors, normaliser=4)
    assert float(loss) == pytest.approx(float(theirs[0]), abs=1e-12)
    assert (gradient - theirs[1]).abs().max() < 1e-12


@live
@pytest.mark.parametrize("case", ["grpo", "grpo, unbiased KL", "bn-grpo", "dapo", "dapo, with KL"])
def test_a_whole_step_of_a_model_equals_trl(case: str) -> None:
    """From completions, environment masks and rewards to the gradient of a model's weights, all through TRL's code."""
    generator = torch.Generator().manual_seed(11)
    trl, algorithm = oracle(12, 4, tuple(CASES[case][2].items())), ours(case)
    lengths = torch.randint(2, 9, (12,), generator=generator).tolist()
    completions = [
        [*torch.randint(1, 30, (length - 1,), generator=generator).tolist(), trl_side.END] for length in lengths
    ]
    env_masks = [[int(i % 4 != 2 or i == length - 1) for i in range(length)] for length in lengths]
    rewards = [[0.0, 1.0, 0.35, 1.0], [0.5, 0.5, 0.5, 0.5], [0.1, None, 0.3, 0.85]]

    inputs = trl.step([reward for group in rewards for reward in group], completions, env_masks)
    model = trl.trainer.model
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
    attention = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
    tokens = inputs["completion_ids"].shape[1]

    def logprobs_of(which: Any) -> Any:
        logits = which(input_ids=ids, attention_mask=attention).logits[:, -tokens - 1 : -1]
        return logits.log_softmax(-1).gather(2, inputs["completion_ids"].unsqueeze(2)).squeeze(2)

    with torch.no_grad():
        old = logprobs_of(model) + 0.2 * torch.randn(12, tokens, generator=generator)
        reference = logprobs_of(trl.trainer.ref_model) if algorithm.kl_weight else None
    inputs["old_per_token_logps"] = old

    model.zero_grad()
    theirs = trl.trainer._compute_loss(model, inputs)
    theirs.backward()
    their_gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    model.zero_grad()
    advantages = our_advantages(algorithm, rewards, torch.float32).flatten()
    assert (advantages - inputs["advantages"]).abs().max() < 1e-6
    output = algorithm.loss(
        TokenBatch(
            logprobs=logprobs_of(model),
            old_logprobs=old,
            mask=inputs["completion_mask"] * inputs["tool_mask"],
            advantages=advantages,
            ref_logprobs=reference,
        )
    )
    output.loss.backward()
    our_gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert output.loss.item() == pytest.approx(theirs.item(), abs=1e-6)
    assert their_gradient.abs().max() > 0.01
    assert (our_gradient - their_gradient).abs().max() < 1e-6


@live
def test_overlong_shaping_equals_trl() -> None:
    from trl.rewards import get_soft_overlong_punishment

    for limit, buffer in ((100, 20), (64, 64), (7, 3)):
        lengths = torch.arange(0, 2 * limit)
        theirs = get_soft_overlong_punishment(limit, buffer)([[0] * int(length) for length in lengths])
        rewards = torch.full((1, 2 * limit), 0.5, dtype=torch.float64)
        shaped = DAPO(overlong_buffer=buffer).shape_rewards(rewards, lengths.unsqueeze(0), limit)
        assert (shaped - 0.5 - torch.tensor(theirs, dtype=torch.float64)).abs().max() < 1e-12
