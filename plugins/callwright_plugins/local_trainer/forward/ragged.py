"""Attention over rows of different lengths whose tokens stand one after the other, without padding.

Rows are sorted by length and attend in blocks of nearly equal ones, so that little of a block is padding; everything
else of a model never sees any. Padding is a row's last token again: what it is told is left behind, and no gradient
comes from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from callwright_plugins.local_trainer.forward.llama import ForBack, Llama, Told
from callwright_plugins.local_trainer.forward.operators import (
    attended,
    attended_back,
    attended_behind,
    attended_behind_back,
)
from callwright_plugins.local_trainer.forward.trees import Tree

#: A block ends where padding would be more than this share of it, and may begin anew after so many tokens.
_PADDING: Final = 0.15
_LEAST_TOKENS: Final = 64
#: So many numbers of keys and values of prompts are copied for the rows that follow them, and more are not.
_COPIED: Final = 1 << 20


class Block:
    """Rows that attend together: their numbers, and the longest length."""

    def __init__(self, rows: Sequence[int], starts: Sequence[int], lengths: Sequence[int]) -> None:
        """The tokens of each row stand one after the other from where it starts, and those of the block together."""
        self.rows = rows
        counts = torch.tensor([lengths[row] for row in rows])
        first = torch.tensor([starts[row] for row in rows])
        self.longest, self._begin = int(counts.max()), int(first.min())
        place, counts = torch.arange(self.longest), counts.unsqueeze(1)
        #: Which token each place of the padded table shows, ``[rows, longest]``.
        self._shown = first.unsqueeze(1) + torch.minimum(place, counts - 1)
        places = (place < counts).flatten().nonzero().squeeze(1)
        tokens = self._shown.flatten().index_select(0, places).sub_(self._begin)
        #: The other way round: where in the table each token is.
        self._places = torch.empty_like(places).index_copy_(0, tokens, places).unsqueeze(1)
        self._indices: dict[range, Tensor] = {}
        self._backs: dict[int, Tensor] = {}

    def padded(self, packed: Tensor, heads: range, width: int) -> Tensor:
        """Of all tokens ``[T, N W]`` some heads of the block's as a table ``[heads, rows, longest, W]``."""
        whole = packed.shape[1] // width
        if heads not in self._indices:
            self._indices[heads] = (self._shown * whole + torch.tensor(heads).view(-1, 1, 1)).flatten()
        found = packed.view(-1, width).index_select(0, self._indices[heads])
        return found.view(len(heads), *self._shown.shape, width)

    def packed(self, table: Tensor) -> Tensor:
        """The block's tokens out of a table ``[N, rows, longest, W]``: ``[t, N W]``."""
        heads, width = len(table), table.shape[3]
        return table.reshape(-1, width).index_select(0, self._back(heads)).view(-1, heads * width)

    def spread(self, packed: Tensor, width: int) -> Tensor:
        """Of all tokens ``[T, N W]`` those of the block as a table ``[N, rows, longest, W]`` that is 0 elsewhere."""
        heads, some = packed.shape[1] // width, packed[self._begin : self._begin + len(self._places)]
        table = packed.new_zeros(heads * self._shown.numel(), width)
        table.index_copy_(0, self._back(heads), some.reshape(-1, width))
        return table.view(heads, *self._shown.shape, width)

    def _back(self, heads: int) -> Tensor:
        """Where in the table so many heads of each token are."""
        if heads not in self._backs:
            self._backs[heads] = (self._places + torch.arange(heads) * self._shown.numel()).flatten()
        return self._backs[heads]


class Rows:
    """Rows of the given lengths, each at least 1, in one row of tokens; no block has rows of two ``owners``."""

    def __init__(self, lengths: Sequence[int], owners: Sequence[int] | None = None) -> None:
        self.lengths = lengths
        owners = owners or [0] * len(lengths)
        self.order = sorted(range(len(lengths)), key=lambda row: (owners[row], lengths[row], row))
        #: Where each row begins.
        self.starts = [0] * len(lengths)
        parts: list[list[int]] = [[]]
        begin = tokens = 0
        for row in self.order:
            wider = (len(parts[-1]) + 1) * lengths[row]
            apart = bool(parts[-1]) and owners[parts[-1][-1]] != owners[row]
            if apart or (tokens >= _LEAST_TOKENS and wider - tokens - lengths[row] > _PADDING * wider):
                parts.append([])
                tokens = 0
            self.starts[row] = begin
            parts[-1].append(row)
            tokens += lengths[row]
            begin += lengths[row]
        self.blocks = [Block(part, self.starts, lengths) for part in parts if part]

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

    def all(self) -> Block:
        """All rows in the order that was given, whatever their lengths."""
        return Block(range(len(self.lengths)), self.starts, self.lengths)


