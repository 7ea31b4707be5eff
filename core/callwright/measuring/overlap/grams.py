"""Grams of prompts, and which prompts are near one another by them.

The join is exact: a prefix filter (Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007) names the
candidates, among which is every pair that is near enough, and each is decided by its sets. Nothing is sampled.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from callwright.errors import UsageError

#: Length of a gram. Thirteen words are what GPT-3's overlap study took (Brown et al. 2020, appendix C).
LENGTH: Final = 13
_WORD: Final = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a text, in compatibility form (NFKC) and without case; punctuation only divides."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def character_grams(text: str, length: int = LENGTH) -> frozenset[str]:
    """Every run of ``length`` characters; a shorter text is its own gram, an empty one has none."""
    if len(text) <= length:
        return frozenset((text,)) if text else frozenset()
    return frozenset(text[place : place + length] for place in range(len(text) - length + 1))


def word_grams(words: Sequence[str], length: int = LENGTH) -> frozenset[str]:
    """Every run of ``length`` words; a text of fewer has none."""
    return frozenset(" ".join(words[place : place + length]) for place in range(len(words) - length + 1))


def jaccard(one: frozenset[str], other: frozenset[str]) -> Fraction:
    """Shared over all; 0 for two empty sets."""
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return Fraction(shared, union) if union else Fraction(0)


class NearIndex:
    """Sets of grams, asked which of them have at least ``least`` (in (0, 1]) of the grams in common with another.

    A set is sorted by a fixed order, the rarest grams of the index first. Two sets of which ``least`` is shared have a
    gram in common among the first ``n - ceil(least * n) + 1`` of each, so only those are indexed and looked up.
    """

    def __init__(self, sets: Iterable[frozenset[str]], least: Fraction) -> None:
        if not 0 < least <= 1:
            raise UsageError(f"the least Jaccard similarity is {float(least):g}: it has to be above 0 and at most 1")
        self._sets, self._least = list(sets), least
        self._counts: Mapping[str, int] = Counter(gram for one in self._sets for gram in one)
        self._places: dict[str, list[int]] = {}
        for place, one in enumerate(self._sets):
            for gram in self._prefix(one):
                self._places.setdefault(gram, []).append(place)

    def _prefix(self, one: frozenset[str]) -> list[str]:
        kept = len(one) - math.ceil(self._least * len(one)) + 1 if one else 0
        counts = self._counts
        return sorted(one, key=lambda gram: (counts.get(gram, 0), gram))[:kept]

    def near(self, one: frozenset[str]) -> list[tuple[int, Fraction]]:
        """The places of the near sets with their similarity, the nearest first, of equals the first."""
        candidates = {place for gram in self._prefix(one) for place in self._places.get(gram, ())}
        least, size = self._least, len(one)
        found = []
        for place in candidates:
            other = self._sets[place]
            if least * max(size, len(other)) > min(size, len(other)):  # too unlike in size to be near
                continue
            similarity = jaccard(one, other)
            if similarity >= least:
                found.append((place, similarity))
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))
