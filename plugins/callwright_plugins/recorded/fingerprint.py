"""Fingerprints of JSON values: short texts that are equal exactly if the values are (``1`` and ``1.0`` differ).

A recorded table can be a hundred kilobytes, and it is an argument of every call that filters it. Its fingerprint is
taken once, when the recording is read, and found again by identity; so looking a call up costs microseconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from json.encoder import encode_basestring_ascii as quoted
from math import isfinite
from typing import Any

from callwright.language.long_numbers import json_text
from callwright.language.program import Reference

#: Longer texts are replaced by their hash, at every level, so that a fingerprint depends on the content alone.
_INLINE = 64
#: The same for the arguments of a call, of which a recording keeps one text each.
_LONG = 512


def fingerprint(value: Any, known: Mapping[int, str]) -> str:
    """The fingerprint; ``known`` holds those of containers by ``id``, which their owner keeps alive."""
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is dict or kind is list or kind is tuple:
        return known.get(id(value)) or _container(value, known)
    if kind is int or kind is float:
        # What json.dumps writes, without an encoder made for each number. Infinities and NaN are its own words.
        return repr(value) if kind is int or isfinite(value) else json.dumps(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is Reference:
        return quoted(str(value))
    try:
        return json.dumps(value)
    except ValueError:
        return json_text(value)


def _container(value: Any, known: Mapping[int, str]) -> str:
    text = _text(value, known)
    return text if len(text) <= _INLINE else _hashed(text)


def fingerprint_of_arguments(arguments: Mapping[str, Any], known: Mapping[int, str]) -> str:
    """That of the arguments of a call, which is not hashed unless they are long: it is taken for each call."""
    text = _text(arguments, known)
    return text if len(text) <= _LONG else _hashed(text)


def _hashed(text: str) -> str:
    return "#" + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _text(value: Any, known: Mapping[int, str]) -> str:
    if isinstance(value, dict):
        parts = []
        for key in sorted(value) if len(value) > 1 else value:
            inner = value[key]  # nearly always text or an earlier result, which is known: no call for those
            text = quoted(inner) if type(inner) is str else known.get(id(inner)) or fingerprint(inner, known)
            parts.append(f"{quoted(key)}:{text}")
        return "{" + ",".join(parts) + "}"
    return "[" + ",".join([fingerprint(item, known) for item in value]) + "]"


def remember(value: Any, known: dict[int, str], owned: dict[Hashable, Any]) -> Any:
    """Register a value and all containers in it; equal containers become one object, which is returned."""
    if isinstance(value, dict):
        value = {key: remember(inner, known, owned) for key, inner in value.items()}
    elif isinstance(value, list):
        value = [remember(inner, known, owned) for inner in value]
    else:
        return value
    text = _container(value, known)
    # Key order is not part of a fingerprint, but it is part of what a tool returned: only exact twins are shared.
    inner = value.values() if isinstance(value, dict) else value
    order = tuple(value) if isinstance(value, dict) else None
    key = (text, order, tuple(id(child) for child in inner if isinstance(child, dict | list)))
    kept = owned.setdefault(key, value)
    if kept is value:
        known[id(value)] = text
    return kept
