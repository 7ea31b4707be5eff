"""Groups: the completions of one prompt, which OpenRLHF asks the same object for at the same time.

A completion whose machinery failed has no reward, but OpenRLHF wants a number; and its dynamic filtering looks at a
mean of scores. For both, the rewards of the other completions of the prompt must be known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from attrs import field, frozen

#: Rewards within this of one another count as equal, as in ``policy_gradient``.
EQUAL = 1e-6


@frozen(eq=False)
class RewardGroup:
    """The rewards of one prompt's completions as they come in; ``None`` for a masked one."""

    copies: int
    rewards: list[float | None] = field(factory=list)
    whole: asyncio.Event = field(factory=asyncio.Event)

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

    def join(self, key: Hashable, copies: int) -> RewardGroup:
        """The group of a prompt, for one more of its completions."""
        group, joined = self._live.setdefault(key, (RewardGroup(copies), [0]))
        joined[0] += 1
        if joined[0] == copies:  # the next completion with this key begins another group
            del self._live[key]
        return group

    @staticmethod
    def report(group: RewardGroup, reward: float | None) -> None:
        """The reward of one completion is known."""
        group.rewards.append(reward)
        if len(group.rewards) >= group.copies:
            group.whole.set()
