"""Who lives in the village: one person, and the secret words by which a purse opens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PERSON: Final = "Robin Lake"
COLOURS: Final = tuple(
    "amber black blue brown coral green grey ivory lilac olive pink red rose teal white yellow".split()
)
ANIMALS: Final = tuple("badger bear crow deer duck eagle fox frog goose hare heron lynx otter owl swan wolf".split())


def held_out(first: int, second: int = 0) -> bool:
    """Whether two things are kept together for evaluation: one of four, so that either is on both sides."""
    return (3 * first + second) % 4 == 0


def passwords(*, for_evaluation: bool) -> Sequence[str]:
    """The passwords of one side: two words, of which each is on both sides and none together is."""
    return [
        f"{colour} {animal}"
        for first, colour in enumerate(COLOURS)
        for second, animal in enumerate(ANIMALS)
        if held_out(first, second) == for_evaluation
    ]
