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


def test_rows_about_whether_to_call_are_counted_too(tmp_path: Path) -> None:
    """When2Call's training rows, and xLAM-irrelevance, whose tools nobody calls."""

    def asked(answer: str) -> str:
        said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}]
        return json.dumps({"tools": [json.dumps(TOOL)], "messages": said})

    sft, irrelevant = tmp_path / "sft.jsonl", tmp_path / "irrelevance.jsonl"
    calls = [json.dumps([{"name": "add", "arguments": given}]) for given in ({"a": 1}, {"a": "one", "e": 2})]
    words = asked("Which number do you mean?")
    sft.write_text("\n".join([*(asked(f"<TOOLCALL>{call}</TOOLCALL>") for call in calls), words, "{}"]))
    irrelevant.write_text(row())
    done = CliRunner().invoke(prepare, ["report", "--when2call", str(sft), "--irrelevance", str(irrelevant), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    decided = found["when2call"]
    assert (decided["conversations"], decided["conversations with calls"], decided["calls"]) == (3, 2, 2)
    assert decided["calls that mismatch"] == {"count": 1, "rate": 0.5}
    assert {kind: share["count"] for kind, share in decided["kinds"].items() if share["count"]} == {
        "unknown argument": 1, "type": 1,
    }  # fmt: skip
    assert decided["tools by queries that call them"]["2"] == 1
    assert sum(decided["rejected"].values()) == 1
    assert found["irrelevance"]["calls that mismatch"] == {"count": 0, "rate": None}
    assert found["irrelevance"]["tools by queries that call them"]["none"] == 2


def test_the_calls_of_when2call_fit_their_schemas(official_data: Path) -> None:
    """The part of its test file that is here: 35 calls, none of which mismatches."""
    path = official_data / "when2call" / "when2call_test_llm_judge.jsonl.gz"
    done = CliRunner().invoke(prepare, ["report", "--when2call", str(path), "--json"])
    found = json.loads(done.output)["when2call"]
    assert (found["conversations"], found["calls"], found["calls that mismatch"]["count"]) == (103, 35, 0)
    assert found["rejected"] == {"no tools": 8}


def test_a_report_of_nothing_names_every_data_set() -> None:
    done = CliRunner().invoke(prepare, ["report"])
    assert "--toolace, --hammer, --xlam, --when2call or --irrelevance" in str(done.exception)
