"""Signatures as tools: defaults that are fields, sets in one order, and types that are none, told with their place."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import Field

import callwright as cw
from callwright.errors import UnknownName


@cw.tool
def limited(name: str, most: int = Field(5, ge=1, description="How many."), tags: list[str] = Field(["a"])) -> str:  # noqa: B008
    """Say what was asked for."""
    return f"{name} {most} {tags}"


def test_a_default_that_is_a_field_is_its_value() -> None:
    assert limited.call(None, {"name": "x"}) == "x 5 ['a']"
    assert limited.call(None, {"name": "x", "most": 2, "tags": []}) == "x 2 []"
    assert limited.spec.parameters["required"] == ["name"]
    assert limited.spec.parameters["properties"]["most"] == {
        "default": 5, "description": "How many.", "minimum": 1, "type": "integer",
    }  # fmt: skip
    with pytest.raises(cw.ToolError, match="greater than or equal to 1"):
        limited.call(None, {"name": "x", "most": 0})


def test_a_field_without_a_default_is_required() -> None:
    @cw.tool
    def needed(most: int = Field(ge=1)) -> int:
        return most

    assert needed.spec.parameters["required"] == ["most"]
    assert needed.call(None, {"most": 3}) == 3


@dataclass
class Card:
    labels: frozenset[str]
    order: list[str]


@cw.tool
def typed() -> dict[str, Card | set[int]]:
    """Sets of several types, where annotations say so."""
    return {"card": Card(frozenset({"gamma", "alpha", "beta"}), ["z", "a"]), "numbers": {30, 4, 100}}


@cw.tool
def untyped():  # type: ignore[no-untyped-def]
    """Sets where nothing is said of them."""
    return {"words": {"gamma", "alpha", "beta"}, "mixed": [{2, "two", None}], "order": ("z", "a")}


def test_sets_are_sorted_and_lists_are_not() -> None:
    card = {"labels": ["alpha", "beta", "gamma"], "order": ["z", "a"]}
    assert typed.call(None, {}) == {"card": card, "numbers": [4, 30, 100]}
    assert untyped.call(None, {}) == {
        "words": ["alpha", "beta", "gamma"], "mixed": [["two", 2, None]], "order": ["z", "a"],
    }  # fmt: skip


def test_a_list_whose_members_differ_stays_as_it_is() -> None:
    @cw.tool
    def ranked() -> tuple[Annotated[list[str], Field(json_schema_extra={"uniqueItems": True})], set[str] | list[str]]:
        """The best first."""
        return ["second", "first"], ["b", "a"]

    assert ranked.call(None, {}) == [["second", "first"], ["b", "a"]]


def test_a_set_is_the_same_in_every_process() -> None:
    program = (
        "import callwright as cw\n"
        "@cw.tool\n"
        "def tags() -> set[str]:\n"
        "    return {'alpha', 'beta', 'gamma', 'delta', 'epsilon'}\n"
        "print(tags.call(None, {}))\n"
    )
    said = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    }
    assert said == {"['alpha', 'beta', 'delta', 'epsilon', 'gamma']\n"}


class Own:
    """A class of which pydantic knows nothing."""


def takes_own(fine: int, odd: Own) -> int:
    return fine


def gives_own() -> Own:
    return Own()


def takes_a_function(fine: int, call: Callable[[int], int]) -> int:
    return fine


def unknown(odd: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (takes_own, "tool 'takes_own', parameter 'odd': "),
        (takes_a_function, "tool 'takes_a_function', parameter 'call': "),
        (gives_own, "tool 'gives_own', the result: "),
        (unknown, "tool 'unknown': an annotation names 'Nowhere', which its module does not have"),
        (functools.partial(takes_own, 1), "needs a name: callwright.tool"),
        (limited, "'limited' is a tool already"),
    ],
)
def test_what_is_no_type_of_a_tool_is_told_with_its_place(function: Any, said: str) -> None:
    with pytest.raises(cw.UsageError) as caught:
        cw.tool(function)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_method_is_a_tool_where_it_is_bound() -> None:
    class Shop:
        def price(self, item: Annotated[str, Field(min_length=1)]) -> int:
            """What an item costs."""
            return len(item)

        def items(self) -> Iterator[str]:
            """What there is."""
            yield "bread"

    with pytest.raises(cw.UsageError, match=r"make the tool where it is bound: callwright.tool\(object.method\)"):
        cw.tool(Shop.price)
    assert cw.tool(Shop().price).call(None, {"item": "bread"}) == 5


def test_a_partial_function_is_a_tool_with_a_name() -> None:
    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    made = cw.tool(name="square")(functools.partial(power, exponent=2))
    assert made.call(None, {"base": 5}) == 25


def test_a_misspelt_option_of_a_tool_has_its_nearest_name() -> None:
    with pytest.raises(UnknownName, match="read_only"):
        cw.tool(read_onyl=True)  # type: ignore[call-overload]
