"""A key-value cache with room to grow, so that a sampled token is written into it instead of copying all before it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

_LEAST_ROOM = 64


class RoomyLayer(DynamicLayer):  # type: ignore[misc]  # transformers states no types
    """The plain layer of ``transformers``, whose keys and values are the front of larger tensors.

    Attention reads the same numbers in the same order, so results are those of the plain layer, bit for bit.
    """

    def __init__(self, layer: DynamicLayer) -> None:
        super().__init__()
        self.lazy_initialization(layer.keys, layer.values)
        self.keys, self.values = layer.keys, layer.values
        self._whole: tuple[Tensor, Tensor] = (layer.keys, layer.values)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write new states after the old ones; everything is copied only when the room is used up."""
        length, needed = self.keys.shape[-2], self.keys.shape[-2] + key_states.shape[-2]
        if needed > self._whole[0].shape[-2]:
            self._whole = (_larger(self.keys, needed), _larger(self.values, needed))
        for whole, states in zip(self._whole, (key_states, value_states), strict=True):
            whole[..., length:needed, :] = states
        self.keys, self.values = (whole[..., :needed, :] for whole in self._whole)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some rows, in a given order; the room is found anew at the next token."""
        self.keys, self.values = self.keys.index_select(0, indices), self.values.index_select(0, indices)
        self._whole = (self.keys, self.values)


def _larger(tensor: Tensor, needed: int) -> Tensor:
    """A tensor that begins with this one and has room for half as many tokens again, and for ``needed`` at least."""
    rows, heads, length, width = tensor.shape
    larger = tensor.new_empty(rows, heads, max(needed, length + max(_LEAST_ROOM, length // 2)), width)
    larger[..., :length, :] = tensor
    return larger


def make_room(cache: DynamicCache) -> None:
    """Replace the plain layers of a filled cache; others (sliding windows, recurrent states) stay as they are."""
    cache.layers = [RoomyLayer(layer) if type(layer) is DynamicLayer else layer for layer in cache.layers]
