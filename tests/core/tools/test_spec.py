"""Tools: specifications in every dialect, and plain functions turned into tools."""

from __future__ import annotations

import datetime
import enum
import json
import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import callwright as cw
from callwright.errors import DataError
from callwright.tools.validation import TABLE, check_arguments

# Dialects -------------------------------------------------------------------------------------------------------------

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_openai_definitions_are_read_and_written() -> None:
    wrapped = {"type": "function", "function": {"name": "f", "description": "d", "parameters": PARAMETERS}}
    spec = cw.ToolSpec.from_openai(wrapped)
    assert (spec.name, spec.description, spec.parameters, spec.result) == ("f", "d", PARAMETERS, None)
    assert cw.ToolSpec.from_openai(wrapped["function"]) == spec
    assert spec.to_openai() == wrapped
    assert cw.ToolSpec.from_openai({"name": "g"}).parameters == {"type": "object", "properties": {}}


def test_mcp_tools_are_read_with_their_hints() -> None:
    definition = {
        "name": "f",
        "description": None,
        "inputSchema": PARAMETERS,
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "title": "F"},
    }
    spec = cw.ToolSpec.from_mcp(definition)
    assert (spec.description, spec.parameters) == ("", PARAMETERS)
    assert spec.compiled.result_types(("n",)) == {"integer"}
    assert (spec.read_only, spec.destructive) == (True, False)
    for hints in (None, {}, [], "read only"):
        spec = cw.ToolSpec.from_mcp({**definition, "annotations": hints})
        assert (spec.read_only, spec.destructive, spec.idempotent) == (False, True, False)  # the protocol's defaults


def test_tier_definitions_are_read() -> None:
    spec = cw.ToolSpec.from_tier(
        {
            "name": "FilterByRating",
            "description": "Filter.",
            "parameters": {
                "type": "dict",
                "properties": {"restaurants": {"type": "pandas.DataFrame"}, "rating": {"type": "float"}},
                "required": ["restaurants"],
            },
            "returns": {
                "type": "dict",
                "properties": {"Restaurants": {"type": "pandas.DataFrame"}},
                "index": "Restaurants",
            },
        }
    )
    assert spec.result_field == "Restaurants"
    assert spec.parameters["properties"]["restaurants"][TABLE] is True
    assert spec.compiled.types_at(("rating",)) == {"number"}
    assert spec.compiled.result_types(()) == {"array"}
    assert spec.result is not None
    assert "index" not in spec.result


