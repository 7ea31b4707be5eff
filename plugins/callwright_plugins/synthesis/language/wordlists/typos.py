"""Slips of the keyboard: in words of the grammar alone, and only such as mend to the very word."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

_SHORTEST: Final = 4


def slips(word: str) -> tuple[str, ...]:
    """How a word is mistyped: two letters swapped, one left out, or one doubled; never the first one."""
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha():
        return ()
    swapped = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 1)]
    dropped = [word[:i] + word[i + 1 :] for i in range(1, len(word))] if len(word) > _SHORTEST else []
    doubled = [word[: i + 1] + word[i:] for i in range(1, len(word))]
    return tuple(slip for slip in dict.fromkeys([*swapped, *dropped, *doubled]) if slip != word)


def mended(vocabulary: Iterable[str]) -> dict[str, str]:
    """Each slip with the word that it stands for: only slips of one word, and none that is a word itself."""
    words = set(vocabulary)
    found: dict[str, str] = {}
    shared: set[str] = set()
    for word in sorted(words):
        for slip in slips(word):
            if slip in words or found.setdefault(slip, word) != word:
                shared.add(slip)
    return {slip: word for slip, word in found.items() if slip not in shared}


def slipped(text: str, mends: dict[str, str], random: Random) -> str | None:
    """A text with one word mistyped so that it mends again; ``None`` where no word can be."""
    words = text.split(" ")
    places = [place for place, word in enumerate(words) if len(word) >= _SHORTEST and word.isalpha() and word.islower()]
    random.shuffle(places)
    for place in places:
        known = [slip for slip in slips(words[place]) if mends.get(slip) == words[place]]
        if known:
            words[place] = random.choice(known)
            return " ".join(words)
    return None
