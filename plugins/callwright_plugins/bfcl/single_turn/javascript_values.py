"""JavaScript values as BFCL reads them: source text of a declared type to a value, and text where it is none.

The rules are those of the official converter, oddities included: elements are split at every comma, an object ends at
its first closing brace, every element of a list of lists is guessed. The official pattern of a list of lists takes
exponential time on crafted text; here the same extent is found in linear time. A text of more than :data:`LONGEST`
characters stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

LONGEST: Final = 10_000
#: Type in a function's document -> what its values are after conversion.
TYPES: Final[Mapping[str, type]] = {
    "String": str, "integer": int, "float": float, "Bigint": int, "Boolean": bool, "dict": dict, "array": list,
    "any": str,
}  # fmt: skip
_WHOLE: Final = re.compile(r"-?\d+$")
_FLOAT: Final = re.compile(r"-?\d+(\.\d+)?$")
_BIG: Final = re.compile(r"-?\d+n$")
_LISTS: Final = (("]", re.compile(r"\[\s*\[")), (")", re.compile(r"new\s+Array\(\s*\[")))
_LIST: Final = re.compile(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_INNER: Final = re.compile(r"\[(.*?)\]")
_OBJECT: Final = re.compile(r"\{(.*?)\}")
_PAIR: Final = re.compile(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")


def javascript_value(text: str, kind: str, inner: str | None = None) -> Any:
    """The value of a source text. Raises ``KeyError`` for a type the original lacks."""
    if kind == "any":
        return text
    if kind == "String":
        return text[1:-1] if _is_quoted(text) else text
    if kind not in TYPES:
        raise KeyError(kind)
    if len(text) > LONGEST:
        return text
    if kind == "integer":
        return int(text) if _WHOLE.match(text) else text
    if kind == "float":
        return float(text) if _FLOAT.match(text) else text
    if kind == "Bigint":
        return int(text[:-1]) if _BIG.match(text) else text
    if kind == "Boolean":
        return text == "true" if text in ("true", "false") else text
    return _object(text.strip()) if kind == "dict" else _array(text.strip(), inner)


def _is_quoted(text: str) -> bool:
    return (text.startswith('"') and text.endswith('"')) or (text.startswith("'") and text.endswith("'"))


def _array(text: str, inner: str | None) -> Any:
    for close, opening in _LISTS:
        found = opening.match(text)
        end = _end_of_lists(text, found.end(), close) if found else -1
        if end >= 0:
            lists = [one.strip() for one in _INNER.findall(text[:end])]
            if lists and lists[0].startswith("["):
                lists[0] = lists[0][1:]
            try:
                return [[_guessed(element.strip()) for element in one.split(",")] for one in lists]
            except (ValueError, OverflowError):
                return text
    match = _LIST.match(text)
    if not match:
        return text
    stated = (match[1] if match[1] is not None else match[2]).strip()
    elements = [one.strip() for one in stated.split(",")] if stated else []
    try:
        return [javascript_value(one, inner) if inner else _guessed(one) for one in elements]
    except (KeyError, ValueError, OverflowError):
        return text


def _end_of_lists(text: str, begin: int, close: str) -> int:
    """Where lists in a list end that begin at ``begin``, behind the first inner bracket; -1 if they do not.

    From the end to the front: what a list leads to that begins here. Each inner list ends at the first bracket on its
    line from which the rest can be read; another list is preferred to the end.
    """
    size = len(text)
    solid = [size] * (size + 1)  # the first place from here on that is no white space
    for place in range(size - 1, begin - 1, -1):
        solid[place] = solid[place + 1] if text[place].isspace() else place
    leads = [-1] * (size + 2)
    for place in range(size - 1, begin - 1, -1):
        if text[place] == "\n":
            continue
        leads[place] = leads[place + 1]
        if text[place] != "]":
            continue
        after = solid[place + 1]
        if after >= size:
            continue
        if text[after] == ",":
            following = solid[after + 1]
            if following < size and text[following] == "[" and leads[following + 1] >= 0:
                leads[place] = leads[following + 1]
        elif text[after] == close:
            leads[place] = after + 1
    return leads[begin]


def _object(text: str) -> Any:
    if text == "{}":
        return {}
    match = _OBJECT.match(text)
    if not match:
        return text
    found: dict[str, Any] = {}
    try:
        for key, stated in _PAIR.findall(match[1]) if ":" in match[1] else ():
            value = stated.strip()
            nested = value.startswith("[") and value.endswith("]")
            found[key.strip().strip("'\"")] = _array(value, None) if nested else _guessed(value.strip("'\""))
    except (ValueError, OverflowError):
        return text
    return found


def _guessed(text: str) -> Any:
    """A value whose type nobody declared."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if _is_quoted(text):
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def javascript_text(value: Any, kind: str) -> str:
    """A value as source text of a type: what :func:`javascript_value` reads as that value, where there is one."""
    if isinstance(value, str):
        return value
    if kind == "Bigint" and isinstance(value, int):
        return f"{value}n"
    return json.dumps(value, ensure_ascii=False)
