"""Directed trials: what few calls did not meet is tried on purpose, and nothing is claimed that does not hold."""

from __future__ import annotations

import pytest

from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.graph import building
from callwright_plugins.synthesis.graph.building import build
from callwright_plugins.synthesis.graph.checking import check_graph
from callwright_plugins.synthesis.graph.directed import suggested

from .depot import STEPS, TOLD, depot


def test_values_that_too_few_calls_did_not_meet_are_proven_by_directed_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = depot()
    with monkeypatch.context() as patched:
        patched.setattr(building, "_ROUNDS", 0)
        without, _ = build(environment, explore(environment, calls=150), calls=40_000)
    made, _ = build(environment, explore(environment, calls=150), calls=40_000)
    assert set(without.pairs("information")) < TOLD
    assert set(made.pairs("information")) == TOLD
    assert set(made.pairs("state")) == STEPS
    assert check_graph(environment, made).findings == ()


def tool(name: str, description: str = "", *takes: str, read_only: bool = False) -> ToolSpec:
    properties = {one: {"type": "string"} for one in takes}
    return ToolSpec(name, description, {"type": "object", "properties": properties}, read_only=read_only)


def test_suggested_are_tools_that_name_one_another_and_writes_about_the_same_things() -> None:
    join, post = tool("join", "", "channel_id"), tool("post", "", "channel_id", "text")
    look, fees = tool("look", "", "channel_id", read_only=True), tool("fees", read_only=True)
    leave = tool("leave", "fees tells what it costs")
    found = suggested({one.name: one for one in (join, post, look, fees, leave)})
    assert found == {
        ("fees", "leave"): True,
        ("leave", "fees"): True,
        ("join", "post"): False,
        ("post", "join"): False,
        ("join", "look"): False,
        ("post", "look"): False,
    }


def test_a_spent_budget_ends_directed_trials_and_is_said() -> None:
    environment = depot()
    found = explore(environment, calls=150)
    made, effort = build(environment, found, calls=300)
    assert effort.cut
    assert set(made.pairs("state")) <= STEPS
