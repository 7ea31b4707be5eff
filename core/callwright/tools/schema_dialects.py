"""Dialects: the schemas of OpenAI, MCP, TIER, BFCL and pydantic, read into JSON Schema (2020-12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from callwright.tools.reading import TABLE

#: Type names of the dialects (TIER, BFCL's Python, Java and JavaScript) and their JSON Schema type.
DIALECT: Final[Mapping[str, str]] = {
    **dict.fromkeys(["dict", "hashmap", "hashtable", "map", "class", "struct", "object"], "object"),
    **dict.fromkeys(["list", "tuple", "set", "arraylist", "queue", "stack", "array"], "array"),
    **dict.fromkeys(["float", "double", "number", "decimal"], "number"),
    **dict.fromkeys(["int", "integer", "long", "short", "byte", "bigint"], "integer"),
    **dict.fromkeys(["bool", "boolean"], "boolean"),
    **dict.fromkeys(["str", "string", "char", "character", "text"], "string"),
    **dict.fromkeys(["null", "none", "nonetype"], "null"),
}
_TABLE_TYPES: Final = frozenset({"pandas.dataframe", "dataframe"})
_ANY_TYPES: Final = frozenset({"any", "object | array", "mixed"})
_SUBSCHEMAS: Final = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_SUBSCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
SUBSCHEMA_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
#: How many schemas and lists a schema may come to once its references are replaced: a model reads every one of them.
_MOST_INLINED: Final = 10_000


def normalise(schema: Any) -> dict[str, Any]:
    """JSON Schema (2020-12) from OpenAI, MCP, TIER or BFCL schemas; the input is not changed.

    ``dict`` becomes ``object``, ``float`` becomes ``number`` and so on; a ``pandas.DataFrame`` becomes an array of
    objects marked as a table. Drafts that put ``required: true`` beside a property's type are read too.
    """
    if not isinstance(schema, Mapping):
        return {}
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            out.update(_normalise_type(value))
        elif key in SUBSCHEMA_MAPS and isinstance(value, Mapping):
            out[key] = {name: normalise(inner) for name, inner in value.items()}
        elif key in _SUBSCHEMA_LISTS and isinstance(value, list):
            out[key] = [normalise(inner) for inner in value]
        elif key in _SUBSCHEMAS and isinstance(value, Mapping):
            out[key] = normalise(value)
        elif key == "items" and isinstance(value, list):
            out["prefixItems"] = [normalise(inner) for inner in value]
        elif key == "index" or (key == "required" and not isinstance(value, list)):
            continue
        else:
            out[key] = value
    properties = schema.get("properties")
    inner_required = [
        name
        for name, inner in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(inner, Mapping) and inner.get("required") is True
    ]
    if inner_required:
        out["required"] = sorted({*out.get("required", ()), *inner_required})
    if out.get(TABLE) and "items" not in out:
        out["items"] = {"type": "object"}
    return out


def _normalise_type(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        names = [_normalise_type(inner).get("type") for inner in value]
        return {"type": list(dict.fromkeys(names))} if all(isinstance(name, str) for name in names) else {}
    if not isinstance(value, str):
        return {}
    lowered = value.strip().lower()
    if lowered in _TABLE_TYPES:
        return {"type": "array", TABLE: True}
    if not lowered or lowered in _ANY_TYPES:  # BFCL has a parameter of the type ""
        return {}
    return {"type": DIALECT.get(lowered, lowered)}


def inline_definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with local ``$ref`` replaced by what they point to, so that each place states its own type.

    A recursive definition keeps its reference. Where definitions refer to one another so often that the schema would
    come to more than 10,000 parts (thirty that each name the one before twice would come to a billion), every
    reference is kept. Titles, which pydantic makes of the fields' names, are dropped.
    """
    given = schema.get("$defs")
    definitions: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    try:
        inlined: dict[str, Any] = _without_references(schema, definitions)
        return inlined
    except (_TooMany, RecursionError):  # the latter of a chain of definitions that is hundreds of names long
        kept = {name: _without_references(inner, {}) for name, inner in definitions.items()}
        return {**_without_references(schema, {}), "$defs": kept}


class _TooMany(Exception):
    """The references of a schema stand for too much."""


def _without_references(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema with references to ``definitions`` replaced. Raises :class:`_TooMany` for over 10,000 parts."""
    left = _MOST_INLINED if definitions else 0

    def resolve(node: Any, trail: tuple[str, ...], named: bool) -> Any:
        nonlocal left
        left -= 1
        if not left:  # never of a schema without definitions, which grows by nothing
            raise _TooMany
        if isinstance(node, list):
            return [resolve(inner, trail, False) for inner in node]
        if not isinstance(node, Mapping):
            return node
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith("#/$defs/"):
            name = target.removeprefix("#/$defs/")
            if name in trail or name not in definitions:
                return dict(node)
            rest = {key: value for key, value in node.items() if key != "$ref"}
            inner = resolve(definitions[name], (*trail, name), False)
            return {**inner, **resolve(rest, trail, False)} if isinstance(inner, Mapping) else inner
        return {
            key: resolve(value, trail, key in SUBSCHEMA_MAPS)
            for key, value in node.items()
            if key != "$defs" and (named or not (key == "title" and isinstance(value, str)))
        }

    inlined = resolve(schema, (), False)
    if definitions and '"$ref": "#/$defs/' in json.dumps(inlined):
        inlined["$defs"] = dict(definitions)
    return inlined
