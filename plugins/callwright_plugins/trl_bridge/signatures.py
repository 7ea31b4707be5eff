"""Tools as methods: signatures, type hints and docstrings from which transformers reads the same JSON Schema again."""

from __future__ import annotations

import inspect
import json
import keyword
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Final, Literal

from callwright.errors import UsageError
from callwright.tools.reading import without_marks
from callwright.tools.spec import ToolSpec

#: What TRL calls itself.
RESERVED: Final = frozenset({"reset", "get_reward"})

_BASIC: Final[Mapping[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
#: Words that would end a section of the docstring wherever they stand.
_SECTION: Final = re.compile(r"\b(Args|Returns|Raises):")
_SCALARS: Final = (str, int, float, bool, type(None))


def type_hint(schema: Any) -> tuple[Any, bool]:
    """A type hint for a JSON Schema, and whether transformers makes the same schema of it (descriptions apart)."""
    if not isinstance(schema, Mapping):
        return Any, schema is True
    schema = {key: value for key, value in schema.items() if key not in ("description", "title")}
    if not schema:
        return Any, True
    if "enum" in schema or "const" in schema:
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        if values and all(type(value) in _SCALARS for value in values):
            return Literal[tuple(values)], "enum" in schema and schema.keys() <= {"enum", "type"}
        return Any, False
    for key in ("anyOf", "oneOf"):
        if key in schema:
            parts = [type_hint(part) for part in schema[key]]
            # What may be null says so with "nullable"; that it is null by default goes without saying.
            rest = schema.keys() - ({key, "default"} if schema.get("default", 0) is None else {key})
            same = key == "anyOf" and not rest and all(same for _, same in parts)
            return _union([hint for hint, _ in parts]), same and not any(map(_described, schema[key]))
    kind = schema.get("type")
    if isinstance(kind, list):
        parts = [type_hint({**schema, "type": one}) for one in kind]
        return _union([hint for hint, _ in parts]), "null" not in kind and all(same for _, same in parts)
    hint = _BASIC.get(str(kind), Any)
    same = hint is not Any
    if kind == "array" and "items" in schema:
        inner, exact = type_hint(schema["items"])
        return list.__class_getitem__(inner), exact and schema.keys() == {"type", "items"} and not _described(
            schema["items"]
        )
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping) and not schema.get("properties"):
        inner, exact = type_hint(schema["additionalProperties"])
        exact = exact and not _described(schema["additionalProperties"])
        return dict.__class_getitem__((str, inner)), exact and not schema.keys() - {
            "type",
            "additionalProperties",
            "properties",
        }
    return hint, same and schema.keys() == {"type"}


def _described(schema: Any) -> bool:
    return isinstance(schema, Mapping) and ("description" in schema or "title" in schema)


def _union(hints: list[Any]) -> Any:
    if Any in hints or not hints:
        return Any
    return reduce(or_, hints)


def describe_parameter(name: str, schema: Any, same: bool) -> str:
    """The line about a parameter: its description, and the schema where a type hint cannot say it."""
    described = schema.get("description") if isinstance(schema, Mapping) else None
    text = _one_line(str(described or "")) or name.replace("_", " ").strip() or name
    if not same:
        bare = {key: value for key, value in schema.items() if key not in ("description", "title")}
        text += f" (JSON Schema: {json.dumps(bare, ensure_ascii=False, sort_keys=True)})"
    return f"{text}." if re.search(r"\(choices:.*\)$", text, re.IGNORECASE) else text


def _one_line(text: str) -> str:
    return _SECTION.sub(r"\1 :", " ".join(text.split()))


def docstring(spec: ToolSpec, lines: Mapping[str, str]) -> str:
    """What the tool does and, in Google's form, what its arguments are: transformers reads nothing else."""
    about = _SECTION.sub(r"\1 :", inspect.cleandoc(spec.description)).strip() or spec.name.replace("_", " ")
    if not lines:
        return about
    return f"{about}\n\nArgs:\n" + "\n".join(f"    {name}: {line}" for name, line in lines.items())


def tool_method(spec: ToolSpec, call: Callable[[Any, str, dict[str, Any]], str]) -> Any:
    """A method that hands its arguments to ``call(self, tool, arguments)``.

    Raises :class:`callwright.UsageError` for names that Python or TRL cannot have as a method or parameter.
    """
    name = spec.name
    if not _is_name(name) or name in RESERVED or name.startswith("_"):
        raise UsageError(f"TRL cannot offer a tool named {name!r} as a method; leave it out with tools=[…]")
    schema = without_marks(spec.parameters)
    required = schema.get("required") or ()
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    hints: dict[str, Any] = {}
    lines: dict[str, str] = {}
    for key, inner in (schema.get("properties") or {}).items():
        if not _is_name(key) or key in ("self", "return"):
            reason = f"Python has no parameter named {key!r}"
            raise UsageError(f"TRL cannot offer the tool {name!r}: {reason}; leave it out with tools=[…]")
        hint, same = type_hint(inner)
        default = inspect.Parameter.empty if key in required else inner.get("default")
        parameters.append(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))
        hints[key] = hint
        lines[key] = describe_parameter(key, inner, same)

    def method(self: Any, /, **arguments: Any) -> str:
        return call(self, name, arguments)

    method.__name__ = name
    method.__qualname__ = name
    method.__doc__ = docstring(spec, lines)
    method.__annotations__ = hints
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
