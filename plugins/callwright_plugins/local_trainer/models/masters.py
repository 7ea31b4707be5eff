"""Weights in bfloat16 with float32 masters: the model computes with the former, the optimiser steps the latter.

A weight of bfloat16 has 8 bits, so that a step smaller than 1/512 of it would be lost; the masters have them all. The
gradients of micro-batches are summed in float32, each as soon as it is there, so that none is kept twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

#: By model. A copy of a model has none: references are never stepped.
_MASTERS: WeakKeyDictionary[nn.Module, dict[str, nn.Parameter]] = WeakKeyDictionary()


def to_bfloat16(model: Any, but: str = "") -> None:
    """Turn the weights of a model into bfloat16 and keep masters of them; those whose names begin with ``but`` stay."""
    masters = {}
    for name, parameter in model.named_parameters():
        if but and name.startswith(but):
            masters[name] = parameter
            continue
        masters[name] = nn.Parameter(parameter.detach().float().clone(), requires_grad=parameter.requires_grad)
        parameter.data = parameter.data.to(torch.bfloat16)
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(_summing(masters[name]))
    _MASTERS[model] = masters


def _summing(master: nn.Parameter) -> Callable[[Tensor], None]:
    def move(parameter: Tensor) -> None:
        assert parameter.grad is not None
        gradient = parameter.grad.float()
        master.grad = gradient if master.grad is None else master.grad.add_(gradient)
        parameter.grad = None

    return move


def stepped(model: Any) -> dict[str, nn.Parameter]:
    """What an optimiser steps, by name: the masters where there are any, else the weights; tied ones once."""
    return _MASTERS.get(model) or dict(model.named_parameters())


@torch.no_grad()
def publish(model: Any) -> None:
    """Round the masters of a model into its weights."""
    masters: Mapping[str, nn.Parameter] = _MASTERS.get(model, {})
    for name, parameter in model.named_parameters() if masters else ():
        if parameter is not masters[name]:
            parameter.copy_(masters[name])
