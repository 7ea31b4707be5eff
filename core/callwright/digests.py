"""Digests: equal Python values have equal ones, in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import attrs

#: Python writes integers of more than 4,300 digits in hexadecimal only; those have 14,284 bits.
_WRITABLE_BITS: Final = 14_000
_AS_THEY_ARE: Final = frozenset({type(None), bool, float, str})
_TEXT: Final = frozenset({str})
#: Types whose text says everything.
_SPEAKING: Final = (date, time, timedelta, Decimal, UUID, PurePath, complex)


def digest_of(value: Any) -> str:
    """SHA-256 of JSON, sets, dates, enumerations and objects with fields (dataclasses, attrs, pydantic).

    The order of sets and of a mapping's keys plays no part, that of lists does. Raises :class:`TypeError` for a value
    that holds something without a value of its own, such as a function or an open file.
    """
    return hashlib.sha256(json.dumps(_canonical(value), sort_keys=True).encode()).hexdigest()


def _canonical(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is int:
        return value if value.bit_length() < _WRITABLE_BITS else {"integer": hex(value)}
    if kind is list or kind is tuple:  # before isinstance, which takes long to say what nearly nothing is
        return [inner if type(inner) in _AS_THEY_ARE else _canonical(inner) for inner in value]
    if kind is dict and _TEXT.issuperset(map(type, value)):
        return {key: inner if type(inner) in _AS_THEY_ARE else _canonical(inner) for key, inner in value.items()}
    if isinstance(value, Enum):
        return {"enum": type(value).__qualname__, "name": value.name}
    if isinstance(value, str | int | float):  # subclasses
        return str(value) if isinstance(value, str) else value
    if isinstance(value, bytes | bytearray):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, _SPEAKING):
        return {type(value).__qualname__: str(value)}
    if isinstance(value, Mapping):
        if all(type(key) is str for key in value):
            return {key: _canonical(inner) for key, inner in value.items()}
        return {"pairs": _sorted([_canonical(key), _canonical(inner)] for key, inner in value.items())}
    if isinstance(value, Set):
        return {"set": _sorted(map(_canonical, value))}
    if isinstance(value, Sequence):
        return [_canonical(inner) for inner in value]
    return {"type": type(value).__qualname__, "fields": _canonical(_fields(value))}


def _fields(value: Any) -> Any:
    kind: Any = type(value)
    if hasattr(value, "model_dump"):
        return value.model_dump()
    names = _names(kind)  # declared fields only: what an object remembers to save time is not its state
    if names is not None:
        return {name: getattr(value, name) for name in names}
    state = value.__getstate__()
    if callable(value) or (state is None and not hasattr(value, "__dict__")):
        raise TypeError(f"no digest can be made of a {kind.__qualname__}: it has neither fields nor a text form")
    return state


@lru_cache(maxsize=1024)
def _names(kind: type[Any]) -> tuple[str, ...] | None:
    """The declared fields of a class; ``None`` if it declares none."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(attribute.name for attribute in attrs.fields(kind)) if attrs.has(kind) else None


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
