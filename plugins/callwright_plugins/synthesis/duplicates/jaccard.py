"""Which sets are near-duplicates of earlier ones, by their exact Jaccard similarity.

Sets are gone through in order. One is dropped if it is at least as similar to an earlier one that stays as the
threshold says, and the first such one is the reason. Candidates come from a prefix filter: with the elements in one
order, the rarest first, two sets that are similar enough share one of the first ``n - ceil(t * n) + 1`` elements of
each. None is missed, so the result is that of comparing all pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Final, TypeVar

from callwright.errors import UsageError

T = TypeVar("T", bound=Hashable)

#: The similarity from which two sequences of calls are near-duplicates (Prove, section 3.2).
THRESHOLD: Final = 0.70


def near_duplicates(sets: Sequence[frozenset[T]], threshold: float = THRESHOLD) -> dict[int, int]:
    """Each index that is dropped, with the earlier index that it is dropped for, in order.

    ``threshold`` is above 0 and at most 1; it is taken as the decimal number that it is written as, so that 7 common
    elements of 10 are 0.70. Two empty sets are alike; an empty one is like no other. Raises
    :class:`callwright.UsageError` for another threshold.
    """
    limit = _limit(threshold)
    same, distinct = _distinct(sets)
    found = _need_join().dropped([sets[index] for index in distinct], limit)
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


def _need_join() -> ModuleType:
    from callwright.errors import MissingExtra

    try:
        from callwright_plugins.synthesis.duplicates import join
    except ImportError as error:
        raise MissingExtra("comparing tasks", "synthesis", error.name or "numpy") from error
    return join
