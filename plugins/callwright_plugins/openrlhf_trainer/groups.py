"""Groups: the completions of one prompt, which OpenRLHF asks the same object for at the same time.

A completion whose machinery failed has no reward, but OpenRLHF wants a number; and its dynamic filtering looks at a
mean of scores. For both, the rewards of the other completions of the prompt must be known.

Rewards are on a grid on which groups of equal rewards have exactly their own mean. OpenRLHF normalises a group in
single precision, ``(r - mean) / (std + 1e-9)``. Where all rewards of a group are equal, the mean of most decimal
fractions comes out beside them by a rounding error, which the tiny ``1e-9`` blows up: eight rewards of 0.35 get
advantages of up to 0.5 in place of 0. On multiples of a power of two sums are exact, and so is the mean of equal ones.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable, Mapping
from typing import Any, Final

from attrs import field, frozen

#: Bits of a single-precision significand.
_BITS: Final = 24
#: Rewards within this of one another count as equal, as in ``policy_gradient``.
EQUAL = 1e-6


@frozen(eq=False)
class RewardGroup:
    """The rewards of one prompt's completions as they come in; ``None`` for a masked one."""

    copies: int
    rewards: list[float | None] = field(factory=list)
    whole: asyncio.Event = field(factory=asyncio.Event)
    #: What is shown of those that are over; ``None`` for one of which nothing is.
    kept: list[Mapping[str, Any] | None] = field(factory=list)

    @property
    def known(self) -> list[float]:
        """The rewards of those whose machinery did not fail."""
        return [reward for reward in self.rewards if reward is not None]

    @property
    def mean(self) -> float | None:
        """The mean of the known rewards."""
        return sum(self.known) / len(self.known) if self.known else None

    @property
    def varied(self) -> bool:
        """Whether the known rewards differ, so that the group teaches anything."""
        return bool(self.known) and max(self.known) - min(self.known) > EQUAL


class Groups:
    """The groups that are being sampled, each until all of its completions have asked for the others."""

    def __init__(self) -> None:
        self._live: dict[Hashable, tuple[RewardGroup, list[int]]] = {}

    def join(self, key: Hashable, copies: int) -> tuple[RewardGroup, int]:
        """The group of a prompt, for one more of its completions, and the number of that in it, counted from 0."""
        group, joined = self._live.setdefault(key, (RewardGroup(copies), [0]))
        joined[0] += 1
        if joined[0] == copies:  # the next completion with this key begins another group
            del self._live[key]
        return group, joined[0] - 1

    @staticmethod
    def report(group: RewardGroup, reward: float | None) -> None:
        """The reward of one completion is known."""
        group.rewards.append(reward)
        if len(group.rewards) >= group.copies:
            group.whole.set()


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
