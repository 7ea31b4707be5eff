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
from callwright_plugins.local_trainer.forward.llama import ForBack, Llama, Told
from callwright_plugins.local_trainer.forward.ragged import Causal, Continued, Rows
from callwright_plugins.local_trainer.forward.turn_cache import Kept, Turn

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


def prefill(model: Llama, prompts: Sequence[Ids]) -> tuple[list[Tensor], Tensor]:
    """Keys and values of prompts by layer, ``[2 K, P, L, W]``; their last states ``[P, D]``."""
    rows = Rows([len(prompt) for prompt in prompts])
    causal = Causal(model, rows, keep=True)
    positions = rows.packed([range(length) for length in rows.lengths])
    last = rows.places([length - 1 for length in rows.lengths])
    tables: list[Tensor] = []
    hidden = model.hidden(rows.packed(prompts), model.turns(positions), causal, last, tables)
    assert hidden is not None
    return tables, hidden


def prefill_after(
    model: Llama, prompts: Sequence[Ids], known: Sequence[Kept | None]
) -> tuple[list[Tensor], Tensor, int]:
    """The same where keys and values of some prompts' beginnings are known, and how many tokens were computed.

    Prompts of which nothing is known are computed by themselves, as if the others were not there.
    """
    fresh = [number for number, one in enumerate(known) if one is None]
    if len(fresh) == len(prompts):
        tables, hidden = prefill(model, prompts)
        return tables, hidden, sum(map(len, prompts))
    longest = max(map(len, prompts))
    whole = torch.zeros(len(model.layers), 2 * model.shared, len(prompts), longest, model.width)
    tables = list(whole.unbind())
    parts: list[Tensor] = []
    if fresh:
        some, hidden = prefill(model, [prompts[number] for number in fresh])
        for table, computed in zip(tables, some, strict=True):
            table[:, torch.tensor(fresh), : computed.shape[2]] = computed
        parts.append(hidden)
    found = {number: one for number, one in enumerate(known) if one is not None}
    for number, one in found.items():
        whole[:, :, number, : len(one.ids)] = one.tables[0]
    lengths = [len(one.ids) for one in found.values()]
    added = [prompts[number][length:] for number, length in zip(found, lengths, strict=True)]
    rows = Rows([len(one) for one in added])
    attend = Continued(model, rows, list(found), lengths, tables)
    positions = rows.packed([range(n, n + length) for n, length in zip(lengths, rows.lengths, strict=True)])
    last = rows.places([length - 1 for length in rows.lengths])
    made = model.hidden(rows.packed(added), model.turns(positions), attend, last)
    assert made is not None
    order = {number: place for place, number in enumerate([*fresh, *found])}
    hidden = torch.cat([*parts, made])[[order[number] for number in range(len(prompts))]]
    return tables, hidden, sum(map(len, added)) + sum(len(prompts[number]) for number in fresh)


