"""Attention over rows of different lengths whose tokens stand one after the other, without padding.

Rows are sorted by length and attend in blocks of nearly equal ones, so that little of a block is padding; everything
else of a model never sees any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from attrs import frozen
from torch import Tensor
from torch.nn import functional as F

from callwright_plugins.local_trainer.forward.llama import Llama
from callwright_plugins.local_trainer.forward.operators import gathered, spread
from callwright_plugins.local_trainer.forward.trees import Tree

#: A block ends where padding would be more than this share of it, and may begin anew after so many tokens.
_PADDING: Final = 0.15
_LEAST_TOKENS: Final = 64


@frozen(eq=False)
class Block:
    """Rows that attend together: their numbers, tokens, longest length, and where tokens are in the padded table."""

    rows: list[int]
    tokens: int
    longest: int
    places: Tensor | None

    def padded(self, packed: Tensor) -> Tensor:
        """``[T, N, W]`` of the block's tokens as ``[rows, N, longest, W]``, 0 after each row's end."""
        flat = packed.flatten(1)
        if self.places is not None:
            flat = spread(flat, self.places, len(self.rows) * self.longest)
        return flat.view(len(self.rows), self.longest, *packed.shape[1:]).transpose(1, 2)

    def packed(self, table: Tensor) -> Tensor:
        """The other way round, heads side by side: ``[T, N W]``."""
        flat = table.transpose(1, 2).flatten(2).flatten(0, 1)
        return flat if self.places is None else gathered(flat, self.places)


class Rows:
    """Rows of the given lengths, each at least 1, in one row of tokens."""

    def __init__(self, lengths: Sequence[int]) -> None:
        order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
        self.blocks: list[Block] = []
        #: Where each row begins.
        self.starts = [0] * len(lengths)
        some: list[int] = []
        begin = tokens = 0
        for row in order:
            wider = (len(some) + 1) * lengths[row]
            if some and tokens >= _LEAST_TOKENS and wider - tokens - lengths[row] > _PADDING * wider:
                self.blocks.append(_block(some, tokens, lengths))
                some, tokens = [], 0
            self.starts[row] = begin
            some.append(row)
            tokens += lengths[row]
            begin += lengths[row]
        if some:
            self.blocks.append(_block(some, tokens, lengths))
        self.lengths = lengths
        self.order = order

    def packed(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Numbers of each token, one after the other."""
        return torch.tensor([one for row in self.order for one in rows[row]], dtype=torch.long)

    def places(self, firsts: Sequence[int]) -> Tensor:
        """Where the tokens of each row from ``firsts`` on are, row after row in the order that was given."""
        return torch.tensor(
            [
                place
                for start, first, length in zip(self.starts, firsts, self.lengths, strict=True)
                for place in range(start + first, start + length)
            ],
            dtype=torch.long,
        )

    def split(self, packed: Tensor) -> Sequence[Tensor]:
        """The tokens of each block."""
        if len(self.blocks) == 1:
            return [packed]
        parts: Sequence[Tensor] = torch.split(packed, [block.tokens for block in self.blocks])
        return parts


def _block(rows: list[int], tokens: int, lengths: Sequence[int]) -> Block:
    longest = lengths[rows[-1]]
    places = None
    if tokens < len(rows) * longest:
        within = torch.arange(longest) < torch.tensor([lengths[row] for row in rows]).unsqueeze(1)
        places = within.flatten().nonzero().squeeze(1)
    return Block(rows, tokens, longest, places)


class Causal:
    """Rows that attend to themselves. With ``keep`` the keys and values of all rows stay, for what follows them."""

    def __init__(self, model: Llama, rows: Rows, *, keep: bool = False, keys_only: bool = False) -> None:
        self._model, self._rows = model, rows
        self._keep, self._keys_only = keep, keys_only
        #: By layer, ``[rows, 2 K, longest, W]``: keys, then values, 0 after each row's end.
        self.kept: list[Tensor] = []
        width, longest = len(rows.lengths), max(rows.lengths, default=0)
        self._whole = torch.empty(0, dtype=torch.long)
        if keep:
            self._whole = rows.packed([range(row * longest, row * longest + rows.lengths[row]) for row in range(width)])
        self._shape = width, longest

    def __call__(self, number: int, states: Tensor) -> Tensor | None:
        """Attention of one layer."""
        model = self._model
        if self._keep:
            table = spread(states[:, model.heads :].flatten(1), self._whole, self._shape[0] * self._shape[1])
            if number == len(self.kept):  # else the layer is computed again on the way back, and nobody asks for these
                self.kept.append(table.view(*self._shape, 2 * model.shared, model.width).transpose(1, 2))
        if self._keys_only and number == len(model.layers) - 1:
            return None
        told = []
        for block, some in zip(self._rows.blocks, self._rows.split(states), strict=True):
            queries, keys, values = parts_of(model, block.padded(some))
            made = F.scaled_dot_product_attention(queries, keys, values, is_causal=True, scale=1.0)
            told.append(block.packed(made))
        return told[0] if len(told) == 1 else torch.cat(told)


