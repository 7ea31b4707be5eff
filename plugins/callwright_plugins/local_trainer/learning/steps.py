"""What warm start and reinforcement learning share: AdamW, learning rates, one clipped step."""

from __future__ import annotations

import math
from typing import Any

import torch

from callwright.training.rollouts.learning_rates import Schedule as Schedule
from callwright.training.rollouts.learning_rates import learning_rate as learning_rate
from callwright_plugins.local_trainer.models.masters import publish, stepped


def adamw(model: Any, weight_decay: float, betas: tuple[float, float]) -> torch.optim.AdamW:
    """AdamW over all weights, or over their float32 masters; its learning rate is set anew at every step."""
    weights = list(stepped(model).values())
    # One operator for all weights; where they are on a GPU torch has its own way of that.
    fused = all(weight.device.type == "cpu" for weight in weights) or None
    optimiser = torch.optim.AdamW(weights, lr=0.0, betas=betas, weight_decay=weight_decay, fused=fused)
    optimiser.register_step_post_hook(lambda *_: publish(model))
    return optimiser


def clipped_step(
    optimiser: torch.optim.Optimizer,
    model: Any,
    rate: float,
    clip_norm: float,
    loss: float = 0.0,
    sound: bool = True,
) -> tuple[float, str | None]:
    """One step with the gradients that have accumulated, which are cleared; their norm before clipping.

    It is left out, with optimiser and weights as they were, if that norm or the ``loss`` is not finite, or if the
    log-probabilities or values that they are of were not (``sound``); the second result then says in words what was.
    """
    norm = float(torch.nn.utils.clip_grad_norm_(stepped(model).values(), clip_norm))
    fault = None
    if sound and math.isfinite(norm) and math.isfinite(loss):
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
    else:
        fault = f"loss {loss:.4g}, gradient norm {norm:.4g}" + ("" if sound else ", log-probabilities not finite")
    optimiser.zero_grad(set_to_none=True)
    return norm, fault