class Causal:
    """Rows that attend to themselves.

    With ``keep`` keys and values of all rows are told, for what follows them: ``[2 K, rows, longest, W]`` of a layer,
    where what is after a row's end means nothing.
    """

    prefix = None

    def __init__(self, model: Llama, rows: Rows, *, keep: bool = False, keys_only: bool = False) -> None:
        self._model, self._rows = model, rows
        self._all = rows.all() if keep else None
        self._keys_only = keys_only

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """Attention of one layer."""
        model, table = self._model, None
        if self._all is not None:
            table = self._all.padded(states, model.keys_and_values, model.width)
        if self._keys_only and number == len(model.layers) - 1:
            return None, table
        told = []
        for block in self._rows.blocks:
            whole = block.padded(states, model.everything, model.width)
            queries, *others = torch.split(whole, [model.heads, model.shared, model.shared])
            told.append(block.packed(attended(queries, *shared_out(model, others), None, kept)))
        return _together(told), table

    def back(
        self, number: int, gradient: Tensor | None, of_table: Tensor | None, kept: ForBack
    ) -> tuple[Tensor, Tensor | None]:
        """Of the gradients of what was told those of the states; there is no prefix."""
        model, found = self._model, None
        if gradient is not None:
            parts = []
            for block, some in zip(self._rows.blocks, kept, strict=True):
                told = attended_back(block.spread(gradient, model.width), some, None)
                parts.append(block.packed(torch.cat([told[0], *summed_up(model, told[1:])])))
            found = _together(parts)
        if of_table is not None:
            assert self._all is not None
            added = self._all.packed(of_table)
            if found is None:
                found = added.new_zeros(len(added), len(model.everything) * model.width)
            found[:, -added.shape[1] :] += added
        assert found is not None
        return found, None


class Following:
    """Rows that attend to a prefix of keys and values, and to themselves: to what the tree of each says."""

    def __init__(
        self, model: Llama, rows: Rows, trees: Sequence[Tree], lengths: Sequence[int], prefix: Sequence[Tensor]
    ) -> None:
        """``prefix``: by layer ``[2 K, P, L, W]``, of ``lengths`` ``[P]``; of ``trees`` each has a row of its own."""
        self._model, self.prefix = model, prefix
        known = torch.tensor(lengths)
        self._blocks = []
        for block in rows.blocks:
            index = torch.tensor([trees[row].owner for row in block.rows])
            longest = block.longest
            before = torch.arange(prefix[0].shape[2]) < known[index].unsqueeze(1)
            own = torch.stack([trees[row].seen(longest) for row in block.rows])
            seen = torch.cat([before.unsqueeze(1).expand(-1, longest, -1), own], 2)
            mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
            self._blocks.append((block, index, mask))

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """Attention of one layer."""
        model, told = self._model, []
        for block, index, mask in self._blocks:
            whole = block.padded(states, model.everything, model.width)
            queries, own = torch.split(whole, [model.heads, 2 * model.shared])
            others = torch.cat([self.prefix[number].index_select(1, index), own], 2).chunk(2)
            told.append(block.packed(attended(queries, *shared_out(model, others), mask, kept)))
        return _together(told), None

    def back(
        self, number: int, gradient: Tensor | None, of_table: Tensor | None, kept: ForBack
    ) -> tuple[Tensor, Tensor | None]:
        """Of the gradient of what was told those of the states and of the prefix."""
        assert gradient is not None
        model, prefix, parts = self._model, self.prefix[number], []
        of_prefix = torch.zeros_like(prefix)
        for (block, index, mask), some in zip(self._blocks, kept, strict=True):
            told = attended_back(block.spread(gradient, model.width), some, mask)
            before, own = torch.split(torch.cat(summed_up(model, told[1:])), [prefix.shape[2], block.longest], 2)
            of_prefix.index_add_(1, index, before)
            parts.append(block.packed(torch.cat([told[0], own])))
        return _together(parts), of_prefix


