"""Neighbours change places but where the plan says that one has to come before the other."""

from __future__ import annotations

from typing import Any

from tests.plugins.synthesis.dialogue.talks import MATERIALS, blueprint, fetching, recovering, stage

import callwright as cw
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.gates.brittleness import _swapped
from callwright_plugins.synthesis.gates.case import Case


def swaps(*stages: Stage) -> list[str]:
    plan: Blueprint = blueprint(*stages)
    task = converse(plan, MATERIALS, 3, "t")
    assert isinstance(task, cw.Task), task
    return [what for what, _ in _swapped(Case(task, plan, cw.default_registry()))]


def test_what_follows_by_the_plan_keeps_its_place() -> None:
    opening: tuple[tuple[str, dict[str, Any]], ...] = (("open_gate", {}), ("drive_out", {}))
    assert swaps(stage(*opening, after=((), ()))) == ["drive_out before open_gate"]
    assert swaps(stage(*opening, after=((), (0,)))) == []


def test_a_call_that_fails_ends_a_turn_of_the_assistant() -> None:
    # The gate is opened in the second turn of the first stage.
    assert swaps(recovering()) == []
    assert swaps(recovering(), fetching(after=((), (0,), ()))) == []
    assert swaps(recovering(), fetching(after=((), (), ()))) == ["sign_in before list_parcels"]
