"""Random JSON values that fit a JSON Schema, for tools whose schemas are those of function definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, timedelta
from random import Random
from typing import Any, Final

from callwright.language.program import Reference
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import TABLE

_WORDS: Final = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "juniper")
_TRIES: Final = 20
_DEEPEST: Final = 6


class NoValue(Exception):
    """No literal that fits the schema was found."""


def random_arguments(spec: ToolSpec, rng: Random) -> dict[str, Any]:
    """Arguments that the tool's own validator accepts. Raises :class:`NoValue` if none are found in a few draws."""
    for _ in range(_TRIES):
        arguments = _object(spec.parameters, rng, 0)
        if spec.compiled.literal.validator.is_valid(arguments):
            return arguments
    raise NoValue(spec.name)


def another_value(schema: Any, value: Any, rng: Random) -> Any:
    """A value that differs from ``value`` and fits ``schema`` where one is found; of the same type in any case."""
    for _ in range(_TRIES if isinstance(schema, Mapping) and schema else 0):
        try:
            drawn = random_value(schema, rng)
        except NoValue:
            break
        if drawn != value:
            return drawn
    match value:
        case bool():
            return not value
        case int() | float():
            return value + rng.randint(1, 9)
        case str():
            return f"{value} {rng.choice(_WORDS)}"
        case list():
            return [*value, *value[:1]] if value else [rng.choice(_WORDS)]
        case dict():
            return {}
        case Reference():
            return rng.choice(_WORDS)
        case _:
            return rng.choice(_WORDS)


def random_value(schema: Any, rng: Random, depth: int = 0) -> Any:
    """A value of a schema; raises :class:`NoValue` where only a reference would do or it nests too deeply."""
    if not isinstance(schema, Mapping):
        return rng.choice(_WORDS)
    if schema.get(TABLE) or depth > _DEEPEST:
        raise NoValue
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return rng.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return random_value(rng.choice(schema[key]), rng, depth)
    if isinstance(schema.get("allOf"), list):
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            merged.update(part if isinstance(part, Mapping) else {})
        return random_value(merged, rng, depth)
    stated = schema.get("type", "object" if "properties" in schema else "string")
    match rng.choice(stated) if isinstance(stated, list) and stated else stated:
        case "null":
            return None
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return _number(schema, rng, whole=True)
        case "number":
            return _number(schema, rng, whole=False)
        case "array":
            return _array(schema, rng, depth)
        case "object":
            return _object(schema, rng, depth)
        case _:
            return _string(schema, rng)


def _number(schema: Mapping[str, Any], rng: Random, *, whole: bool) -> int | float:
    low, high = _bound(schema, "minimum", "exclusiveMinimum", 1), _bound(schema, "maximum", "exclusiveMaximum", -1)
    low = (0 if high is None else min(0, high - 100)) if low is None else low
    high = low + 100 if high is None else high
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step > 0:
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            raise NoValue
        return rng.randint(first, last) * step
    if whole:
        if math.ceil(low) > math.floor(high):
            raise NoValue
        return rng.randint(math.ceil(low), math.floor(high))
    return round(rng.uniform(low, high), 2) if high - low >= 1 else rng.uniform(low, high)


def _bound(schema: Mapping[str, Any], inclusive: str, exclusive: str, inwards: int) -> float | None:
    bounds = []
    if isinstance(schema.get(inclusive), int | float):
        bounds.append(schema[inclusive])
    if isinstance(schema.get(exclusive), int | float) and not isinstance(schema[exclusive], bool):
        bounds.append(schema[exclusive] + inwards * (1 if schema.get("type") == "integer" else 1e-6))
    return (max if inwards > 0 else min)(bounds) if bounds else None


def _string(schema: Mapping[str, Any], rng: Random) -> str:
    day = date(2024, 1, 1) + timedelta(days=rng.randrange(366))
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:00"
    formats = {
        "date": day.isoformat(),
        "date-time": f"{day.isoformat()}T{clock}Z",
        "time": f"{clock}Z",
        "email": f"{rng.choice(_WORDS)}@example.org",
        "uri": f"https://example.org/{rng.choice(_WORDS)}",
        "uuid": f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}",
    }
    if schema.get("format") in formats:
        return formats[schema["format"]]
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
    text = rng.choice(_WORDS)
    while len(text) < min(shortest, 10_000):
        text += f" {rng.choice(_WORDS)}"
    return text[:longest] if isinstance(longest, int) else text


def _array(schema: Mapping[str, Any], rng: Random, depth: int) -> list[Any]:
    fixed = [random_value(inner, rng, depth + 1) for inner in schema.get("prefixItems", ())]
    least = max(schema.get("minItems", 1), len(fixed))
    count = rng.randint(least, max(least, min(schema.get("maxItems", least + 2), least + 2)))
    rest = schema.get("items", {"type": "string"})
    return fixed + [random_value(rest, rng, depth + 1) for _ in range(count - len(fixed) if rest is not False else 0)]


def _object(schema: Mapping[str, Any], rng: Random, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    required = set(schema.get("required", ()))
    found = {}
    for name, inner in (properties if isinstance(properties, Mapping) else {}).items():
        if name in required or rng.random() < 0.5:
            try:
                found[name] = random_value(inner, rng, depth + 1)
            except NoValue:
                if name in required:
                    raise
    return found
