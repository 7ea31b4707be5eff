"""Pieces of a Llama and their derivatives, on plain tensors: a layer puts them together, forward and back.

Derivatives are written out, since autograd would call several times as many operators and keep several tensors more.
Each ``..._back`` takes the gradient of what its piece made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

#: Scores of attention, by size of their table: up to here it is a tensor, above it is never there as a whole.
_WHOLE: Final = 1 << 18


def unit(states: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """States ``[..., D]`` over their root mean square, RMSNorm but for its weight; and what they were multiplied by."""
    length = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
    inverse = length.square_().div_(states.shape[-1]).add_(eps).rsqrt_()
    return states * inverse, inverse


def unit_back(gradient: Tensor, made: Tensor, inverse: Tensor) -> Tensor:
    """The gradient of the states of :func:`unit`, which made ``made`` and ``inverse`` of them."""
    along = (gradient * made).mean(-1, keepdim=True)
    return torch.addcmul(gradient, made, along, value=-1).mul_(inverse)


def turn(states: Tensor, by: Tensor) -> Tensor:
    """Rotary positions: the first ``C`` of the states ``[T, >= C]``, neighbours as complex numbers, times ``by``.

    ``by`` is ``[T, C/2]``. They are turned where they are. The way back is the same with the conjugates.
    """
    some = states[:, : 2 * by.shape[1]].unflatten(1, (-1, 2))  # type: ignore[no-untyped-call]
    torch.view_as_complex(some).mul_(by)
    return states


def gated(both: Tensor) -> tuple[Tensor, Tensor]:
    """SwiGLU of gate and values side by side, ``[T, 2 F]`` to ``[T, F]``; and what the values were multiplied by."""
    gate, values = both.chunk(2, -1)
    opened = F.silu(gate)
    return opened * values, opened


def gated_back(gradient: Tensor, both: Tensor, opened: Tensor) -> Tensor:
    """The gradient of ``both`` of :func:`gated`."""
    gate, values = both.chunk(2, -1)
    found = torch.empty_like(both)
    of_gate, of_values = found.chunk(2, -1)
    torch.mul(gradient, opened, out=of_values)
    torch.mul(gradient, values, out=of_gate)
    of_gate.copy_(torch.ops.aten.silu_backward(of_gate, gate))
    return found


def attended(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, kept: list[list[Tensor]] | None = None
) -> Tensor:
    """Attention of ``[H, B, N, W]`` to ``[H, B, M, W]``; what the way back needs is appended to ``kept``.

    ``mask`` ``[B or 1, N, M]`` is added to the scores; without one each sees those before it and itself.
    """
    heads, rows, count, width = queries.shape
    others = keys.shape[2]
    if heads * rows * count * others > _WHOLE:
        told, sums = _flash(queries, keys, values, mask)
        if kept is not None:
            kept.append([queries, keys, values, told, sums])
        return told
    if mask is None:
        mask = torch.full((1, count, others), -torch.inf).triu_(1)
    scores = torch.bmm(queries.flatten(0, 1), keys.flatten(0, 1).mT).view(heads, rows, count, others)
    weights = scores.add_(mask).softmax(3).view(heads * rows, count, others)
    if kept is not None:
        kept.append([queries, keys, values, weights])
    return torch.bmm(weights, values.flatten(0, 1)).view(heads, rows, count, width)


def attended_back(gradient: Tensor, kept: Sequence[Tensor], mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values of :func:`attended`, of whose ``kept`` this is what it appended."""
    if len(kept) > 4:
        return _flash_back(gradient, kept[:3], kept[3], kept[4], mask)
    queries, keys, values = (one.flatten(0, 1) for one in kept[:3])
    weights, gradient = kept[3], gradient.flatten(0, 1)
    of_values = torch.bmm(weights.mT, gradient)
    of_scores = torch._softmax_backward_data(torch.bmm(gradient, values.mT), weights, 2, torch.float32)
    of_queries, of_keys = torch.bmm(of_scores, keys), torch.bmm(of_scores.mT, queries)
    return of_queries.view_as(kept[0]), of_keys.view_as(kept[1]), of_values.view_as(kept[2])


def _flash(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool = True
) -> tuple[Tensor, Tensor]:
    """Attention without a table of scores, and logarithms of their sums ``[H, B, N]``; ``causal`` without a mask."""
    added = None if mask is None else mask.unsqueeze(0)
    found: tuple[Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        queries, keys, values, 0.0, mask is None and causal, attn_mask=added, scale=1.0
    )
    return found


def _flash_back(
    gradient: Tensor, given: Sequence[Tensor], told: Tensor, sums: Tensor, mask: Tensor | None, *, causal: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values."""
    added = None if mask is None else mask.unsqueeze(0)
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, *given, told, sums, 0.0, mask is None and causal, attn_mask=added, scale=1.0
    )
    return found


def attended_behind(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    before: Sequence[Tensor],
    kept: list[list[Tensor]] | None = None,
) -> Tensor:
    """Attention of rows ``[H, R, N, W]`` to one another's common beginning and to their own ``[H, R, M, W]``.

    Keys and values of the beginning, ``before``, are ``[K, L, W]`` each: rows and the heads that share them are read as
    one long row of queries, so that nothing is copied for each. Both parts are softmaxes of their own, which the
    logarithms of their sums put together (Juravsky et al. 2024, "Hydragen", section 3).
    """
    told, sums = _flash(queries, keys, values, mask)
    shared = before[0].shape[0]
    prompt = [one.unsqueeze(1) for one in before]
    first, first_sums = _flash(_long(queries, shared), prompt[0], prompt[1], None, causal=False)
    first_sums = first_sums.reshape(sums.shape)
    both = torch.logaddexp(first_sums, sums)
    told = torch.lerp(told, first.reshape(told.shape), (first_sums - both).exp_().unsqueeze(3))
    if kept is not None:
        kept.append([queries, keys, values, told, both])
    return told


def attended_behind_back(
    gradient: Tensor, kept: Sequence[Tensor], mask: Tensor | None, before: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The gradients of queries, keys and values of :func:`attended_behind`, then those of ``before``.

    Each part's weights are those of the whole, since they are made again from the sum of both.
    """
    queries, keys, values, told, both = kept
    shared = before[0].shape[0]
    own = _flash_back(gradient, (queries, keys, values), told, both, mask)
    long = [_long(one, shared) for one in (gradient, queries, told)]
    prompt = [one.unsqueeze(1) for one in before]
    sums = both.reshape(shared, 1, -1)
    first = _flash_back(long[0], (long[1], *prompt), long[2], sums, None, causal=False)
    return own[0].add_(first[0].reshape(own[0].shape)), own[1], own[2], first[1].squeeze(1), first[2].squeeze(1)


def _long(table: Tensor, shared: int) -> Tensor:
    """``[H, R, N, W]`` as one long row for each of the heads' keys, ``[K, 1, H/K R N, W]``."""
    return table.reshape(shared, 1, -1, table.shape[3])
