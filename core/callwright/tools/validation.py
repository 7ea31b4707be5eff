"""Checking programs against schemas. A mismatch is one defect of one call with the place and what was found there.

TIER (section 2.2) grades three kinds by their number: names, parameters (missing and unexpected) and types; design
section 6 fixes what counts as one. Enumerations, bounds, patterns and the like are reported as ``value`` mismatches,
which the paper does not grade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import frozen

from callwright.language.program import Call, Path, Program, Reference, join_path
from callwright.language.shortening import shortened
from callwright.tools.compiled import MARK, Checker, CompiledTool, listed, mark_references
from callwright.tools.reading import TABLE as TABLE
from callwright.tools.reading import accepts, compatible, describe_value, in_json, json_types, schema_at
from callwright.tools.reading import describe_schema as describe_schema

if TYPE_CHECKING:
    from callwright.tools.spec import ToolSpec

MismatchKind = Literal["name", "missing", "unexpected", "type", "value"]
_REMEMBERED: Final = 4096
_LONGEST_MESSAGE: Final = 200
#: How many allowed values are spelt out, and how much of each.
_MOST_VALUES: Final = 20
_LONGEST_VALUE: Final = 60
#: What the validator's keywords ask of a value.
_ASKED: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} members",
    "maxProperties": "at most {} members",
    "pattern": "a text that matches {}",
    "format": "a text of the format {}",
}


@frozen(slots=False)  # which attrs makes faster
class Mismatch:
    """One defect: ``call`` is the id of the call, ``path`` the place in its arguments (empty for the call itself)."""

    kind: MismatchKind
    call: int
    tool: str
    path: str
    expected: str
    found: str

    @property
    def sentence(self) -> str:
        """Where it is, what was expected and what came, without the number of the call."""
        where = f"{self.tool}.{shortened(self.path, _LONGEST_MESSAGE)}" if self.path else self.tool
        return f"{where}: expected {self.expected}, found {self.found}"

    def __str__(self) -> str:
        return f"call {self.call} {self.sentence}"


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


def validate(program: Program, tools: Mapping[str, ToolSpec]) -> Validation:
    """Check every call against the tool of its name among those that are offered."""
    names: list[Mismatch] = []
    parameters: list[Mismatch] = []
    types: list[Mismatch] = []
    values: list[Mismatch] = []
    results: dict[int, CompiledTool] = {}
    for call in program.calls:
        spec = tools.get(call.tool)
        if spec is None or spec.hidden:
            names.append(Mismatch("name", call.id, call.tool, "", "the name of an offered tool", repr(call.tool)))
            continue
        compiled = spec.compiled
        located = call.located
        checker, arguments = compiled.literal, call.arguments
        if located:
            checker, arguments = compiled.referring, mark_references(arguments)
        if not checker.is_valid(arguments):
            for mismatch in _mismatches(call.id, compiled, checker, checker.validator.iter_errors(arguments)):
                if mismatch.kind in ("missing", "unexpected"):
                    parameters.append(mismatch)
                elif mismatch.kind == "type":
                    types.append(mismatch)
                else:
                    values.append(mismatch)
        for path, reference in located:
            source = results.get(reference.call)
            # Most references were seen at this place before; a source that is not there is reported as dangling or as
            # an unknown tool, not as a type.
            if source is None or (path, source, reference.path) in compiled.agreed:
                continue
            mismatch_of_reference = _reference_mismatch(call, compiled, path, reference, source)
            if mismatch_of_reference is not None:
                types.append(mismatch_of_reference)
        results[call.id] = compiled
    if not (names or parameters or types or values):
        return VALID
    return Validation(tuple(names), tuple(parameters), tuple(types), tuple(values))


def check_arguments(spec: ToolSpec, arguments: Mapping[str, Any], call: int = 0) -> tuple[Mismatch, ...]:
    """Every mismatch of the arguments of one call, all of them literal; empty if they fit the tool's schema."""
    return mismatches(spec.compiled, spec.compiled.literal, arguments, call)


def mismatches(
    compiled: CompiledTool, checker: Checker, arguments: Mapping[str, Any], call: int = 0
) -> tuple[Mismatch, ...]:
    """Every mismatch of arguments by one of the tool's checkers; empty if they fit."""
    if checker.validator.is_valid(arguments):
        return ()
    return tuple(_mismatches(call, compiled, checker, checker.validator.iter_errors(arguments)))


