"""Ragged token lists as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Ids = Sequence[int]


def pad_left(rows: Sequence[Ids], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """``[B, L]`` ids with padding before each row, and the mask of what is not padding."""
    return _pad(rows, pad, device, left=True)


def pad_right(rows: Sequence[Ids], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """``[B, L]`` ids with padding after each row, and the mask of what is not padding."""
    return _pad(rows, pad, device, left=False)


def _pad(rows: Sequence[Ids], pad: int, device: torch.device, *, left: bool) -> tuple[Tensor, Tensor]:
    length = max(map(len, rows), default=0)
    ids, mask = [], []
    for row in rows:
        gap = length - len(row)
        filler, nothing, something = [pad] * gap, [0] * gap, [1] * len(row)
        ids.append([*filler, *row] if left else [*row, *filler])
        mask.append([*nothing, *something] if left else [*something, *nothing])
    shape = (len(rows), length)
    return (
        torch.tensor(ids, dtype=torch.long, device=device).reshape(shape),
        torch.tensor(mask, dtype=torch.long, device=device).reshape(shape),
    )


def positions(mask: Tensor) -> Tensor:
    """Position ids ``[B, L]`` that count only what is not padding; padding gets 0."""
    return (mask.cumsum(1) - 1).clamp(min=0)
