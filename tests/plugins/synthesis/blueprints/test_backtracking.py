"""Calls whose values have to agree in ways that no edge states: a fare with its crossing, and that with another one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.binding import Binder
from callwright_plugins.synthesis.blueprints.blueprint import coverage_of
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints
from callwright_plugins.synthesis.blueprints.repertoire import Repertoire
from callwright_plugins.synthesis.blueprints.shapes import Shape
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.exploration.values import Place, key_of


@cw.row("crossings", prefix="C")
class Crossing:
    id: str
    harbour: str
    fare_cents: int


@cw.row("tickets", prefix="K")
class Ticket:
    id: str
    crossing: str


@cw.tool(read_only=True, discovery=True)
def list_crossings(world: cw.World, /) -> dict[str, list[dict[str, Any]]]:
    """The crossings of today."""
    return {
        "items": [
            {"crossing_id": one.id, "harbour": one.harbour, "fare_cents": one.fare_cents}
            for one in world.rows(Crossing)
        ]
    }


def _at_its_fare(world: cw.World, crossing_id: str, fare_cents: int) -> Crossing:
    crossing = world.need(Crossing, crossing_id)
    if crossing.fare_cents != fare_cents:
        raise cw.ToolError("FARE_CHANGED", f"it costs {crossing.fare_cents}")
    return crossing


@cw.tool
def buy_ticket(world: cw.World, /, fare_cents: int, crossing_id: str) -> dict[str, str]:
    """Buy a ticket for a crossing at its fare."""
    crossing = _at_its_fare(world, crossing_id, fare_cents)
    return {"ticket_id": world.put(Ticket(world.new_id(Ticket), crossing.id)).id}


@cw.tool
def rebook_ticket(world: cw.World, /, ticket_id: str, new_fare_cents: int, new_crossing_id: str) -> dict[str, str]:
    """Take another crossing to the same harbour, at its fare."""
    ticket = world.need(Ticket, ticket_id)
    old, new = world.need(Crossing, ticket.crossing), _at_its_fare(world, new_crossing_id, new_fare_cents)
    if new.id == old.id:
        raise cw.ToolError("SAME_CROSSING", "the ticket is for this one")
    if new.harbour != old.harbour:
        raise cw.ToolError("OTHER_HARBOUR", f"the ticket is for {old.harbour}")
    world.update(ticket, crossing=new.id)
    return {"crossing_id": new.id}


HARBOURS = ("Vik", "Lund", "Moss", "Sund", "Nes", "Havn", "Skar", "Holm")


def _rows(rng: Random, scale: float) -> Iterator[Any]:
    for number, fare in enumerate(rng.sample(range(1000, 9000), 32)):
        yield Crossing(f"C{rng.randrange(10**6):06}{number:02}", HARBOURS[number % 8], fare)


def ferries() -> cw.StatefulEnvironment:
    return cw.StatefulEnvironment(
        "ferries",
        rows=[Crossing, Ticket],
        tools=[list_crossings, buy_ticket, rebook_ticket],
        scenarios={"quay": cw.Scenario(_rows, "a quay")},
    )


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return known(ferries(), registry=default_registry(), calls=1500)


def binders(knowledge: Knowledge, seeds: range) -> Iterator[tuple[Binder, Any, Shape]]:
    """Binders in worlds of these seeds, with their sessions, and the shape of a ticket that is bought and rebooked."""
    repertoire = Repertoire(ferries(), knowledge)
    shape = next(one for one in repertoire.single["rebook_ticket"] if one.tools == ("buy_ticket", "rebook_ticket"))
    for seed in seeds:
        rng, session = Random(seed), opened(ferries(), "quay", seed)
        yield Binder(repertoire.tools, repertoire.context(session, rng), rng), session, shape


def test_a_tool_whose_arguments_have_to_agree_is_in_as_many_conversations_as_others(knowledge: Knowledge) -> None:
    knobs = Knobs(distractors=0, several_servers=0)
    found = [plan_blueprints(Materials(ferries(), seed, 80), knowledge, knobs) for seed in range(4)]
    counts = [coverage_of([one for one in some if not one.recovers[0]])["rebook_ticket"] for some in found]
    assert sum(counts) >= 4 * 20, counts
    assert plan_blueprints(Materials(ferries(), 0, 80), knowledge, knobs) == found[0]


def test_backtracking_fills_what_whole_tries_hardly_ever_do(knowledge: Knowledge) -> None:
    whole = filled = 0
    for binder, session, shape in binders(knowledge, range(20)):
        whole += binder.bind(session, shape, 9) is not None
        before, calls = binder.rng.getstate(), binder.calls
        found = binder.backtrack(session, shape, Random(1))
        assert binder.calls - calls <= 48
        assert binder.rng.getstate() == before  # what else is planned is the same with it and without
        again = binder.backtrack(session, shape, Random(1))
        assert (again is None) == (found is None)
        if found is not None and again is not None:
            filled += 1
            assert again.calls == found.calls
            assert [one.kind for one in found.made] == ["ok", "ok"]
            other = session.fork()
            assert all(other.call(call.tool, call.arguments).executed for call in found.calls)
    assert whole <= 4
    assert filled >= 18


def test_what_is_within_one_object_holds_numbers_too(knowledge: Knowledge) -> None:
    binder, session, _ = next(binders(knowledge, range(1)))
    context = binder.context
    crossings = (Place("result", "list_crossings", "items[].crossing_id"),)
    fares = (Place("result", "list_crossings", "items[].fare_cents"),)
    for row in session.fork().call("list_crossings", {}).value["items"]:
        crossing, fare, harbour = (key_of(row[name]) for name in ("crossing_id", "fare_cents", "harbour"))
        assert context.within([crossing], fares) == [fare]
        assert context.within([fare, harbour], crossings) == [crossing]
        assert context.beside(fare, crossings) == []
        assert len(context.within([harbour], crossings)) == 4
    assert context.within([key_of("nowhere")], crossings) == []


def test_a_number_that_the_user_knows_is_not_drawn_by_the_thing_that_has_it(knowledge: Knowledge) -> None:
    binder, session, shape = next(binders(knowledge, range(1)))
    row = session.fork().call("list_crossings", {}).value["items"][5]
    binder.context.know("me", None, {"fare": row["fare_cents"], "crossing": row["crossing_id"]})
    known_fare = (Place("knowledge", "me", "fare"),)
    variables = [
        evolve(one, sources=known_fare, beside=()) if isinstance(one.value, int) else one for one in shape.variables
    ]
    both = evolve(shape, variables=tuple(evolve(one, beside=tuple(range(at))) for at, one in enumerate(variables)))
    binder.backtrack(session, both, Random(1))  # comes to an end
