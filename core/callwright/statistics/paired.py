"""Differences between two that answered the same tasks: a bootstrap over clusters of pairs, and McNemar's exact test.

Pairs of a cluster (tasks of a family) are drawn together, since they rise and fall together. The interval is the
percentile interval of the bootstrap, widened for few clusters: its level is the one at which a percentile interval of a
normal mean would be Student's t (Hesterberg 2015, "expanded percentile"), so that it holds the truth about as often as
it says at twenty clusters as well as at two hundred.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random
from statistics import NormalDist
from typing import Any, Final

from attrs import asdict, frozen

from callwright.statistics.intervals import student_t

#: Samples that a bootstrap draws: the bounds then hang on the seed by less than a tenth of the interval's length.
DRAWS: Final = 2000
_NORMAL: Final = NormalDist()


@frozen
class Difference:
    """A mean difference of ``n`` pairs in ``clusters`` clusters with its interval; ``None`` where there is no pair."""

    n: int
    clusters: int
    difference: float | None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields as an object."""
        return asdict(self)


def bootstrap_difference(
    clusters: Iterable[Sequence[float]], *, level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Difference:
    """The mean of all differences with an interval of this level, from the differences of each cluster.

    Differences are those of shares, in [-1, 1]. The same arguments give the same bounds on every machine. Where all
    clusters have the same mean difference a bootstrap would draw nothing else, whatever may be true: the interval is
    then what an unseen kind of cluster may add, whose share is below 1 - ((1 - level) / 2) ** (1 / clusters)
    (Clopper and Pearson 1934). So of 100 tasks without one that differs it is [-3.6, 3.6] points, not [0, 0]. A single
    cluster has the interval [-1, 1].
    """
    kinds = Counter((math.fsum(some), len(some)) for some in clusters if len(some))
    groups, n = sum(kinds.values()), sum(size * count for (_, size), count in kinds.items())
    if not groups:
        return Difference(0, 0, None)
    mean = math.fsum(total * count for (total, _), count in kinds.items()) / n
    if groups == 1:
        return Difference(n, groups, mean, -1.0, 1.0)
    if len({total / size for total, size in kinds}) == 1:
        unseen = 1 - ((1 - level) / 2) ** (1 / groups)
        return Difference(n, groups, mean, mean - unseen * (mean + 1), mean + unseen * (1 - mean))
    drawn = sorted(_drawn(kinds, groups, draws, Random(seed)))
    outside = _NORMAL.cdf(-math.sqrt(groups / (groups - 1)) * student_t(level, groups - 1))
    return Difference(n, groups, mean, _quantile(drawn, outside), _quantile(drawn, 1 - outside))


def _drawn(kinds: Counter[tuple[float, int]], groups: int, draws: int, rng: Random) -> Iterable[float]:
    """Means of resampled clusters. There are few kinds of them, so that a sample is how often each kind was drawn."""
    known = sorted(kinds)
    upto = list(accumulate(kinds[kind] for kind in known))
    places = range(len(known))
    for _ in range(draws):
        counts = Counter(rng.choices(places, cum_weights=upto, k=groups))
        total, size = 0.0, 0
        for place, count in counts.items():
            one, many = known[place]
            total += one * count
            size += many * count
        yield total / size


def _quantile(values: Sequence[float], share: float) -> float:
    """The quantile of sorted values, linear between the two that are next to it."""
    place = share * (len(values) - 1)
    below = min(int(place), len(values) - 2)
    return values[below] + (place - below) * (values[below + 1] - values[below])


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided p value that one is better than the other, from the pairs that only one of them has right.

    Exact: under no difference each is as likely to be gained as to be lost (McNemar 1947, with the binomial
    distribution). It takes pairs as independent; :func:`bootstrap_difference` does not.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"{gained} gained and {lost} lost pairs cannot be")
    n, least = gained + lost, min(gained, lost)
    tail = ways = 1
    for k in range(least):  # from one binomial coefficient to the next: anew, each would cost as much as all before it
        ways = ways * (n - k) // (k + 1)
        tail += ways
    every: int = 2**n
    return min(1.0, 2 * tail / every)  # of whole numbers: rounded once, however large they are
