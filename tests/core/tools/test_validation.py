"""Schemas: validity against the jsonschema package, counts against a slow literal counter, dialects, closing."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.errors import DataError
from callwright.language.program import Call, Program, Reference, revive
from callwright.tools.compiled import MARK, mark_references
from callwright.tools.reading import TABLE, json_type
from callwright.tools.schema_dialects import inline_definitions, normalise
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import VALID, check_arguments, validate

NAMES = st.sampled_from(["a", "b", "c", "d"])
TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5]) | st.text("ab", max_size=3)
instances = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(NAMES, instances, max_size=4)


def objects(inner: st.SearchStrategy[Any], additional: st.SearchStrategy[Any] | None) -> st.SearchStrategy[Any]:
    fixed = {
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, unique=True, max_size=2),
    }
    return st.fixed_dictionaries(fixed if additional is None else {**fixed, "additionalProperties": additional})


def schemas(additional: st.SearchStrategy[Any] | None, *, choices: bool) -> st.SearchStrategy[Any]:
    leaves: list[st.SearchStrategy[Any]] = [
        st.just({}),
        st.sampled_from(TYPES).map(lambda name: {"type": name}),
        st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(lambda names: {"type": names}),
    ]
    if choices:  # constraints that are neither a name nor a type
        leaves += [
            st.lists(st.sampled_from(["a", "ab", 2, None]), min_size=1, unique=True).map(lambda some: {"enum": some}),
            st.sampled_from(["a", 1, None]).map(lambda value: {"const": value}),
            st.fixed_dictionaries({"type": st.just("number"), "minimum": st.integers(-2, 2)}),
            st.fixed_dictionaries({"type": st.just("string"), "maxLength": st.integers(0, 2)}),
            st.just({"type": "string", "pattern": "^a"}),
        ]

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        some = st.lists(inner, min_size=1, max_size=3)
        kinds = [objects(inner, additional), inner.map(lambda items: {"type": "array", "items": items})]
        if choices:
            kinds += [some.map(lambda branches, key=key: {key: branches}) for key in ("anyOf", "oneOf", "allOf")]
            kinds += [
                st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 2)}),
                some.map(lambda items: {"type": "array", "prefixItems": items}),
            ]
        return st.one_of(kinds)

    tree = st.recursive(st.one_of(leaves), deeper, max_leaves=6)
    return objects(tree, additional)


def mismatches(schema: dict[str, Any], given_arguments: dict[str, Any]) -> Counter[str]:
    return Counter(mismatch.kind for mismatch in check_arguments(ToolSpec("t", parameters=schema), given_arguments))


# Validity -------------------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(schemas(st.booleans() | st.just({"type": "integer"}), choices=True), arguments)
def test_validity_is_that_of_the_jsonschema_package(schema: dict[str, Any], instance: dict[str, Any]) -> None:
    """Where every object says what it thinks of other properties, nothing is added to the schema's own meaning."""
    expected = jsonschema.Draft202012Validator(schema).is_valid(instance)
    found = check_arguments(ToolSpec("t", parameters=schema), instance)
    assert (not found) == expected, [str(mismatch) for mismatch in found]


