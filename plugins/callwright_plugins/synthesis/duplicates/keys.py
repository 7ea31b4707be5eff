"""By which keys two sets that are similar enough find each other: numpy arrays over all sets at once.

With the elements in one order, the rarest first, two sets that need ``a`` elements in common share one behind which,
itself included, each has ``a`` elements or more (the prefix filter). That is refined twice, without missing any:

- Elements that are always together, such as a tool and the keys of its arguments, are one *part*, as heavy as they are
  many: a second of them says nothing that the first does not.
- If the first common part has ``w`` elements, there is a second one behind which each set has ``a - w``, and so on. So
  a part that few sets have is a key by itself; of those that many have it takes two, or three of those that very many
  have, unless one or two may be all that is common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: A part of more sets than this is looked up only together with another such one, and of two with more than
#: ``FREQUENT`` only together with a third.
RARE: Final = 48
FREQUENT: Final = 500
#: How many rows are looked at together: what they are made into is several times as large as they are.
ROWS: Final = 20_000
_BITS: Final = 128
# Odd multipliers: what two keys of several parts have in common by chance are candidates more, which costs time only.
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


class Rows:
    """Sets, none of them empty, as rows of numbers: one flat array of elements, and where each row begins in it."""

    def __init__(self, sets: Sequence[frozenset[Any]]) -> None:
        # Each element is looked up once: from here on it is a number.
        numbers: defaultdict[Any, int] = defaultdict(count().__next__)
        self.sizes: Array = np.fromiter(map(len, sets), np.int64, len(sets))
        flat = map(numbers.__getitem__, chain.from_iterable(sets))
        self.elements: Array = np.fromiter(flat, np.int32, int(self.sizes.sum()))
        self.begins: Array = begins(self.sizes)
        self.total = len(numbers)

    def bitmaps(self) -> tuple[Array, Array]:
        """Two words of bits for each row, of which two rows have no more apart than elements (the bitmap filter)."""
        bit = self.elements % _BITS
        words = []
        for low in (0, 64):
            inside = (bit >= low) & (bit < low + 64)
            shifted = np.left_shift(np.uint64(1), (bit % 64).astype(np.uint64))
            words.append(np.bitwise_or.reduceat(np.where(inside, shifted, np.uint64(0)), self.begins))
        return words[0], words[1]


def begins(lengths: Array) -> Array:
    """Where each of some runs begins, one behind the other."""
    made = np.zeros(len(lengths), np.int64)
    np.cumsum(lengths[:-1], out=made[1:])
    return made


def spread(starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Runs written out: for each place in one, which run it is of, and the place itself."""
    which = np.repeat(np.arange(len(lengths)), lengths)
    return which, np.arange(len(which)) + np.repeat(starts - begins(lengths), lengths)


