"""The state machine: one table, of which the docs are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.errors import ComponentError
from callwright_plugins.synthesis.dialogue import machine

DOCS = Path(__file__).parents[4] / "docs" / "synthesis.md"


def reached(start: str) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        for (here, _), then in machine.TRANSITIONS.items():
            if here == state and then not in found:
                found.add(then)
                waiting.append(then)
    return found


def test_the_docs_hold_the_table_of_the_code() -> None:
    assert machine.table() in DOCS.read_text(encoding="utf-8")


def test_every_state_is_in_one_group_is_reached_and_comes_to_an_end() -> None:
    states = [state for group in machine.GROUPS.values() for state in group]
    assert len(machine.GROUPS) == 5
    assert len(states) == len(set(states))
    assert set(states) == reached(machine.BEGIN)
    for state in states:
        assert machine.END in reached(state) or state == machine.REJECTED
        assert (state in machine.FINAL) == (reached(state) == {state})


def test_an_event_that_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(ComponentError, match="cannot happen"):
        machine.following(machine.QUERY, "calls")
