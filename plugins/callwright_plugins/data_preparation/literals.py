"""Calls in ToolACE's notation: ``[Get Weather(city="Oslo", days=3), Stop()]``.

Names are free text: spaces, slashes and dots occur. Values are literals of Python or of JSON.
"""

from __future__ import annotations

import ast
import json
import math
from typing import Any, Final

from callwright_plugins.data_preparation.conversations import BadRow, Called

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_WORDS: Final = {"true": True, "false": False, "null": None}
UNREADABLE: Final = "calls that cannot be read"


def is_call_list(text: str) -> bool:
    """Whether a text is meant as calls rather than as words: brackets around something with parentheses."""
    text = text.strip()
    return text.startswith("[") and text.endswith(")]")


def read_calls(text: str) -> tuple[Called, ...]:
    """The calls of a text, in order. Linear in its length. Raises :class:`BadRow`."""
    text = text.strip()
    if not is_call_list(text):
        raise BadRow(UNREADABLE)
    found = []
    position, end = 1, len(text) - 1
    while position < end:
        opening = text.find("(", position, end)
        name = text[position:opening].strip() if opening >= 0 else ""
        if not name:
            raise BadRow(UNREADABLE)
        arguments, position = _arguments(text, opening + 1, end)
        found.append(Called(name, arguments))
        rest = text[position:end].lstrip()
        if not rest:
            break
        if not rest.startswith(","):
            raise BadRow(UNREADABLE)
        position = end - len(rest) + 1
    return tuple(found)


def _arguments(text: str, position: int, end: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        stop = _end_of_piece(text, position, end)
        piece = text[position:stop].strip()
        if piece:
            key, equals, value = piece.partition("=")
            key = key.strip()
            if not equals or not key or key in found:
                raise BadRow(UNREADABLE)
            found[key] = read_value(value.strip())
        elif text[stop] == ",":
            raise BadRow(UNREADABLE)
        position = stop + 1
        if text[stop] == ")":
            return found, position


def _end_of_piece(text: str, position: int, end: int) -> int:
    """Where the comma or parenthesis is that ends an argument."""
    inside: list[str] = []
    quote = ""
    while position < end:
        letter = text[position]
        if quote:
            if letter == "\\":
                position += 1
            elif letter == quote:
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in _OPENING:
            inside.append(_OPENING[letter])
        elif inside and letter == inside[-1]:
            inside.pop()
        elif not inside and letter in ",)":
            return position
        position += 1
    raise BadRow(UNREADABLE)


def read_value(text: str) -> Any:
    """A literal of JSON or of Python as a JSON value, so that NaN and infinity are none. Raises :class:`BadRow`."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        pass
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = _plain(ast.parse(text, mode="eval").body)
        json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise BadRow(UNREADABLE) from error
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _plain(node: ast.expr) -> Any:
    """A literal's value; JSON's words may stand inside. Nothing is evaluated."""
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_plain(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            raise ValueError("no literal")
        return {str(_plain(key)): _plain(item) for key, item in zip(node.keys, node.values, strict=True) if key}
    return ast.literal_eval(node)
