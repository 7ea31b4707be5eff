"""What no form can write is refused before it is written, with its place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from callwright.errors import CannotExpress
from callwright.language.parser import ParseLimits
from callwright.language.program import Call, Program, Reference
from callwright.language.shortening import brief
from callwright.language.writable import LARGEST_ID, check_program

LIMITS = ParseLimits()


def check(
    *calls: Call, numbering: Any = "ascending", references: Any = "strings", limits: ParseLimits = LIMITS
) -> None:
    check_program(Program(calls), limits, numbering, references)


def test_the_borders_are_writable() -> None:
    check()
    check(Call(0, "t", {}), Call(LARGEST_ID, "t", {"a": [None, True, 1, 0.5, "x", {"b": Reference(0)}]}))
    check(*(Call(index, "t", {}) for index in range(LIMITS.calls)), numbering="positions")
    check(Call(0, "t", {"a": "API_RESPONSE_0"}), references="elements")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Call(0, "", {}), "call 0: the name of its tool is empty"),
        (Call(0, "\ud800", {}), "call 0: its name hold half of a surrogate pair"),
        (Call(LARGEST_ID + 1, "t", {}), "does not ascend, or is larger"),
        (Call(0, "t", {"a": math.nan}), "which is not a number that JSON knows"),
        (Call(0, "t", {"a": {1}}), "a value of type set"),
        (Call(0, "t", {"a": {1: 2}}), "a key that is not text: 1"),
        (Call(0, "t", {"a": ["\udfff"]}), "half of a surrogate pair"),
        (Call(0, "t", {"\udfff": 1}), "half of a surrogate pair"),
        (Call(0, "t", {"a": "API_RESPONSE_0"}), "would be read as a reference"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_place(call: Call, why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        check(call)


def test_calls_are_in_order_and_within_the_limits() -> None:
    for ids in ((1, 1), (2, 1)):
        with pytest.raises(CannotExpress, match=f"the id {ids[1]} does not ascend"):
            check(*(Call(number, "t", {}) for number in ids))
    with pytest.raises(CannotExpress, match="call 0 has the id 1; this form numbers calls"):
        check(Call(1, "t", {}), numbering="positions")
    with pytest.raises(CannotExpress, match="2 calls are more than the limit of 1"):
        check(Call(0, "t", {}), Call(1, "t", {}), limits=ParseLimits(calls=1))
    with pytest.raises(CannotExpress, match="no notation"):
        check(Call(0, "t", {}), Call(1, "t", {"a": Reference(0)}), references="none")


def test_nesting_ends_at_the_limit() -> None:
    limits = ParseLimits(nesting=3)
    check(Call(0, "t", {"a": [[1]]}), limits=limits)
    with pytest.raises(CannotExpress, match="nested deeper than the limit of 3"):
        check(Call(0, "t", {"a": [[[1]]]}), limits=limits)


def test_evidence_shows_letters_as_they_are() -> None:
    assert brief(["é", "日"], 80) == '["é", "日"]'
    assert brief([1, 2, 3, 4], 80) == "a list of 4"
