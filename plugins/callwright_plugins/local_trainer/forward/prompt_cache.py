"""Keys and values of prompts for training: read as often as wanted, and never grown.

Where activations are computed again on the way back, a layer meets its cache twice. What a plain cache took in the
first time would then be there a second time; these layers give the same answer to the same question.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer


class PromptLayer(DynamicLayer):  # type: ignore[misc]  # transformers states no types
    """Takes down the keys and values of prompts, which begin with nothing."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Keep the states, the first time alone: later ones are the same, and their gradient is not asked for."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
        return key_states, value_states


class GroupLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values ``[prompts, heads, length, width]``, of which each row reads those of its prompt."""

    def __init__(self, keys: Tensor, values: Tensor, owners: Tensor) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self._owners = owners

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Each row's prompt and its own states after it, spread anew so that nobody has to keep them."""
        keys, values = self.keys.index_select(0, self._owners), self.values.index_select(0, self._owners)
        return torch.cat([keys, key_states], -2), torch.cat([values, value_states], -2)
