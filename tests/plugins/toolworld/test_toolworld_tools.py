"""Every tool with good, boundary and bad arguments, against definitions that are not those of the product."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.protocol import Outcome
from callwright.environments.sizes import MOST_VALUE
from callwright_plugins.toolworld import world as data
from callwright_plugins.toolworld.environment import ToolWorld, read_scenario
from callwright_plugins.toolworld.tools import FILTERS, FUNCTIONS, MULTIPLYING, TWINS

SCENARIO = "Paris|18|EUR|Oslo"
SESSION = ToolWorld().open(SCENARIO)
RESTAURANTS = SESSION.call("FindRestaurants", {"location": "Paris"}).value
DEALERS = SESSION.call("FindDealers", {"location": "Paris"}).value
CARS = SESSION.call("ListCars", {"dealers": DEALERS}).value
NAN, INFINITY = float("nan"), float("inf")

#: Good arguments of every tool.
GOOD: dict[str, dict[str, Any]] = {
    "GetLocation": {},
    "GetHomeCity": {},
    "GetTime": {},
    "GetSunset": {},
    "GetCurrency": {},
    "GetLocalCurrency": {},
    "FindRestaurants": {"location": "Lima"},
    "FindHotels": {"location": "Lima"},
    "FindDealers": {"location": "Lima"},
    "FilterByCuisine": {"restaurants": RESTAURANTS, "cuisine": "Indian"},
    "ExcludeCuisine": {"restaurants": RESTAURANTS, "cuisine": "Indian"},
    "FilterByRating": {"restaurants": RESTAURANTS, "rating": 3},
    "FilterByStars": {"restaurants": RESTAURANTS, "stars": 2},
    "FilterByOpen": {"restaurants": RESTAURANTS, "hour": 12},
    "FilterByClosed": {"restaurants": RESTAURANTS, "hour": 12},
    "FilterByPrice": {"restaurants": RESTAURANTS, "price": 30},
    "GetDish": {"cuisine": "Indian"},
    "ListCars": {"dealers": DEALERS},
    "ListTrucks": {"dealers": DEALERS},
    "FilterByMake": {"cars": CARS, "make": "Ford"},
    "FilterByColour": {"cars": CARS, "colour": "red"},
    "FilterByYear": {"cars": CARS, "year": 2012},
    "GetCountry": {"make": "Ford"},
    "GetTemperature": {"location": "Rome", "hour": 0},
    "GetHumidity": {"location": "Rome", "hour": 23},
    "GetPrice": {"item": "gold"},
    "GetStock": {"item": "gold"},
    "ConvertPrice": {"amount": 50, "currency": "JPY"},
    "GetSum": {"first": 1, "second": 2},
    "GetDifference": {"first": 1, "second": 2},
}


def call(tool: str, **changes: Any) -> Outcome:
    return SESSION.call(tool, {**GOOD[tool], **changes})


def test_the_table_above_has_every_tool(world: ToolWorld) -> None:
    assert GOOD.keys() == world.tools.keys()
    assert len(GOOD) == 30


@pytest.mark.parametrize("tool", GOOD)
def test_good_arguments_and_the_result_fit_the_schemas(tool: str, world: ToolWorld) -> None:
    spec = world.tools[tool]
    jsonschema_rs.Draft202012Validator(spec.parameters).validate(GOOD[tool])
    outcome = call(tool)
    assert (outcome.kind, outcome.code, outcome.message) == ("ok", "", "")
    jsonschema_rs.Draft202012Validator(spec.result).validate(outcome.value)
    assert json.loads(json.dumps(outcome.value)) == outcome.value  # JSON types only: lists, no tuples
    if spec.result_field is not None:
        assert list(outcome.value) == [spec.result_field]
    assert spec.read_only
    assert spec.description.endswith(".")


@pytest.mark.parametrize("tool", GOOD)
def test_a_function_checked_by_pydantic_gives_the_same(tool: str, world: ToolWorld) -> None:
    assert world.functions[tool].call(read_scenario(SCENARIO), GOOD[tool]) == call(tool).value


@pytest.mark.parametrize("tool", [tool for tool, good in GOOD.items() if good])
def test_every_argument_is_needed_and_no_other_is_taken(tool: str) -> None:
    for name in GOOD[tool]:
        outcome = SESSION.call(tool, {key: value for key, value in GOOD[tool].items() if key != name})
        assert (outcome.kind, outcome.code) == ("schema_error", "missing")
        assert name in outcome.message
    outcome = call(tool, extra=1)
    assert (outcome.kind, outcome.code) == ("schema_error", "unexpected")


@pytest.mark.parametrize("tool", [tool for tool, good in GOOD.items() if not good])
def test_tools_without_parameters_take_none(tool: str) -> None:
    assert call(tool, location="Paris").code == "unexpected"


STRINGS = {"location", "cuisine", "make", "colour", "item", "currency"}
NUMBERS = {"rating", "stars", "price", "year", "amount", "first", "second"}
TABLES = {"restaurants", "dealers", "cars"}
BAD: list[tuple[str, str, Any, str]] = [
    *[
        (tool, name, value, code)
        for tool, good in GOOD.items()
        for name in good
        if name in STRINGS
        for value, code in [
            ("Atlantis", "unknown_" + ("city" if name == "location" else name)),
            ("", "unknown_" + ("city" if name == "location" else name)),
            (7, "type"),
            (None, "type"),
            (["Paris"], "type"),
            ({"location": "Paris"}, "type"),
        ]
    ],
    *[
        (tool, name, value, code)
        for tool, good in GOOD.items()
        for name in good
        if name in NUMBERS
        for value, code in [
            ("3", "type"),
            (True, "type"),
            (None, "type"),
            ([3], "type"),
            (NAN, "type"),
            (INFINITY, "type"),
            (10**4000, "out_of_range"),
            (-1_000_000_001, "out_of_range"),
        ]
    ],
    *[
        (tool, "hour", value, code)
        for tool, good in GOOD.items()
        if "hour" in good
        for value, code in [
            (24, "out_of_range"),
            (-1, "out_of_range"),
            (10**4000, "out_of_range"),
            (9.5, "type"),
            (NAN, "type"),
            (INFINITY, "type"),
            ("9", "type"),
            (True, "type"),
        ]
    ],
    *[
        (tool, name, value, code)
        for tool, good in GOOD.items()
        for name in good
        if name in TABLES
        for value, code in [
            ("Paris", "type"),
            ({}, "type"),
            (None, "type"),
            (3, "type"),
            ([1], "type"),
            (["rating"], "type"),
            ([[]], "type"),
            ([{}], "missing_column"),
            ([{"unrelated": 1}], "missing_column"),
        ]
    ],
    ("FilterByRating", "restaurants", [{"rating": "high"}], "not_a_table"),
    ("FilterByOpen", "restaurants", [{"opens": None, "closes": 3}], "not_a_table"),
    ("FilterByRating", "restaurants", CARS, "missing_column"),
    ("FilterByMake", "cars", RESTAURANTS, "missing_column"),
    ("ListCars", "dealers", [{"dealer": "Nobody"}], "unknown_dealer"),
    ("ListCars", "dealers", [{"dealer": []}], "not_a_table"),
]


@pytest.mark.parametrize(("tool", "name", "value", "code"), BAD)
def test_bad_arguments_have_stable_codes(tool: str, name: str, value: Any, code: str) -> None:
    outcome = call(tool, **{name: value})
    kind = "schema_error" if code == "type" else "execution_error"
    assert (outcome.kind, outcome.value, outcome.code) == (kind, None, code)
    assert 0 < len(outcome.message) < 140


def test_an_unknown_tool_is_an_outcome() -> None:
    outcome = SESSION.call("GetLocatio" + "n" * 5000, {})
    assert (outcome.kind, outcome.code) == ("unknown_tool", "unknown_tool")
    assert len(outcome.message) < 100


def test_context_tools_read_the_scenario() -> None:
    session = ToolWorld().open("Tokyo|9|PEN|Rome")
    found = {tool: session.call(tool, {}).value for tool, good in GOOD.items() if not good}
    assert found == {
        "GetLocation": {"location": "Tokyo"},
        "GetHomeCity": {"location": "Rome"},
        "GetTime": {"hour": 9},
        "GetSunset": {"hour": 17},
        "GetCurrency": {"currency": "PEN"},
        "GetLocalCurrency": {"currency": "JPY"},
    }


@pytest.mark.parametrize("city", data.CITIES)
def test_opposite_filters_divide_a_table(city: str) -> None:
    rows = SESSION.call("FindRestaurants", {"location": city}).value
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    pairs: list[tuple[str, str, dict[str, Any]]] = [
        *[("FilterByCuisine", "ExcludeCuisine", {"cuisine": cuisine}) for cuisine in data.CUISINES],
        *[("FilterByOpen", "FilterByClosed", {"hour": hour}) for hour in range(24)],
    ]
    for keep, drop, argument in pairs:
        kept = call(keep, restaurants=rows, **argument).value
        dropped = call(drop, restaurants=rows, **argument).value
        assert [row for row in rows if row in kept] == kept  # the order of the table
        assert sorted(names) == sorted(row["name"] for row in [*kept, *dropped])


def test_thresholds_are_strict() -> None:
    rows = [{"rating": 3, "stars": 3, "price": 3, "year": 3}]
    assert call("FilterByRating", restaurants=rows, rating=3).kind == "empty"
    assert call("FilterByRating", restaurants=rows, rating=2.99).value == rows
    assert call("FilterByStars", restaurants=rows, stars=3).kind == "empty"
    assert call("FilterByPrice", restaurants=rows, price=3).kind == "empty"
    assert call("FilterByPrice", restaurants=rows, price=3.01).value == rows
    assert call("FilterByYear", cars=rows, year=3).kind == "empty"
    assert call("FilterByYear", cars=rows, year=2).value == rows


def test_a_place_is_open_from_its_first_hour_to_before_its_last() -> None:
    rows = [{"opens": 11, "closes": 14}]
    assert [hour for hour in range(24) if call("FilterByOpen", restaurants=rows, hour=hour).value] == [11, 12, 13]
    assert call("FilterByOpen", restaurants=rows, hour=11.0).value == rows  # an integer of JSON


@pytest.mark.parametrize("tool", [*FILTERS, "ListCars", "ListTrucks"])
def test_an_empty_table_is_empty_and_no_error(tool: str) -> None:
    outcome = call(tool, **{next(iter(GOOD[tool])): []})
    assert (outcome.kind, outcome.value, outcome.executed) == ("empty", [], True)


def test_dealers_sell_their_own_cars() -> None:
    for dealer in DEALERS:
        sold = call("ListCars", dealers=[dealer]).value
        assert sold
        assert all(car["id"].startswith(dealer["dealer"] + "-C") for car in sold)
        assert all(car in CARS for car in sold)
    assert len(CARS) == sum(len(call("ListCars", dealers=[dealer]).value) for dealer in DEALERS)


@pytest.mark.parametrize("currency", data.CURRENCIES)
@pytest.mark.parametrize("amount", [0, 1, 50, 99.99, -7, 10**9])
def test_conversion_rounds_down(amount: float, currency: str) -> None:
    exact = Fraction(amount) * data.RATES[currency] / 100
    found = call("ConvertPrice", amount=amount, currency=currency).value["amount"]
    assert found == math.floor(Fraction(amount * data.RATES[currency]) / 100)
    assert abs(found - exact) < 1 + Fraction(1, 10**6)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_sum_and_difference(first: int, second: int) -> None:
    total = call("GetSum", first=first, second=second).value["result"]
    difference = call("GetDifference", first=first, second=second).value["result"]
    assert (total + difference, total - difference) == (2 * first, 2 * second)


def test_hours_that_queries_name_differ_everywhere() -> None:
    for tool in ("GetTemperature", "GetHumidity"):
        values = [call(tool, location=city, hour=hour).value for city in data.CITIES for hour in data.HOURS]
        assert len({json.dumps(value) for value in values}) == len(data.CITIES) * len(data.HOURS)


@pytest.mark.parametrize("tool", TWINS)
def test_twins_take_and_give_the_same_kinds_of_thing(tool: str) -> None:
    def kinds(name: str) -> tuple[Any, ...]:
        spec = FUNCTIONS[name].spec
        result = spec.result or {}
        fields = (result.get("properties") or {}).values()
        taken = [schema["type"] for schema in spec.parameters["properties"].values()]
        return taken, result["type"], [schema["type"] for schema in fields]

    for twin in TWINS[tool]:
        assert kinds(tool) == kinds(twin)
        assert tool in TWINS[twin]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*data.CITIES, "gold"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["dealer", "rating", "x"]), inner),
    max_leaves=5,
)


@settings(max_examples=200)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_no_json_arguments_raise(tool: str, drawn: st.DataObject) -> None:
    before = SESSION.digest()
    names = drawn.draw(st.sets(st.sampled_from([*GOOD[tool], "x"])))
    outcome = SESSION.call(tool, {name: drawn.draw(JSON) for name in names})
    assert outcome.kind in ("ok", "empty", "execution_error", "schema_error")
    assert (outcome.kind in ("execution_error", "schema_error")) == bool(outcome.code)
    assert SESSION.digest() == before


def test_only_rows_that_can_become_more_are_measured() -> None:
    """The results of all other tools are a part of a table that they are given, or of the world."""
    takes_a_table = {
        name
        for name, tool in FUNCTIONS.items()
        if any(schema["type"] == "array" for schema in tool.spec.parameters["properties"].values())
    }
    assert takes_a_table - FILTERS.keys() == MULTIPLYING
    dealer = DEALERS[0]
    for name in sorted(MULTIPLYING):
        rows = SESSION.call(name, {"dealers": [dealer]}).value
        few, many = ([dealer] * count for count in (2, MOST_VALUE // (8 * len(rows))))
        assert SESSION.call(name, {"dealers": few}).value == rows * 2
        assert SESSION.call(name, {"dealers": many}).code == "result_too_large"
