"""Schemas: dialects read into JSON Schema, compiled once per tool, and programs checked against them.

A mismatch is one defect of one call with the place, what was expected and what was found. TIER (section 2.2) grades
three kinds by their number: names, parameters (missing and unexpected) and types; design section 6 fixes what counts as
one. Enumerations, bounds, patterns and the like are reported as ``value`` mismatches, which the paper does not grade.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import field, frozen

from callwright.errors import DataError
from callwright.program import Call, Program, Reference, plain

if TYPE_CHECKING:
    from callwright.tool import ToolSpec

MismatchKind = Literal["name", "missing", "unexpected", "type", "value"]

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
#: A table that no literal can write: only a reference to an earlier result fills such a parameter.
TABLE: Final = "x-callwright-table"
_TABLE_TYPES: Final = frozenset({"pandas.dataframe", "dataframe"})
_ANY_TYPES: Final = frozenset({"any", "object | array", "mixed"})
_SUBSCHEMAS: Final = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_SUBSCHEMA_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SUBSCHEMA_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_REMEMBERED: Final = 4096
_REFERENCE: Final = {"type": "string", "pattern": "^API_RESPONSE_[0-9]"}


@frozen
class Mismatch:
    """One defect: ``call`` is the id of the call, ``path`` the place in its arguments (empty for the call itself)."""

    kind: MismatchKind
    call: int
    tool: str
    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        where = f"call {self.call} {self.tool}" + (f".{self.path}" if self.path else "")
        return f"{where}: expected {self.expected}, found {self.found}"


@frozen
class Validation:
    """Every mismatch of a program, by what TIER grades. Calls of unknown tools have no schema to be checked against."""

    names: tuple[Mismatch, ...] = ()
    parameters: tuple[Mismatch, ...] = ()
    types: tuple[Mismatch, ...] = ()
    values: tuple[Mismatch, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether every call fits its schema, ungraded constraints included."""
        return not (self.names or self.parameters or self.types or self.values)


VALID: Final = Validation()


@frozen(eq=False)
class CompiledTool:
    """A tool's schema in the form that checks use; ``spec.compiled`` makes it once."""

    validator: Any = field(repr=False)
    schema: Mapping[str, Any] = field(repr=False)
    result: Mapping[str, Any] | None = field(repr=False)
    result_field: str | None
    #: ``(path, tool, path in its result)`` of references whose types were found to agree.
    agreed: set[tuple[str, CompiledTool, tuple[str | int, ...]]] = field(factory=set, repr=False)

    def types_at(self, path: str) -> frozenset[str] | None:
        """The JSON types that the parameter at this path accepts; ``None`` where the schema does not say."""
        return json_types(schema_at(self.schema, split_path(path)))

    def result_types(self, path: tuple[str | int, ...]) -> frozenset[str] | None:
        """The JSON types of the referenced part of a result; ``None`` where the schema does not say."""
        if self.result is None:
            return None
        if not path and self.result_field is not None:
            path = (self.result_field,)
        return json_types(schema_at(self.result, path))


