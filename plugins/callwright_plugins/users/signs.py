"""Stop signs: what a simulated user writes in place of words when the conversation is over for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from callwright.errors import UsageError


def read_signs(given: Any, user: str) -> tuple[str, ...]:
    """The option ``stop``: a sign or several. Raises :class:`callwright.UsageError` for anything else."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) and one.strip() for one in listed):
        raise UsageError(
            f"the option 'stop' of the user {user!r} is a word that ends the conversation, or several, "
            f"not {given!r:.80}"
        )
    return tuple(listed)


def without_sign(text: str, signs: Sequence[str]) -> tuple[str, str]:
    """The words beside the first sign that a text holds, and that sign; the text as it is where it holds none."""
    if not any(sign in text for sign in signs):
        return text, ""
    longest = sorted(signs, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest)))
    pieces = [piece.strip() for piece in pattern.split(text)]
    return " ".join(piece for piece in pieces if piece), pattern.findall(text)[0]