class Behind:
    """The same for prompts that are long: each is attended to where it is, by all rows that follow it."""

    def __init__(
        self, model: Llama, rows: Rows, trees: Sequence[Tree], lengths: Sequence[int], prefix: Sequence[Tensor]
    ) -> None:
        """As :class:`Following`; ``rows`` have the trees' owners."""
        self._model, self.prefix = model, prefix
        self._blocks = []
        for block in rows.blocks:
            owner, mask = trees[block.rows[0]].owner, None
            if not all(trees[row].chain for row in block.rows):
                seen = torch.stack([trees[row].seen(block.longest) for row in block.rows])
                mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)
            self._blocks.append((block, owner, lengths[owner], mask))

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """Attention of one layer."""
        model, prefix, told = self._model, self.prefix[number], []
        for block, owner, length, mask in self._blocks:
            whole = block.padded(states, model.everything, model.width)
            queries, *own = torch.split(whole, [model.heads, model.shared, model.shared])
            before = prefix[:, owner, :length].chunk(2)
            told.append(block.packed(attended_behind(queries, *shared_out(model, own), mask, before, kept)))
        return _together(told), None

    def back(
        self, number: int, gradient: Tensor | None, of_table: Tensor | None, kept: ForBack
    ) -> tuple[Tensor, Tensor | None]:
        """Of the gradient of what was told those of the states and of the prefix."""
        assert gradient is not None
        model, prefix, parts = self._model, self.prefix[number], []
        of_prefix = torch.zeros_like(prefix)
        for (block, owner, length, mask), some in zip(self._blocks, kept, strict=True):
            before = prefix[:, owner, :length].chunk(2)
            told = attended_behind_back(block.spread(gradient, model.width), some, mask, before)
            of_prefix[:, owner, :length] += torch.cat(told[3:])
            parts.append(block.packed(torch.cat([told[0], *summed_up(model, told[1:3])])))
        return _together(parts), of_prefix


def following(
    model: Llama, trees: Sequence[Tree], lengths: Sequence[int], prefix: Sequence[Tensor]
) -> tuple[Rows, Following | Behind]:
    """The trees as rows of tokens, and what these attend to: the ``prefix`` of ``lengths`` ``[P]``, and themselves."""
    sizes = [len(tree) for tree in trees]
    if len(trees) * prefix[0][:, 0].numel() <= _COPIED:
        rows = Rows(sizes)
        return rows, Following(model, rows, trees, lengths, prefix)
    rows = Rows(sizes, [tree.owner for tree in trees])
    return rows, Behind(model, rows, trees, lengths, prefix)


class Continued:
    """Rows of new tokens that attend to what their tables hold before them, and to themselves; they are written there.

    ``tables``: by layer ``[2 K, P, L, W]``; ``known``: how many tokens of each of the rows are in them; ``owners``:
    which of the ``P`` each row is, no two the same.
    """

    def __init__(
        self, model: Llama, rows: Rows, owners: Sequence[int], known: Sequence[int], tables: Sequence[Tensor]
    ) -> None:
        self._model, self._before = model, tables
        # Where the keys and values of each token go.
        self._owner = rows.packed([[owner] * length for owner, length in zip(owners, rows.lengths, strict=True)])
        self._place = rows.packed([range(n, n + length) for n, length in zip(known, rows.lengths, strict=True)])
        self._blocks = []
        for block in rows.blocks:
            before = torch.tensor([known[row] for row in block.rows])
            wide = max(known[row] + rows.lengths[row] for row in block.rows)
            last = before.unsqueeze(1) + torch.arange(block.longest)  # what each token sees, itself included
            unseen = torch.arange(wide) > last.unsqueeze(2)
            mask = torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf)
            self._blocks.append((block, torch.tensor([owners[row] for row in block.rows]), wide, mask))

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """Attention of one layer."""
        model, table = self._model, self._before[number]
        added = states[:, model.heads * model.width :].view(len(states), -1, model.width)
        table[:, self._owner, self._place] = added.transpose(0, 1)
        told = []
        for block, index, wide, mask in self._blocks:
            queries = block.padded(states, model.queries, model.width)
            others = table[:, :, :wide].index_select(1, index).chunk(2)
            told.append(block.packed(attended(queries, *shared_out(model, others), mask)))
        return _together(told), None


def _together(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def shared_out(model: Llama, both: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Keys and values ``[K, ...]``, each repeated for the heads that share it."""
    keys, values = both
    times = model.heads // model.shared
    if times > 1:
        return keys.repeat_interleave(times, 0), values.repeat_interleave(times, 0)
    return keys, values


def summed_up(model: Llama, both: Sequence[Tensor]) -> list[Tensor]:
    """The other way round: the gradients of all heads that share keys and values, ``[K, ...]``."""
    if model.heads == model.shared:
        return list(both)
    return [one.view(model.shared, -1, *one.shape[1:]).sum(1) for one in both]
