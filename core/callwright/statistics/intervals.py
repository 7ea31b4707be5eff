"""Means of independent runs with their intervals: Student's t over seeds, paired where two settings share them.

A run is one draw of everything that its seed decides, so the runs of a setting are a small sample. For n runs with the
mean m and the deviation s (of n - 1) the interval is m ± t · s / √n, where t leaves 5% outside in a Student
distribution of n - 1 degrees of freedom. It is exact for means of normal values at any n, which matters at the three to
eight seeds that one can pay for: there a bootstrap of the mean covers far less than it says.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import asdict, frozen

Key = TypeVar("Key", bound=Hashable)


@frozen
class MeanInterval:
    """A mean of ``n`` values. ``std`` is their deviation (of n - 1); it and the bounds are ``None`` below two values.

    The bounds are those of the mean and not cut at the range of the values: a mean of shares may get one above 1.
    """

    n: int
    mean: float | None
    std: float | None = None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields as an object."""
        return asdict(self)


def mean_interval(values: Sequence[float], level: float = 0.95) -> MeanInterval:
    """The mean of values with its interval by Student's t; ``level`` in (0, 1) is how often such an interval holds it.

    All values must be finite.
    """
    n = len(values)
    if n == 0:
        return MeanInterval(0, None)
    mean = math.fsum(values) / n
    if n == 1:
        return MeanInterval(1, mean)
    std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    reach = student_t(level, n - 1) * std / math.sqrt(n)
    return MeanInterval(n, mean, std, mean - reach, mean + reach)


def paired_difference(first: Mapping[Key, float], second: Mapping[Key, float], level: float = 0.95) -> MeanInterval:
    """``second`` minus ``first`` over the keys (seeds, tasks) that both have, with the interval of its mean.

    What a seed does to both cancels, so it is narrower than the two single intervals suggest. It speaks of what both
    have, and of one comparison: of twenty without any effect one lies beside 0 by chance.
    """
    return mean_interval([second[key] - first[key] for key in first if key in second], level)


def student_t(level: float, freedom: int) -> float:
    """The t beyond which ``1 - level`` of a Student distribution with ``freedom`` degrees lies, both sides together.

    ``level`` in (0, 1), ``freedom`` at least 1; else raises :class:`ValueError`. Exact up to rounding: for whole
    degrees the distribution function is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4), here solved by
    bisection over the angle whose tangent is t / √freedom.
    """
    if not 0 < level < 1 or freedom < 1:
        raise ValueError(f"no Student distribution has a t for {level} and {freedom}")
    low, high = 0.0, math.pi / 2
    while low < (angle := (low + high) / 2) < high:
        if _between(angle, freedom) < level:
            low = angle
        else:
            high = angle
    return math.sqrt(freedom) * math.tan(angle)


def _between(angle: float, freedom: int) -> float:
    """The share of a Student distribution between -t and t, for t = √freedom · tan(angle)."""
    odd = freedom % 2
    sine, cosine = math.sin(angle), math.cos(angle)
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
