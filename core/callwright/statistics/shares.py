"""Shares of right answers with their intervals, also where tasks come in families or are sampled several times.

Rows of one cluster (samples of a task, tasks of a family) succeed and fail together, so they tell less than as many
rows that have nothing to do with one another. :func:`clustered_share` therefore asks how many independent rows they are
worth (the effective size: the number of rows over the design effect, Kish 1965) and takes Wilson's interval for so
many, with the correction for few clusters of Korn and Graubard (1998, section 2). Where every row is a cluster of its
own it is Wilson's interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from attrs import asdict, frozen

from callwright.statistics.intervals import student_t

#: Of the normal distribution, 2.5% lie beyond it on each side.
Z95: Final = 1.959963984540054
#: A sum of squares below this, a row, is rounding.
_NOTHING: Final = 1e-24


@frozen
class Share:
    """A share of ``n`` rows in ``clusters`` clusters, worth ``effective`` independent rows, with its 95% interval.

    ``share`` is ``None``, and the interval all of [0, 1], where there is no row.
    """

    share: float | None
    n: int
    clusters: int
    effective: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """The fields as an object."""
        return asdict(self)


def wilson(right: float, count: float, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval for a proportion (95% unless ``z`` says otherwise); ``(0, 1)`` for no observations.

    Neither number has to be whole: an effective size seldom is (Wilson 1927).
    """
    if count == 0:
        return 0.0, 1.0
    share = right / count
    centre = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    # Rounding must not put a bound on the wrong side of the share.
    return max(0.0, min(share, (centre - spread) / scale)), min(1.0, max(share, (centre + spread) / scale))


def clustered_share(clusters: Iterable[tuple[float, int]]) -> Share:
    """The share of all rows with its interval, from the sum of the rows' values and their number in each cluster.

    Values are in [0, 1]: 1 for right and 0 for wrong, or a share by itself. Clusters without rows play no part. The
    design effect compares the variance between clusters (linearised, n / (n - 1) of the number of clusters) with that
    of independent rows; one below 1 is taken as 1. Where all rows are right, or all are wrong, nothing tells how alike
    those of a cluster are, and each cluster counts as one row.
    """
    sizes = [(float(total), size) for total, size in clusters if size > 0]
    n, groups = sum(size for _, size in sizes), len(sizes)
    if not n:
        return Share(None, 0, 0, 0.0, 0.0, 1.0)
    total = math.fsum(total for total, _ in sizes)
    share = min(max(total / n, 0.0), 1.0)
    effective = _effective(sizes, share, n)
    low, high = wilson(total if effective == n else share * effective, effective)
    return Share(share, n, groups, effective, min(low, share), max(high, share))


def cluster_variance(clusters: list[tuple[float, int]]) -> float:
    """The variance of ``sum of totals / sum of sizes``, linearised about it; 0 for fewer than two clusters."""
    groups, n = len(clusters), sum(size for _, size in clusters)
    if groups < 2:
        return 0.0
    mean = math.fsum(total for total, _ in clusters) / n
    squares = math.fsum((total - mean * size) ** 2 for total, size in clusters)
    return squares / (n * n) * groups / (groups - 1)


def _effective(clusters: list[tuple[float, int]], share: float, n: int) -> float:
    groups = len(clusters)
    if groups == n:
        return float(n)
    free = share * (1 - share)
    if groups < 2 or free * n < _NOTHING:
        return float(groups)
    variance = cluster_variance(clusters)
    if variance < _NOTHING:  # every cluster has the same share: as good as independent rows, at the most
        return n * _few(groups, n)
    return min(float(n), free / (n - 1) / variance * n) * _few(groups, n)


@lru_cache(maxsize=1024)
def _few(groups: int, n: int) -> float:
    """What is taken off because a variance between few clusters is itself not well known."""
    return (student_t(0.95, n - 1) / student_t(0.95, groups - 1)) ** 2
