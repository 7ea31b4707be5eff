"""Proofs over all tasks: right programs score 1.0 in every order, wrong ones lose, no shorter one exists.

``python -m callwright_plugins.depthbench.prove`` prints the numbers, with a deeper search for shorter programs.
"""

from __future__ import annotations

import os
import random
from datetime import date, timedelta
from typing import Any

from attrs import evolve

import callwright as cw
from callwright.language.program import Call, Program, Reference, revive
from callwright.tools.validation import validate
from callwright.walk.answers import answers_match
from callwright.walk.execution import execute
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.families.family import FILTERS
from callwright_plugins.depthbench.families.slots import _pool_of
from callwright_plugins.depthbench.proofs import (
    MUTATIONS,
    _with,
    commutations,
    equals,
    mutations,
    orders,
    right,
    scalars,
    shorter,
)
from callwright_plugins.depthbench.prove import Proof, table
from callwright_plugins.depthbench.tools.train.cars import by_dealership

CORPUS = DepthBenchCorpus()
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split]]
EXHAUSTIVE = "CALLWRIGHT_EXHAUSTIVE" in os.environ


def test_every_reference_validates_and_executes_to_a_full_answer() -> None:
    for task in TASKS:
        assert task.program is not None
        assert validate(task.program, task.tools).valid
        trace = execute(task.program, task.environment, task.tools, scenario=task.scenario)
        assert all(step.outcome.kind == "ok" and step.outcome.value for step in trace.records), task.id
        assert answers_match(task.answer, trace.returned)
        assert all(value not in ([], {}, None, "") for value in task.answer.values)
        for value in task.answer.values:
            assert not (
                isinstance(value, dict) and any(part == [] for key, part in value.items() if key != "attendees")
            ), task.id


def test_every_reordering_renumbering_and_commutation_scores_one_as_text() -> None:
    parser, recipe = cw.parser("json"), cw.reward("tier")
    tried = 0
    for task in TASKS:
        assert task.program is not None
        for program in equals(task.program):
            assert recipe.score(task, parser.render(program), ir="json").total == 1.0, (task.id, program)
            tried += 1
    assert tried > 7000


def test_calling_nothing_is_right_at_depth_zero_only() -> None:
    recipe = cw.reward("tier")
    nothing = cw.parser("json").render(Program())
    for task in TASKS:
        assert (recipe.score(task, nothing, ir="json").total == 1.0) == (task.depth == 0)


def test_single_mutations_lose_the_answer(proof_of_v1: Proof) -> None:
    """The issue asks for 99% per kind and depth; the corpus was drawn so that none survives."""
    assert proof_of_v1.survived == []
    for depth in range(1, 7):
        for kind in MUTATIONS:
            assert proof_of_v1.share_lost(depth, kind) >= 0.99
            if not (depth == 1 and kind in ("skip", "dangle", "rewire")) and not (depth == 2 and kind == "rewire"):
                assert proof_of_v1.tried[depth, kind] >= 50, (depth, kind)
    assert proof_of_v1.unequal == []
    assert proof_of_v1.abstaining == []


def test_values_that_the_generator_never_tried_lose_too() -> None:
    """Other neighbours, other members of the pools: what was proved while drawing holds beyond what was proved."""
    rng = random.Random(5)
    tried, survived = 0, []
    for task in TASKS:
        assert task.program is not None
        for number, call in enumerate(task.program.calls):
            for path, value in scalars(call.arguments):
                for other in _others(value, rng):
                    if other != value:
                        tried += 1
                        program = _with(task.program, number, path, other)
                        if right(task.answer, program, task.environment, task.tools, task.scenario):
                            survived.append(f"{task.id} {call.tool} {path} {value} -> {other}")
    assert tried > 15_000
    assert len(survived) <= 0.01 * tried, survived


