"""Estimators over several samples of a task: pass@k, pass^k, and how much values scatter within and between tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen

from callwright.statistics.intervals import student_t
from callwright.statistics.shares import cluster_variance


def pass_at(n: int, right: int, k: int) -> float:
    """The chance that at least one of ``k`` samples is right: 1 - C(n - c, k) / C(n, k), where c of n are.

    It is the share of all choices of ``k`` samples that hold a right one, so no estimate is less biased (Chen et al.
    2021, equation 1). Raises :class:`ValueError` unless 1 <= k <= n and 0 <= right <= n.
    """
    _check(n, right, k)
    every = math.comb(n, k)
    return (every - math.comb(n - right, k)) / every


def pass_hat(n: int, right: int, k: int) -> float:
    """The chance that all of ``k`` are right, of ``n`` samples of which ``right`` are: C(c, k) / C(n, k).

    "pass^k", by which tau-bench measures reliability (Yao et al. 2024, section 4). Raises :class:`ValueError` as
    :func:`pass_at` does.
    """
    _check(n, right, k)
    return math.comb(right, k) / math.comb(n, k)


def _check(n: int, right: int, k: int) -> None:
    if not 1 <= k <= n or not 0 <= right <= n:
        raise ValueError(f"of {n} samples with {right} right ones, {k} cannot be drawn")


@frozen
class Spread:
    """The mean of a value over tasks, and how it scatters.

    ``n`` values of ``tasks`` tasks. The mean is that of the tasks' means, so each task counts once; ``low`` and
    ``high`` are its 95% interval over clusters (``None`` for a single one). ``within`` is the deviation of a task's
    samples from their mean (of n - 1), pooled over tasks, ``None`` where no task has two; ``between`` that of the
    tasks' means, ``None`` for a single task. The group advantages of GRPO are 0 for every task whose samples do not
    scatter: ``flat`` is how many tasks of two samples or more those are.
    """

    n: int
    tasks: int
    mean: float | None
    low: float | None = None
    high: float | None = None
    within: float | None = None
    between: float | None = None
    flat: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fields as an object."""
        return asdict(self)


def spread(values: Sequence[Sequence[float]], clusters: Sequence[str] | None = None) -> Spread:
    """The spread of values that are given by task. ``clusters`` names the family of each task; each its own without.

    All values must be finite. Tasks without values play no part.
    """
    named = clusters if clusters is not None else [str(place) for place in range(len(values))]
    known = [(list(some), name) for some, name in zip(values, named, strict=True) if some]
    if not known:
        return Spread(0, 0, None)
    means = [math.fsum(some) / len(some) for some, _ in known]
    count = len(means)
    mean = math.fsum(means) / count
    totals: dict[str, tuple[float, int]] = {}
    for value, (_, name) in zip(means, known, strict=True):
        total, size = totals.get(name, (0.0, 0))
        totals[name] = total + value, size + 1
    reach = None
    if len(totals) > 1:
        reach = student_t(0.95, len(totals) - 1) * math.sqrt(cluster_variance(list(totals.values())))
    several = [some for some, _ in known if len(some) > 1]
    freedom = sum(len(some) - 1 for some in several)
    return Spread(
        n=sum(len(some) for some, _ in known),
        tasks=count,
        mean=mean,
        low=None if reach is None else mean - reach,
        high=None if reach is None else mean + reach,
        within=math.sqrt(math.fsum(map(_squares, several)) / freedom) if freedom else None,
        between=math.sqrt(_squares(means) / (count - 1)) if count > 1 else None,
        flat=sum(max(some) == min(some) for some in several),
    )


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