@settings(max_examples=200)
@given(schemas(st.booleans(), choices=True), arguments)
def test_every_place_that_is_reported_exists(schema: dict[str, Any], instance: dict[str, Any]) -> None:
    for mismatch in check_arguments(ToolSpec("t", parameters=schema), instance):
        value: Any = instance
        parts = [int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", mismatch.path)]
        for part in parts[:-1] if mismatch.kind == "missing" else parts:
            value = value[part]
        if mismatch.kind == "missing":
            assert parts[-1] not in value
        assert mismatch.expected
        assert mismatch.found


def literal_count(schema: Any, value: Any) -> Iterator[str]:
    """Design section 6, word for word, for schemas of types, properties, required and items."""
    stated = schema.get("type")
    if stated is not None:
        allowed = [stated] if isinstance(stated, str) else stated
        fits = {
            "null": value is None,
            "boolean": isinstance(value, bool),
            "integer": isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer(),
            "number": isinstance(value, int | float) and not isinstance(value, bool),
            "string": isinstance(value, str),
            "array": isinstance(value, list),
            "object": isinstance(value, dict),
        }
        if not any(fits[name] for name in allowed):
            yield "type"
            return
    if isinstance(value, dict):
        listed = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield "missing"
        for name, inner in value.items():
            if name in listed:
                yield from literal_count(listed[name], inner)
            elif name not in schema.get("required", ()) and (listed or schema.get("top")):
                yield "unexpected"
    if isinstance(value, list) and "items" in schema:
        for inner in value:
            yield from literal_count(schema["items"], inner)


@settings(max_examples=400)
@given(schemas(None, choices=False), arguments)
def test_mismatches_are_counted_as_the_literal_rules_count_them(
    schema: dict[str, Any], instance: dict[str, Any]
) -> None:
    assert mismatches(schema, instance) == Counter(literal_count({**schema, "top": True}, instance))


# What counts as one mismatch ------------------------------------------------------------------------------------------

NESTED = {
    "type": "object",
    "properties": {
        "order": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["sku", "count"],
        },
        "notes": {"type": "array", "items": {"type": "string"}},
        "where": {
            "anyOf": [
                {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
                {"type": "null"},
            ]
        },
    },
    "required": ["order"],
}


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({"order": {"sku": "a", "count": 1}}, {}),
        ({}, {"missing": 1}),
        ({"order": {}}, {"missing": 2}),
        ({"order": {"sku": 1, "count": "x", "z": 0}}, {"type": 2, "unexpected": 1}),
        ({"order": [], "y": 1}, {"type": 1, "unexpected": 1}),
        ({"order": {"sku": "a", "count": 2.0}}, {}),
        ({"order": {"sku": "a", "count": True}}, {"type": 1}),
        ({"order": {"sku": "a", "count": 1}, "notes": ["a", 1, None]}, {"type": 2}),
        ({"order": {"sku": "a", "count": 1}, "where": None}, {}),
        ({"order": {"sku": "a", "count": 1}, "where": {}}, {"missing": 1}),
        ({"order": {"sku": "a", "count": 1}, "where": {"city": 1, "town": 2}}, {"type": 1, "unexpected": 1}),
        ({"order": {"sku": "a", "count": 1}, "where": 5}, {"type": 1}),
    ],
)
def test_one_defect_is_one_mismatch(instance: dict[str, Any], expected: dict[str, int]) -> None:
    assert mismatches(NESTED, instance) == Counter(expected)


def test_a_mismatch_says_where_what_and_instead_of_what() -> None:
    (mismatch,) = check_arguments(ToolSpec("buy", parameters=NESTED), {"order": {"sku": "a", "count": "four"}}, 3)
    assert (mismatch.call, mismatch.path, mismatch.expected) == (3, "order.count", "integer")
    assert str(mismatch) == 'call 3 buy.order.count: expected integer, found string "four"'


def test_constraints_are_values_and_not_graded() -> None:
    schema = {"type": "object", "properties": {"unit": {"type": "string", "enum": ["C", "F"]}, "n": {"minimum": 1}}}
    assert mismatches(schema, {"unit": "K", "n": 0}) == Counter(value=2)
    assert mismatches(schema, {"unit": 3}) == Counter(value=1, type=1)
    assert mismatches({"properties": {"unit": {"enum": ["C", "F"]}}}, {"unit": 3}) == Counter(type=1)


def test_evidence_of_huge_values_is_short() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "u": {"enum": ["C"]}}}
    for mismatch in check_arguments(ToolSpec("t", parameters=schema), {"n": "x" * 100_000, "u": "y" * 100_000}):
        assert len(str(mismatch)) < 400


@pytest.mark.parametrize("value", [10**30, -(10**4000), 1e308, 2**63, -(2**63) - 1])
def test_numbers_beyond_the_machine_do_not_raise(value: float) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}, "s": {"type": "string"}}}
    assert mismatches(schema, {"n": value}) == Counter()
    assert mismatches(schema, {"s": value}) == Counter(type=1)


# Closing objects ------------------------------------------------------------------------------------------------------


def test_a_tool_without_parameters_takes_none() -> None:
    for more in ({"properties": {}}, {}, {"additionalProperties": False}, {"unevaluatedProperties": False}):
        parameters = {"type": "object", **more}
        assert mismatches(parameters, {"x": 1, "y": 2}) == Counter(unexpected=2)
        assert mismatches(parameters, {}) == Counter()


def test_an_object_without_listed_properties_inside_is_open() -> None:
    schema = {"type": "object", "properties": {"headers": {"type": "object"}}}
    assert mismatches(schema, {"headers": {"anything": 1}}) == Counter()


def test_what_is_said_of_other_properties_stands() -> None:
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}
    assert mismatches(schema, {"b": 1}) == Counter()
    assert mismatches(schema, {"b": "x"}) == Counter(type=1)
    pattern = {"type": "object", "patternProperties": {"^x-": {"type": "string"}}}
    assert mismatches(pattern, {"x-a": 1, "other": 1}) == Counter(type=1)