def _mismatches(call: int, compiled: CompiledTool, checker: Checker, found: Iterable[Any]) -> Iterator[Mismatch]:
    tool, errors = compiled.name, list(found)
    defects: Counter[Path] = Counter()  # how many there are at each place and inside it, counted when it matters
    for error in errors:
        kind, parts = error.kind, list(error.instance_path)
        if kind.name == "required":
            if kind.property not in error.instance:  # the validator also says so of one that it refuses
                inner = join_path([*parts, kind.property])
                yield Mismatch("missing", call, tool, inner, "a value (the parameter is required)", "nothing")
            continue
        schema = _walk(checker.schema, list(error.schema_path)[:-1])
        if kind.name in ("additionalProperties", "unevaluatedProperties"):
            known: set[str] = set()
            if kind.name == "unevaluatedProperties":
                # A branch that failed no longer vouches for the properties that it lists; its own defects are reported.
                defects = defects or _count_places(errors)
                known = listed(schema) if defects[tuple(parts)] > 1 else known
            for name in kind.unexpected:
                if name not in known:
                    inner = join_path([*parts, name])
                    yield Mismatch("unexpected", call, tool, inner, "no parameter of this name", "one")
            continue
        place = schema_at(compiled.parameters, tuple(parts)) or schema
        if place.get(TABLE):
            wrong_type = True
        elif kind.name in ("anyOf", "oneOf"):
            near = _near(kind.context, len(parts))
            closest = min(near, key=len, default=())
            if closest:
                yield from _mismatches(call, compiled, checker, closest)
                continue
            wrong_type = not near
        else:
            accepted = json_types(schema)
            fits = accepted is None or accepts(accepted, error.instance)
            wrong_type = kind.name == "type" or not (fits or "type" in schema)
        if wrong_type:
            expected = _expected_type(schema if kind.name == "type" else place)
        else:
            expected = _expected_value(error)
        value = describe_value(error.instance).replace(MARK, "")
        yield Mismatch("type" if wrong_type else "value", call, tool, join_path(parts), expected, value)


def _expected_type(schema: Mapping[str, Any]) -> str:
    """The types that a schema accepts, or its values where it lists them."""
    values = schema.get("enum")
    return allowed_values(values) if isinstance(values, list) and values else describe_schema(schema)


def _expected_value(error: Any) -> str:
    """What a constraint asks of a value: the allowed values, the bound, the pattern; else the validator's words."""
    name = error.kind.name
    if name == "enum":
        return allowed_values(error.kind.options)
    if name == "const":
        return allowed_values([error.kind.expected_value])
    if name == "uniqueItems":
        return "items that all differ"
    if name in _ASKED:
        return _ASKED[name].format(shortened(in_json(error.kind.value), _LONGEST_MESSAGE))
    return shortened(error.message.replace(MARK, ""), _LONGEST_MESSAGE)


def allowed_values(values: Sequence[Any]) -> str:
    """Allowed values in words: JSON, the first twenty of them."""
    return _texts_in_words(tuple(values)) if set(map(type, values)) == {str} else _in_words(values)


@lru_cache(maxsize=1024)  # a model that errs, errs again; texts alone, because 1 and True are one key
def _texts_in_words(values: tuple[str, ...]) -> str:
    return _in_words(values)


def _in_words(values: Sequence[Any]) -> str:
    shown = [shortened(in_json(value), _LONGEST_VALUE) for value in values[:_MOST_VALUES]]
    if len(values) > _MOST_VALUES:
        shown.append(f"{len(values) - _MOST_VALUES} others")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _near(branches: list[list[Any]], depth: int) -> list[list[Any]]:
    """The errors of each branch that accepts at least the type of a value; ``depth`` is the length of its path."""
    refused = ("type", "not", "falseSchema")
    return [
        branch
        for branch in branches
        if not any(error.kind.name in refused and len(error.instance_path) == depth for error in branch)
    ]


def _count_places(errors: Sequence[Any]) -> Counter[Path]:
    paths = [tuple(error.instance_path) for error in errors]
    return Counter(path[:length] for path in paths for length in range(len(path) + 1))


def _walk(schema: Any, path: list[str | int]) -> Mapping[str, Any]:
    """The schema at a path of keywords and names inside a schema."""
    for part in path:
        schema = schema[part]
    return schema if isinstance(schema, Mapping) else {}


def _reference_mismatch(
    call: Call, compiled: CompiledTool, path: Path, reference: Reference, source: CompiledTool
) -> Mismatch | None:
    expected, found = compiled.types_at(path), source.result_types(reference.path)
    if expected is None or found is None:
        return None
    if any(compatible(want, have) for want in expected for have in found):
        if len(compiled.agreed) < _REMEMBERED:  # both places are listed by schemas, so no model text is kept
            compiled.agreed.add((path, source, reference.path))
        return None
    return Mismatch(
        "type",
        call.id,
        call.tool,
        join_path(path),
        " or ".join(sorted(expected)),
        f"{reference}, which is {' or '.join(sorted(found))}",
    )
