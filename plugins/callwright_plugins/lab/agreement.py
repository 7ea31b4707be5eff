"""Rank agreement: Kendall's tau-b (Kendall, 1945) over all pairs, and over the pairs inside groups.

GRPO compares attempts at one task only, so the second is what training feels: pairs of different tasks take no part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import define

#: Below so many distinct pairs of values, looking at each pair of them is quicker than a tree.
_FEW = 24


@define
class Pairs:
    """Counts of pairs: ranked alike, ranked the other way, and not tied under either ranking."""

    concordant: int = 0
    discordant: int = 0
    untied_x: int = 0
    untied_y: int = 0

    def add(self, other: Pairs) -> None:
        """Count another set of pairs, too."""
        self.concordant += other.concordant
        self.discordant += other.discordant
        self.untied_x += other.untied_x
        self.untied_y += other.untied_y

    @property
    def tau(self) -> float | None:
        """tau-b in [-1, 1]; ``None`` where one of the rankings ties everything."""
        scale = math.sqrt(self.untied_x * self.untied_y)
        return (self.concordant - self.discordant) / scale if scale else None

    @property
    def opposite(self) -> float | None:
        """Of the pairs that both rank, the share that they rank the other way round."""
        ranked = self.concordant + self.discordant
        return self.discordant / ranked if ranked else None


def compare(xs: Sequence[float], ys: Sequence[float]) -> Pairs:
    """All pairs of positions under two rankings of the same things; O(n log n), and quicker with many ties."""
    cells = Counter(zip(xs, ys, strict=True))
    pairs = Pairs(untied_x=_untied(cells, 0), untied_y=_untied(cells, 1))
    if pairs.untied_x and pairs.untied_y:
        count = _by_pairs if len(cells) <= _FEW else _by_tree
        pairs.concordant, pairs.discordant = count(cells)
    return pairs


def compare_within(groups: Iterable[Sequence[int]], xs: Sequence[float], ys: Sequence[float]) -> Pairs:
    """The pairs inside each group of positions, counted together."""
    total = Pairs()
    for group in groups:
        total.add(compare([xs[i] for i in group], [ys[i] for i in group]))
    return total


def _untied(cells: Counter[tuple[float, float]], side: int) -> int:
    sizes: Counter[float] = Counter()
    for cell, count in cells.items():
        sizes[cell[side]] += count
    whole = sum(sizes.values())
    return (whole * whole - sum(size * size for size in sizes.values())) // 2


def _by_pairs(cells: Counter[tuple[float, float]]) -> tuple[int, int]:
    concordant = discordant = 0
    known = list(cells.items())
    for index, ((x, y), count) in enumerate(known):
        for (other_x, other_y), other in known[:index]:
            if x == other_x or y == other_y:
                continue
            if (x > other_x) == (y > other_y):  # a product of differences could underflow
                concordant += count * other
            else:
                discordant += count * other
    return concordant, discordant


def _by_tree(cells: Counter[tuple[float, float]]) -> tuple[int, int]:
    """By ascending x, with the counts of the y seen so far in a Fenwick tree."""
    rank = {y: index + 1 for index, y in enumerate(sorted({y for _, y in cells}))}
    tree = [0] * (len(rank) + 1)

    def below(index: int) -> int:
        found = 0
        while index:
            found += tree[index]
            index &= index - 1
        return found

    rows: dict[float, list[tuple[int, int]]] = {}
    for (x, y), count in cells.items():
        rows.setdefault(x, []).append((rank[y], count))
    concordant = discordant = seen = 0
    for x in sorted(rows):
        for index, count in rows[x]:
            concordant += count * below(index - 1)
            discordant += count * (seen - below(index))
        for index, count in rows[x]:
            seen += count
            while index < len(tree):
                tree[index] += count
                index += index & -index
    return concordant, discordant
