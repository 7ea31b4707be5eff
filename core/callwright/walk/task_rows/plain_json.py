"""Plain JSON: values that are written and read back as they are, told by looking at them."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from callwright.language.long_numbers import json_text, json_value

_SCALARS: Final = frozenset({str, int, bool, type(None)})
#: How deep values are looked into; what is deeper, or holds itself, is written and read.
_DEEPEST: Final = 100


def survives_json(value: Any) -> bool:
    """Whether a value is read back from JSON as it is: without tuples, sets, NaN and keys that are no texts.

    Raises what writing it raises, for what is no JSON at all.
    """
    return _is_plain(value, 0) or json_value(json_text(value, allow_nan=False)) == value


def _is_plain(value: Any, depth: int) -> bool:
    """Whether there are only dicts, lists and scalars in it, of just these types."""
    kind = type(value)
    if kind is dict:
        for name, inner in value.items():
            if type(name) is not str:
                return False
            if type(inner) not in _SCALARS and (depth >= _DEEPEST or not _is_plain(inner, depth + 1)):
                return False
        return True
    if kind is list:
        for inner in value:
            if type(inner) not in _SCALARS and (depth >= _DEEPEST or not _is_plain(inner, depth + 1)):
                return False
        return True
    return kind in _SCALARS or (kind is float and isfinite(value))