# Reading dialects -----------------------------------------------------------------------------------------------------


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
        elif key in _SUBSCHEMA_MAPS and isinstance(value, Mapping):
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
    inner_required = [
        name
        for name, inner in (schema.get("properties") or {}).items()
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
        return {"type": names} if all(isinstance(name, str) for name in names) else {}
    if not isinstance(value, str):
        return {}
    lowered = value.strip().lower()
    if lowered in _TABLE_TYPES:
        return {"type": "array", TABLE: True}
    if lowered in _ANY_TYPES:
        return {}
    return {"type": DIALECT.get(lowered, lowered)}


def inline_definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with local ``$ref`` replaced by what they point to, so that each place states its own type.

    A recursive definition keeps its reference. ``title`` entries that only repeat a field's name are dropped.
    """
    definitions = schema.get("$defs", {})

    def resolve(node: Any, trail: tuple[str, ...], named: bool) -> Any:
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
            return {**resolve(definitions[name], (*trail, name), False), **resolve(rest, trail, False)}
        return {
            key: resolve(value, trail, key in _SUBSCHEMA_MAPS)
            for key, value in node.items()
            if key != "$defs" and (named or not (key == "title" and isinstance(value, str)))
        }

    inlined: dict[str, Any] = resolve(schema, (), False)
    if '"$ref": "#/$defs/' in json.dumps(inlined):
        inlined["$defs"] = dict(definitions)
    return inlined


# Compiling ------------------------------------------------------------------------------------------------------------


def compile_tool(spec: ToolSpec) -> CompiledTool:
    """Compile a tool's parameters. Raises :class:`callwright.DataError` for a schema that is not valid."""
    import jsonschema_rs

    schema = _close(spec.parameters, top=True)
    try:
        validator = jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise DataError(f"the parameters of tool {spec.name!r} are not a valid schema: {error}") from error
    return CompiledTool(validator, spec.parameters, spec.result, spec.result_field)


def _close(schema: Any, *, top: bool = False) -> Any:
    """Objects that list properties accept no others, and every value may be a reference instead.

    The reference stands in an ``if``, so that the defects of a literal are reported by the literal's own schema.
    """
    if not isinstance(schema, Mapping):
        return schema
    out = dict(schema)
    for key in _SUBSCHEMA_LISTS:
        if isinstance(out.get(key), list):
            wrap = _value if key == "prefixItems" else _close
            out[key] = [wrap(inner) for inner in out[key]]
    for key in ("properties", "patternProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _value(inner) for name, inner in out[key].items()}
    for key in ("$defs", "definitions", "dependentSchemas"):
        if isinstance(out.get(key), Mapping):
            out[key] = {name: _close(inner) for name, inner in out[key].items()}
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(out.get(key), Mapping):
            out[key] = _value(out[key])
    closable = bool(out.get("properties")) or (top and "patternProperties" not in out)
    if closable and "additionalProperties" not in out and "$ref" not in out and "allOf" not in out:
        out["additionalProperties"] = False
    if top:
        out.setdefault("type", "object")
    return out


def _value(schema: Any) -> dict[str, Any]:
    if isinstance(schema, Mapping) and schema.get(TABLE):
        return {"if": _REFERENCE, "else": {"not": {}}}
    return {"if": _REFERENCE, "else": _close(schema)}


# Checking -------------------------------------------------------------------------------------------------------------


def validate(program: Program, tools: Mapping[str, ToolSpec]) -> Validation:
    """Check every call against the tool of its name among those that are offered."""
    names: list[Mismatch] = []
    parameters: list[Mismatch] = []
    types: list[Mismatch] = []
    values: list[Mismatch] = []
    results: dict[int, CompiledTool] = {}
    for call in program.calls:
        spec = tools.get(call.tool)
        if spec is None:
            names.append(Mismatch("name", call.id, call.tool, "", "the name of an offered tool", repr(call.tool)))
            continue
        compiled = spec.compiled
        located = call.located
        arguments = plain(call.arguments) if located else call.arguments
        if not compiled.validator.is_valid(arguments):
            for mismatch in _mismatches(call, compiled, arguments):
                if mismatch.kind in ("missing", "unexpected"):
                    parameters.append(mismatch)
                elif mismatch.kind == "type":
                    types.append(mismatch)
                else:
                    values.append(mismatch)
        for path, reference in located:
            mismatch_of_reference = _reference_mismatch(call, compiled, path, reference, results)
            if mismatch_of_reference is not None:
                types.append(mismatch_of_reference)
        results[call.id] = compiled
    if not (names or parameters or types or values):
        return VALID
    return Validation(tuple(names), tuple(parameters), tuple(types), tuple(values))


def _mismatches(call: Call, compiled: CompiledTool, arguments: Any) -> Iterator[Mismatch]:
    for error in compiled.validator.iter_errors(arguments):
        kind, parts = error.kind, list(error.instance_path)
        path = join_path(parts)
        if kind.name == "required":
            inner = join_path([*parts, kind.property])
            yield Mismatch("missing", call.id, call.tool, inner, "a value (the parameter is required)", "nothing")
        elif kind.name in ("additionalProperties", "unevaluatedProperties"):
            for name in kind.unexpected:
                inner = join_path([*parts, name])
                yield Mismatch("unexpected", call.id, call.tool, inner, "no parameter of this name", "one")
        else:
            schema = schema_at(compiled.schema, tuple(parts))
            expected, value = describe_schema(schema), error.instance
            accepted = json_types(schema)
            wrong_type = (
                kind.name == "type"
                or bool(schema and schema.get(TABLE))
                or (kind.name in ("anyOf", "oneOf") and accepted is not None and not accepts(accepted, value))
            )
            yield Mismatch(
                "type" if wrong_type else "value",
                call.id,
                call.tool,
                path,
                expected if wrong_type else str(error.message),
                describe_value(value),
            )


def _reference_mismatch(
    call: Call, compiled: CompiledTool, path: str, reference: Reference, results: Mapping[int, CompiledTool]
) -> Mismatch | None:
    source = results.get(reference.call)
    if source is None:  # dangling, or an unknown tool: reported as such, not as a type
        return None
    key = (path, source, reference.path)
    if key in compiled.agreed:
        return None
    expected, found = compiled.types_at(path), source.result_types(reference.path)
    if expected is None or found is None or any(compatible(want, have) for want in expected for have in found):
        if len(compiled.agreed) < _REMEMBERED:  # paths come from model text, so what is kept of them is bounded
            compiled.agreed.add(key)
        return None
    return Mismatch(
        "type",
        call.id,
        call.tool,
        path,
        " or ".join(sorted(expected)),
        f"{reference}, which is {' or '.join(sorted(found))}",
    )


# Types and paths ------------------------------------------------------------------------------------------------------


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


def schema_at(schema: Any, path: tuple[str | int, ...]) -> Mapping[str, Any] | None:
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


def join_path(parts: list[str | int]) -> str:
    """``["items", 0, "sku"]`` as ``items[0].sku``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def split_path(path: str) -> tuple[str | int, ...]:
    """The inverse of :func:`join_path` for names without brackets and dots."""
    parts: list[str | int] = []
    for piece in path.replace("]", "").split(".") if path else ():
        name, *indices = piece.split("[")
        if name:
            parts.append(name)
        parts.extend(int(index) for index in indices)
    return tuple(parts)


def describe_schema(schema: Mapping[str, Any] | None) -> str:
    """A schema in a few words, for evidence."""
    if schema is None:
        return "another value"
    if schema.get(TABLE):
        return "a table (a reference to an earlier result)"
    types = json_types(schema)
    return " or ".join(sorted(types)) if types else "another value"


def describe_value(value: Any) -> str:
    """A value and its type, shortened, for evidence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{json_type(value)} {text if len(text) <= 60 else text[:57] + '…'}"