class Decoder:
    """Keys and values of rows that grow token by token."""

    def __init__(
        self, model: Llama, prompts: Sequence[Ids], owners: Sequence[int], longest: int, turn: Turn | None = None
    ) -> None:
        self._model, self._owners = model, owners
        if turn is None:
            tables, first = prefill(model, prompts)
        else:
            tables, first, computed = prefill_after(model, prompts, turn.known(prompts, few=True))
            turn.count(computed, prompts)
        #: Last hidden states ``[prompts, D]``: what the first tokens are sampled from.
        self.first = first
        self._lengths = [len(prompt) for prompt in prompts]
        lengths = torch.tensor(self._lengths)
        self._most = longest
        self._turns = model.turns(torch.arange(int(lengths.max()) + longest))
        self._ends = lengths
        beyond = torch.arange(int(lengths.max())) >= lengths.unsqueeze(1)
        self._before = torch.zeros(beyond.shape).masked_fill_(beyond, -torch.inf)
        self._tables = tables
        self._prompts = [table.transpose(0, 1).chunk(2, 1) for table in tables]
        # The first sampled token is written at place 0.
        self._length = 0
        self.grid = grid_of(range(len(owners)), owners)
        # Keys and values of each layer in turn, ``[prompts K copies, room, W]``; beyond the length they mean nothing.
        size, room = len(prompts) * model.shared * self.grid.copies, min(longest, _LEAST_ROOM)
        self._own = [torch.empty(size, room, model.width) for _ in range(2 * len(model.layers))]
        self._place()

    def _place(self) -> None:
        """Lay out prompts in the order of the grid."""
        grid, model = self.grid, self._model
        index = torch.tensor(grid.prompts)
        size = len(grid.prompts) * model.shared
        self._keys = [keys.index_select(0, index).reshape(size, -1, model.width).mT for keys, _ in self._prompts]
        self._values = [values.index_select(0, index).reshape(size, -1, model.width) for _, values in self._prompts]
        self._mask = self._before.index_select(0, index).repeat_interleave(model.shared, 0).unsqueeze(1)
        self._position = self._ends.index_select(0, index)

    def smaller(self, alive: Sequence[int]) -> Grid | None:
        """The grid of the rows that go on, if so many have ended that these are moved together."""
        smaller = grid_of(alive, self._owners)
        return None if len(smaller.rows) > _WORTH_MOVING * len(self.grid.rows) else smaller

    def move(self, smaller: Grid) -> Tensor:
        """Which rows of the grid stay, in their new order. Of others nothing is left."""
        places = {row: place for place, row in reversed(list(enumerate(self.grid.rows)))}
        moved = torch.tensor([places[row] for row in smaller.rows])
        # Rows of keys are ``[prompts, K, copies]``.
        copies, shared = self.grid.copies, self._model.shared
        first = moved // copies * (shared * copies) + moved % copies
        heads = torch.arange(shared).mul_(copies).view(1, -1, 1)
        index = (first.view(-1, 1, smaller.copies) + heads).flatten()
        for number, own in enumerate(self._own):
            table = own.new_empty(len(index), *own.shape[1:])
            table[:, : self._length] = own[:, : self._length].index_select(0, index)
            self._own[number] = table
        known, self.grid = self.grid, smaller
        if smaller.prompts != known.prompts:
            self._place()
        return moved

    @property
    def token_size(self) -> int:
        """Bytes that keys and values of one token are."""
        numbers: int = 2 * len(self._tables) * self._model.shared * self._model.width
        return 4 * numbers

    def states(self, rows: Sequence[int], counts: Sequence[int]) -> list[Tensor]:
        """Keys and values of rows that are in the grid still, of their prompts and the first ``counts`` tokens after.

        Each is ``[layers, 2 K, tokens, W]``, with memory of its own.
        """
        if not rows:
            return []
        grid, model, most = self.grid, self._model, max(counts)
        places = {row: place for place, row in reversed(list(enumerate(grid.rows)))}
        place = torch.tensor([places[row] for row in rows])
        prompt, copy = place // grid.copies, place % grid.copies
        split = (len(grid.prompts), model.shared, grid.copies, most, model.width)
        own = torch.stack([one[:, :most].view(split)[prompt, :, copy] for one in self._own])
        layers, wide = len(self._tables), 2 * model.shared
        own = own.view(layers, 2, len(rows), model.shared, most, model.width).transpose(1, 2)
        own = own.reshape(layers, len(rows), wide, most, model.width)
        found = []
        for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
            owner = self._owners[row]
            before = torch.stack([table[:, owner, : self._lengths[owner]] for table in self._tables])
            found.append(torch.cat([before, own[:, number, :, :count]], 2))
        return found

    def follow(self, tokens: Tensor) -> Tensor:
        """Last hidden states ``[P G, D]`` after one more token in each row of the grid."""
        room = self._own[0].shape[1]
        if self._length == room:
            more = min(self._most, 2 * room) - room
            self._own = [torch.cat([own, own.new_empty(len(own), more, own.shape[2])], 1) for own in self._own]
        positions = self._position.repeat_interleave(self.grid.copies).add_(self._length)
        turns = self._turns.index_select(0, positions)
        self._length += 1
        hidden = self._model.hidden(tokens, turns, self)
        assert hidden is not None
        return hidden

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """Attention of one layer.

        Each row's query meets its prompt's keys together with those of the other copies, and its own alone.
        """
        model, length = self._model, self._length
        prompts, copies, shared, width = len(self.grid.prompts), self.grid.copies, model.shared, model.width
        times, rows = model.heads // shared, prompts * shared * copies
        queries, *new = torch.split(states, [model.heads * width, shared * width, shared * width], 1)
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
        return told.reshape(prompts * copies, model.heads * width), None
