"""Arguments that fit a tool's schema, and some that do not; the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from callwright.tools.reading import TABLE
from callwright.tools.spec import ToolSpec

#: Texts to draw from where nothing better is known.
WORDS: Final = ("amber", "birch", "cedar", "Oslo", "2026-03-01", "10:30", "a1", "")
_TRIES: Final = 12
_DEEPEST: Final = 5


def fitting_arguments(spec: ToolSpec, rng: Random, words: Sequence[str] = WORDS) -> dict[str, Any] | None:
    """Arguments that the tool's schema accepts, with these texts in them.

    ``None`` if none are found in a few draws (a pattern, a table).
    """
    for attempt in range(_TRIES):
        drawn = _value({"type": "object", **spec.parameters}, rng, words, 0, optional=attempt % 2 == 0)
        if isinstance(drawn, dict) and spec.compiled.literal.validator.is_valid(drawn):
            return drawn
    return None


def wrong_arguments(spec: ToolSpec, rng: Random) -> Iterator[dict[str, Any]]:
    """Arguments that the tool's schema refuses: nothing, something unexpected, and every value of another type."""
    fitting = fitting_arguments(spec, rng) or {}
    odd: list[dict[str, Any]] = [{}, {**fitting, "no such parameter": 1}]
    odd += [{**fitting, key: "odd" if isinstance(value, dict) else {"odd": [True]}} for key, value in fitting.items()]
    yield from (arguments for arguments in odd if not spec.compiled.literal.validator.is_valid(arguments))


def _value(schema: Any, rng: Random, words: Sequence[str], depth: int, *, optional: bool) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return rng.choice(words)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return rng.choice(schema["enum"])
    if schema.get(TABLE):
        return []
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return _value(rng.choice(schema[key]), rng, words, depth, optional=optional)
    stated = schema.get("type", "object" if "properties" in schema else "string")
    match rng.choice(stated) if isinstance(stated, list) else stated:
        case "null":
            return None
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            return round(min(low + rng.randint(1, 5), schema.get("maximum", 10**9)))
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            return min(low + rng.randint(1, 20) / 4, schema.get("maximum", 1e9))
        case "array":
            count = max(schema.get("minItems", 0), min(rng.randint(0, 2), schema.get("maxItems", 2)))
            return [_value(schema.get("items"), rng, words, depth + 1, optional=optional) for _ in range(count)]
        case "object":
            properties = schema.get("properties")
            required = schema.get("required", ())
            listed = properties.items() if isinstance(properties, Mapping) else ()
            return {
                name: _value(inner, rng, words, depth + 1, optional=optional)
                for name, inner in listed
                if name in required or (optional and rng.random() < 0.5)
            }
    default = schema.get("default", schema.get("examples"))
    return default if isinstance(default, str) else rng.choice(words)
