"""Diagnostics: literal values, how micro-batches combine, and that they cost one transfer."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from callwright.training import TokenBatch

# MOVED
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.grpo import GRPO

ALGORITHMS = [GRPO(), BatchNormalisedGRPO(), DAPO(epsilon_high=0.2)]
each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)


def batch() -> TokenBatch:
    ratios = torch.tensor([[1.0, 0.5, 2.0], [0.5, 1.5, 9.0]], dtype=torch.float64)
    return TokenBatch(
        logprobs=torch.full((2, 3), -2.0, dtype=torch.float64).requires_grad_(),
        old_logprobs=-2.0 - ratios.log(),
        mask=torch.tensor([[1, 1, 1], [1, 1, 0]]),
        advantages=torch.tensor([1.0, -1.0], dtype=torch.float64),
        ref_logprobs=torch.tensor([[-2.0, -1.0, -3.0], [-2.0, -2.0, 5.0]], dtype=torch.float64),
        entropy=torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, math.nan]], dtype=torch.float64),
    )


@each_algorithm
def test_values(algorithm: Any) -> None:
    assert algorithm.loss(batch()).diagnostics == pytest.approx(
        {
            "ratio_mean": (1 + 0.5 + 2 + 0.5 + 1.5) / 5,
            "ratio_max": 2.0,
            "clip_fraction_low": 1 / 5,  # 0.5 with the negative advantage
            "clip_fraction_high": 1 / 5,  # 2.0 with the positive one
            "clip_fraction": 2 / 5,
            "active_tokens": 5.0,
            "kl": (math.exp(1) - 2 + math.exp(-1)) / 5,
            "entropy": 3.0,
        },
        abs=1e-12,
    )


@each_algorithm
def test_micro_batches_combine_by_their_active_tokens(algorithm: Any) -> None:
    whole = batch()
    names = ("logprobs", "old_logprobs", "mask", "advantages", "ref_logprobs", "entropy")
    rows = [
        algorithm.loss(TokenBatch(**{name: getattr(whole, name)[i : i + 1] for name in names})).diagnostics
        for i in range(2)
    ]
    total = sum(row["active_tokens"] for row in rows)
    for name, value in algorithm.loss(whole).diagnostics.items():
        if name == "ratio_max":
            combined = max(row[name] for row in rows)
        elif name == "active_tokens":
            combined = total
        else:
            combined = sum(row[name] * row["active_tokens"] for row in rows) / total
        assert combined == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 3)])
def test_without_active_tokens_all_are_zero(shape: tuple[int, int]) -> None:
    zeros = torch.zeros(shape)
    output = DAPO().loss(TokenBatch(zeros.clone().requires_grad_(), zeros, zeros, torch.zeros(shape[0])))
    assert output.loss.item() == 0
    assert set(output.diagnostics.values()) == {0.0}
    assert "kl" not in output.diagnostics
    assert "entropy" not in output.diagnostics


class Synchronisations(TorchDispatchMode):
    """Counts the operations that make a program wait for its accelerator: values read, sizes that depend on values."""

    WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "index.Tensor")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(name in str(function) for name in self.WAITING):
            self.found.append(str(function))
        return function(*args, **(kwargs or {}))


@each_algorithm
def test_a_loss_waits_for_the_device_once(algorithm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    transfers = []
    tolist = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: transfers.append(tensor.shape) or tolist(tensor))
    tokens = batch()
    with Synchronisations() as waits:
        output = algorithm.loss(tokens)
    assert waits.found == []
    assert transfers == [(len(output.diagnostics),)]


def test_the_counter_of_waits_counts() -> None:
    with Synchronisations() as waits:
        torch.ones(2).sum().item()
        torch.ones(2)[torch.tensor([True, False])]
    assert len(waits.found) >= 2
