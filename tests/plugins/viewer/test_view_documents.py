"""One row as a page shows it: its conversation, and evidence at its place in the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.plugins.viewer.conftest import rollouts

import callwright as cw
from callwright.walk.trace import observations
from callwright_plugins.viewer.sources.documents import document
from callwright_plugins.viewer.sources.placing import call_spans, place_of


def scored(text: str, ir: str = "json") -> dict[str, Any]:
    task = cw.corpus("toolworld-mini-v1")["evaluation"][16]
    attempt = cw.Attempt(task, text, cw.parser(ir))
    reward = cw.reward("tier").score_attempt(attempt)
    return {
        "step": 1,
        "task": task.id,
        "completion": text,
        "observations": observations(attempt.trace),
        **reward.to_json(),
    }


def marked(told: dict[str, Any], component: str) -> list[str]:
    return [
        said["text"][start:end]
        for said in told["conversation"]
        for start, end, name, _ in said["marks"]
        if name == component
    ]


@pytest.mark.parametrize("ir", ["json", "xml"])
def test_evidence_stands_where_the_mistake_is(ir: str) -> None:
    wrong = cw.Program(
        (
            cw.Call(0, "FindRestaurants", {"town": "Lima"}),
            cw.Call(1, "FilterByOpen", {"restaurants": cw.Reference(0), "hour": "x"}),
        )
    )
    told = document("run", scored(cw.parser(ir).render(wrong), ir))
    assert "town" in marked(told, "parameters")
    assert any("hour" in part for part in marked(told, "types"))
    assert not marked(told, "format")


def test_what_cannot_be_parsed_is_marked_by_its_characters() -> None:
    calls = '{"0": {"GetPrice": {"item": "a"}}, "0": {"GetPrice": {"item": "b"}}}'
    text = f'<think>\n\n</think>\n<tool_call return="one">\n{calls}\n</tool_call>'
    told = document("run", scored(text))
    assert marked(told, "format") == ['"0"']


def test_names_in_a_thought_are_not_the_call() -> None:
    text = '<think>GetPrice first</think>{"GetPrice": {"item": "x"}}'
    [span] = call_spans(text, ["GetPrice"])
    assert span is not None
    assert span[0] > text.index("</think>")
    assert place_of(text, {"call": 0, "path": "item", "found": '"x"'}, {0: span}) == (
        text.index("item"),
        text.index('"x"') + 3,
    )
    assert place_of(text, {"call": 0, "path": "unit"}, {0: span}) == (span[0], span[0] + len("GetPrice"))
    assert place_of(text, {"call": 3}, {0: span}) is None
    assert place_of(text, {}, {}) is None


def test_calls_have_their_values_and_say_what_changed() -> None:
    row = next(row for row in rollouts(2) if len(row["trace"]) > 1 and row["answered"])
    told = document("run", row)
    assert [call["value"] for call in told["calls"]] == [call["value"] for call in row["trace"]]
    assert told["conversation"][-1]["calls"] == list(range(len(row["trace"])))
    assert [said["loss"] for said in told["conversation"]] == [False, True]
    changed = {**row, "observations": [{**one, "state": str(n)} for n, one in enumerate(row["observations"])]}
    assert [call.get("changed") for call in document("run", changed)["calls"]][1:] == [True] * (len(row["trace"]) - 1)


def test_a_row_of_an_earlier_version_has_digests_in_place_of_values() -> None:
    row = next(row for row in rollouts(2) if row["trace"] and row["answered"])
    told = document("run", {key: value for key, value in row.items() if key != "trace"})
    assert all("digest" in call and "value" not in call for call in told["calls"])


def test_turns_are_a_conversation_with_what_was_read_between() -> None:
    row = {
        "step": 1,
        "task": "t",
        "prompt": "P",
        "completion": "b",
        "total": 1.0,
        "scores": {},
        "trace": [{"turn": 0, "call": 0, "tool": "a", "kind": "ok", "value": 1}],
        "turns": [
            {"completion": "a()", "calls": 1, "tokens": 3, "observation": "1"},
            {"completion": "done", "calls": 0, "tokens": 1, "observation": "thanks", "user": {"say": "thanks"}},
        ],
    }
    said = document("run", row)["conversation"]
    assert [(one["role"], one["loss"], one["calls"]) for one in said] == [
        ("prompt", False, []),
        ("assistant", True, [0]),
        ("observation", False, []),
        ("assistant", True, []),
        ("user", False, []),
    ]
    assert not any(one["loss"] for one in document("run", {**row, "total": None, "masked": "judge"})["conversation"])


def test_a_document_is_json_whatever_the_row() -> None:
    for row in (
        {},
        {"completion": 3},
        {"scores": {"a": None}},
        {"messages": [None]},
        {"trace": [None, 1, {}]},
        {"facts": 1},
    ):
        for kind in ("run", "evaluation", "scored", "tasks", "log"):
            json.dumps(document(kind, row))  # type: ignore[arg-type]


def test_a_masked_row_of_an_evaluation_says_why() -> None:
    row = {"task": "t", "completion": "", "masked": True, "lost": "the agent ended with status 1"}
    assert document("evaluation", row)["masked"] == "the agent ended with status 1"
    assert document("evaluation", {**row, "masked": False})["masked"] is None
