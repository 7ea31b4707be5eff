"""Codes of promotions: drawn for each seed, so that no model can learn them by heart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

import attrs

_WORDS: Final = tuple(
    "ACORN AMBER BASIL BIRCH CEDAR CLOVER COBALT COMET CORAL DAISY EMBER FENNEL GARNET HAZEL INDIGO IRIS JADE KELP "
    "LARCH LILAC LUMEN MAPLE NIMBUS OLIVE OPAL ORCHID PEARL PLUM QUARTZ RAVEN ROWAN SAGE TOPAZ TULIP VIOLET".split()
)
_NUMBER: Final = re.compile(r"[0-9]+\Z")


def own_codes(rows: Iterable[Any], rng: Random) -> Iterable[Any]:
    """The rows with other codes: those of rows that have a ``code``, and wherever an order or a cart names them.

    A number at the end of a code stays (it says what the code is worth), the word before it is drawn. A code that
    looks like another one (a letter O in place of a zero) looks like that one's new code. ``rng`` is asked after the
    rows were made, so they are the same as without this.
    """
    made = list(rows)
    codes = [row.code for row in made if hasattr(row, "code")]
    renamed = drawn(codes, rng)
    for row in made:
        changes: dict[str, Any] = {
            name: renamed.get(value, value)
            for name in ("code", "promo_code")
            if isinstance(value := getattr(row, name, None), str)
        }
        if isinstance(named := getattr(row, "coupons", None), tuple):
            changes["coupons"] = tuple(renamed.get(code, code) for code in named)
        yield attrs.evolve(row, **changes) if changes else row


def drawn(codes: Iterable[str], rng: Random) -> Mapping[str, str]:
    """A new code for each code."""
    old = list(codes)
    words = rng.sample(_WORDS, len(old))
    renamed: dict[str, str] = {}
    for code, word in zip(old, words, strict=True):
        twin = f"{code[:-1]}0"
        if code.endswith("O") and twin in renamed:
            renamed[code] = f"{renamed[twin][:-1]}O"
            continue
        number = _NUMBER.search(code)
        renamed[code] = f"{word}{number.group() if number else rng.randrange(11, 100)}"
    return renamed
