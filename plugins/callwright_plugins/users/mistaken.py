"""Slips: a value as somebody tells it who is mistaken."""

from __future__ import annotations

from random import Random
from typing import Any


def mistaken(value: Any, random: Random) -> Any:
    """Another value of the same kind that looks like this one: a digit off, two letters swapped, the other answer.

    ``None``, objects and empty texts have no likeness and come back as they are.
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + random.choice((1, -1, 2))
    if isinstance(value, str) and value:
        return _misspelt(value, random)
    if isinstance(value, list) and value:
        place = random.randrange(len(value))
        return [mistaken(one, random) if at == place else one for at, one in enumerate(value)]
    return value


def _misspelt(text: str, random: Random) -> str:
    digits = [at for at, character in enumerate(text) if character in "0123456789"]
    if digits:
        at = random.choice(digits)
        other = str((int(text[at]) + random.randint(1, 8)) % 10)
        return text[:at] + other + text[at + 1 :]
    pairs = [at for at in range(len(text) - 1) if text[at].casefold() != text[at + 1].casefold()]
    if not pairs:
        return text + text[-1]
    at = random.choice(pairs)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
