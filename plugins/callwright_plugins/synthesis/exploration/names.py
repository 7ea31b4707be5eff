"""Names: how alike the name of a parameter and the name of a field are."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

Words = tuple[str, ...]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
#: Words that say of what form a value is and not whose it is.
_FORMS: Final = frozenset({"id", "ids", "key", "code", "name", "number", "no", "ref", "uuid", "handle"})
#: Words that say which of several is meant.
_ROLES: Final = frozenset(
    {"from", "to", "new", "old", "source", "target", "keep", "merge", "near", "parent", "the", "my", "current"}
)


@lru_cache(maxsize=65_536)
def words_of(name: str) -> Words:
    """The words of a name in lower case, in the singular: ``fromAccountIds`` is ``("from", "account", "id")``."""
    return tuple(singular(word.lower()) for word in _WORD.findall(name))


def singular(word: str) -> str:
    """A noun without the ending of the plural, as far as its letters tell."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 2 else word


@lru_cache(maxsize=1 << 18)
def likeness(wanted: Words, given: Words, around: Words = ()) -> float:
    """How likely a field named ``given`` fills a parameter named ``wanted``: 0 to 1.

    ``around`` are the words of what the field is in: the list ``orders`` of ``{"id": …}`` holds ids of orders.
    """
    if not wanted or not given:
        return 0.0
    if wanted == given:
        return 1.0
    bare = tuple(word for word in wanted if word not in _ROLES) or wanted
    if bare == given:
        return 0.9
    if bare[-len(given) :] == given or given[-len(bare) :] == bare:
        longest = max(len(bare), len(given))
        alike = 0.5 + 0.3 * min(len(bare), len(given)) / longest
        return alike if set(given) - _FORMS else 0.7 if _about(bare, around) else 0.1
    if _about(bare, given):
        return 0.55
    if set(given) <= _FORMS and _about(bare, around):
        return 0.5
    return 0.25 if set(bare) & set(given) - _FORMS else 0.0


def _about(wanted: Words, given: Words) -> bool:
    """Whether both name the same thing, whatever form they name it in."""
    thing = set(wanted) - _FORMS
    return bool(thing) and thing <= set(given)
