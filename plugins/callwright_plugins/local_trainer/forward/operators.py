"""Pieces of a Llama as one operator each, forward and back: autograd would keep and pass over several tensors more.

All of them are of the first derivative alone, and give the same bits for the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def unit(states: Tensor, eps: float) -> Tensor:
    """States ``[..., D]`` over their root mean square: RMSNorm but for its weight."""
    if not torch.is_grad_enabled():
        return _unit(states, eps)[0]
    found: Tensor = _Unit.apply(states, eps)  # type: ignore[no-untyped-call]
    return found


def _unit(states: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    length = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
    inverse = length.square_().div_(states.shape[-1]).add_(eps).rsqrt_()
    return states * inverse, inverse


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, eps: float) -> Tensor:
        made, inverse = _unit(states, eps)
        ctx.save_for_backward(made, inverse)
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        made, inverse = ctx.saved_tensors
        along = (gradient * made).mean(-1, keepdim=True)
        return torch.addcmul(gradient, made, along, value=-1).mul_(inverse), None


def turned(states: Tensor, turn: Tensor) -> Tensor:
    """Rotary positions: neighbours of states ``[T, C]`` as complex numbers times ``turn`` ``[T, C/2]``."""
    if not torch.is_grad_enabled():
        return _times(states, turn)
    found: Tensor = _Turned.apply(states, turn)  # type: ignore[no-untyped-call]
    return found


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, turn: Tensor) -> Tensor:
        ctx.save_for_backward(turn)
        return _times(states, turn)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (turn,) = ctx.saved_tensors
        return _times(gradient.contiguous(), turn.conj()), None


def _times(states: Tensor, turn: Tensor) -> Tensor:
    return torch.view_as_real(torch.view_as_complex(states.view(*turn.shape, 2)) * turn).view(states.shape)


def gated(both: Tensor) -> Tensor:
    """SwiGLU of gate and values side by side, ``[T, 2 F]`` to ``[T, F]``."""
    if not torch.is_grad_enabled():
        return _gated(both)
    found: Tensor = _Gated.apply(both)  # type: ignore[no-untyped-call]
    return found


def _gated(both: Tensor) -> Tensor:
    gate, values = both.chunk(2, -1)
    return F.silu(gate).mul_(values)


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, both: Tensor) -> Tensor:
        ctx.save_for_backward(both)
        return _gated(both)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (both,) = ctx.saved_tensors
        gate, values = both.chunk(2, -1)
        found = torch.empty_like(both)
        of_gate, of_values = found.chunk(2, -1)
        torch.mul(gradient, F.silu(gate), out=of_values)
        of_gate.copy_(torch.ops.aten.silu_backward(gradient * values, gate))
        return found


def spread(rows: Tensor, places: Tensor, count: int) -> Tensor:
    """``[T, C]`` rows in a table ``[count, C]`` of zeros, each at its place; no place is taken twice."""
    found: Tensor = _Spread.apply(rows, places, count)  # type: ignore[no-untyped-call]
    return found


def gathered(table: Tensor, places: Tensor) -> Tensor:
    """The rows of a table at places that are all different: the other way round of :func:`spread`."""
    found: Tensor = _Gathered.apply(table, places)  # type: ignore[no-untyped-call]
    return found


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(places)
        return rows.new_zeros(count, rows.shape[1]).index_copy_(0, places, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.count = len(table)
        return table.index_select(0, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.count, gradient.shape[1]).index_copy_(0, places, gradient), None
