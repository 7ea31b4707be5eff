"""Strict schemas: what is sent accepts what the tool accepts, and what comes back means what the tool means."""

from __future__ import annotations

from typing import Any

import pytest

import callwright as cw
from callwright.errors import CannotExpress
from callwright.tools.strict import strict_parameters, without_left_out

jsonschema = pytest.importorskip("jsonschema", reason="the reference validator")

TOOL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1, "description": "Where."},
        "days": {"type": "integer", "default": 3},
        "unit": {"enum": ["C", "F"]},
        "kind": {"const": "x"},
        "note": {"type": ["string", "null"]},
        "place": {
            "type": "object",
            "properties": {"lat": {"type": "number"}, "name": {"type": "string", "format": "uri"}},
            "required": ["lat"],
        },
        "stops": {
            "type": "array",
            "items": {"type": "object", "properties": {"at": {"$ref": "#/$defs/Time"}, "why": {"type": "string"}}},
        },
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    },
    "required": ["city"],
    "$defs": {"Time": {"type": "object", "properties": {"h": {"type": "integer"}, "m": {"type": "integer"}},
                       "required": ["h"]}},
}  # fmt: skip


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, dict):
        own = [schema] if "object" in str(schema.get("type")) or "properties" in schema else []
        return own + [one for inner in schema.values() for one in objects(inner)]
    return [one for inner in schema for one in objects(inner)] if isinstance(schema, list) else []


def test_every_object_is_closed_and_every_property_required() -> None:
    made = strict_parameters(TOOL)
    found = [one for one in objects(made) if isinstance(one.get("properties"), dict)]
    assert len(found) >= 4
    for one in found:
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])
    assert not {"minLength", "default", "oneOf"} & set(str(made).replace("'", " ").split())
    assert "uri" not in str(made)
    assert TOOL["required"] == ["city"], "the tool's own schema stays as it was"


FULL: dict[str, Any] = {
    "city": "Oslo", "days": 2, "unit": "C", "kind": "x", "note": "n", "place": {"lat": 1.5, "name": "a"},
    "stops": [{"at": {"h": 1, "m": 2}, "why": "w"}], "either": "e",
}  # fmt: skip


@pytest.mark.parametrize("left_out", [(), ("days",), ("unit", "kind", "place"), ("stops", "either", "days"), ("note",)])
def test_a_null_stands_for_an_argument_left_out(left_out: tuple[str, ...]) -> None:
    made = strict_parameters(TOOL)
    sent = {name: None if name in left_out else value for name, value in FULL.items()}
    jsonschema.Draft202012Validator(made).validate(sent)
    meant = without_left_out(sent, TOOL)
    assert meant == {name: value for name, value in sent.items() if name == "note" or name not in left_out}
    jsonschema.Draft202012Validator(TOOL).validate(meant)


def test_nulls_inside_of_objects_lists_and_references_are_left_out_too() -> None:
    sent = {**FULL, "place": {"lat": 1.0, "name": None}, "stops": [{"at": {"h": 1, "m": None}, "why": None}]}
    jsonschema.Draft202012Validator(strict_parameters(TOOL)).validate(sent)
    meant = without_left_out(sent, TOOL)
    assert (meant["place"], meant["stops"]) == ({"lat": 1.0}, [{"at": {"h": 1}}])


def test_a_null_that_nobody_asked_for_stays_the_models_mistake() -> None:
    assert without_left_out({"city": None, "colour": None}, TOOL) == {"city": None, "colour": None}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "keys of any name"),
        ({"type": "object", "properties": {"a": {"type": "object"}}}, "a may have keys of any name"),
        ({"type": "object", "properties": {"a": {}}}, "a may be any value"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "values of any type"),
        ({"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}}, "'allOf'"),
        ({"type": "object", "properties": {"a": {"type": "string", "not": {"const": "b"}}}}, "'not'"),
    ],
)
def test_what_has_no_place_in_the_subset_is_said(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(CannotExpress, match=said):
        strict_parameters(schema)


def test_the_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    with pytest.raises(CannotExpress, match="deeper than 10 levels"):
        strict_parameters(schema)


def with_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """A value as a model that is held to a strict schema must write it."""
    if isinstance(value, dict) and "properties" in schema:
        return {key: with_nulls(value.get(key), inner) for key, inner in schema["properties"].items()}
    return [with_nulls(one, schema["items"]) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["toolworld-mini-v1", "depthbench-v1"])
def test_the_tools_of_the_corpora_are_strict_or_say_why(name: str) -> None:
    """Reference arguments, with a null for whatever they leave out, fit the strict schema and come back the same."""
    corpus = cw.corpus(name)
    strict = 0
    for task in corpus[next(iter(corpus.splits))][:80]:
        for call in task.program.calls if task.program else ():
            spec = task.tools[call.tool]
            if call.located:
                continue
            try:
                made = strict_parameters(spec.parameters)
            except CannotExpress:
                continue
            strict += 1
            sent = with_nulls(call.arguments, made)
            jsonschema.Draft202012Validator(made).validate(sent)
            meant = without_left_out(sent, spec.parameters)
            assert {**meant, **call.arguments} == meant, "nothing is lost"
            assert all(meant[key] is None for key in meant.keys() - call.arguments.keys()), "where null is a value"
    assert strict > 20