class Following:
    """Rows that attend to a prefix of keys and values, and to themselves: to what the tree of each says."""

    def __init__(
        self, model: Llama, rows: Rows, trees: Sequence[Tree], lengths: Sequence[int], prefixes: Sequence[Tensor]
    ) -> None:
        """``prefixes``: by layer ``[P, 2 K, L, W]``, of ``lengths`` ``[P]``; of ``trees`` each has a row of its own."""
        self._model, self._rows, self._prefixes = model, rows, prefixes
        known = torch.tensor(lengths)
        self._blocks = []
        for block in rows.blocks:
            index = torch.tensor([trees[row].owner for row in block.rows])
            longest = block.longest
            before = torch.arange(prefixes[0].shape[2]) < known[index].unsqueeze(1)
            own = torch.stack([trees[row].seen(longest) for row in block.rows])
            seen = torch.cat([before.unsqueeze(1).expand(-1, longest, -1), own], 2)
            mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf).unsqueeze(1)
            self._blocks.append((block, index, mask))

    def __call__(self, number: int, states: Tensor) -> Tensor:
        """Attention of one layer."""
        told = []
        for (block, index, mask), some in zip(self._blocks, self._rows.split(states), strict=True):
            table = block.padded(some)
            queries, own = torch.split(table, [self._model.heads, 2 * self._model.shared], 1)
            whole = torch.cat([self._prefixes[number].index_select(0, index), own], 2)
            keys, values = shared_out(self._model, whole.chunk(2, 1))
            made = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=1.0)
            told.append(block.packed(made))
        return told[0] if len(told) == 1 else torch.cat(told)


class Continued:
    """Rows of new tokens that attend to what their tables hold before them, and to themselves; they are written there.

    ``tables``: by layer ``[P, 2 K, L, W]``; ``known``: how many tokens of each of the rows are in them; ``owners``:
    which of the ``P`` each row is, no two the same.
    """

    def __init__(
        self, model: Llama, rows: Rows, owners: Sequence[int], known: Sequence[int], tables: Sequence[Tensor]
    ) -> None:
        self._model, self._tables = model, tables
        self._rows = rows
        # Where the keys and values of each token go.
        self._owner = rows.packed([[owner] * length for owner, length in zip(owners, rows.lengths, strict=True)])
        self._place = rows.packed([range(n, n + length) for n, length in zip(known, rows.lengths, strict=True)])
        self._blocks = []
        for block in rows.blocks:
            before = torch.tensor([known[row] for row in block.rows])
            wide = max(known[row] + rows.lengths[row] for row in block.rows)
            last = before.unsqueeze(1) + torch.arange(block.longest)  # what each token sees, itself included
            unseen = torch.arange(wide) > last.unsqueeze(2)
            mask = torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf).unsqueeze(1)
            self._blocks.append((block, torch.tensor([owners[row] for row in block.rows]), wide, mask))

    def __call__(self, number: int, states: Tensor) -> Tensor:
        """Attention of one layer."""
        model, table = self._model, self._tables[number]
        table[self._owner, :, self._place] = states[:, model.heads :]
        told = []
        for (block, index, wide, mask), some in zip(self._blocks, self._rows.split(states), strict=True):
            queries = block.padded(some[:, : model.heads])
            keys, values = shared_out(model, table[:, :, :wide].index_select(0, index).chunk(2, 1))
            made = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=1.0)
            told.append(block.packed(made))
        return told[0] if len(told) == 1 else torch.cat(told)


def parts_of(model: Llama, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, ``[rows, H, L, W]`` each, of a layer's padded table."""
    queries, *others = torch.split(table, [model.heads, model.shared, model.shared], 1)
    return queries, *shared_out(model, others)


def shared_out(model: Llama, both: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Keys and values ``[rows, K, L, W]``, each repeated for the heads that share it."""
    keys, values = both
    times = model.heads // model.shared
    if times > 1:
        return keys.repeat_interleave(times, 1), values.repeat_interleave(times, 1)
    return keys, values
