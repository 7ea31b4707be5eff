"""Reading JSON Schemas: the types that one admits, the part of it that is about a place, and both in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.language.program import Path
from callwright.language.shortening import shortened

#: A table that no literal can write: only a reference to an earlier result fills such a parameter.
TABLE: Final = "x-callwright-table"
#: A parameter that takes a secret: a PIN, a token, a passport number. Models are not told of the mark.
SENSITIVE: Final = "x-sensitive"


def holds_mark(schema: Any, mark: str) -> bool:
    """Whether a schema, or one inside it, carries a mark."""
    if isinstance(schema, Mapping):
        return bool(schema.get(mark)) or any(holds_mark(inner, mark) for inner in schema.values())
    return isinstance(schema, list) and any(holds_mark(inner, mark) for inner in schema)


def without_marks(schema: Any) -> Any:
    """A schema as others may see it: a copy without the mark of secrets."""
    if isinstance(schema, Mapping):
        return {key: without_marks(inner) for key, inner in schema.items() if key != SENSITIVE}
    return [without_marks(inner) for inner in schema] if isinstance(schema, list) else schema


def json_types(schema: Any) -> frozenset[str] | None:
    """The JSON types that a schema admits; ``None`` if it does not restrict them."""
    if not isinstance(schema, Mapping):
        return None
    stated = schema.get("type")
    if isinstance(stated, str):
        return frozenset({stated})
    if isinstance(stated, list):
        return frozenset(stated)
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            found = [json_types(branch) for branch in branches]
            return None if any(types is None for types in found) else frozenset().union(*(t for t in found if t))
    if "enum" in schema and isinstance(schema["enum"], list):
        return frozenset(json_type(value) for value in schema["enum"])
    if "const" in schema:
        return frozenset({json_type(schema["const"])})
    return None


def json_type(value: Any) -> str:
    """The JSON type of a Python value; an ``int`` is an ``integer`` and a ``bool`` is neither number."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def compatible(wanted: str, given: str) -> bool:
    """Whether a result stated as ``given`` may stand for ``wanted``. A number may turn out to be an integer."""
    return wanted == given or {wanted, given} == {"number", "integer"}


def accepts(types: frozenset[str], value: Any) -> bool:
    """Whether a literal value is of one of these types."""
    found = json_type(value)
    return found in types or (found == "integer" and "number" in types)


def schema_at(schema: Any, path: Path) -> Mapping[str, Any] | None:
    """The schema of the value at a path; ``None`` where it cannot be told."""
    for part in path:
        if not isinstance(schema, Mapping):
            return None
        if isinstance(part, int):
            schema = schema.get("items")
        else:
            properties = schema.get("properties")
            schema = properties.get(part) if isinstance(properties, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


#: A value as JSON for a message; made once, because ``json.dumps`` makes an encoder for each text that is not ASCII.
in_json: Final[Callable[[Any], str]] = json.JSONEncoder(ensure_ascii=False, default=str).encode


def describe_schema(schema: Mapping[str, Any] | None) -> str:
    """What a schema accepts, in a few words, for evidence."""
    if schema is not None and schema.get(TABLE):
        return "a table (a reference to an earlier result)"
    return " or ".join(sorted(json_types(schema) or ())) or "another value"


def describe_value(value: Any) -> str:
    """A value and its type, shortened, for evidence."""
    if value is None:
        return "null"
    return f"{json_type(value)} {shortened(in_json(value), 60)}"