INTEGER, STRING = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("parameters", "good", "bad"),
    [
        pytest.param(
            {
                "type": "object",
                "properties": {"a": INTEGER, "b": INTEGER},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}],
            [({"a": 1, "z": 1}, "unexpected"), ({}, "missing")],
            id="one-of-two-required",
        ),
        pytest.param(
            {"allOf": [{"properties": {"a": INTEGER}}, {"properties": {"b": INTEGER}, "required": ["b"]}]},
            [{"a": 1, "b": 1}, {"b": 1}],
            [({"b": 1, "z": 1}, "unexpected"), ({"a": 1}, "missing"), ({"a": "x", "b": 1}, "type")],
            id="all-of",
        ),
        pytest.param(
            {
                "anyOf": [
                    {"properties": {"a": INTEGER}, "required": ["a"]},
                    {"properties": {"b": INTEGER}, "required": ["b"]},
                ]
            },
            [{"a": 1}, {"b": 1}],
            [({"a": 1, "z": 1}, "unexpected"), ({"a": "x"}, "type")],
            id="any-of-at-the-top",
        ),
        pytest.param(
            {
                "properties": {"kind": STRING},
                "required": ["kind"],
                "if": {"properties": {"kind": {"const": "x"}}},
                "then": {"properties": {"x": INTEGER}, "required": ["x"]},
                "else": {"properties": {"y": INTEGER}},
            },
            [{"kind": "x", "x": 1}, {"kind": "y", "y": 1}, {"kind": "y"}],
            [({"kind": "x"}, "missing"), ({"kind": "y", "z": 1}, "unexpected"), ({"kind": "y", "x": 1}, "unexpected")],
            id="if-then-else",
        ),
        pytest.param(
            {
                "properties": {"card": STRING},
                "dependentSchemas": {"card": {"properties": {"cvc": INTEGER}, "required": ["cvc"]}},
            },
            [{}, {"card": "1", "cvc": 3}],
            [({"card": "1"}, "missing"), ({"card": "1", "cvc": 3, "z": 1}, "unexpected")],
            id="dependent",
        ),
    ],
)
@pytest.mark.parametrize("where", ["top", "inside", "in a list"])
def test_schemas_about_one_object_close_it_together(
    parameters: dict[str, Any], good: list[Any], bad: list[tuple[Any, str]], where: str
) -> None:
    def placed(value: Any) -> Any:
        return value if where == "top" else {"it": value if where == "inside" else [value]}

    schema = parameters
    if where != "top":
        inner = {"type": "object", **parameters}
        schema = {
            "type": "object",
            "properties": {"it": inner if where == "inside" else {"type": "array", "items": inner}},
        }
    for instance in good:
        assert mismatches(schema, placed(instance)) == Counter()
    for instance, kind in bad:
        assert mismatches(schema, placed(instance)) == Counter({kind: 1})


def test_recursive_definitions() -> None:
    node = {
        "type": "object",
        "properties": {"v": INTEGER, "next": {"$ref": "#/$defs/Node"}},
        "required": ["v"],
    }
    schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    assert mismatches(schema, {"node": {"v": 1, "next": {"v": 2}}}) == Counter()
    found = check_arguments(
        ToolSpec("t", parameters=schema), {"node": {"v": 1, "next": {"v": "x", "w": 0, "next": {}}}}
    )
    assert {(m.kind, m.path) for m in found} == {
        ("type", "node.next.v"),
        ("unexpected", "node.next.w"),
        ("missing", "node.next.next.v"),
    }


# Programs: names and references ---------------------------------------------------------------------------------------

TOOLS = {
    spec.name: spec
    for spec in (
        ToolSpec(
            "find",
            parameters={"type": "object", "properties": {"city": STRING}, "required": ["city"]},
            result={
                "type": "object",
                "properties": {
                    "rows": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}},
                    "count": INTEGER,
                    "extra": {},
                },
            },
            result_field="rows",
        ),
        ToolSpec(
            "filter",
            parameters=normalise(
                {
                    "type": "dict",
                    "properties": {
                        "rows": {"type": "pandas.DataFrame"},
                        "limit": {"type": "integer"},
                        "name": {"type": "string"},
                        "many": {"type": "array", "items": {"type": "float"}},
                        "maybe": {"anyOf": [{"type": "pandas.DataFrame"}, {"type": "null"}]},
                        "pair": {"type": "array", "uniqueItems": True},
                    },
                }
            ),
        ),
        ToolSpec("secret", hidden=True),
        ToolSpec("untyped"),
    )
}


