"""Titles: what parameters and members of results are called, as nouns: the start time, for ``starts_at``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from callwright_plugins.synthesis.language.values.hints import ANYTHING, Hint, snake

#: What parameters and members are called whose own names are no nouns. ``to`` of one is what something goes to.
_TITLES: Final[Mapping[str, str]] = {
    "cc": "recipients of copies", "bcc": "recipients of blind copies", "at": "time", "started": "start time",
    "most": "limit", "old": "old one", "new": "new one", "by": "author", "pin": "PIN", "otp": "one-time password",
    "cvv": "security code", "iban": "IBAN", "url": "web address",
}  # fmt: skip
_RECIPIENTS: Final = ("recipients", "target")
#: What is said of a time for what was done then, and who did it.
_DONE: Final[Mapping[str, str]] = {
    "changed": "change", "charged": "charge", "closed": "closing", "created": "creation", "delivered": "delivery",
    "opened": "opening", "placed": "order", "posted": "posting", "sent": "sending", "stopped": "stop",
    "triggered": "trigger", "updated": "update",
}  # fmt: skip
_DOERS: Final[Mapping[str, str]] = {
    "closed": "closer", "created": "creator", "invited": "inviter", "organized": "organizer", "owned": "owner",
    "posted": "poster", "sent": "sender", "started": "starter", "updated": "last editor", "written": "author",
}  # fmt: skip
#: Words that make what follows a parameter's value, so that they do not stand before its name.
_ENDINGS: Final = ("_ids", "_id", "_cents", "_kmh", "_km", "_minutes")


def title_of(name: str, hint: Hint = ANYTHING) -> str:
    """A parameter by its name, in words: ``from account`` for ``from_account_id``, ``start time`` for ``starts_at``."""
    if name == "to":
        return _RECIPIENTS[0 if hint.items is not None else 1]
    if name in _TITLES:
        return _TITLES[name]
    stem = snake(name)
    for ending in _ENDINGS:
        if stem.endswith(ending) and len(stem) > len(ending):
            stem = stem.removesuffix(ending) + ("s" if ending == "_ids" else "")
            break
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W_]+", stem)
    return " ".join(_nominal(words)).lower() or stem


def _nominal(words: list[str]) -> list[str]:
    """Words that say when or by whom something is done as a noun: ``starts_at`` is the time when it starts."""
    if len(words) > 1 and words[-1] == "at":
        return [*words[:-2], _DONE.get(words[-2], words[-2].removesuffix("s")), "time"]
    if len(words) == 2 and words[-1] == "by" and words[0] in _DOERS:
        return [_DOERS[words[0]]]
    return words


def member_of(key: str) -> str:
    """A member of a result by its key, in words: ``account id``, and a noun where the key is none."""
    if key == "to":
        return _RECIPIENTS[0]
    return _TITLES.get(key) or " ".join(_nominal(snake(key).split("_")))