@pytest.mark.parametrize("read", [cw.ToolSpec.from_openai, cw.ToolSpec.from_mcp, cw.ToolSpec.from_tier])
@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({}, "has no name"),
        ({"name": ""}, "has no name: 'name' is empty, expected a text"),
        ({"name": 3}, "has no name: 'name' is a number, expected a text"),
        ({"label": {"en": "f"}}, "has no name: expected an object with .*, not one with 'label'$"),
        (
            {"name": "f", "parameters": [1], "inputSchema": [1]},
            "the parameters of tool 'f' are not an object but a list",
        ),
    ],
)
def test_what_is_no_definition_is_refused(read: Any, definition: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(definition)


def test_an_openai_wrapper_around_nothing_is_refused() -> None:
    with pytest.raises(DataError, match=r"has no function: expected an object .*, not text"):
        cw.ToolSpec.from_openai({"type": "function", "function": "f"})


# Functions ------------------------------------------------------------------------------------------------------------


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Place(BaseModel):
    city: str
    country: str | None = None


@dataclass
class Forecast:
    place: Place
    degrees: float
    on: datetime.date


@cw.tool(read_only=True, result_field="degrees")
def forecast(
    place: Place,
    on: datetime.date,
    unit: Unit = Unit.CELSIUS,
    hours: list[int] | None = None,
    style: Literal["short", "long"] = "short",
    share: Annotated[float, Field(ge=0, le=1)] = 0.5,
) -> Forecast:
    """Weather forecast for a place on a day.

    In degrees.
    """
    return Forecast(place, 20.0 if unit is Unit.CELSIUS else 68.0, on)


def test_the_specification_is_made_of_the_function() -> None:
    spec = forecast.spec
    assert spec.name == "forecast"
    assert spec.description == "Weather forecast for a place on a day.\n\nIn degrees."
    assert (spec.read_only, spec.destructive, spec.result_field) == (True, False, "degrees")
    assert spec.parameters["required"] == ["place", "on"]
    assert list(spec.parameters["properties"]) == ["place", "on", "unit", "hours", "style", "share"]
    assert "$ref" not in json.dumps(spec.parameters)
    assert spec.parameters["properties"]["place"]["required"] == ["city"]
    assert spec.compiled.result_types(()) == {"number"}
    assert spec.compiled.result_types(("place", "city")) == {"string"}
    jsonschema.Draft202012Validator.check_schema(spec.parameters)


@pytest.mark.parametrize(
    ("given_arguments", "fits"),
    [
        ({"place": {"city": "Oslo"}, "on": "2026-01-02"}, True),
        ({"place": {"city": "Oslo", "country": None}, "on": "2026-01-02", "unit": "F", "hours": [1, 2]}, True),
        ({"place": {"city": "Oslo", "town": "x"}, "on": "2026-01-02"}, False),
        ({"place": "Oslo", "on": "2026-01-02"}, False),
        ({"place": {"city": "Oslo"}}, False),
        ({"place": {"city": "Oslo"}, "on": "2026-01-02", "unit": "K"}, False),
        ({"place": {"city": "Oslo"}, "on": "2026-01-02", "hours": ["1"]}, False),
        ({"place": {"city": "Oslo"}, "on": "2026-01-02", "share": 2}, False),
        ({"place": {"city": "Oslo"}, "on": "2026-01-02", "more": 2}, False),
    ],
)
def test_arguments_are_checked_and_turned_into_pythons_values(given_arguments: dict[str, Any], fits: bool) -> None:
    assert (check_arguments(forecast.spec, given_arguments) == ()) is fits
    if fits:
        result = forecast.call(None, given_arguments)
        assert result["place"]["city"] == "Oslo"
        assert result["on"] == "2026-01-02"
        assert json.loads(json.dumps(result)) == result
        jsonschema.validate(result, dict(forecast.spec.result or {}))


def test_a_tool_is_still_the_function() -> None:
    found = forecast(Place(city="Oslo"), datetime.date(2026, 1, 2), unit=Unit.FAHRENHEIT)
    assert found.degrees == 68.0


def test_the_state_is_the_first_positional_only_parameter() -> None:
    @cw.tool
    def pay(bank: dict[str, float], /, amount: float = 1.0) -> float:
        bank["balance"] -= amount
        return bank["balance"]

    assert list(pay.spec.parameters["properties"]) == ["amount"]
    assert pay.state == "bank"
    bank = {"balance": 10.0}
    assert pay.call(bank, {"amount": 3}) == 7.0
    assert pay.call(bank, {}) == 6.0, "a default is the function's own"
    assert bank == {"balance": 6.0}


def test_names_that_pydantic_reserves_are_names_like_any_other() -> None:
    @cw.tool
    def odd(copy: bool, json: str = "a", model_name: str = "m", schema: int = 1, _private: int = 2) -> list[Any]:
        return [copy, json, model_name, schema, _private]

    given_arguments = {"copy": True, "json": "b", "model_name": "n", "schema": 3, "_private": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(odd.spec.parameters["properties"]) == set(given_arguments)
        assert check_arguments(odd.spec, given_arguments) == ()
        assert odd.call(None, given_arguments) == [True, "b", "n", 3, 4]


def untyped(a) -> int:  # type: ignore[no-untyped-def]
    return 0


def starred(*a: int) -> int:
    return 0


def double_starred(**a: int) -> int:
    return 0


def two_states(a: int, b: int, /) -> int:
    return 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (untyped, "tool 'untyped': parameter 'a' has no type annotation"),
        (starred, "name every parameter"),
        (double_starred, "name every parameter"),
        (two_states, "only the first parameter, the state, may be positional-only"),
    ],
)
def test_what_has_no_schema_is_refused(function: Any, message: str) -> None:
    with pytest.raises(cw.UsageError, match=message):
        cw.tool(function)


def test_a_tool_may_return_nothing_or_anything() -> None:
    @cw.tool(name="other", description="Else.", destructive=True)
    def first(x: int) -> None:
        """Ignored."""

    @cw.tool
    def second(x: int):  # type: ignore[no-untyped-def]
        """Anything."""
        return {"x": (x,)}

    assert (first.spec.name, first.spec.description, first.spec.destructive) == ("other", "Else.", True)
    assert first.call(None, {"x": 1}) is None
    assert second.spec.result is None
    assert second.call(None, {"x": 1}) == {"x": [1]}


numbers = st.one_of(st.integers(-5, 5), st.floats(-2, 2), st.booleans(), st.text(max_size=2), st.none())


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), numbers, max_size=3))
def test_whatever_fits_the_schema_can_be_called(given_arguments: dict[str, Any]) -> None:
    @cw.tool
    def add(a: int, b: float = 0.5) -> float:
        return a + b

    if check_arguments(add.spec, given_arguments) == ():
        assert add.call(None, given_arguments) == given_arguments["a"] + given_arguments.get("b", 0.5)
