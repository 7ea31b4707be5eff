"""The closed table of types: how the text of an element becomes a value. Nothing is looked up or evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.language.writable import LONGEST_NUMBER

_INTEGER: Final = re.compile(r"[+-]?+[0-9]++")
_NUMBER: Final = re.compile(r"[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+")
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}

ARRAYS: Final = frozenset({"array", "list"})
OBJECTS: Final = frozenset({"object", "dict"})
STRINGS: Final = frozenset({"string", "str"})
PLACEHOLDER: Final = "placeholder"


def _integer(text: str) -> int | float:
    """An integer, also one that is written as ``255.0``. Another number stays what it is, for the schema to judge."""
    if _INTEGER.fullmatch(text) is None:
        value = _real(text)
        return int(value) if value.is_integer() else value
    if len(text.lstrip("+-")) > LONGEST_NUMBER:
        raise OverflowError
    return int(text)


def _real(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise ValueError
    if len(text) > LONGEST_NUMBER:
        raise OverflowError
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _number(text: str) -> int | float:
    return _integer(text) if _INTEGER.fullmatch(text) else _real(text)


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


def _null(text: str) -> None:
    if text not in ("", "null"):
        raise ValueError


#: Types whose value is text without white space around it. A ``ValueError`` or ``KeyError`` means: not of this type;
#: an ``OverflowError``: more digits than are read.
SCALARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": _integer,
    "int": _integer,
    "float": _real,
    "number": _number,
    "boolean": _boolean,
    "bool": _boolean,
    "null": _null,
}
