"""Descriptions: running text, outside of branches; compact schemas say what calls need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.tools.descriptions import compact, flowing, said_once, tidied, without_codes


@given(st.text())
def test_text_that_flows_stays_as_it_is(text: str) -> None:
    once = flowing(text)
    assert flowing(once).split() == once.split()
    assert "  " not in once
    assert "\n" not in once.replace("\n\n", "")


def test_a_docstring_becomes_running_text() -> None:
    assert flowing(" Lend a\n    copy  of ``book``.\n\n   Fails with X.\n") == "Lend a copy of book.\n\nFails with X."


def test_the_description_of_the_only_branch_moves_out() -> None:
    inside = {"anyOf": [{"type": "string", "description": "Where\n to."}, {"type": "null"}], "default": None}
    assert tidied({"properties": {"to": inside}}) == {
        "properties": {
            "to": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "Where to."}
        }
    }
    two = {"anyOf": [{"type": "string", "description": "A."}, {"type": "integer", "description": "B."}]}
    assert tidied(two) == two, "two branches mean two things"
    assert tidied({"description": "All.", **two}) == {"description": "All.", **two}


def test_parameters_may_be_called_like_keywords() -> None:
    odd = {"properties": {"description": {"type": "string", "maxLength": 3}, "anyOf": {"type": "integer"}}}
    assert tidied(odd) == odd
    assert compact(odd) == {"properties": {"description": {"type": "string"}, "anyOf": {"type": "integer"}}}


def test_a_compact_schema_leaves_out_what_is_checked_anyway() -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "to": {
                "anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}],
                "default": None,
                "description": "W.",
            },
            "count": {"type": "integer", "minimum": 1, "default": 20},
            "kind": {"enum": ["", "a"], "default": ""},
        },
    }
    assert compact(schema) == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "W."},
            "count": {"type": "integer", "minimum": 1, "default": 20},
            "kind": {"enum": ["", "a"]},
        },
    }


def test_a_tool_of_ones_own_is_described_so() -> None:
    @cw.tool
    def lend(title: str) -> str:
        """Lend a
        book.
        """
        return title

    assert lend.spec.description == "Lend a book."
    assert lend.spec.title == "Lend"
    assert lend.spec.to_openai(compact=True)["function"]["parameters"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }


@pytest.mark.parametrize(
    ("whole", "small"),
    [
        ("Lend a book. Fails with NONE_LEFT or NOT_FOUND.", "Lend a book."),
        ("Lend a book. NONE_LEFT if none is there.", "Lend a book."),
        ("Only members may (NOT_A_MEMBER), on weekdays.", "Only members may, on weekdays."),
        ("Lend a book.\n\nIt fails as return_book does.", "Lend a book."),
        ("Read ISO 8601 times; partial if some fail.", "Read ISO 8601 times; partial if some fail."),
        ("Pay (in EUR).", "Pay (in EUR)."),
        ("A letter failsafe.", "A letter failsafe."),
        ("FAILED: nothing.", "FAILED: nothing."),
        ("", ""),
    ],
)
def test_codes_of_failures_are_left_out_and_rules_are_not(whole: str, small: str) -> None:
    assert without_codes(whole) == small


def test_a_listing_describes_a_parameter_of_one_name_and_meaning_once() -> None:
    def function(**parameters: str) -> dict[str, Any]:
        described = {name: {"type": "string", "description": text} for name, text in parameters.items()}
        return {"name": "f", "parameters": {"type": "object", "properties": described}}

    first, second, third = function(a="A path.", b="A name."), function(a="A path."), function(a="A word.", b="A path.")
    told = said_once([first, second, third, {"name": "g", "parameters": {"type": "object"}}])
    assert told[0] == first
    assert told[1]["parameters"]["properties"] == {"a": {"type": "string"}}
    assert told[2] == third
    assert told[3] == {"name": "g", "parameters": {"type": "object"}}
    assert second["parameters"]["properties"]["a"]["description"] == "A path."  # what was given is as it was
