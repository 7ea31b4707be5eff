"""Eight tools and seven tasks that can be worked out on paper, for the adversarial completions and the properties.

One plain function answers every call, for Callwright as for the oracle: its answers are data, not a part of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specification_oracle import Came, Question, Tool

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.tools.spec import ToolSpec

TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
ROWS = {"Rome": [{"n": "a", "stars": 3}, {"n": "b", "stars": 5}], "Oslo": [{"n": "c", "stars": 4}]}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


#: TIER's own dialect, from which Callwright makes its specifications.
_TABLE = {"type": "pandas.DataFrame"}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "Locate": {
        "parameters": _object([]),
        "returns": {**_object([], place=TEXT), "index": "place"},
    },
    "Find": {
        "parameters": _object(
            ["place"], place=TEXT, limit=INTEGER, radius=NUMBER, mode={"type": "string", "enum": ["near", "far"]}
        ),
        "returns": {**_object([], rows=_TABLE), "index": "rows"},
    },
    "Filter": {
        "parameters": _object(["rows", "least"], rows=_TABLE, least=NUMBER),
        "returns": {**_object([], rows=_TABLE), "index": "rows"},
    },
    "Lookup": {
        "parameters": _object(["code"], code=INTEGER),
        "returns": {**_object([], title=TEXT), "index": "title"},
    },
    "Search": {  # the same question, asked in another way
        "parameters": _object(["number"], number=INTEGER),
        "returns": {**_object([], title=TEXT), "index": "title"},
    },
    "Echo": {
        "parameters": _object(["text"], text=TEXT),
        "returns": {**_object([], text=TEXT), "index": "text"},
    },
    "Forget": {"parameters": _object(["name"], name=TEXT), "returns": {"type": "null"}},
    "Order": {
        "parameters": _object(
            ["buyer"],
            buyer=_object(["name", "city"], name=TEXT, city=TEXT),
            items={"type": "array", "items": _object(["sku", "qty"], sku=TEXT, qty=INTEGER)},
        ),
    },
}


def _schema(definition: dict[str, Any]) -> dict[str, Any]:
    if definition.get("type") == "pandas.DataFrame":
        return {"type": "array", "table": True}
    found = {name: value for name, value in definition.items() if name != "index"}
    if "properties" in found:
        found["properties"] = {name: _schema(inner) for name, inner in found["properties"].items()}
    if "items" in found:
        found["items"] = _schema(found["items"])
    return found


TOOLS = {
    name: Tool(
        _schema(definition["parameters"]),
        _schema(definition["returns"]) if "returns" in definition else None,
        definition.get("returns", {}).get("index"),
    )
    for name, definition in DEFINITIONS.items()
}
SPECS = {name: ToolSpec.from_tier({"name": name, **definition}) for name, definition in DEFINITIONS.items()}


def _whole(value: Any) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float)


def world(tool: str, arguments: dict[str, Any]) -> Came:
    """What a call comes to. Arguments that do not fit are a failure; an unknown place is a documented error."""
    given = dict(arguments)
    if tool == "Forget" and isinstance(given.get("name"), str) and len(given) == 1:
        return Came("result", None)
    if tool == "Locate" and not given:
        return Came("result", {"place": "Rome"})
    if tool == "Find" and isinstance(given.get("place"), str) and given.keys() <= {"place", "limit", "radius", "mode"}:
        if not all(_whole(given[name]) for name in given.keys() & {"limit"}) or given.get("mode", "near") == "sideways":
            return Came("failed")
        if not all(_number(given[name]) for name in given.keys() & {"radius"}):
            return Came("failed")
        rows = ROWS.get(given["place"])
        return Came("result", {"status": 404, "error": "no such place"} if rows is None else {"rows": rows})
    if tool == "Filter" and given.keys() == {"rows", "least"} and _number(given["least"]):
        rows = given["rows"]
        if isinstance(rows, list) and all(isinstance(row, dict) and _number(row.get("stars")) for row in rows):
            return Came("result", {"rows": [row for row in rows if row["stars"] >= given["least"]]})
    if tool in ("Lookup", "Search"):
        (name,) = TOOLS[tool].parameters["required"]
        if given.keys() == {name} and _whole(given[name]):
            return Came("result", {"title": f"title {int(given[name])}"[:40]})
    if tool == "Echo" and given.keys() == {"text"} and isinstance(given["text"], str):
        return Came("result", {"text": given["text"]})
    if tool == "Order" and _is_order(given):
        return Came("result", {"order": given})
    return Came("failed")


def _is_order(given: dict[str, Any]) -> bool:
    buyer, items = given.get("buyer"), given.get("items", [])
    if not (given.keys() <= {"buyer", "items"} and isinstance(buyer, dict) and buyer.keys() == {"name", "city"}):
        return False
    if not all(isinstance(text, str) for text in buyer.values()) or not isinstance(items, list):
        return False
    return all(
        isinstance(item, dict)
        and item.keys() == {"sku", "qty"}
        and isinstance(item["sku"], str)
        and _whole(item["qty"])
        for item in items
    )


class World:
    """The function as an environment of Callwright."""

    name = "adversarial"
    tools = SPECS
    pure = True

    def open(self, scenario: str = "", seed: int = 0) -> World:
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        came = world(tool, arguments)
        if came.kind == "result":
            return Outcome("ok", came.value)
        return Outcome("execution_error", None, "failed", "the arguments do not fit")

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Case:
    """A task for Callwright and the same question for the oracle; ``gold`` is the reference program."""

    task: cw.Task
    question: Question
    gold: cw.Program


def case(name: str, gold: cw.Program, *expected: Any) -> Case:
    task = cw.Task(
        id=name,
        query="?",
        tools=SPECS,
        answer=cw.Answer(expected),
        environment=World(),
        returns=gold.returns,
        program=gold,
    )
    return Case(task, Question(TOOLS, expected, world), gold)


def program(*calls: tuple[str, dict[str, Any]], returns: Any = "one") -> cw.Program:
    return cw.Program(tuple(cw.Call(number, *call) for number, call in enumerate(calls)), returns)


BEST = {"rows": [{"n": "b", "stars": 5}]}
CASES = {
    one.task.id: one
    for one in (
        case("number", program(("Lookup", {"code": 255})), {"title": "title 255"}),
        case(
            "chain",
            program(
                ("Locate", {}),
                ("Find", {"place": cw.Reference(0)}),
                ("Filter", {"rows": cw.Reference(1), "least": 4.5}),
            ),
            BEST,
        ),
        case(
            "parallel",
            program(("Lookup", {"code": 1}), ("Lookup", {"code": 2}), returns="all"),
            {"title": "title 1"},
            {"title": "title 2"},
        ),
        case("words", program(("Echo", {"text": "R&D <b>"})), {"text": "R&D <b>"}),
        case(
            "order",
            program(("Order", {"buyer": {"name": "Ada", "city": "Rome"}, "items": [{"sku": "s1", "qty": 2}]})),
            {"order": {"buyer": {"name": "Ada", "city": "Rome"}, "items": [{"sku": "s1", "qty": 2}]}},
        ),
        case("null", program(("Forget", {"name": "Ada"})), None),
        case("nothing", program()),
    )
}
