"""Which sets are near-duplicates of earlier ones, by their exact Jaccard similarity.

Sets are gone through in order. One is dropped if it is at least as similar to an earlier one that stays as the
threshold says, and the first such one is the reason. Candidates come from a prefix filter: with the elements in one
order, the rarest first, two sets that are similar enough share one of the first ``n - ceil(t * n) + 1`` elements of
each. None is missed, so the result is that of comparing all pairs.
"""

from __future__ import annotations

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
        bitmap = _bitmap(order.rows[index])
        bitmaps.append(bitmap)
        if not size:
            continue
        if size not in ranges:
            ranges[size] = _range(size, limit)
        least, needed, apart = ranges[size]
        keys = order.keys(order.parts(index), least)
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
    """What the sets are made of, in one order, the rarest first. Which of two equally rare ones comes first changes no
    result.

    Elements that are always together, such as a tool and the keys of its arguments, are one *part*, as heavy as they
    are many: a second of them says nothing that the first does not. Two sets that need ``a`` common elements share a
    part behind which, itself included, each has ``a`` elements or more; if that part has ``w``, a later one behind
    which each has ``a - w``, and so on. A part that few sets have is a key by itself; of those that many have it takes
    two, or three of those that very many have, unless one or two may be all that is common. So one key at least is.
    """

    def __init__(self, sets: Sequence[frozenset[Any]]) -> None:
        numbers: dict[Any, int] = {}
        number = numbers.setdefault
        # Each element is looked up once: from here on it is a number.
        self.rows = [[number(element, len(numbers)) for element in one] for one in sets]
        part, weights = _parts(self.rows, len(numbers))
        self.total = len(weights)
        counts = [0] * self.total
        for row in self.rows:
            for one in {part[element] for element in row}:
                counts[one] += 1
        order = sorted(range(self.total), key=counts.__getitem__)
        places = [0] * self.total
        for place, one in enumerate(order):
            places[one] = place
        self.weights = [weights[one] for one in order]
        #: The place of each element's part.
        self.places = [places[one] for one in part]
        self.alone = sum(count == 1 for count in counts)
        self.rare = sum(count <= RARE for count in counts)
        self.frequent = sum(count <= FREQUENT for count in counts)

    def parts(self, index: int) -> list[int]:
        """The parts of a set in order."""
        places = self.places
        return sorted({places[one] for one in self.rows[index]})

    def keys(self, parts: list[int], least: int) -> list[int]:
        """The keys of a set that has ``least`` elements or more in common with what it is near."""
        total, weights, rare, frequent = self.total, self.weights, self.rare, self.frequent
        behind = [0] * len(parts)  # how many elements it has from each part on
        held = 0
        for at in range(len(parts) - 1, -1, -1):
            held += weights[parts[at]]
            behind[at] = held
        keys = []
        for at, one in enumerate(parts):
            if behind[at] < least:
                break
            if one < self.alone:
                continue
            left = least - weights[one]
            if one < rare or left <= 0:
                keys.append(one)
            if one < rare:
                continue
            first = total * (one + 1)
            for then in range(at + 1, len(parts)):
                if behind[then] < left:
                    break
                two = parts[then]
                missing = left - weights[two]
                if two < frequent or missing <= 0:
                    keys.append(first + two)
                if two < frequent:
                    continue
                pair = total * (first + two + 1)
                for last in range(then + 1, len(parts)):
                    if behind[last] < missing:
                        break
                    keys.append(pair + parts[last])
        return keys


def _parts(rows: Sequence[Sequence[int]], total: int) -> tuple[list[int], list[int]]:
    """The part of each element, and how many elements each part has: those that are in the same rows are one.

    All begin as one part. Each row divides those that it has in part only.
    """
    part, sizes = [0] * total, [total]
    for row in rows:
        met: dict[int, list[int]] = {}
        for element in row:
            met.setdefault(part[element], []).append(element)
        for one, members in met.items():
            if len(members) < sizes[one]:
                sizes[one] -= len(members)
                for element in members:
                    part[element] = len(sizes)
                sizes.append(len(members))
    return part, sizes


def _bitmap(elements: list[int]) -> int:
    """Bits of which two sets have no more apart than elements (the bitmap filter): cheap to compare, and exact."""
    bits = 0
    for one in elements:
        bits |= 1 << one % _BITS
    return bits
