"""Outcomes and tools survive the way to JSON and back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright_plugins.mcp_servers.wire import answer_of, completed_tool, listed_tool, listed_tools, result_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FAILURES = st.sampled_from(["unknown_tool", "schema_error", "execution_error", "infrastructure_error"])


@given(st.sampled_from(["ok", "empty", "partial"]), JSON, st.text(), st.text())
def test_results(kind: str, value: object, code: str, message: str) -> None:
    outcome = cw.Outcome(kind, value, code, message)  # type: ignore[arg-type]
    for spec in (None, cw.ToolSpec("t"), cw.ToolSpec("t", result={"type": "array"})):
        result = json.loads(json.dumps(result_of(outcome, spec, "abc")))
        assert isinstance(result["structuredContent"], dict)  # what older protocol versions demand
        answer = answer_of(result)
        assert answer is not None
        assert (answer.outcome, answer.digest) == (outcome, "abc")


@given(FAILURES, st.text(), st.text())
def test_failures(kind: str, code: str, message: str) -> None:
    outcome = cw.Outcome(kind, None, code, message)  # type: ignore[arg-type]
    result = json.loads(json.dumps(result_of(outcome)))
    assert result["isError"] is True
    assert result["content"][0]["text"]
    answer = answer_of(result)
    assert answer is not None
    assert answer.outcome == outcome


def test_the_results_of_others_are_not_taken_for_ours() -> None:
    assert answer_of({"content": []}) is None
    assert answer_of({"_meta": {"io.callwright/outcome": {"kind": "splendid"}}}) is None
    assert answer_of({"_meta": {"io.callwright/outcome": "ok"}}) is None


@given(
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(
        [
            None,
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            {"type": "array", "items": {"type": "string"}},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"type": "array", "items": {"$ref": "#/$defs/N"}, "$defs": {"N": {"items": {"$ref": "#/$defs/N"}}}},
        ]
    ),
)
def test_tools(read_only: bool, destructive: bool, discovery: bool, sensitive: bool, result: object) -> None:
    spec = cw.ToolSpec(
        "tool",
        "What it does.",
        {"type": "object", "properties": {"x": {"type": "integer", "minimum": 2}}, "required": ["x"]},
        result,  # type: ignore[arg-type]
        result_field="a",
        read_only=read_only,
        destructive=destructive and not read_only,
        discovery=discovery,
        sensitive=sensitive,
    )
    tool = json.loads(json.dumps(listed_tool(spec)))
    assert tool.get("outputSchema", {"type": "object"})["type"] == "object"
    assert completed_tool(cw.ToolSpec.from_mcp(tool), tool["_meta"]) == spec


def test_a_listing_of_brief_tools_says_everything_once_and_holds_no_schemas_of_results() -> None:
    path = {"type": "string", "description": "A path.", "maxLength": 90}
    specs = [
        cw.ToolSpec(
            name,
            "Read it. Fails with NOT_FOUND.",
            {"type": "object", "properties": {"path": path}, "required": ["path"]},
            {"type": "object", "properties": {"text": {"type": "string"}}},
            brief=brief,
            read_only=True,
        )
        for name, brief in [("read", True), ("look", True), ("stat", False)]
    ]
    first, second, whole = listed_tools(specs)
    assert first["description"] == second["description"] == "Read it."
    assert first["inputSchema"]["properties"] == {"path": {"type": "string", "description": "A path."}}
    assert second["inputSchema"]["properties"] == {"path": {"type": "string"}}
    assert "outputSchema" not in first
    assert whole == listed_tool(specs[2])
    assert whole["inputSchema"]["properties"] == {"path": path}
    assert whole["outputSchema"] == specs[2].result
    assert cw.ToolSpec.from_mcp(second).read_only
