"""The language of the search box, against the rows themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import CallwrightError, UnknownName, UsageError
from callwright_plugins.viewer.index.filtering import read_filter
from callwright_plugins.viewer.serving.api import Board

Row = dict[str, Any]

#: What a filter lets through, said once more in Python.
MEANT: dict[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "step>3": lambda row: row["step"] > 3,
    "step>=2 step<=3": lambda row: 2 <= row["step"] <= 3,
    "answered:yes": lambda row: row["answered"],
    "answered:no total>0.2": lambda row: not row["answered"] and row["total"] > 0.2,
    "-answered:yes": lambda row: not row["answered"],
    "answered!=yes": lambda row: not row["answered"],
    "total=1": lambda row: row["total"] == 1,
    "total!=1": lambda row: row["total"] != 1,
    "score.format<1": lambda row: row["scores"]["format"] < 1,
    "execution=1": lambda row: row["scores"]["execution"] == 1,
    "depth:2": lambda row: row["depth"] == 2,
    "group:1-0": lambda row: row["group"] == "1-0",
    "group:1-*": lambda row: row["group"].startswith("1-"),
    "failure:none": lambda row: row["failure"] == "",
    "failure!=none": lambda row: row["failure"] != "",
    "failure:*wrong structure:linear": lambda row: row["failure"].endswith("wrong") and row["structure"] == "linear",
    "tool:GetPrice": lambda row: "GetPrice" in row["tools"],
    "tool:Get*": lambda row: any(tool.startswith("Get") for tool in row["tools"]),
    "-tool:GetPrice": lambda row: "GetPrice" not in row["tools"],
    "masked:yes": lambda row: row["masked"],
    "advantage<0 sample>1": lambda row: row["advantage"] < 0 and row["sample"] > 1,
    "task:evaluation-*": lambda row: True,
    "task:EVALUATION-*": lambda row: True,
    "step:none": lambda row: False,
    "mark:none": lambda row: True,
    "mark:any": lambda row: False,
    "   ": lambda row: True,
    "...": lambda row: True,
}


@pytest.mark.parametrize("text", MEANT)
def test_a_filter_lets_through_what_it_says(board: Board, text: str) -> None:
    rows = board.answer("rows", {"source": "first", "limit": "500"})["rows"]
    found = board.answer("rows", {"source": "first", "q": text, "limit": "500"})
    assert [row["n"] for row in found["rows"]] == [row["n"] for row in rows if MEANT[text](row)]
    assert found["total"] == len(found["rows"])
    assert 0 < len(rows) == 72


def test_words_are_searched_in_queries_and_completions(board: Board) -> None:
    rows = board.answer("rows", {"source": "first", "limit": "500"})["rows"]
    word = rows[0]["query"].split()[0]
    found = board.answer("rows", {"source": "first", "q": word.upper()})
    assert {row["n"] for row in rows if row["query"].startswith(word + " ")} <= {row["n"] for row in found["rows"]}
    tool = next(row["tools"][0] for row in rows if row["tools"])
    assert board.answer("rows", {"source": "first", "q": tool[:6]})["total"] > 0
    assert board.answer("rows", {"source": "first", "q": '"tool_call return"'})["total"] > 0
    assert board.answer("rows", {"source": "first", "q": '"return tool_call"'})["total"] == 0
    assert board.answer("rows", {"source": "first", "q": "zweihundert"})["total"] == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps>3", "step"),
        ("step>three", "number"),
        ("answered:maybe", "yes or no"),
        ("failure>3", "text"),
        ("mark>1", "mark"),
    ],
)
def test_what_makes_no_sense_is_said(board: Board, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        board.answer("rows", {"source": "first", "q": text})


def test_columns_to_sort_and_group_by_are_known(board: Board) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'total'"):
        board.answer("rows", {"source": "first", "sort": "totl"})
    with pytest.raises(UnknownName, match="column"):
        board.answer("groups", {"source": "first", "by": "n; DROP TABLE rollouts"})
    with pytest.raises(UnknownName, match="source"):
        board.answer("rows", {"source": "third"})
    with pytest.raises(UnknownName, match="question"):
        board.answer("rowz", {})


@given(st.text(max_size=60))
def test_nothing_that_is_typed_is_more_than_a_filter(text: str) -> None:
    try:
        made = read_filter(text, {"format": "s0"})
    except CallwrightError:
        return
    assert made.where.count("?") == len(made.values)
    assert ";" not in made.where


@pytest.mark.parametrize(
    "text",
    ['"', "'", "';--", '"; DROP TABLE rollouts', "a:b:c", "-", "--", '-"', "*", "\\", "(", "NEAR(a b)", "a*b", "\x00"],
)
def test_nothing_that_is_typed_breaks_the_index(board: Board, text: str) -> None:
    with suppress(CallwrightError):
        board.answer("rows", {"source": "first", "q": text})
    assert board.answer("rows", {"source": "first"})["total"] == 72
