"""Strict schemas: a tool's parameters in the subset of JSON Schema to which servers can hold a model, and back.

The subset (OpenAI's "structured outputs"; vLLM, SGLang and others hold to more): every object closed and each of its
properties required, no more than ten levels, no keyword that combines or depends. An optional property becomes one
that may be null, and a null where the tool's own schema knows none means that the argument was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import CannotExpress
from callwright.tools.reading import SENSITIVE, TABLE, json_types

_KEPT: Final = frozenset(
    {
        "type", "description", "enum", "const", "$ref", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
    }
)  # fmt: skip
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
#: What only narrows: the tool's own schema is checked all the same.
_LEFT_OUT: Final = frozenset(
    {
        "title", "default", "examples", "minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties",
        "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "contentEncoding", "contentMediaType",
        SENSITIVE,
    }
)  # fmt: skip
_READ: Final = frozenset(
    {"properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "$defs", "definitions"}
)
_LEVELS: Final = 10


def strict_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a tool in the strict subset.

    Raises :class:`callwright.errors.CannotExpress` for what has no place in it, and says what: keys of any name,
    values of any type, tables, combined or conditional schemas, more than ten levels.
    """
    made = _strict(parameters, "the arguments", 0)
    for key in ("$defs", "definitions"):
        if key in parameters:
            made[key] = {name: _strict(inner, f"{key}.{name}", 0) for name, inner in parameters[key].items()}
    return made


def _strict(schema: Any, at: str, level: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise CannotExpress(f"{at} may be any value")
    if level > _LEVELS:
        raise CannotExpress(f"{at} stand deeper than {_LEVELS} levels")
    if schema.get(TABLE):
        raise CannotExpress(f"{at} is a table, which no model can write")
    strange = next((key for key in schema if key not in _KEPT | _LEFT_OUT | _READ), None)
    if strange is not None:
        raise CannotExpress(f"{at} has {strange!r}, which strict schemas do not know")
    made = {key: value for key, value in schema.items() if key in _KEPT}
    if made.get("format", "date") not in _FORMATS:
        del made["format"]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            made["anyOf"] = [_strict(one, at, level) for one in schema[key]]
    types = schema.get("type")
    kinds = {types} if isinstance(types, str) else set(types or ())
    if "object" in kinds or "properties" in schema:
        made |= _closed(schema, at, level)
    if "array" in kinds or "items" in schema:
        if "items" not in schema:
            raise CannotExpress(f"{at} is a list of values of any type")
        made["items"] = _strict(schema["items"], f"{at}[]", level + 1)
    if not kinds and not made.keys() & {"anyOf", "enum", "const", "$ref", "properties", "items"}:
        raise CannotExpress(f"{at} may be any value")
    return made


def _closed(schema: Mapping[str, Any], at: str, level: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties", not properties and level > 0)
    if more is not False:
        raise CannotExpress(f"{at} may have keys of any name")
    required = schema.get("required") or ()
    made = {}
    for name, inner in properties.items():
        strict = _strict(inner, name, level + 1)
        made[name] = strict if name in required else _nullable(strict)
    return {
        "type": schema.get("type", "object"),
        "properties": made,
        "required": list(made),
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that admits null, too."""
    types = json_types(schema)
    if types is not None and "null" in types:
        return schema
    said = str(schema.get("description") or "").rstrip()
    told = {"description": f"{said} (null leaves it out)".lstrip()}
    if "anyOf" in schema:
        return {**schema, **told, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema:  # an enum, a constant or a reference alone
        bare = {key: value for key, value in schema.items() if key != "description"}
        return {**told, "anyOf": [bare, {"type": "null"}]}
    listed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made = {**schema, **told, "type": [*listed, "null"]}
    if "enum" in schema:
        made["enum"] = [*schema["enum"], None]
    if "const" in schema:
        made["enum"] = [made.pop("const"), None]
    return made


def without_left_out(value: Any, schema: Any, root: Mapping[str, Any] | None = None) -> Any:
    """A value without the nulls that stand for optional properties left out; ``schema`` is the tool's own."""
    root = schema if root is None and isinstance(schema, Mapping) else root
    if not isinstance(schema, Mapping) or root is None:
        return value
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        return without_left_out(value, found, root) if isinstance(found, Mapping) and found is not schema else value
    if isinstance(value, dict):
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
                if isinstance(one, Mapping) and value.keys() <= dict(one.get("properties") or {}).keys():
                    return without_left_out(value, one, root)
            return value
        required = schema.get("required") or ()
        return {
            name: without_left_out(inner, properties.get(name), root)
            for name, inner in value.items()
            if not (
                inner is None and name in properties and name not in required and not _admits_null(properties[name])
            )
        }
    if isinstance(value, list):
        return [without_left_out(inner, schema.get("items"), root) for inner in value]
    return value


def _admits_null(schema: Any) -> bool:
    types = json_types(schema)
    return types is not None and "null" in types
