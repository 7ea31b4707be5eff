"""What the oracle's readers of the forms share: limits, references, text, ids."""

from __future__ import annotations

import re
from typing import Any

from specification_oracle import Ref

#: Ours: a text, a program and a number have bounds, so that no text costs without end.
CHARACTERS, CALLS, NESTING, DIGITS = 400_000, 256, 64, 4_300
#: A reference that is spelt so that it names no call.
NO_CALL = Ref(-1)
#: A decimal number.
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Malformed(Exception):
    """The body is no tree of calls."""


class Unusable(Exception):
    """The tree of calls is well formed, but the arguments of a call cannot be used (C, rule 8)."""


def reference(text: str) -> Ref | None:
    """``API_RESPONSE_<id>`` (A.2; C, rule 10), with ``.field`` and ``[index]`` (ours); ``None`` for plain text.

    Ours: what begins with ``API_RESPONSE_`` is meant as a reference; a misspelt one names no call.
    """
    if not text.startswith("API_RESPONSE_"):
        return None
    head = re.match(r"API_RESPONSE_([0-9]{1,9})(?![0-9])", text)
    if head is None:
        return NO_CALL
    path: list[str | int] = []
    rest = text[head.end() :]
    while rest:
        step = re.match(r"\.([^.\[\]]+)|\[([0-9]{1,9})\]", rest, re.DOTALL)
        if step is None:
            return NO_CALL
        path.append(step[1] if step[1] is not None else int(step[2]))
        rest = rest[step.end() :]
    return Ref(int(head[1]), tuple(path))


def text_value(text: str) -> Any:
    """A string as a value: a reference if it is written like one (A.2)."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed  # ours: half of a character is no text
    return reference(text) or text


def number_of(text: str) -> int:
    """C, rule 4: "a unique numeric string key"; ours: up to nine ASCII digits."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise Malformed
    return int(text)
