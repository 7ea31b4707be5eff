"""Results of NumPy, PyTorch and pandas: numbers and arrays become Python's, anything else is named."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer

import callwright as cw
from callwright.errors import ComponentError
from callwright.tools import FunctionTool

numpy = pytest.importorskip("numpy")


@dataclass
class Card:
    count: int
    shares: list[float]


def returning(value: Any, annotation: Any = None) -> FunctionTool:
    def give() -> Any:
        """Give what it is."""
        return value

    give.__annotations__ = {} if annotation is None else {"return": annotation}
    return cw.tool(give)


@pytest.mark.parametrize(
    ("value", "annotation", "written"),
    [
        (numpy.int64(3), int, 3),
        (numpy.float64(1.5), float, 1.5),
        (numpy.float32(0.5), None, 0.5),
        (numpy.longdouble(1.5), float, 1.5),
        ({"all": numpy.array([0.5], dtype=numpy.longdouble)}, None, {"all": [0.5]}),
        (numpy.bool_(True), bool, True),
        (numpy.str_("a"), str, "a"),
        (numpy.array([[1, 2], [3, 4]]), list[list[int]], [[1, 2], [3, 4]]),
        ({"mean": numpy.float32(0.5), "all": [numpy.int8(1)]}, dict[str, Any], {"mean": 0.5, "all": [1]}),
        ({numpy.int64(1): (numpy.int64(2),)}, None, {"1": [2]}),
        ({numpy.int64(30), numpy.int64(4)}, set[int], [4, 30]),
        (Card(numpy.int64(3), numpy.zeros(2)), Card, {"count": 3, "shares": [0.0, 0.0]}),
        (numpy.array([numpy.int64(1), None, "x"], dtype=object), None, [1, None, "x"]),
        (numpy.datetime64("2026-03-02T09:00:00", "ns"), None, "2026-03-02T09:00:00.000000000"),
    ],
)
def test_numbers_and_arrays_become_those_of_python(value: Any, annotation: Any, written: Any) -> None:
    found = returning(value, annotation).call(None, {})
    assert found == written
    assert json.dumps(found) == json.dumps(written)
    outcome = cw.environment("given", tools=[returning(value, annotation)]).open().call("give", {})
    assert (outcome.kind, outcome.value) == ("ok", written)
    assert type(outcome.value) in (int, float, bool, str, list, dict)


class Reading(BaseModel):
    mean: float
    raw: Any = None


class Quiet(BaseModel):
    mean: float

    @field_serializer("mean")
    def _written(self, mean: float) -> float | None:
        return mean if math.isfinite(mean) else None


@pytest.mark.parametrize(
    ("value", "annotation", "said"),
    [
        (math.nan, float, "nan"),
        (-math.inf, None, "-inf"),
        ({"mean": math.nan}, dict[str, float], "nan"),
        ({"all": [1.0, (math.inf,)]}, None, "inf"),
        ([Card(1, [math.nan])], list[Card], "nan"),
        (Reading(mean=math.nan), Reading, "nan"),
        (Reading(mean=1, raw=[None, math.nan]), Reading, "nan"),
        (numpy.float64("nan"), float, "nan"),
        (numpy.array([1.0, numpy.inf]), list[float], "inf"),
        (numpy.longdouble("nan"), None, "nan"),
    ],
)
def test_nan_and_infinities_are_a_bug_of_the_tool_wherever_they_stand(value: Any, annotation: Any, said: str) -> None:
    with pytest.raises(ValueError, match=rf"^the result is, or holds, {said}, which is no JSON; return None where"):
        returning(value, annotation).call(None, {})
    outcome = cw.environment("given", tools=[returning(value, annotation)]).open().call("give", {})
    assert (outcome.kind, outcome.value) == ("execution_error", None)
    assert f"holds, {said}, which is no JSON" in outcome.message


def test_a_tool_added_to_a_stateful_environment_is_held_to_the_same() -> None:
    environment = cw.environment("banking", toolsets=[[returning({"mean": [math.nan]}, dict[str, Any])]])
    with pytest.raises(ComponentError, match="give raised ValueError: the result is, or holds, nan, which is no JSON"):
        environment.open().call("give", {})


def test_a_model_that_writes_null_itself_is_left_alone() -> None:
    assert returning(Quiet(mean=math.nan), Quiet).call(None, {}) == {"mean": None}
    assert returning({"mean": None}, dict[str, Any]).call(None, {}) == {"mean": None}


def test_those_of_torch_as_well() -> None:
    torch = pytest.importorskip("torch")
    assert returning(torch.tensor(3), int).call(None, {}) == 3
    assert returning({"all": torch.tensor([1.5, 2.0])}).call(None, {}) == {"all": [1.5, 2.0]}
    with pytest.raises(TypeError, match=r"torch\.Tensor of torch\.complex64"):
        returning(torch.zeros(2, dtype=torch.complex64)).call(None, {})


class Own:
    """Nothing that anybody knows."""


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Own(), "Own"),
        ([object()], "type object,"),
        (numpy.array([Own()]), "Own"),
        (numpy.timedelta64(3, "s"), r"numpy\.timedelta64 of timedelta64\[s\]"),
        (numpy.complex64(1), r"numpy\.complex64"),
        (numpy.random.default_rng(0), "Generator"),
    ],
)
def test_what_is_no_json_is_named(value: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"{named}.*which is no JSON; return numbers, texts"):
        returning(value).call(None, {})
    outcome = cw.environment("given", tools=[returning(value)]).open().call("give", {})
    assert (outcome.kind, outcome.code) == ("execution_error", "TypeError")
    assert outcome.undeclared


def test_tables_of_pandas_are_named_and_their_times_are_texts() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1]})
    with pytest.raises(TypeError, match="DataFrame, which is no JSON"):
        returning(table).call(None, {})
    assert returning(table.to_dict("records")).call(None, {}) == [{"a": 1}]
    assert returning(pandas.Timestamp("2026-03-02 09:00")).call(None, {}) == "2026-03-02T09:00:00"


def test_an_array_is_as_large_as_a_result_may_be() -> None:
    with pytest.raises(cw.ToolError, match="1,000,001 numbers") as caught:
        returning(numpy.zeros(1_000_001)).call(None, {})
    assert caught.value.code == "result_too_large"


@cw.tool(read_only=True)
def mean(numbers: list[float]) -> float:
    """The mean."""
    return numpy.mean(numbers)  # type: ignore[no-any-return]


@cw.tool(read_only=True)
async def spread(numbers: list[float]) -> dict[str, Any]:
    """The least and the most."""
    await asyncio.sleep(0)
    return {"both": numpy.array([min(numbers), max(numbers)])}


@cw.tool(read_only=True)
def circle() -> list[Any]:
    """Itself."""
    found: list[Any] = []
    found.append(found)
    return found


def test_tools_that_are_added_to_an_environment_of_rows_give_those_of_python() -> None:
    session = cw.environment("banking", toolsets=[[mean, spread, circle]]).open()
    call: Callable[[str], cw.Outcome] = lambda name: session.call(name, {"numbers": [1.0, 2.0]})  # noqa: E731
    assert (type(call("mean").value), call("mean").value) == (float, 1.5)
    assert call("spread").value == {"both": [1.0, 2.0]}
    assert session.call("circle", {}).code == "result_too_large"
