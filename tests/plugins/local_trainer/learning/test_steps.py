"""One clipped step: what a gradient that is not finite may not do."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from callwright_plugins.local_trainer.learning.steps import adamw, clipped_step


def everything(model: Any, optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Weights, moments and counters, in one list of copies."""
    held = [tensor.detach().clone() for tensor in model.parameters()]
    for row in optimiser.state.values():
        held += [value.clone() for value in row.values() if isinstance(value, torch.Tensor)]
    return held


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("before", [0, 2])
def test_a_gradient_that_is_not_finite_changes_nothing(bad: float, before: int) -> None:
    """Neither a weight nor a moment of the optimiser, where a NaN would stay for ever; the next step is as if alone."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimiser = adamw(model, 0.1, (0.9, 0.95))
    for _ in range(before):
        model(torch.ones(3)).square().sum().backward()
        clipped_step(optimiser, model, 1e-2, 1.0)
    held = everything(model, optimiser)

    model(torch.ones(3)).square().sum().backward()
    assert model.bias.grad is not None
    model.bias.grad[1] = bad
    clipped_step(optimiser, model, 1e-2, 1.0)
    assert len(everything(model, optimiser)) == len(held)
    assert all(map(torch.equal, everything(model, optimiser), held))
    assert all(tensor.grad is None for tensor in model.parameters())

    model(torch.ones(3)).square().sum().backward()
    clipped_step(optimiser, model, 1e-2, 1.0)
    now = everything(model, optimiser)
    assert not torch.equal(now[0], held[0])
    assert all(bool(tensor.isfinite().all()) for tensor in now)