def keys(rows: Rows, least: Array) -> tuple[Array, Array]:
    """The keys that another row has, too: the row of each, ascending, and the number of the key (below the number of
    the pairs).

    ``least`` has for each row how many elements it has in common at least with what it is near.
    """
    of, numbers = [], []
    for row, key in _keys(_Parts(rows), least):
        of.append(row)
        numbers.append(key)
    row, key = np.concatenate(of), np.concatenate(numbers)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.ones(len(key), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    lengths = np.diff(np.append(np.flatnonzero(new), len(key)))
    shared = np.repeat(lengths > 1, lengths)
    names = np.empty(len(key), np.int32)
    names[order] = np.where(shared, np.repeat(np.cumsum(lengths > 1) - 1, lengths), -1)
    has = names >= 0
    return row[has], names[has]


class _Parts:
    """What the rows are made of, in one order, the rarest first. Which of two equally rare ones comes first changes no
    result.
    """

    def __init__(self, rows: Rows) -> None:
        leader, weights, counts = _together(rows)
        order = np.argsort(counts, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        row = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
        named = leader[rows.elements]
        leads = named >= 0
        both = row[leads] * len(order) + places[named[leads]]
        both.sort()
        #: The place of each part of each row, by row and in order, and the row.
        self.row, self.place = np.divmod(both, len(order))
        self.weight = weights[order][self.place]
        #: Where each row begins, and one more.
        self.begins = np.searchsorted(self.row, np.arange(len(rows.sizes) + 1))
        ends = np.cumsum(self.weight)
        #: How many elements a row has from a part on.
        self.behind = ends[self.begins[self.row + 1] - 1] - ends + self.weight
        sorted_counts = counts[order]
        self.alone = int(np.searchsorted(sorted_counts, 1, side="right"))
        self.rare = int(np.searchsorted(sorted_counts, RARE, side="right"))
        self.frequent = int(np.searchsorted(sorted_counts, FREQUENT, side="right"))


def _together(rows: Rows) -> tuple[Array, Array, Array]:
    """Which elements are in the same rows: for each element the number of its part if it is the one that stands for it,
    else -1; and how many elements and how many rows each part has.
    """
    order = np.argsort(rows.elements, kind="stable")
    of = np.repeat(np.arange(len(rows.sizes), dtype=np.int32), rows.sizes)[order]  # the rows of each element, ascending
    counts = np.bincount(rows.elements, minlength=rows.total)
    first = begins(counts)
    mixed = (of.astype(np.uint64) + np.uint64(1)) * _MIX[0]
    mixed ^= mixed >> np.uint64(29)
    sums = np.add.reduceat(mixed * _MIX[1], first)
    # The same sum nearly always means the same rows. It is not taken for it: those with the sum of the one before are
    # held against it, row for row.
    by_sum = np.lexsort((sums, counts))
    one, other = by_sum[:-1], by_sum[1:]
    alike = np.flatnonzero((sums[one] == sums[other]) & (counts[one] == counts[other]))
    which, place = spread(first[other[alike]], counts[other[alike]])
    before = place + (first[one[alike]] - first[other[alike]])[which]
    same = np.ones(len(alike), bool)
    same[which[of[place] != of[before]]] = False
    new = np.ones(rows.total, bool)
    new[alike[same] + 1] = False
    leader = np.full(rows.total, -1, np.int64)
    leads = by_sum[new]
    leader[leads] = np.arange(len(leads))
    weights = np.diff(np.append(np.flatnonzero(new), rows.total))
    return leader, weights, counts[leads]


def _keys(parts: _Parts, least: Array) -> Iterator[tuple[Array, Array]]:
    """The rows and keys of some rows each, by row."""
    count = len(parts.begins) - 1
    for begin in range(0, count, ROWS):
        end = min(begin + ROWS, count)
        found = list(_some(parts, least, int(parts.begins[begin]), int(parts.begins[end])))
        row, key = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(row, kind="stable")
        yield row[order], key[order]


def _some(parts: _Parts, least: Array, begin: int, end: int) -> Iterable[tuple[Array, Array]]:
    place, weight, behind = (each[begin:end] for each in (parts.place, parts.weight, parts.behind))
    row = parts.row[begin:end]
    ends = parts.begins[row + 1] - begin
    name = place.astype(np.uint64)

    one = np.flatnonzero((behind >= least[row]) & (place >= parts.alone))
    left = least[row[one]] - weight[one]
    rare = place[one] < parts.rare
    single = one[rare | (left <= 0)]
    yield row[single], name[single] * _MIX[0]

    one, left = one[~rare], left[~rare]
    which, two = spread(one + 1, ends[one] - one - 1)
    has = behind[two] >= left[which]
    which, two = which[has], two[has]
    key = (name[one[which]] * _MIX[0] + name[two] + np.uint64(1)) * _MIX[1]
    missing = np.maximum(left[which], 0) - weight[two]
    seldom = place[two] < parts.frequent
    pair = seldom | (missing <= 0)
    yield row[two[pair]], key[pair]

    two, key, missing = two[~seldom], key[~seldom], missing[~seldom]
    which, three = spread(two + 1, ends[two] - two - 1)
    has = behind[three] >= missing[which]
    which, three = which[has], three[has]
    yield row[three], (key[which] + name[three] + np.uint64(1)) * _MIX[2]
