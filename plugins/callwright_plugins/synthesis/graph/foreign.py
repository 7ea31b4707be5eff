"""Foreign values: of the same form as a value that was told, and told by nobody."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from callwright_plugins.synthesis.exploration.values import Key, value_of

_MOMENT: Final = re.compile(r"\d{4}-\d\d(-\d\d)?")
_MOST: Final = 5


def foreign_values(key: Key, others: Sequence[Key], rng: Random) -> list[Any]:
    """Values to put in the place of one: made up in its form, and others of the place that it comes from."""
    value = value_of(key)
    found: list[Any] = []
    if isinstance(value, str):
        found += _moments(value) if _MOMENT.match(value) else [_altered(value, rng)]
    elif isinstance(value, int | float):
        found += [value + 1, value * 2 + 7, value - 1]
    elsewhere = [other for other in others if other != key and other[0] == key[0]]
    found += [value_of(other) for other in rng.sample(elsewhere, min(3, len(elsewhere)))]
    return [one for one in dict.fromkeys(found) if one != value][:_MOST]


def _altered(text: str, rng: Random) -> str:
    """A text with other digits in the place of its digits, and other letters where it has no digits."""
    if any(sign.isdigit() for sign in text):
        return "".join(str((int(sign) + 1 + rng.randrange(8)) % 10) if sign in "0123456789" else sign for sign in text)
    return "".join(_other_letter(sign, rng) for sign in text)


def _other_letter(sign: str, rng: Random) -> str:
    first = 97 if "a" <= sign <= "z" else 65 if "A" <= sign <= "Z" else None
    return sign if first is None else chr((ord(sign) - first + 1 + rng.randrange(24)) % 26 + first)


def _moments(text: str) -> list[str]:
    """The same kind of moment on other days."""
    head, tail = text[:10], text[10:]
    try:
        day = datetime.strptime(head, "%Y-%m-%d" if len(head) == 10 else "%Y-%m")
    except ValueError:
        return []
    form = "%Y-%m-%d" if len(head) == 10 else "%Y-%m"
    return [(day + timedelta(days=days)).strftime(form) + tail for days in (-800, 45, 1)]
