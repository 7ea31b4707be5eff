"""Docstrings: parameters are described by their sections, in three styles; annotations come first."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

import callwright as cw
from callwright.tools import FunctionTool
from callwright.tools.docstrings import described, unknown_parameters


def google(bank: dict[str, Any], /, amount: float, to: str = "") -> bool:
    """Pay somebody.

    Nothing is taken back.

    Args:
        bank: Where.
        amount (float, optional): How much, in
            euros: two digits.

            Never less than one.
        to:
            Who gets it.

    Returns:
        bool: Whether it worked.

    Fails with NO_MONEY.
    """
    return True


def numpy(amount: float, to: str = "", x: int = 0, y: int = 0) -> bool:
    """Pay somebody.

    Parameters
    ----------
    amount : float, optional
        How much, in
        euros.
    to
        Who gets it.
    x, y : int
        The place.

    Returns
    -------
    bool
        Whether it worked.
    """
    return True


def restructured(amount: float, to: str = "") -> bool:
    """Pay somebody.

    :param amount: How much,
        in euros.
    :param str to: Who gets it.
    :type amount: float
    :returns: Whether it worked.
    :raises ToolError: If not.
    """
    return True


def descriptions(tool: FunctionTool) -> dict[str, str]:
    return {
        name: schema["description"]
        for name, schema in tool.spec.parameters["properties"].items()
        if "description" in schema
    }


def test_parameters_are_described_as_google_has_it() -> None:
    tool = cw.tool(google)
    assert tool.spec.description == (
        "Pay somebody.\n\nNothing is taken back.\n\nReturns: bool: Whether it worked.\n\nFails with NO_MONEY."
    )
    assert descriptions(tool) == {
        "amount": "How much, in euros: two digits.\n\nNever less than one.", "to": "Who gets it.",
    }  # fmt: skip


def test_one_entry_of_google_may_describe_several_parameters() -> None:
    def put(x: int, y: int = 0, z: int = 0) -> None:
        """Put.

        Args:
            x, y (int, optional): The place.
            z: The height.
        """

    assert cw.tool(put).spec.description == "Put."
    assert descriptions(cw.tool(put)) == {"x": "The place.", "y": "The place.", "z": "The height."}


def test_parameters_are_described_as_numpy_has_it() -> None:
    tool = cw.tool(numpy)
    assert tool.spec.description == "Pay somebody.\n\nReturns: bool Whether it worked."
    assert descriptions(tool) == {
        "amount": "How much, in euros.", "to": "Who gets it.", "x": "The place.", "y": "The place.",
    }  # fmt: skip


def test_parameters_are_described_as_restructured_text_has_it() -> None:
    tool = cw.tool(restructured)
    assert tool.spec.description == "Pay somebody.\n\nReturns: Whether it worked.\n\nRaises ToolError: If not."
    assert descriptions(tool) == {"amount": "How much, in euros.", "to": "Who gets it."}


class Place(BaseModel):
    """A place on earth."""

    city: str


def test_annotations_come_before_the_docstring() -> None:
    @cw.tool
    def move(
        to: Annotated[str, Field(description="As annotated.")],
        inner: Annotated[str, Field(description="Inside.")] | None = None,
        where: Place = Place(city="Ulm"),  # noqa: B008
        back: bool = Field(False, description="As its default says."),
    ) -> None:
        """Move.

        Args:
            to: Not this.
            inner: Nor this.
            where: Where to.
            back: Nor this.
        """

    assert descriptions(move) == {
        "to": "As annotated.", "inner": "Inside.", "where": "Where to.", "back": "As its default says.",
    }  # fmt: skip


def test_a_description_that_is_given_leaves_those_of_the_parameters() -> None:
    tool = cw.tool(description="Given.")(google)
    assert tool.spec.description == "Given."
    assert descriptions(tool)["to"] == "Who gets it."


@pytest.mark.parametrize(
    "docstring",
    [
        "Pay.\n\nArgs: amount, to",
        "Pay.\n\nArgs:\namount: How much",
        "Pay.\n\nArgs:\n    nothing that could be read",
        "Pay.\n\nArgs:",
        "Pay.\n\nParameters\n----------",
        "Pay: how much\nis the question.\n\nReturns:\n    Something.",
        "Pay.\n\n:see: there",
        "Pay ::\n\n    example",
    ],
)
def test_what_is_no_section_stays_text(docstring: str) -> None:
    found = described(docstring)
    assert found.parameters == {}
    assert found.text.split() == docstring.split()


@given(st.text(alphabet="ab :-\n\tArgsParameters*,()"))
def test_no_docstring_is_too_odd(docstring: str) -> None:
    found = described(docstring)
    assert set(found.text.replace(":", "").split()) <= set(docstring.replace(":", "").split())


def test_parameters_that_are_none_are_found() -> None:
    assert unknown_parameters(google) == []

    def renamed(sum: float) -> None:
        """Pay.

        Args:
            amount: How much.
        """

    assert unknown_parameters(renamed) == ["amount"]
