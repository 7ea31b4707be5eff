"""What programs come to without a session: what their execution comes to, of tasks and of all their shortcuts."""

from __future__ import annotations

import random

from callwright.language.program import Program
from callwright.walk.execution import execute
from callwright_plugins.toolworld.environment import ToolWorld, random_context, scenario_of
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.results import Results
from callwright_plugins.toolworld.shortcuts import shortcuts
from callwright_plugins.toolworld.tasks import reordered
from callwright_plugins.toolworld.tools import Context
from callwright_plugins.toolworld.world import pick


def executed(program: Program, context: Context, world: ToolWorld) -> tuple[object, ...] | None:
    """What the product's execution returns, its checks of arguments included; ``None`` if a call fails."""
    trace = execute(program, world, world.tools, scenario=scenario_of(context))
    return trace.returned if trace.executed else None


def test_results_are_those_of_execution(world: ToolWorld) -> None:
    rng = random.Random("results")
    compared = failed = 0
    for family in FAMILIES:
        for _ in range(4):
            values, _ = family.ask(pick(rng, family.compositions()), rng)
            program, context = reordered(family.build(values), rng), random_context(rng)
            results = Results(program, context)
            assert results.values is not None
            everything = Program(program.calls, "all")
            assert results.values == executed(everything, context, world)
            for what, shortcut in (("itself", program), *shortcuts(program, context)):
                found = results.handed(shortcut)
                assert found == executed(shortcut, context, world), (family.name, what)
                compared += 1
                failed += found is None
    assert compared > 1000
    assert failed > 100


def test_a_call_that_fails_hands_on_nothing(world: ToolWorld) -> None:
    rng = random.Random("failing")
    family = next(family for family in FAMILIES if family.name.startswith("restaurants/") and family.depth >= 3)
    values, _ = family.ask(family.compositions()[0], rng)
    program, context = family.build(values), random_context(rng)
    twins = [shortcut for what, shortcut in shortcuts(program, context) if what == "FindHotels for FindRestaurants"]
    assert twins
    for shortcut in twins:
        assert Results(program, context).handed(shortcut) is executed(shortcut, context, world) is None
        assert Results(shortcut, context).values is None
