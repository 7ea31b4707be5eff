"""Rewards on a grid on which groups of equal rewards have exactly their own mean.

OpenRLHF normalises a group in single precision, ``(r - mean) / (std + 1e-9)``. Where all rewards of a group are equal,
the mean of most decimal fractions comes out beside them by a rounding error, which the tiny ``1e-9`` blows up: eight
rewards of 0.35 get advantages of up to 0.5 in place of 0. On multiples of a power of two sums are exact, and so is the
mean of equal rewards.
"""

from __future__ import annotations

import math
from typing import Final

#: Bits of a single-precision significand.
_BITS: Final = 24


def grid_step(group: int, largest: float) -> float:
    """The distance of rewards for ``group`` completions of at most ``largest`` (absolute): about ``1e-6``, if the sum
    of a group then fits into single precision, else the finest that does."""
    whole = max(1, math.ceil(math.log2(max(1.0, group * largest))))
    return 2.0 ** -min(20, _BITS - 1 - whole)


def steady(reward: float, step: float) -> float:
    """A reward rounded to six decimals, so that noise of its arithmetic is gone, and then to the grid."""
    return round(round(reward, 6) / step) * step


def share(reward: float, low: float, high: float) -> float:
    """A reward of ``[low, high]`` as a share of that range, in ``[0, 1]``: what OpenRLHF's filter looks at."""
    if high <= low:
        return 0.0
    return min(1.0, max(0.0, (reward - low) / (high - low)))
