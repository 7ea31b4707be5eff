"""Descriptions: running text, outside of branches; compact schemas say what calls need."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.tools.descriptions import (
    compact,
    flowing,
    said_once,
    shape_of,
    tidied,
    without_codes,
    without_nothing,
)


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
            "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            "most": {"type": "integer", "minimum": 5, "maximum": 10**9, "default": 10**9},
            "also": {"type": "boolean", "default": False},
            "not": {"type": "integer", "default": 0},
            "ids": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"type": "string"}},
            "kind": {"enum": ["", "a"], "default": ""},
        },
    }
    assert compact(schema) == {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "W."},
            "count": {"type": "integer", "maximum": 100, "default": 20},
            "most": {"type": "integer", "minimum": 5},
            "also": {"type": "boolean"},
            "not": {"type": "integer", "default": 0},
            "ids": {"type": "array", "items": {"type": "string"}},
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
        ("Lend a book. Warns with LATE if it is.", "Lend a book."),
        ("Lend books. What is gone is left out (partial).", "Lend books."),
        ("Lend books. What is gone is left out (partial, GONE_AWAY). Ask first.", "Lend books. Ask first."),
        ("Not to minors (TOO_YOUNG, NO_CARD or NO_ROOM).", "Not to minors."),
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


def test_a_listing_says_bounds_and_defaults_again_where_they_change() -> None:
    def lists(**bounds: int) -> dict[str, Any]:
        limit = {"type": "integer", "description": "Most.", **bounds}
        return {"name": "f", "parameters": {"type": "object", "properties": {"limit": limit}}}

    given = [lists(default=n, maximum=100) for n in (20, 50, 20, 20)]
    told = [one["parameters"]["properties"]["limit"] for one in said_once(given)]
    assert told == [
        {"type": "integer", "description": "Most.", "default": 20, "maximum": 100},
        {"type": "integer", "default": 50},
        {"type": "integer", "default": 20},
        {"type": "integer"},
    ]


BOOK = {"type": "object", "properties": {"id": {"type": "string"}, "title": {"type": "string"}}}
PAGE = {"items": {"type": "array", "items": BOOK}, "total": {"type": "integer"}, "next_cursor": {"type": "string"}}


def test_what_tools_return_is_told_by_names_and_once() -> None:
    lent = {"type": "object", "properties": {"book": BOOK, "days": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}}
    before: dict[str, str] = {}
    told = [
        shape_of(result, tool, before)
        for tool, result in [
            ("find_books", {"type": "object", "properties": PAGE}),
            ("get_book", BOOK),
            ("lend", lent),
            ("renew", lent),
            ("list_lent", {"type": "array", "items": lent}),
            ("count", {"type": "integer"}),
            ("anything", None),
            ("more_books", {"type": "object", "properties": PAGE}),
        ]
    ]
    assert told == [
        "page of {id, title}",
        "an item of find_books",
        "{book: an item of find_books, days}",
        "as lend",
        "[what lend returns]",
        "",
        "",
        "as find_books",
    ]


def test_a_schema_without_nothing_lets_members_that_can_be_nothing_be_missing() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "count": {"type": "integer"},
            "to": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "Until when."},
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "count", "to", "kind", "tags"],
    }
    small = without_nothing(schema)
    assert small["required"] == ["count", "kind"]
    assert small["properties"]["to"] == {"type": "integer", "description": "Until when."}
    assert without_nothing({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}) == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
    }


def test_a_listing_describes_a_parameter_of_one_name_and_meaning_once() -> None:
    def function(**parameters: str) -> dict[str, Any]:
        described = {name: {"type": "string", "description": text} for name, text in parameters.items()}
        return {"name": "f", "parameters": {"type": "object", "properties": described}}

    first, second, third = function(a="A path.", b="A name."), function(a="A path."), function(a="A word.", b="A path.")
    told = said_once([first, second, third, {"name": "g", "parameters": {"type": "object"}}])
    assert told[0] == first
    assert told[1]["parameters"]["properties"] == {"a": {"type": "string"}}
    assert told[2]["parameters"]["properties"]["a"] == third["parameters"]["properties"]["a"]
    assert told[2]["parameters"]["properties"]["b"] == {"type": "string"}, "the same words mean the same"
    assert told[3] == {"name": "g", "parameters": {"type": "object"}}
    assert second["parameters"]["properties"]["a"]["description"] == "A path."  # what was given is as it was
