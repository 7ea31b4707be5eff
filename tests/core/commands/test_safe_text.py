"""Nothing of unknown origin reaches a terminal as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.commands import visible


@given(st.text())
def test_visible_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)  # so that columns still mean the same
    for character in shown:
        assert character in "\n\t\u00ad\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert visible(shown) == shown
    shown.encode("utf-8")


@pytest.mark.parametrize("text", ["naïve – “quotes” 日本語 👩‍👧", "two\nlines\tand a tab", ""])
def test_visible_text_is_left_alone(text: str) -> None:
    assert visible(text) == text
