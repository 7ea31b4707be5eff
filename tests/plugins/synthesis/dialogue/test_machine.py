"""The state machine: one table, no dead ends, and whatever a conversation does stands in it."""

from __future__ import annotations

import networkx
import pytest

from callwright.errors import ComponentError
from callwright_plugins.synthesis.dialogue.machine import (
    FINAL,
    GROUP_OF,
    GROUPS,
    START,
    TRANSITIONS,
    Machine,
    as_markdown,
    rows,
)


def test_every_state_is_reached_and_comes_to_an_end() -> None:
    network = networkx.DiGraph([(state, following) for (state, _), following in TRANSITIONS.items()])
    assert set(network.nodes) == set(GROUP_OF)
    assert networkx.descendants(network, START) | {START} == set(GROUP_OF)
    for state in GROUP_OF:
        assert state in FINAL or "end" in networkx.descendants(network, state) or state == "fall back"
    assert not any(network.out_degree(state) for state in FINAL)


def test_the_groups_are_those_of_the_paper() -> None:
    assert GROUPS == ("query", "turn", "tool execution", "response", "continuation")
    assert set(GROUP_OF.values()) == set(GROUPS)
    assert len(list(rows())) == len(TRANSITIONS) == as_markdown().count("\n") - 1


def test_an_event_that_does_not_belong_there_is_a_bug() -> None:
    machine = Machine()
    machine.on("worded")
    assert (machine.state, machine.over) == ("take a turn", False)
    with pytest.raises(ComponentError, match="has no 'told' in 'take a turn'"):
        machine.on("told")
