"""Sampling from a small Llama in few operators: a prompt's keys and values are read once for all that follow it.

Rows stand in a grid, ``[prompts, copies]``. What each of them adds has its place from the beginning on, and rows that
have ended are left where they are until so many have that moving the others pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from attrs import frozen
from torch import Tensor

from callwright_plugins.local_trainer.forward.batches import Ids
from callwright_plugins.local_trainer.forward.llama import Llama
from callwright_plugins.local_trainer.forward.ragged import Causal, Rows

#: Rows are moved together where the grid becomes smaller than this share of itself.
_WORTH_MOVING: Final = 0.8
#: Tokens for which there is room at first; it doubles.
_LEAST_ROOM: Final = 64


@frozen(eq=False)
class Grid:
    """Rows by prompt: ``rows`` ``[P G]`` are numbers of completions, or of any other where the grid has a hole."""

    prompts: list[int]
    copies: int
    rows: list[int]


def grid_of(alive: Sequence[int], owners: Sequence[int]) -> Grid:
    """The smallest grid of some rows."""
    by_prompt: dict[int, list[int]] = {}
    for row in alive:
        by_prompt.setdefault(owners[row], []).append(row)
    copies = max(map(len, by_prompt.values()))
    # A hole is filled with a row that is there anyway, computed twice and read once.
    rows = [row for some in by_prompt.values() for row in (*some, *[some[0]] * (copies - len(some)))]
    return Grid(list(by_prompt), copies, rows)


class Decoder:
    """Keys and values of rows that grow token by token."""

    def __init__(self, model: Llama, prompts: Sequence[Ids], owners: Sequence[int], longest: int) -> None:
        self._model, self._owners = model, owners
        rows = Rows([len(prompt) for prompt in prompts])
        causal = Causal(model, rows, keep=True)
        positions = rows.packed([range(length) for length in rows.lengths])
        last = rows.places([length - 1 for length in rows.lengths])
        hidden = model.hidden(rows.packed(prompts), model.turns(positions), causal, last)
        assert hidden is not None
        #: Last hidden states ``[prompts, D]``: what the first tokens are sampled from.
        self.first = hidden
        lengths = torch.tensor(rows.lengths)
        self._most = longest
        self._turns = model.turns(torch.arange(int(lengths.max()) + longest))
        self._ends = lengths
        beyond = torch.arange(int(lengths.max())) >= lengths.unsqueeze(1)
        self._before = torch.zeros(beyond.shape).masked_fill_(beyond, -torch.inf)
        self._prompts = [table.chunk(2, 1) for table in causal.kept]
        # The first sampled token is written at place 0.
        self._length = 0
        self.grid = grid_of(range(len(owners)), owners)
        # Keys and values of each layer in turn, ``[prompts K copies, room, W]``.
        self._own: list[Tensor] = []
        self._place(None)

    def _place(self, moved: Tensor | None) -> None:
        """Lay out prompts, and the room for what follows them, in the order of the grid."""
        grid, model = self.grid, self._model
        index = torch.tensor(grid.prompts)
        size = len(grid.prompts) * model.shared
        self._keys = [keys.index_select(0, index).reshape(size, -1, model.width).mT for keys, _ in self._prompts]
        self._values = [values.index_select(0, index).reshape(size, -1, model.width) for _, values in self._prompts]
        self._mask = self._before.index_select(0, index).repeat_interleave(model.shared, 0).unsqueeze(1)
        self._position = self._ends.index_select(0, index).repeat_interleave(grid.copies)
        if moved is None:
            room = min(self._most, _LEAST_ROOM)
            self._own = [torch.zeros(size * grid.copies, room, model.width) for _ in range(2 * len(model.layers))]
        else:
            self._own = [own.index_select(0, moved) for own in self._own]

    def moved(self, alive: Sequence[int]) -> Tensor | None:
        """Which rows of the grid stay, in their new order, if so many have ended that the others are moved together."""
        smaller = grid_of(alive, self._owners)
        if len(smaller.rows) > _WORTH_MOVING * len(self.grid.rows):
            return None
        places = {row: place for place, row in reversed(list(enumerate(self.grid.rows)))}
        moved = torch.tensor([places[row] for row in smaller.rows])
        # Rows of keys are ``[prompts, K, copies]``.
        copies, shared = self.grid.copies, self._model.shared
        first = moved // copies * (shared * copies) + moved % copies
        heads = torch.arange(shared).mul_(copies).view(1, -1, 1)
        self.grid = smaller
        self._place((first.view(-1, 1, smaller.copies) + heads).flatten())
        return moved

    def follow(self, tokens: Tensor) -> Tensor:
        """Last hidden states ``[P G, D]`` after one more token in each row of the grid."""
        room = self._own[0].shape[1]
        if self._length == room:
            more = min(self._most, 2 * room) - room
            self._own = [torch.cat([own, own.new_zeros(len(own), more, own.shape[2])], 1) for own in self._own]
        turns = self._turns.index_select(0, self._position + self._length)
        self._length += 1
        hidden = self._model.hidden(tokens, turns, self._attend)
        assert hidden is not None
        return hidden

    def _attend(self, number: int, states: Tensor) -> Tensor:
        """Each row's query meets its prompt's keys together with those of the other copies, and its own alone."""
        model, length = self._model, self._length
        prompts, copies, shared, width = len(self.grid.prompts), self.grid.copies, model.shared, model.width
        times, rows = model.heads // shared, prompts * shared * copies
        queries, *new = torch.split(states, [model.heads, shared, shared], 1)
        for own, added in zip(self._own[2 * number : 2 * number + 2], new, strict=True):
            grid = own.view(prompts, shared, copies, -1, width)
            grid[:, :, :, length - 1] = added.view(prompts, copies, shared, width).transpose(1, 2)
        queries = queries.view(prompts, copies, shared, times, width).transpose(1, 2).contiguous()
        keys, values = (own[:, :length] for own in self._own[2 * number : 2 * number + 2])
        together = (prompts * shared, copies * times, -1)
        before = torch.baddbmm(self._mask, queries.view(together), self._keys[number])
        after = torch.bmm(queries.view(rows, times, width), keys.mT)
        weights = torch.cat([before, after.view(together)], 2).softmax(2)
        wide = before.shape[2]
        told = torch.bmm(weights[:, :, :wide], self._values[number])
        told.view(rows, times, width).baddbmm_(weights[:, :, wide:].view(rows, times, length), values)
        told = told.view(prompts, shared, copies, times, width).transpose(1, 2)
        return told.reshape(prompts * copies, model.heads * width)
