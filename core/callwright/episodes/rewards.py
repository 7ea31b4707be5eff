"""Rewards of episodes that are over. One that could not find out, as a judge that did not answer, is asked again.

An episode whose own session failed is another matter: it is made again (:mod:`callwright.episodes.driving`), and where
that does not help there is nothing to ask about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward

#: An attempt with its reward.
Scored = tuple[Attempt, Reward]


def is_unknown(attempt: Attempt, reward: Reward) -> bool:
    """Whether somebody who asks again may get a reward: it is neither the recipe that masks what was cut off, nor the
    machinery that lost the episode.
    """
    return reward.total is None and not reward.masked_cut and attempt.stop != "machinery"


def asked_again(
    scored: Iterable[Scored], retries: int, score: Callable[[Sequence[Attempt]], Iterable[Scored]]
) -> list[Scored]:
    """Attempts with their rewards, of which those that are not known were asked for up to ``retries`` times more.

    ``score`` has the rewards of attempts, in their order. A reward that stays unknown is masked, with its reason.
    """
    found = list(scored)
    for _ in range(retries):
        unknown = [place for place, one in enumerate(found) if is_unknown(*one)]
        if not unknown:
            break
        for place, one in zip(unknown, score([found[place][0].again() for place in unknown]), strict=True):
            found[place] = one
    return found


async def asked_until_known(attempt: Attempt, retries: int, score: Callable[[Attempt], Awaitable[Reward]]) -> Scored:
    """As :func:`asked_again`, of one attempt, where an event loop goes on in the meantime."""
    found = attempt, await score(attempt)
    for _ in range(retries):
        if not is_unknown(*found):
            break
        again = found[0].again()
        found = again, await score(again)
    return found
