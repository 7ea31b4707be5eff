"""Sets are joined with earlier ones by their keys: in blocks, with the kept ones before the block, then within it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from callwright_plugins.synthesis.duplicates.keys import Array, Rows, begins, keys, spread

#: The first block, whose rows are all held against one another, is small; each is twice as large as the one before.
FIRST_BLOCK: Final = 64
LARGEST_BLOCK: Final = 16_384
#: How many candidates are looked at together.
CANDIDATES: Final = 1 << 20


def dropped(sets: Sequence[frozenset[Any]], limit: Fraction) -> dict[int, int]:
    """The near-duplicates among sets that are all different, each with the earlier one that it is dropped for."""
    filled = [index for index, one in enumerate(sets) if one]
    if not filled:
        return {}
    found = _Join([sets[index] for index in filled], limit).dropped()
    return {filled[one]: filled[other] for one, other in found.items()}


class _Join:
    def __init__(self, sets: Sequence[frozenset[Any]], limit: Fraction) -> None:
        self.sets = sets
        rows = Rows(sets)
        top, bottom = limit.numerator, limit.denominator
        self.sizes = rows.sizes
        largest = int(self.sizes.max())
        least = np.array([-(-top * size // bottom) for size in range(largest + 1)])
        # common / (both - common) >= top / bottom
        self.needed = [-(-top * both // (top + bottom)) for both in range(2 * largest + 1)]
        #: How many elements two sets have apart at most, by how many they have together.
        self.apart = np.arange(2 * largest + 1) - 2 * np.array(self.needed)
        self.low, self.high = rows.bitmaps()
        self.row, self.key = keys(rows, least[self.sizes])
        del rows
        lengths = np.bincount(self.key, minlength=1)
        #: The kept rows of each key, ascending: where its place begins, how many there are, and the rows.
        self.places, self.held = begins(lengths), np.zeros(len(lengths), np.int64)
        self.postings = np.zeros(len(self.key), np.int32)

    def dropped(self) -> dict[int, int]:
        found: dict[int, int] = {}
        begin, size = 0, FIRST_BLOCK
        while begin < len(self.sets):
            end = min(begin + size, len(self.sets))
            self._block(begin, end, found)
            begin, size = end, min(2 * size, LARGEST_BLOCK)
        return found

    def _block(self, begin: int, end: int, found: dict[int, int]) -> None:
        some = slice(*np.searchsorted(self.row, (begin, end)))
        row, key = self.row[some], self.key[some]
        # Those before the block come first: what is dropped for one of them is not looked for within it.
        for mine, other in self._near(self._earlier(row, key)):
            if mine not in found and self._similar(mine, other):
                found[mine] = other
        row, key = _without(row, key, begin, end, found)
        order = np.argsort(key, kind="stable")
        row, key = row[order], key[order]
        for mine, other in self._near(_within(row, key)):
            if mine not in found and other not in found and self._similar(mine, other):
                found[mine] = other
        self._keep(*_without(row, key, begin, end, found))

    def _earlier(self, row: Array, key: Array) -> Iterator[tuple[Array, Array]]:
        """Candidates: each row of a block, and each kept one before the block that has one of its keys."""
        lengths = self.held[key]
        for some in _portions(lengths):
            which, place = spread(self.places[key[some]], lengths[some])
            yield row[some][which], self.postings[place]

    def _near(self, candidates: Iterable[tuple[Array, Array]]) -> Iterator[tuple[int, int]]:
        """Those candidates that may be near as their bitmaps say, each once, in order."""
        passed = []
        for mine, other in candidates:
            apart = self.apart[self.sizes[mine] + self.sizes[other]]
            differ = np.bitwise_count(self.low[mine] ^ self.low[other])
            differ += np.bitwise_count(self.high[mine] ^ self.high[other])
            near = (differ <= apart) & (other < mine)  # a row whose keys are the same by chance meets itself
            passed.append(mine[near] * len(self.sets) + other[near])
        if passed:
            for both in np.unique(np.concatenate(passed)).tolist():
                yield divmod(both, len(self.sets))

    def _similar(self, one: int, other: int) -> bool:
        mine, its = self.sets[one], self.sets[other]
        return len(mine & its) >= self.needed[len(mine) + len(its)]

    def _keep(self, row: Array, key: Array) -> None:
        """Write down rows of a block, which are sorted by key, as kept ones."""
        self.postings[self.places[key] + self.held[key] + _ranks(key)] = row
        self.held += np.bincount(key, minlength=len(self.held))


def _without(row: Array, key: Array, begin: int, end: int, found: dict[int, int]) -> tuple[Array, Array]:
    """The rows of a block that were not dropped, with their keys."""
    stays = np.fromiter((one not in found for one in range(begin, end)), bool, end - begin)
    has = stays[row - begin]
    return row[has], key[has]


def _within(row: Array, key: Array) -> Iterator[tuple[Array, Array]]:
    """Candidates of rows that are sorted by key: each, and each before it that has the key, too."""
    ranks = _ranks(key)
    starts = np.arange(len(key)) - ranks
    for some in _portions(ranks):
        which, place = spread(starts[some], ranks[some])
        yield row[some][which], row[place]


def _ranks(key: Array) -> Array:
    """How many entries with the same key stand before each, where they are sorted by key."""
    new = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=new[1:])
    firsts = np.flatnonzero(new)
    return np.arange(len(key)) - np.repeat(firsts, np.diff(np.append(firsts, len(key))))


def _portions(lengths: Array) -> Iterator[slice]:
    """Where to cut runs, so that some of them together are about as long as ``CANDIDATES``."""
    ends = np.cumsum(lengths)
    begin, done = 0, 0
    while begin < len(ends):
        end = max(int(np.searchsorted(ends, done + CANDIDATES, side="right")), begin + 1)
        yield slice(begin, end)
        begin, done = end, int(ends[end - 1])