def kinds(**arguments_of_filter: Any) -> Counter[str]:
    program = Program((Call(0, "find", {"city": "Oslo"}), Call(1, "filter", arguments_of_filter)))
    found = validate(program, TOOLS)
    return Counter(m.kind for group in (found.names, found.parameters, found.types, found.values) for m in group)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"rows": Reference(0)}, {}),
        ({"rows": Reference(0, ("rows",))}, {}),
        ({"rows": Reference(0, ("count",))}, {"type": 1}),
        ({"rows": Reference(0, ("extra",))}, {}),
        ({"rows": Reference(0, ("no", "such"))}, {}),
        ({"rows": Reference(7)}, {}),
        ({"rows": [{"price": 1}]}, {"type": 1}),
        ({"rows": "API_RESPONSE_0"}, {"type": 1}),
        ({"maybe": Reference(0)}, {}),
        ({"maybe": None}, {}),
        ({"maybe": [{}]}, {"type": 1}),
        ({"limit": Reference(0, ("count",))}, {}),
        ({"limit": Reference(0, ("rows", 0, "price"))}, {}),
        ({"limit": Reference(0)}, {"type": 1}),
        ({"limit": "API_RESPONSE_0"}, {"type": 1}),
        ({"limit": "API_RESPONSE_0.count and more"}, {"type": 1}),
        ({"limit": "\ufdd0"}, {"type": 1}),
        ({"many": ["\ufdd0API_RESPONSE_0", Reference(0, ("count",))]}, {"type": 1}),
        ({"name": "API_RESPONSE_0"}, {}),
        ({"many": [1, Reference(0, ("count",)), Reference(0)]}, {"type": 1}),
        ({"many": [1, "x", Reference(0, ("count",))]}, {"type": 1}),
        ({"pair": [Reference(0), Reference(0, ("count",))]}, {}),
        ({"zzz": Reference(0)}, {"unexpected": 1}),
    ],
)
def test_references_have_the_type_that_the_result_states(value: dict[str, Any], expected: dict[str, int]) -> None:
    assert kinds(**value) == Counter(expected)


@pytest.mark.parametrize("key", ["a[", "a[x]", "a]b", "[", "]", "[0]", ".", "a..b", "[" + "9" * 5000 + "]", "a[٣]", ""])
def test_names_of_model_text_never_raise(key: str) -> None:
    """Such names are looked up where a reference stands under them."""
    assert kinds(**{key: Reference(0)}) == Counter(unexpected=1)
    assert kinds(name="x", many={key: Reference(0)}) == Counter(type=1)


def test_names_are_checked_against_the_offered_tools() -> None:
    program = Program((Call(0, "find", {"city": "Oslo"}), Call(1, "fnid", {"x": 1}), Call(2, "secret", {})))
    found = validate(program, TOOLS)
    assert [(m.call, m.tool) for m in found.names] == [(1, "fnid"), (2, "secret")]
    assert not found.valid
    assert (found.parameters, found.types, found.values) == ((), (), ())


def test_a_program_without_mismatches_is_valid() -> None:
    assert (
        validate(Program((Call(0, "find", {"city": "Oslo"}), Call(1, "filter", {"rows": Reference(0)}))), TOOLS)
        is VALID
    )
    assert validate(Program(()), TOOLS).valid


def test_what_is_required_but_not_listed_is_expected() -> None:
    schema = {"type": "object", "properties": {"a": INTEGER}, "required": ["a", "b"]}
    assert mismatches(schema, {"a": 1, "b": 2}) == Counter()
    assert mismatches(schema, {"a": 1, "c": 2}) == Counter(missing=1, unexpected=1)
    assert mismatches({**schema, "additionalProperties": False}, {"a": 1, "b": 2}) == Counter(unexpected=1)


