"""The policy update: accumulation over micro-batches, masked rollouts, several iterations, the reference."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from attrs import evolve, frozen
from torch import Tensor

from callwright.training.algorithm import LossOutput, TokenBatch
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.learning.steps import adamw, learning_rate
from callwright_plugins.local_trainer.learning.update import Batch, make_batch, micro_batches, update
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.grpo import GRPO

Make = Callable[[str], Policy]
BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8)],
    [0, 0, 0, 1, 1, 1],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2)],
    torch.tensor([1.0, -0.5, -0.5, 0.9, 0.3, -1.2]),
)


def options(**given: Any) -> Options:
    return Options(**{"clip_norm": 1e9, "weight_decay": 0.0, **given})


def updated(policy: Policy, batch: Batch, algorithm: Any, **given: Any) -> tuple[dict[str, Tensor], dict[str, float]]:
    """The gradient by a step of plain descent (one unit of rate), and the diagnostics."""
    model = copy.deepcopy(policy.model)
    mine = evolve(policy, model=model)
    reference = evolve(policy, model=_moved(policy.model)) if algorithm.kl_weight else None
    optimiser: Any = torch.optim.SGD(model.parameters(), lr=0.0)
    before = {name: tensor.clone() for name, tensor in weights(model).items()}
    found = update(mine, reference, algorithm, optimiser, batch, options(**given), 1e-3)
    return {name: (before[name] - tensor) * 1e3 for name, tensor in weights(model).items()}, found


def _moved(model: Any) -> Any:
    moved = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.02)
    return moved


@pytest.mark.parametrize(
    "algorithm", [BatchNormalisedGRPO(kl_weight=0.2), GRPO(kl_weight=0.0)], ids=["bn-grpo", "grpo"]
)
@pytest.mark.parametrize("shared", [True, False])
def test_micro_batches_add_up_to_the_whole(algorithm: Any, shared: bool, make_policy: Make) -> None:
    policy = make_policy("llama")
    whole, diagnostics = updated(policy, BATCH, algorithm, micro_batches=1, shared_prefix=True)
    parts, again = updated(policy, BATCH, algorithm, micro_batches=4, shared_prefix=shared)
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, atol=2e-3, rtol=1e-3)
    assert diagnostics == pytest.approx(again, rel=1e-3, abs=1e-4)
    assert max(float(gradient.abs().max()) for gradient in whole.values()) > 0.1


def test_the_loss_is_the_algorithms_own_on_plain_logprobs(make_policy: Make) -> None:
    """By hand: each sequence alone, then the algorithm's loss over the padded whole."""
    policy, algorithm = make_policy("llama"), BatchNormalisedGRPO(kl_weight=0.2)
    _, found = updated(policy, BATCH, algorithm)
    tables = {}
    for key, model in (("policy", policy.model), ("reference", _moved(policy.model))):
        tables[key] = torch.zeros(6, 5)
        for row, (owner, completion) in enumerate(zip(BATCH.owners, BATCH.completions, strict=True)):
            prompt = BATCH.prompts[owner]
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
            logprobs = logits[len(prompt) - 1 : -1].log_softmax(-1)
            tables[key][row, : len(completion)] = logprobs[torch.arange(len(completion)), torch.tensor(completion)]
    mask = torch.tensor([[1.0] * len(row) + [0.0] * (5 - len(row)) for row in BATCH.completions])
    expected = algorithm.loss(
        TokenBatch(tables["policy"], tables["policy"], mask, BATCH.advantages, ref_logprobs=tables["reference"])
    )
    assert found["loss"] == pytest.approx(float(expected.loss), abs=1e-5)
    assert found["kl"] == pytest.approx(expected.diagnostics["kl"], rel=1e-3)
    assert found["ratio_mean"] == 1.0


def test_several_iterations_keep_the_old_logprobs(make_policy: Make) -> None:
    policy = make_policy("llama")
    seen: list[Tensor] = []

    class Spy:
        name, kl_weight = "spy", 0.0
        inner = BatchNormalisedGRPO(kl_weight=0.0)
        normaliser = inner.normaliser

        def loss(self, batch: TokenBatch) -> LossOutput:
            seen.append(batch.old_logprobs.clone())
            return self.inner.loss(batch)

    spy: Any = Spy()
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    found = update(policy, None, spy, optimiser, BATCH, options(iterations=3, micro_batches=1), 1e-2)
    assert len(seen) == 3
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[1], seen[2])
    assert found["ratio_max"] > 1.01


@frozen
class _Rollout:
    sampled: Sampled
    lines: None = None


@frozen
class _Group:
    prompt: tuple[int, ...]
    rollouts: Sequence[_Rollout]


def test_masked_rollouts_are_left_out() -> None:
    rows = [_Rollout(Sampled((n, 2), (0.0, 0.0), False)) for n in range(6)]
    groups: Any = [_Group((1, 2), rows[:3]), _Group((3, 4), rows[3:])]
    advantages = torch.tensor([[0.5, -0.5, 9.0], [1.0, 0.0, -1.0]])
    valid = torch.tensor([[True, True, False], [True, True, True]])
    batch = make_batch(groups, advantages, valid)
    assert [ids[0] for ids in batch.completions] == [0, 1, 3, 4, 5]
    assert batch.owners == [0, 0, 1, 1, 1]
    assert batch.advantages.tolist() == [0.5, -0.5, 1.0, 0.0, -1.0]


def test_micro_batches_are_sorted_by_length_and_complete() -> None:
    parts = micro_batches(BATCH, 4)
    lengths = [len(BATCH.completions[row]) for part in parts for row in part]
    assert lengths == sorted(lengths)
    assert sorted(row for part in parts for row in part) == list(range(6))


def test_learning_rates() -> None:
    assert learning_rate(0, 100, 1.0, 10, "constant") == pytest.approx(0.1)
    assert learning_rate(9, 100, 1.0, 10, "cosine") == pytest.approx(1.0)
    assert learning_rate(99, 100, 1.0, 10, "constant") == 1.0
    assert learning_rate(55, 100, 1.0, 10, "linear", floor=0.0) == pytest.approx(0.5)
    assert learning_rate(55, 100, 1.0, 10, "cosine", floor=0.0) == pytest.approx(0.5)
    assert learning_rate(100, 100, 2.0, 10, "linear") == pytest.approx(0.2)
    assert learning_rate(100, 100, 2.0, 10, "cosine", 0.0) == pytest.approx(0.0)
    assert learning_rate(100, 100, 2.0, 10, "cosine", 1.0) == learning_rate(30, 100, 2.0, 10, "cosine", 1.0) == 2.0
