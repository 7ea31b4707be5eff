"""Which sets are near-duplicates of earlier ones, by their exact Jaccard similarity.

Sets are gone through in order. One is dropped if it is at least as similar to an earlier one that stays as the
threshold says, and the first such one is the reason. Candidates come from a prefix filter: with the elements in one
order, the rarest first, two sets that are similar enough share one of the first ``n - ceil(t * n) + 1`` elements of
each. None is missed, so the result is that of comparing all pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

from callwright.errors import UsageError

T = TypeVar("T", bound=Hashable)

#: The similarity from which two sequences of calls are near-duplicates (Prove, section 3.2).
THRESHOLD: Final = 0.70
#: An element of more sets than this is looked up only together with another such one, and of two with more than
#: ``FREQUENT`` only together with a third.
RARE: Final = 48
FREQUENT: Final = 500
_BITS: Final = 120


def near_duplicates(sets: Sequence[frozenset[T]], threshold: float = THRESHOLD) -> dict[int, int]:
    """Each index that is dropped, with the earlier index that it is dropped for, in order.

    ``threshold`` is above 0 and at most 1; it is taken as the decimal number that it is written as, so that 7 common
    elements of 10 are 0.70. Two empty sets are alike; an empty one is like no other. Raises
    :class:`callwright.UsageError` for another threshold.
    """
    limit = _limit(threshold)
    same, distinct = _distinct(sets)
    found = _dropped([sets[index] for index in distinct], limit)
    for index, first in same.items():  # it is dropped for the first of its kind, or for what that was dropped for
        same[index] = distinct[found.get(first, first)]
    for one, other in found.items():
        same[distinct[one]] = distinct[other]
    return dict(sorted(same.items()))


def jaccard(one: frozenset[T], other: frozenset[T]) -> Fraction:
    """The share of common elements among all elements of two sets; 1 for two empty ones."""
    common = len(one & other)
    union = len(one) + len(other) - common
    return Fraction(common, union) if union else Fraction(1)


def _limit(threshold: float) -> Fraction:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
        raise UsageError(f"a threshold of similarity is above 0 and at most 1, not {threshold!r:.40}")
    return Fraction(repr(threshold))


def _distinct(sets: Sequence[frozenset[T]]) -> tuple[dict[int, int], list[int]]:
    """Which sets occur again (index to the place of the first one among the distinct ones), and the distinct ones."""
    places: dict[frozenset[T], int] = {}
    again: dict[int, int] = {}
    distinct: list[int] = []
    for index, one in enumerate(sets):
        place = places.setdefault(one, len(distinct))
        if place == len(distinct):
            distinct.append(index)
        else:
            again[index] = place
    return again, distinct


def _dropped(sets: Sequence[frozenset[T]], limit: Fraction) -> dict[int, int]:
    """The near-duplicates among sets that are all different."""
    order = _Order(sets)
    bitmaps: list[int] = []
    postings: dict[int, int | list[int]] = {}  # most keys are of one set: a list for each would cost most of the time
    ranges: dict[int, tuple[int, list[int], int]] = {}
    dropped: dict[int, int] = {}
    for index, mine in enumerate(sets):
        size = len(mine)
        ranks = order.ranks(index)
        bitmap = _bitmap(ranks)
        bitmaps.append(bitmap)
        if not size:
            continue
        if size not in ranges:
            ranges[size] = _range(size, limit)
        least, needed, apart = ranges[size]
        keys = order.keys(ranks, least, single=needed[0] == 1)
        best = len(sets)
        for key in keys:
            held = postings.get(key)
            if held is None:
                continue
            candidates = held if isinstance(held, list) else (held,)
            for found in [one for one in candidates if (bitmap ^ bitmaps[one]).bit_count() <= apart]:
                if found >= best:
                    break
                place = len(sets[found]) - least
                if 0 <= place < len(needed) and len(mine & sets[found]) >= needed[place]:
                    best = found
                    break
        if best < index:
            dropped[index] = best
            continue
        for key in keys:
            before = postings.setdefault(key, index)
            if isinstance(before, list):
                before.append(index)
            elif before != index:
                postings[key] = [before, index]
    return dropped


def _range(size: int, limit: Fraction) -> tuple[int, list[int], int]:
    """Of a size: the smallest one that may be similar enough, the common elements that it and each larger one need, and
    how many elements two such sets have apart at most.
    """
    top, bottom = limit.numerator, limit.denominator
    least = -(-top * size // bottom)
    # common / (size + other - common) >= top / bottom
    needed = [-(-top * (size + other) // (top + bottom)) for other in range(least, bottom * size // top + 1)]
    return least, needed, max(size + other - 2 * common for other, common in enumerate(needed, least))


class _Order:
    """The elements in one order, the rarest first. Which of two equally rare ones comes first changes no result.

    Two sets that need ``a`` common elements share one among the first ``n - a + 1`` of each, and two among the first
    ``n - a + 2``. An element that few sets have is a key by itself; of those that many have it takes two, or three of
    those that very many have. The first common elements are of one of these kinds, so one key at least is common.
    """

    def __init__(self, sets: Sequence[frozenset[Any]]) -> None:
        numbers: dict[Any, int] = {}
        number = numbers.setdefault
        # Each element is looked up once: from here on it is a number.
        self.rows = [[number(element, len(numbers)) for element in one] for one in sets]
        self.total = len(numbers)
        counts = [0] * self.total
        for row in self.rows:
            for one in row:
                counts[one] += 1
        order = sorted(range(self.total), key=counts.__getitem__)
        self.places = [0] * self.total
        for place, one in enumerate(order):
            self.places[one] = place
        self.alone = sum(count == 1 for count in counts)
        self.rare = sum(count <= RARE for count in counts)
        self.frequent = sum(count <= FREQUENT for count in counts)

    def ranks(self, index: int) -> list[int]:
        """The elements of a set in order."""
        places = self.places
        return sorted([places[one] for one in self.rows[index]])

    def keys(self, ranks: list[int], least: int, single: bool) -> list[int]:
        """The keys of a set that has ``least`` elements or more in common with what it is near; ``single``: perhaps
        only one, so that there is no second one to share.
        """
        first = len(ranks) - least + 1
        total = self.total
        begin = bisect_left(ranks, self.rare)
        keys = ranks[bisect_left(ranks, self.alone) : first if single else min(begin, first)]
        often = ranks[begin : first + 2]
        pairs = ranks[begin : first + 1]
        for i, one in enumerate(ranks[begin:first]):
            for j, two in enumerate(pairs[i + 1 :], i + 1):
                pair = total * (one + 1) + two
                if two < self.frequent or least < 3:  # a small set may have only two to share
                    keys.append(pair)
                if two >= self.frequent:
                    keys.extend([total * (pair + 1) + three for three in often[j + 1 :]])
        return keys


def _bitmap(ranks: list[int]) -> int:
    """Bits of which two sets have no more apart than elements (the bitmap filter): cheap to compare, and exact."""
    bits = 0
    for rank in ranks:
        bits |= 1 << rank % _BITS
    return bits
