"""The official DepthBench files as the oracle's questions, read in a few lines of plain JSON.

Nothing of Callwright reads them here: a call is looked up by its tool, its arguments as JSON with sorted keys and, for
the four tools that read it, the query's tag. So a slip in the recorded environment cannot hide behind the same slip.

The recording writes ``[]`` for a table without rows, for one that lost its columns too, and for an empty list of the
model. The released scores tell them apart (``wrong_value_str`` and ``empty_list_param``), and so must the world here.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specification_oracle import Came, Question, Tool

#: The parameter ``tag`` of these four says which user asks (released code); gold programs write it out.
TAGGED = ("GetTime", "GetDate", "GetLocation", "GetCurrentLocation")
_TYPES = {"dict": "object", "float": "number"}


def lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def schema(definition: Any) -> dict[str, Any]:
    """TIER's dialect as JSON Schema: ``dict``, ``float``, and tables that no literal can write."""
    found: dict[str, Any] = {}
    kind = definition.get("type")
    if kind == "pandas.DataFrame":
        found = {"type": "array", "table": True}
    elif kind is not None:
        found["type"] = _TYPES.get(kind, kind)
    if "properties" in definition:
        found["properties"] = {name: schema(inner) for name, inner in definition["properties"].items()}
    if "items" in definition:
        found["items"] = schema(definition["items"])
    if "required" in definition:
        found["required"] = definition["required"]
    return found


class Table(list[Any]):
    """A list that a tool returned."""


class Bare(Table):
    """A table that lost rows and columns: what ``FilterByOpeningHours`` returns for a table without rows."""


def returned(value: Any) -> Any:
    """A recorded result, in which lists are known to be a tool's."""
    if isinstance(value, dict):
        return {name: returned(inner) for name, inner in value.items()}
    return Table(map(returned, value)) if isinstance(value, list) else value


class OfficialQuestions:
    """The questions by id."""

    def __init__(self, folder: Path) -> None:
        definitions = json.loads((folder / "function_definitions.json").read_text(encoding="utf-8"))
        self.tools = {}
        for name, definition in definitions.items():
            parameters = schema(definition.get("parameters") or {})
            if name in TAGGED:
                parameters.setdefault("properties", {})["tag"] = {"type": "string"}
            returns = definition.get("returns") or {}
            self.tools[name] = Tool(parameters, schema(returns) or None, returns.get("index"))
        self.queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
        self.recorded: dict[tuple[str, str, str], Came] = {}
        for row in lines(folder / "cassette.jsonl.gz"):
            executed = row["status"] == "ok" and not holds_exception(row["value"])
            self.recorded[row["scenario"], row["tool"], key(row["arguments"])] = (
                Came("result", returned(row["value"])) if executed else Came("failed")
            )

    def __getitem__(self, query: str) -> Question:
        row = self.queries[query]
        response = json.loads(row["response"]) if row["response"] else {}
        tag = row.get("tag") or ""

        def world(tool: str, arguments: dict[str, Any]) -> Came:
            scenario = ""
            if tool in TAGGED:
                named = arguments.get("tag")
                scenario = named if isinstance(named, str) else tag
                arguments = {name: value for name, value in arguments.items() if name != "tag"}
            came = self.recorded.get((scenario, tool, key(arguments)), Came("machinery"))
            return of_an_empty_table(tool, arguments, self.tools[tool], came)

        return Question(self.tools, tuple(response.values()), world)


def of_an_empty_table(tool: str, arguments: dict[str, Any], spec: Tool, came: Came) -> Came:
    """What the backend answers where a table is ``[]`` and the recorded answer, of a table with columns, a success."""
    name = next((name for name, one in spec.parameters.get("properties", {}).items() if one.get("table")), "")
    given = arguments.get(name)
    if given != [] or came.kind != "result" or came.value.get("status_code") != 200:
        return came
    if not isinstance(given, Table):
        error = f"Parameter '{name}' must be of type DataFrame, got list"
        return Came("result", {"status_code": 422, "error": error})
    if isinstance(given, Bare) and tool in ("FilterByRatings", "FilterByCuisine"):
        return Came("failed")  # a KeyError: they ask for a column
    if tool == "FilterByOpeningHours":
        return Came("result", {**came.value, "Restaurants": Bare()})
    return came


def key(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


def holds_exception(value: Any) -> bool:
    """Ours: a result that holds a Python exception (the 500s of the corpus) is a call that did not execute."""
    if isinstance(value, dict):
        return "__repr__" in value or any(map(holds_exception, value.values()))
    return isinstance(value, list) and any(map(holds_exception, value))
