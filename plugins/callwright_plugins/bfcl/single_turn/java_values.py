"""Java values as BFCL reads them: source text of a declared type to a value, and text where it is none.

The rules are those of the official converter, oddities included: elements are split at every comma, ``char`` never
converts, a map's text ends at its first closing brace. The official patterns take cubic time on crafted text; these
read the same in less, and a text of more than :data:`LONGEST` characters stays text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LONGEST: Final = 10_000
#: Type in a function's document -> what its values are after conversion.
TYPES: Final[Mapping[str, type]] = {
    "byte": int, "short": int, "integer": int, "float": float, "double": float, "long": int, "boolean": bool,
    "char": str, "Array": list, "ArrayList": list, "Set": set, "HashMap": dict, "Hashtable": dict, "Queue": list,
    "Stack": list, "String": str, "any": str,
}  # fmt: skip
_WHOLE: Final = re.compile(r"-?\d+$")
_LONG: Final = re.compile(r"-?\d+[lL]$")
_DOUBLE: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?$")
_FLOAT: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]$")
_SUFFIX: Final = re.compile(r"[fFlL]$")
_LISTED: Final = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_BLOCK: Final = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*")
_ADDED: Final = re.compile(r"add\((.+?)\)")
_EMPTY_LIST: Final = re.compile(r"new\s+ArrayList<\w*>\(\)")
_ARRAY: Final = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_MAP: Final = re.compile(r"new\s+HashMap<")
_MAP_MADE: Final = re.compile(r">\s*\(\)")
_MAP_BODY: Final = re.compile(r">\s*\(\)\s*\{")
_INSIDE: Final = re.compile(r"\s*\{?\s*")
_SPACE: Final = re.compile(r"\s*")


def java_value(text: str, kind: str, inner: str | None = None) -> Any:
    """The value of a source text. Raises ``NotImplementedError`` and ``KeyError`` for types the original lacks."""
    if kind in ("String", "any", "char"):
        return text
    if kind not in TYPES:
        raise KeyError(kind)
    if len(text) > LONGEST:
        return text
    if kind in ("byte", "short", "integer"):
        return int(text) if _WHOLE.match(text) else text
    if kind == "float":
        return float(_SUFFIX.sub("", text)) if _FLOAT.match(text) else text
    if kind == "double":
        return float(text) if _DOUBLE.match(text) else text
    if kind == "long":
        return int(_SUFFIX.sub("", text)) if _LONG.match(text) else text
    if kind == "boolean":
        return text == "true" if text in ("true", "false") else text
    if kind == "ArrayList":
        return _array_list(text, inner)
    if kind == "Array":
        return _array(text, inner)
    if kind == "HashMap":
        return _hash_map(text)
    raise NotImplementedError(kind)


def _element(text: str, inner: str | None) -> Any:
    if inner in ("char", "String"):
        return text[1:-1]
    return java_value(text, inner) if inner else _guessed(text)


def _array_list(text: str, inner: str | None) -> Any:
    listed = _LISTED.search(text)
    if listed:
        return [_element(one.strip(), inner) for one in listed[1].split(",")]
    block = _BLOCK.search(text)
    end = text.find("}}", block.end() + 1) if block else -1
    if block and end >= 0:
        return [_element(one.strip(), inner) for one in _ADDED.findall(text[block.end() : end].rstrip())]
    return [] if _EMPTY_LIST.search(text) else text


def _array(text: str, inner: str | None) -> Any:
    found = _ARRAY.search(text)
    if not found:
        return text
    elements = [one.strip() for one in found[1].split(",")]
    return [java_value(one, inner) if inner else _guessed(one) for one in elements if one]


def _hash_map(text: str) -> Any:
    start = _MAP.search(text)
    if not start:
        return text
    body = _MAP_BODY.search(text, start.end())
    if body:
        inside = _INSIDE.match(text, body.end())
        begin = inside.end() if inside else body.end()
        end = text.find("}", begin)
        if end >= 0:
            return _entries(text[begin:end].rstrip())
    return {} if _MAP_MADE.search(text, start.end()) else text


def _entries(text: str) -> dict[str, Any]:
    """The pairs of ``put("key", value)``; a key and a value stay on their line, the space between them need not."""
    found: dict[str, Any] = {}
    place = 0
    while (start := text.find('put("', place)) >= 0:
        begin = start + 5
        line = _line_end(text, begin)
        place = begin
        comma = text.find('",', begin, line)
        while comma >= 0:
            space = _SPACE.match(text, comma + 2)
            value = space.end() if space else comma + 2
            close = text.find(")", value, _line_end(text, value))
            if close >= 0:
                found[text[begin:comma]] = _guessed(text[value:close].strip())
                place = close + 1
                break
            comma = text.find('",', comma + 1, line)
    return found


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _guessed(text: str) -> Any:
    """A value whose type nobody declared."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if _LONG.match(text):
        return int(text[:-1])
    if _FLOAT.match(text):
        return float(_SUFFIX.sub("", text))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def java_text(value: Any, kind: str) -> str:
    """A value as source text of a type: what :func:`java_value` reads as that value, where there is such a text."""
    if isinstance(value, list):
        if kind == "ArrayList":
            return f"new ArrayList<>(Arrays.asList({', '.join(map(_quoted, value))}))"
        # The converter keeps the quotes of texts in an array, so that those of gold have none.
        return f"new Object[]{{{', '.join(java_text(one, 'any') for one in value)}}}"
    if isinstance(value, Mapping):
        puts = " ".join(f'put("{key}", {_quoted(one)});' for key, one in value.items())
        return f"new HashMap<String, Object>() {{{{ {puts} }}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    suffix = {"long": "L", "float": "f"}.get(kind, "") if isinstance(value, int | float) else ""
    return f"{value}{suffix}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else java_text(value, "any")
