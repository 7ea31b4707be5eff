"""The released benchmark's backend: exceptions that stand inside results, and what ``[]`` meant."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.walk import execute
from callwright_plugins.recorded.official_backend import OfficialBackend

TABLE = {"type": "pandas.DataFrame"}
RESULT = {"type": "dict", "index": "Restaurants", "properties": {"Restaurants": TABLE}}


def definition(*tables: str, **others: Any) -> dict[str, Any]:
    properties = {**dict.fromkeys(tables, TABLE), **others}
    return {"parameters": {"type": "dict", "properties": properties, "required": list(properties)}, "returns": RESULT}


TEXT, FLOAT = {"type": "string"}, {"type": "float"}
DEFINITIONS = {
    "FindRestaurantsByLocation": definition(location=TEXT),
    "FilterByOpeningHours": definition("restaurants", time=TEXT),
    "FilterByRatings": definition("restaurants", ratings=FLOAT),
    "FilterByCuisine": definition("restaurants", cuisine=TEXT),
    "GetTime": {"parameters": {"type": "dict", "properties": {}}},
    "Say": definition(text={}),
}
EXCEPTION = {"status_code": 500, "error": {"__repr__": "ValueError('no such time')"}}
NOTHING: dict[str, Any] = {"status_code": 200, "Restaurants": []}
SOME = {"status_code": 200, "Restaurants": [{"Ratings": 4.0}]}
MISSING = {"status_code": 404, "error": "no such text"}
ROWS: list[tuple[str, dict[str, Any], Any]] = [
    ("GetTime", {}, EXCEPTION),
    ("Say", {"text": EXCEPTION}, {"status_code": 200, "Restaurants": "said"}),
    ("Say", {"text": "?"}, MISSING),
    ("Say", {"text": []}, {"status_code": 200, "Restaurants": "nothing"}),
    ("FindRestaurantsByLocation", {"location": "Rome"}, SOME),
    ("FindRestaurantsByLocation", {"location": "Nowhere"}, NOTHING),
    ("FilterByOpeningHours", {"restaurants": [{"Ratings": 4.0}], "time": "9:00"}, NOTHING),
    ("FilterByOpeningHours", {"restaurants": [], "time": "9:00"}, NOTHING),
    ("FilterByRatings", {"restaurants": [], "ratings": 4.5}, NOTHING),
    ("FilterByRatings", {"restaurants": [], "ratings": "high"}, {"status_code": 422, "error": "not a number"}),
    ("FilterByCuisine", {"restaurants": [], "cuisine": "any"}, NOTHING),
]


@pytest.fixture
def backend(tmp_path: Path) -> OfficialBackend:
    (tmp_path / "function_definitions.json").write_text(json.dumps(DEFINITIONS))
    rows = [
        {"scenario": "", "tool": tool, "arguments": arguments, "status": "ok", "value": value}
        for tool, arguments, value in ROWS
    ]
    (tmp_path / "cassette.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return OfficialBackend(tmp_path, tmp_path / "function_definitions.json")


def reward(backend: OfficialBackend, recipe: str, calls: dict[str, Any], *answer: Any, returns: str = "one") -> Any:
    task = cw.Task(id="t", query="?", tools=backend.tools, answer=cw.Answer(answer), environment=backend)
    text = f'<think>so</think>\n<tool_call return="{returns}">{json.dumps(calls)}</tool_call>'
    return cw.reward(recipe).score(task, text)


def filtered(location: str, *filters: dict[str, Any]) -> dict[str, Any]:
    """A search and filters of what it found, one after the other."""
    calls: dict[str, Any] = {"0": {"FindRestaurantsByLocation": {"location": location}}}
    for number, one in enumerate(filters):
        ((tool, arguments),) = one.items()
        calls[str(number + 1)] = {tool: {"restaurants": f"API_RESPONSE_{number}", **arguments}}
    return calls


OPEN, RATED = {"FilterByOpeningHours": {"time": "9:00"}}, {"FilterByRatings": {"ratings": 4.5}}
KIND = {"FilterByCuisine": {"cuisine": "any"}}


def test_a_500_that_holds_an_exception_did_not_execute(backend: OfficialBackend) -> None:
    outcome = backend.open().call("GetTime", {})
    assert (outcome.kind, outcome.code, outcome.value) == ("execution_error", "ValueError", EXCEPTION)
    calls = {"0": {"GetTime": {}}, "1": {"Say": {"text": "?"}}}
    assert reward(backend, "tier", calls, MISSING).total == pytest.approx(0.4)
    # documented errors are results, and may be the right answer
    assert reward(backend, "tier", {"0": {"Say": {"text": "?"}}}, MISSING).total == 1.0


def test_the_released_code_minds_an_exception_only_where_it_is_returned(backend: OfficialBackend) -> None:
    calls = {"0": {"GetTime": {}}, "1": {"Say": {"text": "?"}}}
    released = reward(backend, "tier-released", calls, MISSING)
    assert released.scores["execution"].score.full
    returned = reward(backend, "tier-released", calls, MISSING, returns="all")
    assert returned.scores["execution"].score.value == 0
    handed_on = {"0": {"GetTime": {}}, "1": {"Say": {"text": "API_RESPONSE_0"}}}
    found = reward(backend, "tier-released", handed_on, {"status_code": 200, "Restaurants": "said"})
    assert found.masked is None
    assert found.scores["execution"].score.full


@pytest.mark.parametrize(
    ("calls", "kinds"),
    [
        (filtered("Rome", OPEN, RATED), ["ok", "ok", "ok"]),  # no rows are left, the columns are
        (filtered("Nowhere", RATED, OPEN), ["ok", "ok", "ok"]),
        (filtered("Nowhere", OPEN), ["ok", "ok"]),
        (filtered("Nowhere", OPEN, RATED), ["ok", "ok", "execution_error"]),
        (filtered("Nowhere", KIND, OPEN, RATED), ["ok", "ok", "ok", "execution_error"]),
        (filtered("Nowhere", OPEN, KIND), ["ok", "ok", "execution_error"]),
        (filtered("Nowhere", OPEN, OPEN, RATED), ["ok", "ok", "ok", "execution_error"]),
        (filtered("Nowhere", OPEN, {"FilterByRatings": {"ratings": "high"}}), ["ok", "ok", "ok"]),
    ],
)
def test_a_table_without_columns_is_no_table_without_rows(
    backend: OfficialBackend, calls: dict[str, Any], kinds: list[str]
) -> None:
    program = cw.parser("json").parse(f'<think></think><tool_call return="one">{json.dumps(calls)}</tool_call>')
    assert isinstance(program, cw.Program)
    trace = execute(program, backend, backend.tools)
    assert [record.outcome.kind for record in trace.records] == kinds
    for copied in (backend, pickle.loads(pickle.dumps(backend))):
        assert execute(program, copied, backend.tools) == trace
    expected = {"ok": 1.0, "execution_error": 0.4}[kinds[-1]] - (0.025 if "high" in str(calls) else 0)
    assert reward(backend, "tier", calls, trace.records[-1].outcome.value).total == pytest.approx(expected)


def test_an_empty_list_of_the_model_is_no_table(backend: OfficialBackend) -> None:
    session = backend.open()
    outcome = session.call("FilterByRatings", {"restaurants": [], "ratings": 4.5})
    assert outcome.value == {"status_code": 422, "error": "Parameter 'restaurants' must be of type DataFrame, got list"}
    assert session.call("FilterByRatings", {"restaurants": [], "ratings": "high"}).value["error"] == "not a number"
    assert session.call("Say", {"text": []}).value["Restaurants"] == "nothing"  # which asks for no table
    assert session.call("FilterByRatings", {"restaurants": [], "ratings": 1.0}).code == "not_recorded"
    calls = filtered("Rome", OPEN)
    calls["1"]["FilterByOpeningHours"]["restaurants"] = []
    assert reward(backend, "tier", calls, NOTHING).total == pytest.approx(0.475)