def _others(value: Any, rng: random.Random) -> list[Any]:
    if isinstance(value, int):
        return [value + 2, value - 2, value + 5, max(1, value // 2), round(value * 1.1) + 1, round(value * 0.9) - 1]
    if isinstance(value, float):
        return [round(value + by, 2) for by in (0.2, -0.2, 0.3, 1.0, -0.5, -1.0)]
    if len(value) == 10 and value[4] == "-":
        return [(date.fromisoformat(value) + timedelta(days=days)).isoformat() for days in (2, -3, 14, 100, -30)]
    if len(value) == 5 and value[2] == ":":
        minute = int(value[:2]) * 60 + int(value[3:])
        return [f"{(minute + by) // 60 % 24:02d}:{(minute + by) % 60:02d}" for by in (5, -5, 30, -30, 45, 90)]
    pool = [other for other in _pool_of(value) if other != value]
    return rng.sample(pool, min(4, len(pool)))


def test_what_depth_zero_asks_for_would_be_answered_with_the_tools_that_are_missing() -> None:
    """And is not with those that are offered: bounded search for the same answer with as many calls, or fewer."""
    found = 0
    for task in (task for task in TASKS if task.facts["kind"] in ("no tool", "missing tool") and task.facts["would"]):
        calls = tuple(
            Call(int(number), tool, revive(arguments))
            for number, call in task.facts["would"].items()
            for tool, arguments in call.items()
        )
        assert any(call.tool not in task.tools for call in calls)
        trace = execute(Program(calls), task.environment, task.environment.tools, scenario=task.scenario)
        assert all(step.outcome.kind == "ok" for step in trace.records)
        longer = Program((*calls, Call(len(calls), "none", {})))
        assert shorter(evolve(task, answer=cw.Answer(trace.returned), program=longer), 1500) is None, task.id
        found += 1
    assert found >= 45


def test_the_proof_is_told_in_a_table(proof_of_v1: Proof) -> None:
    assert "mutations that survive: 0" in table(proof_of_v1)
    assert f"{proof_of_v1.tried[1, 'tool']}/{proof_of_v1.tried[1, 'tool']}" in table(proof_of_v1)


def test_no_program_with_fewer_calls_reaches_the_answer() -> None:
    """All tasks of two calls and more, bounded at 1,500 executed calls each (40,000 with CALLWRIGHT_EXHAUSTIVE=1)."""
    searched = [task for task in TASKS if task.depth > 1 and task.returns == "one"]
    assert len(searched) > 400
    found = [task.id for task in searched if shorter(task, 40_000 if EXHAUSTIVE else 1500) is not None]
    assert found == []


# The provers themselves -----------------------------------------------------------------------------------------------


def _task(program: Program, *more: str) -> Task:
    environment = CORPUS.environment
    trace = execute(program, environment, environment.tools, scenario="user-0007")
    assert trace.executed
    names = dict.fromkeys((*(call.tool for call in program.calls), *more))
    tools = {name: environment.tools[name] for name in names}
    answer = cw.Answer(trace.returned)
    return Task(
        "t", "", tools, answer, environment, "user-0007", depth=program.depth, returns=program.returns, program=program
    )


CHAIN = Program(
    (
        Call(0, "find_restaurants", {"city": "Oslo"}),
        Call(1, "filter_restaurants_by_rating", {"restaurants": Reference(0), "minimum_rating": 3.5}),
        Call(2, "filter_restaurants_by_budget", {"restaurants": Reference(1), "maximum_bill": 60}),
    )
)


def test_a_shorter_program_is_found_where_there_is_one() -> None:
    detour = Program(
        (
            Call(0, "get_product_price", {"sku": "SKU-10001"}),
            Call(1, "add_tip", {"amount": Reference(0), "percent": 10}),
            Call(2, "add_tip", {"amount": 100, "percent": 10}),
        )
    )
    sku = next(
        iter(
            CORPUS.environment.open("user-0007")
            .call("find_product_code", {"item": "hoodie", "brand": "Alder", "colour": "red", "size": "M"})
            .value["sku"]
            .splitlines()
        )
    )
    calls = (evolve(detour.calls[0], arguments={"sku": sku}), *detour.calls[1:])
    found = shorter(_task(evolve(detour, calls=calls)))
    assert found is not None
    assert [call.tool for call in found.calls] == ["add_tip"]
    twice = evolve(
        CHAIN,
        calls=(
            *CHAIN.calls[:2],
            Call(2, "filter_restaurants_by_rating", {"restaurants": Reference(1), "minimum_rating": 3.5}),
        ),
    )
    found = shorter(_task(twice))
    assert found is not None
    assert found.depth == 2
    task = _task(twice)
    assert right(task.answer, found, task.environment, task.tools, task.scenario)


def test_a_choice_that_the_first_row_would_do_for_is_found() -> None:
    names = ("pick_newest_car", "filter_cars_by_make")
    agreed = 0
    for dealership, rows in list(by_dealership().items())[:30]:
        program = Program(
            (
                Call(0, "list_cars_at_dealerships", {"dealerships": [dealership]}),
                Call(1, "pick_cheapest_car", {"cars": Reference(0)}),
                Call(2, "get_car_history", {"listing_id": Reference(1)}),
            )
        )
        first = min(rows, key=lambda row: (row["price"], row["listing_id"])) is rows[0]
        assert (shorter(_task(program, *names)) is not None) == first
        agreed += first
    assert agreed > 0


def test_a_hidden_constant_cannot_be_skipped_but_a_spoken_one_can() -> None:
    here = Program((Call(0, "get_current_city", {}), Call(1, "find_restaurants", {"city": Reference(0)})))
    assert shorter(_task(here)) is None
    city = CORPUS.environment.open("user-0007").call("get_current_city", {}).value["city"]
    told = evolve(
        here,
        calls=(
            *here.calls,
            Call(2, "find_dealerships", {"city": city}),
            Call(3, "find_restaurants", {"city": Reference(0)}),
        ),
    )
    assert shorter(_task(told)) is not None


def test_orders_and_commutations_are_all_there() -> None:
    assert len(list(orders(CHAIN))) == 1
    assert len(list(commutations(CHAIN))) == 1
    swapped = next(iter(commutations(CHAIN)))
    assert [call.tool for call in swapped.calls] == [CHAIN.calls[0].tool, CHAIN.calls[2].tool, CHAIN.calls[1].tool]
    wide = Program(tuple(Call(n, "split_bill", {"amount": 10 + n, "people": 2}) for n in range(4)), "all")
    assert len(list(orders(wide))) == 24
    assert len(list(orders(evolve(wide, returns="one")))) == 6


def test_mutations_cover_calls_filters_values_and_references() -> None:
    found = list(mutations(CHAIN, _task(CHAIN, "find_dealerships").tools))
    kinds = {kind: [m for m in found if m.kind == kind] for kind in MUTATIONS}
    assert len(kinds["drop"]) == 5  # each call, and around the first two
    assert len(kinds["skip"]) == 2
    assert len(kinds["dangle"]) == 2
    assert len(kinds["rewire"]) == 1
    assert len(kinds["tool"]) == 9
    assert {m.what.split(":")[0] for m in kinds["change"]} == {"('city',)", "('minimum_rating',)", "('maximum_bill',)"}
    assert set(FILTERS) >= {"filter_restaurants_by_rating", "keep_songs_of_mood"}
