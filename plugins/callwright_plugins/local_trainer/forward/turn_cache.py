"""Keys and values of episodes that go on, kept between their turns so that a turn computes only what is new in it.

What is kept belongs to an episode, and is what one forward pass after the other made of a prefix of its ids: the
context of its last turn and what was sampled there, but for the last token, which nobody had to follow. The next
context is compared with it id for id, and what they have in common is used; a template that writes earlier turns anew
costs what comes after the first difference. Keys are of the weights that made them: before each turn a checksum of all
weights is compared, and where it is another one everything is dropped. (torch's counters of changes would not do: its
fused AdamW on the CPU leaves them as they are.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

import torch
from attrs import frozen
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from callwright_plugins.local_trainer.forward.batches import Ids
from callwright_plugins.local_trainer.models.policy import Policy

#: Rotary positions whose angles hang on how long the longest row of a batch is.
_MOVING_ANGLES: Final = ("dynamic", "longrope")


@frozen(eq=False)
class Kept:
    """Keys and values of ``ids``, in one table or several, each ``[..., len(ids), W]``.

    ``few``: as :mod:`.llama` has them, which are none that transformers' forward could read.
    """

    ids: tuple[int, ...]
    tables: tuple[Tensor, ...]
    few: bool

    def first(self, count: int) -> Kept:
        """Those of the first ids."""
        if count == len(self.ids):
            return self
        return Kept(self.ids[:count], tuple(table[..., :count, :] for table in self.tables), self.few)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(table.nbytes for table in self.tables)


class TurnCache:
    """Keys and values by the episode that they are of, at most ``most`` bytes of them.

    Who comes first is kept: what no room is left for is computed in full the next time. A batch that is being computed
    holds what it took beside that, until it has copied it.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._kept: dict[Hashable, Kept] = {}
        self._weights: object = None
        #: Bytes that are kept.
        self.size = 0
        #: Tokens of contexts that a forward pass was asked for, and those that it was spared.
        self.computed = self.spared = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, owner: Hashable) -> bool:
        return owner in self._kept

    @property
    def owners(self) -> list[Hashable]:
        """Of whom something is kept."""
        return list(self._kept)

    def begin(self, policy: Policy) -> None:
        """Before a turn of ``policy``: what was made by other weights is dropped."""
        if self._kept and weights_of(policy) != self._weights:
            self.clear()
        if not self._kept:
            self._weights = None

    def take(self, owner: Hashable, context: Ids, few: bool) -> Kept | None:
        """What is kept of an episode as far as ``context`` begins with it, short of its last token. It is gone then."""
        kept = self._kept.pop(owner, None)
        if kept is None:
            return None
        self.size -= kept.size
        count = min(in_common(kept.ids, context), len(context) - 1)
        return kept.first(count) if count > 0 and kept.few == few else None

    def claim(self, policy: Policy, size: int) -> bool:
        """Room for so many bytes, if there is some. What is claimed is to be put in."""
        if self.size + size > self._most:
            return False
        if self._weights is None:
            self._weights = weights_of(policy)
        self.size += size
        return True

    def put(self, owner: Hashable, kept: Kept) -> None:
        """Keep what room was claimed for."""
        self.release([owner])
        self._kept[owner] = kept

    def release(self, owners: Iterable[Hashable]) -> None:
        """Drop what is kept of some."""
        for owner in owners:
            kept = self._kept.pop(owner, None)
            self.size -= 0 if kept is None else kept.size

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self.size = 0


class Turn:
    """A batch of rows in a cache: what is known of their contexts, and what is to be kept of them.

    ``owners``: whose each row is; ``prompts``: for each row the number of its context, equal ones being one;
    ``goes_on``: whether another turn of it may follow.
    """

    def __init__(
        self,
        cache: TurnCache,
        policy: Policy,
        owners: Sequence[Hashable],
        prompts: Sequence[int],
        goes_on: Sequence[bool],
    ) -> None:
        self._cache, self._policy = cache, policy
        self._owners, self._prompts, self._goes_on = owners, prompts, goes_on
        self._few = False
        #: Whether keys and values of the policy's model can be kept at all.
        self.able = can_keep(policy)

    def known(self, contexts: Sequence[Ids], *, few: bool) -> list[Kept | None]:
        """Of each context the longest beginning that is kept, for a forward in ``few`` operators or another one.

        It is in nobody's hands then but the asker's, who lets go of it when it is copied.
        """
        self._few = few
        found: list[Kept | None] = [None] * len(contexts)
        for owner, number in zip(self._owners, self._prompts, strict=True):
            kept, best = self._cache.take(owner, contexts[number], self._few), found[number]
            if kept is not None and (best is None or len(kept.ids) > len(best.ids)):
                found[number] = kept
        return found

    def count(self, computed: int, contexts: Sequence[Ids]) -> None:
        """So many tokens of these contexts were computed."""
        self._cache.computed += computed
        self._cache.spared += sum(map(len, contexts)) - computed

    def claim(self, row: int, size: int) -> bool:
        """Whether ``size`` bytes of a row are to be kept, which there is then room for."""
        return self.able and self._goes_on[row] and self._cache.claim(self._policy, size)

    def put(self, row: int, ids: Ids, tables: Sequence[Tensor]) -> None:
        """Keep what was claimed."""
        self._cache.put(self._owners[row], Kept(tuple(ids), tuple(tables), self._few))


def in_common(one: Ids, other: Ids) -> int:
    """How many ids both begin with."""
    least = min(len(one), len(other))
    if one[:least] == other[:least]:
        return least
    return next(place for place in range(least) if one[place] != other[place])


def can_keep(policy: Policy) -> bool:
    """Whether the model keeps plain keys and values of every position, which hang on what is before it alone.

    Not so sliding windows, recurrent states, and rotary positions that are others in a longer batch.
    """
    plain = all(type(layer) is DynamicLayer for layer in DynamicCache(config=policy.model.config).layers)
    return plain and not any(_moves(module) for module in policy.model.modules())


def _moves(module: Any) -> bool:
    kind = getattr(module, "rope_type", None)
    kinds = kind.values() if isinstance(kind, dict) else [kind]
    return any(isinstance(one, str) and any(word in one for word in _MOVING_ANGLES) for one in kinds)


def weights_of(policy: Policy) -> tuple[int, ...]:
    """What tells the weights of a policy from others: a sum of the bits of each tensor.

    They are read once for it, as for each sampled token. That numbers of one tensor have changed places it does not
    tell, but no optimiser does that.
    """
    sums = [_bits(tensor).to(policy.device) for tensor in chain(policy.model.parameters(), policy.model.buffers())]
    return tuple(torch.stack(sums).tolist())


@torch.no_grad()
def _bits(tensor: Tensor) -> Tensor:
    flat = tensor.detach().contiguous().flatten()
    eight = flat.nbytes % 8 == 0 and flat.storage_offset() * flat.element_size() % 8 == 0
    return flat.view(torch.int64 if eight else torch.uint8).sum(dtype=torch.int64)
