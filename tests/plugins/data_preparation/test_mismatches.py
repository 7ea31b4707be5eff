"""The report of appendix E.5, on rows written by us."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from callwright_plugins.data_preparation.command import prepare
from callwright_plugins.data_preparation.formats import read_tool
from callwright_plugins.data_preparation.mismatches import json_type_of

TOOL = {
    "name": "add",
    "parameters": {"a": {"type": "int"}, "b": {"type": "List[int], optional"}, "c": {"type": "str", "default": "x"}},
}


def row(*calls: dict[str, Any]) -> str:
    """A row of xLAM's keys."""
    answers = [{"name": "add", "arguments": call} for call in calls]
    tools = [TOOL, {"name": "idle", "parameters": {}}]
    return json.dumps({"query": "q", "tools": json.dumps(tools), "answers": json.dumps(answers)})


def test_mismatches_are_counted_by_kind_and_tools_by_queries(tmp_path: Path) -> None:
    path = tmp_path / "xlam.jsonl"
    lines = [
        row({"a": 1}, {"a": 1, "b": [2], "c": None}),
        row({"a": "1", "d": 3}),
        row({"b": 2}),
        row({"a": 1}).replace('\\"name\\": \\"add\\", \\"arguments', '\\"name\\": \\"sub\\", \\"arguments'),
        "{}",
    ]
    path.write_text("\n".join(lines))
    done = CliRunner().invoke(prepare, ["report", "--xlam", str(path), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)["xlam"]
    assert found["kinds"] == {
        "unknown tool": {"count": 1, "rate": 0.2},
        "unknown argument": {"count": 1, "rate": 0.2},
        "missing required": {"count": 1, "rate": 0.2},
        "type": {"count": 2, "rate": 0.4},
    }
    assert found["calls that mismatch"] == {"count": 3, "rate": 0.6}
    assert found["conversations"] == 4
    uses = {"none": 1, "1": 0, "2": 0, "3 to 10": 1, "more than 10": 0}
    assert found["tools by queries that call them"] == uses
    assert sum(found["rejected"].values()) == 1
    words = CliRunner().invoke(prepare, ["report", "--xlam", str(path)]).output
    assert "any mismatch: 3 (60.00%)" in words


def test_every_schema_of_xlam_is_read(official_data: Path) -> None:
    """The 4,211 schemas of TIER's release: names, defaults and types that mean something."""
    with gzip.open(official_data / "xlam" / "function_definitions.json.gz", "rt", encoding="utf-8") as file:
        schemas = json.load(file)
    assert len(schemas) == 4211
    unknown = 0
    for name, schema in schemas.items():
        tool, declared = read_tool(schema), schema["parameters"]["properties"]
        assert tool.name == name.strip()
        assert {parameter.name: parameter.has_default for parameter in tool.parameters} == {
            key: "default" in facts for key, facts in declared.items()
        }
        unknown += sum(json_type_of(parameter) is None for parameter in tool.parameters)
    assert unknown == 1  # one is declared as a callable