# Dialects -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (
            {"type": "dict", "properties": {"a": {"type": "float"}}},
            {"type": "object", "properties": {"a": {"type": "number"}}},
        ),
        ({"type": "tuple", "items": {"type": "int"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "ArrayList", "items": {"type": "Bool"}}, {"type": "array", "items": {"type": "boolean"}}),
        ({"type": "HashMap"}, {"type": "object"}),
        ({"type": "any", "description": "x"}, {"description": "x"}),
        ({"type": "", "description": "x"}, {"description": "x"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": ["int", "integer", "float"]}, {"type": ["integer", "number"]}),
        ({"type": ["any", "string"]}, {}),
        ({"type": "pandas.DataFrame"}, {"type": "array", TABLE: True, "items": {"type": "object"}}),
        (
            {"type": "dict", "index": "Rows", "properties": {"index": {"type": "String"}}},
            {"type": "object", "properties": {"index": {"type": "string"}}},
        ),
        (
            {"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
            {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
        ),
        (
            {"properties": {"required": {"type": "boolean"}, "type": {"type": "str"}}},
            {"properties": {"required": {"type": "boolean"}, "type": {"type": "string"}}},
        ),
        ({"items": [{"type": "int"}, {"type": "str"}]}, {"prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        ({"anyOf": [{"type": "float"}, {"type": "none"}]}, {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        ({"properties": "nonsense"}, {"properties": "nonsense"}),
    ],
)
def test_dialects(dialect: dict[str, Any], expected: dict[str, Any]) -> None:
    before = json.dumps(dialect)
    assert normalise(dialect) == expected
    assert normalise(expected) == expected
    assert json.dumps(dialect) == before


@given(schemas(st.booleans(), choices=True))
def test_json_schema_is_its_own_dialect(schema: dict[str, Any]) -> None:
    assert normalise(schema) == schema


def test_definitions_are_inlined() -> None:
    point = {"type": "object", "title": "Point", "properties": {"x": INTEGER, "title": STRING}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Point"}, "b": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}},
        "$defs": {"Point": point},
    }
    plain = {"type": "object", "properties": {"x": INTEGER, "title": STRING}}
    assert inline_definitions(schema) == {
        "type": "object",
        "properties": {"a": plain, "b": {"anyOf": [plain, {"type": "null"}]}},
    }
    recursive = {
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}},
    }
    assert mismatches(inline_definitions(recursive), {"n": {"n": {"n": {}}}}) == Counter()


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "strnig"},
        {"properties": "nonsense"},
        {"required": "a"},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"$ref": Path(__file__).as_uri()}}},
    ],
)
def test_a_schema_that_is_none_names_the_tool(parameters: dict[str, Any]) -> None:
    for spec in (ToolSpec("broken", parameters=parameters), ToolSpec("broken", result=parameters)):
        with pytest.raises(DataError, match=r"broken.*not a valid schema"):
            _ = spec.compiled


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.0, "integer"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ((), "array"),
        ({}, "object"),
    ],
)
def test_json_types(value: Any, expected: str) -> None:
    assert json_type(value) == expected


# Official definitions -------------------------------------------------------------------------------------------------


def rows(path: Path) -> Iterator[Any]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    if text.lstrip().startswith("["):
        yield from json.loads(text)
    else:
        yield from (json.loads(line) for line in text.splitlines() if line.strip())


def compiles(spec: ToolSpec) -> None:
    jsonschema.Draft202012Validator.check_schema(spec.parameters)
    listed = set(spec.parameters.get("properties", {}))
    empty = check_arguments(spec, {})
    assert {m.path for m in empty if m.kind == "missing"} == set(spec.parameters.get("required", ()))
    assert "zz zz" not in listed
    assert any(m.kind == "unexpected" for m in check_arguments(spec, {"zz zz": 1}))
    assert ToolSpec.from_openai(spec.to_openai()).parameters == spec.parameters


def test_every_official_definition_of_depthbench_compiles(official_depthbench: Path) -> None:
    definitions = json.loads((official_depthbench / "function_definitions.json").read_text(encoding="utf-8"))
    assert len(definitions) == 163
    for name, definition in definitions.items():
        spec = ToolSpec.from_tier({"name": name, **definition})
        compiles(spec)
        assert spec.result_field == definition["returns"].get("index")
        assert spec.result is not None


def test_every_official_definition_of_bfcl_compiles(official_data: Path) -> None:
    folders = [official_data / "bfcl" / version for version in ("v3_git", "v4_package")]
    if not all(folder.is_dir() for folder in folders):
        pytest.skip("the official BFCL files are not here")
    seen: set[str] = set()
    for folder in folders:
        for path in sorted([*folder.glob("BFCL_*.json*"), *folder.glob("multi_turn_func_doc/*.json")]):
            for row in rows(path):
                for definition in row.get("function", []) if "question" in row else [row]:
                    text = json.dumps(definition, sort_keys=True)
                    if text not in seen:
                        seen.add(text)
                        compiles(ToolSpec.from_tier(definition))
    assert len(seen) > 1500


def test_every_reference_is_marked_with_its_text() -> None:
    texts = [f"API_RESPONSE_{number}{path}" for number in (0, 1, 99, 100, 123456789) for path in ("", ".a", "[0].b")]
    texts += ["API_RESPONSE_one", "API_RESPONSE_", "API_RESPONSE_-1"]
    arguments = {"top": [revive(text) for text in texts], "in": {text: revive(text) for text in texts}, "text": "x"}
    marked = [f"{MARK}{text}" for text in texts]
    assert mark_references(arguments) == {"top": marked, "in": dict(zip(texts, marked, strict=True)), "text": "x"}
