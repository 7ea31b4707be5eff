"""Declared types: what texts such as ``List[Union[int, str]], optional`` mean, as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from callwright.tools.reading import accepts
from callwright.tools.schema_dialects import DIALECT, normalise
from callwright.tools.spec import ToolSpec
from callwright_plugins.data_preparation.conversations import BadRow, Parameter, Tool
from callwright_plugins.data_preparation.literals import read_value

#: ``optional`` says nothing about values; the brackets of ``Optional[…]`` do.
_OPTIONAL: Final = re.compile(r",?\s*\boptional\b\s*$", re.IGNORECASE)
_WORDS: Final[Mapping[str, str]] = {**DIALECT, "sequence": "array", "iterable": "array", "frozenset": "array"}
#: How deep types may stand in one another.
_DEEPEST: Final = 16


def spec_of(tool: Tool) -> ToolSpec:
    """The tool as models are told of it and calls are held against: nothing beyond its parameters is taken."""
    properties = {parameter.name: schema_of(parameter) for parameter in tool.parameters}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in tool.parameters if parameter.required]
    if required:
        schema["required"] = required
    return ToolSpec(tool.name, tool.description, {**schema, "additionalProperties": False}, read_only=True)


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """The schema of a parameter, with its description and, where it may be left out, what it then is."""
    given = {key: value for key, value in parameter.declared.items() if key not in ("type", "default", "required")}
    schema = {**type_schema(parameter.type), **normalise(given)}
    if parameter.description:
        schema["description"] = parameter.description
    if not parameter.required and parameter.has_default:
        schema["default"] = default_of(parameter)
    return schema


def default_of(parameter: Parameter) -> Any:
    """The declared default, as a value of the declared type where it is written as text: ``"250"`` of an integer.

    So it is the same value as the argument that says it. A default that is none of the type (``""`` of an integer)
    stays as it is declared.
    """
    kinds = type_schema(parameter.type).get("type")
    default = parameter.default
    if not isinstance(kinds, str) or not isinstance(default, str) or accepts(frozenset({kinds}), default):
        return default
    try:
        value = read_value(default.strip())
    except BadRow:
        return default
    return value if accepts(frozenset({kinds}), value) else default


def type_schema(text: str) -> dict[str, Any]:
    """The JSON Schema of a declared type; empty for one that takes anything, or is not known."""
    return _read(_OPTIONAL.sub("", text.strip()), 0)


def _read(text: str, depth: int) -> dict[str, Any]:
    text = text.strip()
    if depth > _DEEPEST:
        return {}
    for separator in ("|", " or "):
        parts = _split(text, separator)
        if len(parts) > 1:
            return _any_of(parts, depth)
    name, inner = _bracketed(text)
    word = name.lower().rpartition(".")[2]
    if word == "optional":
        return _any_of([inner, "null"], depth)
    if word == "union":
        return _any_of(_split(inner, ","), depth)
    if word == "literal":
        return _literal(inner)
    kind = _WORDS.get(word)
    if kind is None:
        return {}
    if kind == "array" and inner:
        items = [part for part in _split(inner, ",") if part != "..."]
        if word == "tuple" and len(items) > 1:
            return {"type": "array", "prefixItems": [_read(item, depth + 1) for item in items]}
        return _with({"type": "array"}, "items", _read(items[0], depth + 1) if items else {})
    if kind == "object" and inner:
        values = _split(inner, ",")
        return _with({"type": "object"}, "additionalProperties", _read(values[-1], depth + 1))
    return {"type": kind}


def _with(schema: dict[str, Any], key: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {**schema, key: inner} if inner else schema


def _any_of(parts: list[str], depth: int) -> dict[str, Any]:
    read = [_read(part, depth + 1) for part in parts]
    if not all(read):
        return {}  # one of them takes anything
    if all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in read):
        kinds = list(dict.fromkeys(schema["type"] for schema in read))
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    return {"anyOf": read}


def _literal(inner: str) -> dict[str, Any]:
    try:
        values = read_value(f"[{inner}]")
    except BadRow:
        return {}
    return {"enum": values} if isinstance(values, list) and values else {}


def _bracketed(text: str) -> tuple[str, str]:
    """``List[int]`` as ``List`` and ``int``; the second is empty where there are no brackets."""
    name, begin, rest = text.partition("[")
    return (name.strip(), rest[:-1].strip()) if begin and rest.endswith("]") else (text, "")


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no brackets."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        if text[at] in "[(":
            depth += 1
        elif text[at] in "])":
            depth -= 1
        elif depth == 0 and text.startswith(separator, at):
            parts.append(text[start:at].strip())
            at += len(separator)
            start = at
            continue
        at += 1
    return [*parts, text[start:].strip()]
