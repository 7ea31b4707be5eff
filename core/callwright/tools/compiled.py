"""Compiling: a tool's schemas in the form in which calls are checked against them, made once per tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from attrs import field, frozen

from callwright.errors import DataError
from callwright.language.program import Path, Reference
from callwright.tools.reading import TABLE, holds_mark, json_types, schema_at

#: Before the text of a reference while arguments are checked: no text is made of this noncharacter of Unicode.
MARK: Final = "\ufdd0"
_REFERENCE: Final = {"type": "string", "pattern": f"^{MARK}"}
#: The marked texts of bare references to the first calls, which nearly all are.
_MARKED: Final = tuple(f"{MARK}{Reference(number)}" for number in range(100))
#: Keywords whose schemas are about the value itself, not about a part of it.
_IN_PLACE: Final = ("anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas", "$ref")


@frozen(eq=False)
class Checker:
    """A validator of jsonschema-rs and the schema of which it was made."""

    validator: Any = field(repr=False)
    schema: Mapping[str, Any] = field(repr=False)
    #: The validator's method, bound once.
    is_valid: Callable[[Any], bool] = field(init=False, repr=False)

    @is_valid.default
    def _bound(self) -> Callable[[Any], bool]:
        found: Callable[[Any], bool] = self.validator.is_valid
        return found


@frozen(eq=False, slots=False)
class CompiledTool:
    """A tool's schemas in the form that checks use; ``spec.compiled`` makes it once."""

    name: str
    parameters: Mapping[str, Any] = field(repr=False)
    result: Mapping[str, Any] | None = field(repr=False)
    result_field: str | None
    #: For arguments that are all literal.
    literal: Checker = field(repr=False)
    #: For results, as they are listed: members that are not listed are allowed. ``None`` if nothing is said of them.
    results: Checker | None = field(default=None, repr=False)
    #: ``(path, tool, path in its result)`` of references whose types were found to agree.
    agreed: set[tuple[Path, CompiledTool, Path]] = field(factory=set, repr=False)

    @cached_property
    def takes_results(self) -> bool:
        """Whether a parameter wants a table, which only the result of an earlier call can be."""
        return holds_mark(self.parameters, TABLE)

    @cached_property
    def received(self) -> Checker:
        """For arguments as the tool receives them: an earlier result stands where the schema wants a table."""
        if not self.takes_results:
            return self.literal
        schema = _close(_with_tables(self.parameters), top=True)
        return Checker(_compile(schema, f"the parameters of tool {self.name!r}"), schema)

    @cached_property
    def referring(self) -> Checker:
        """For arguments that hold references, as :func:`mark_references` writes them."""
        schema = _refer(self.literal.schema)
        return Checker(_compile(schema, f"the parameters of tool {self.name!r}"), schema)

    def types_at(self, path: Path) -> frozenset[str] | None:
        """The JSON types that the parameter at this path accepts; ``None`` where the schema does not say.

        Below a table it says nothing: only a reference can stand for the whole of one.
        """
        for length in range(1, len(path)):  # nearly always none
            if (schema_at(self.parameters, path[:length]) or {}).get(TABLE):
                return None
        return json_types(schema_at(self.parameters, path))

    def result_types(self, path: Path) -> frozenset[str] | None:
        """The JSON types of the referenced part of a result; ``None`` where the schema does not say."""
        if self.result is None:
            return None
        if not path and self.result_field is not None:
            path = (self.result_field,)
        return json_types(schema_at(self.result, path))


def compile_tool(
    name: str, parameters: Mapping[str, Any], result: Mapping[str, Any] | None, result_field: str | None
) -> CompiledTool:
    """Compile a tool's schemas. Raises :class:`callwright.errors.DataError` for one that is not valid.

    A reference to another document is not valid: no schema makes this process open a file or a connection.
    """
    closed = _close(parameters, top=True)
    literal = Checker(_compile(closed, f"the parameters of tool {name!r}"), closed)
    results = None
    if result is not None:
        results = Checker(_compile(result, f"the result of tool {name!r}"), result)
    return CompiledTool(name, parameters, result, result_field, literal, results)


def mark_references(value: Any) -> Any:
    """Arguments as JSON, in which references are marked text and no other text is."""
    kind = type(value)  # before isinstance, which takes long to say that a text is no Mapping
    if kind is Reference:
        return _marked(value)
    if kind is str:
        return value.lstrip(MARK) if value.startswith(MARK) else value
    if kind is int or kind is float or kind is bool or value is None:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {
            key: _marked(inner) if type(inner) is Reference else mark_references(inner) for key, inner in value.items()
        }
    if isinstance(value, str):
        return value.lstrip(MARK)
    if isinstance(value, list | tuple):
        return [mark_references(inner) for inner in value]
    return value


def _marked(reference: Reference) -> str:
    number = reference.call
    return _MARKED[number] if not reference.path and 0 <= number < len(_MARKED) else f"{MARK}{reference}"


