"""Episodes of several turns in a report: every turn, what was read, and what the user said and did."""

from __future__ import annotations

from typing import Any

import pytest

from callwright_plugins.report.sections.completions import Picked
from callwright_plugins.report.sections.completions import _example as of_evaluation
from callwright_plugins.report.sections.conversations import conversation
from callwright_plugins.report.sections.rollouts import _texts

USER = {"text": "Is <it> off?", "calls": [{"tool": "flip", "arguments": {"on": False}}], "done": True}


def test_every_turn_is_shown_with_what_followed_it() -> None:
    run = {
        "completion": "Bye.",
        "turns": [{"completion": "a < b", "observation": '\n{"id":0}\n'}, {"completion": "Done?", "user": USER}],
    }
    shown = _texts(run)
    places = [shown.index(text) for text in ("a &lt; b", '{"id":0}', "Done?", "Is &lt;it&gt; off?", "flip(")]
    assert places == sorted(places)
    assert "The user, and is done:" in shown
    assert '{"on": false}' in shown
    assert "Bye." not in shown
    row = {"completion": "Bye.", "completions": ["Hi.", "Bye."], "said": [{"text": "Go on."}], "task": "t"}
    page = of_evaluation(Picked("right", "", 1, row), False)
    assert page.index("Hi.") < page.index("Go on.") < page.index("Bye.")


@pytest.mark.parametrize(
    "row",
    [
        {"completion": "a"},
        {"completion": "a", "turns": [{"completion": "a", "observation": ""}]},
        {"completion": "a", "turns": [{}, 3], "completions": "b"},
        {"completion": "a", "completions": [1, None], "said": 3},
    ],
)
def test_one_completion_is_shown_as_before(row: dict[str, Any]) -> None:
    assert conversation(row) == ""
    assert "<pre" in _texts(row)


def test_whatever_a_file_holds_there_is_a_page() -> None:
    wild = {"turns": [{"completion": "x", "user": {"text": 3, "calls": [4, {"tool": None}]}}] * 30}
    shown = conversation(wild)
    assert shown.count("<pre") == 20
    assert "10 more turns" in shown