def _compile(schema: Any, what: str) -> Any:
    import jsonschema_rs

    try:
        return jsonschema_rs.Draft202012Validator(schema, retriever=_refuse)
    except (ValueError, TypeError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DataError(f"{what}: not a valid schema: {reason}") from error


def _refuse(uri: str) -> Any:
    raise ValueError("schemas of tools may not refer to other documents")


def _with_tables(schema: Any) -> Any:
    """The schema with tables as plain lists of objects, or objects: their columns are the tool's business."""
    if isinstance(schema, list):
        return [_with_tables(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    if schema.get(TABLE):
        kinds = {"type": schema["type"]} if "type" in schema else {}
        return {**kinds, "items": {"type": "object"}}
    return {key: _with_tables(inner) for key, inner in schema.items()}


def _close(schema: Any, *, top: bool = False, part: bool = False) -> Any:
    """Objects that list properties accept no others; the arguments as a whole never do. No literal is a table.

    What a schema says of additional properties stands. Where several schemas are about one object (``part``: one of
    them), it is closed as a whole.
    """
    if not isinstance(schema, Mapping):
        return schema
    if schema.get(TABLE):
        return {"not": {}}
    out = dict(schema)
    stated = "additionalProperties" in out or "unevaluatedProperties" in out
    several = any(key in out for key in _IN_PLACE)
    own = bool(out.get("properties")) or (top and "patternProperties" not in out)
    only_choices = not own and all(key in ("anyOf", "oneOf") for key in _IN_PLACE if key in out)
    parts = part or stated or not only_choices
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(out.get(key), list):
            out[key] = [_close(inner, part=parts) for inner in out[key]]
    for key in ("then", "else"):
        if isinstance(out.get(key), Mapping):
            out[key] = _close(out[key], part=True)
    if isinstance(out.get("dependentSchemas"), Mapping):
        out["dependentSchemas"] = {name: _close(inner, part=True) for name, inner in out["dependentSchemas"].items()}
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _close(inner) for name, inner in out[key].items()}
    for key in ("items", "additionalProperties", "unevaluatedProperties", "contains"):
        if isinstance(out.get(key), Mapping):
            out[key] = _close(out[key])
    if isinstance(out.get("prefixItems"), list):
        out["prefixItems"] = [_close(inner) for inner in out["prefixItems"]]
    if not part and not stated and "$ref" not in out:
        if several and (own or (not only_choices and listed(out))):
            out["unevaluatedProperties"] = False
        elif not several and own:
            _let_required_through(out)
            out["additionalProperties"] = False
    elif out.get("additionalProperties") is False:
        out.setdefault("properties", {})  # without it the validator does not say which properties it refuses
    if top:
        out.setdefault("type", "object")
    return out


def _let_required_through(schema: dict[str, Any]) -> None:
    """Declare properties that are required but not declared.

    Read literally, such a schema asks for a property and forbids it, so no call would be valid.
    """
    required, properties = schema.get("required"), schema.setdefault("properties", {})
    if isinstance(required, list) and isinstance(properties, Mapping):
        unlisted: dict[str, Any] = {name: {} for name in required if isinstance(name, str) and name not in properties}
        schema["properties"] = {**properties, **unlisted}


def _refer(schema: Any) -> Any:
    """Let a reference stand in place of every value inside an object or a list.

    It stands in an ``if``, so that the defects of a literal are reported by the literal's own schema.
    """
    if not isinstance(schema, Mapping):
        return schema
    out = dict(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(out.get(key), list):
            out[key] = [_refer(inner) for inner in out[key]]
    for key in ("then", "else"):
        if key in out:
            out[key] = _refer(out[key])
    for key in ("$defs", "definitions", "dependentSchemas"):
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _refer(inner) for name, inner in out[key].items()}
    for key in ("properties", "patternProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _or_reference(inner) for name, inner in out[key].items()}
    for key in ("items", "additionalProperties", "unevaluatedProperties", "contains"):
        if isinstance(out.get(key), Mapping):
            out[key] = _or_reference(out[key])
    if isinstance(out.get("prefixItems"), list):
        out["prefixItems"] = [_or_reference(inner) for inner in out["prefixItems"]]
    return out


def _or_reference(schema: Any) -> dict[str, Any]:
    return {"if": _REFERENCE, "else": _refer(schema)}


def listed(schema: Any) -> set[str]:
    """The properties that a schema, or a part of it that is about the same object, lists."""
    if not isinstance(schema, Mapping):
        return set()
    properties = schema.get("properties")
    found = set(properties) if isinstance(properties, Mapping) else set()
    for key in _IN_PLACE:
        inner = schema.get(key)
        if key == "dependentSchemas" and isinstance(inner, Mapping):
            inner = list(inner.values())
        for branch in inner if isinstance(inner, list) else (inner,):
            found |= listed(branch)
    return found
