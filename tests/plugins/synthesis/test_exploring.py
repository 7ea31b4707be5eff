"""Exploring: what is found can be done again by anybody, the budget holds, and nothing is destroyed unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.errors import ComponentError, DataError, UsageError
from callwright_plugins.synthesis.exploration.explored import Explored, explore
from callwright_plugins.synthesis.exploration.explorer import Explorer
from callwright_plugins.synthesis.exploration.values import Bank, Key, Place
from callwright_plugins.synthesis.exploration.witness import Witness, outcomes

from .depot import Far, FarSession, depot

CALLS = 700


@pytest.fixture(scope="module")
def found() -> Explored:
    return explore(depot(), calls=CALLS)


def test_every_tool_is_made_to_execute_also_behind_a_pin_that_only_a_person_knows(found: Explored) -> None:
    assert found.missing == ()
    assert set(found.witnesses) == set(depot().tools)


@cw.row("lodgers", prefix="L", index=("name",))
class Lodger:
    id: str
    name: str


@cw.tool(read_only=True)
def find_lodgers(world: cw.World, /, name: str) -> list[str]:
    """The ids of lodgers of a name."""
    return [one.id for one in world.find(Lodger, name=name)]


@cw.tool
def rename_lodger(world: cw.World, /, lodger_id: str, name: str) -> str:
    """Give a lodger another name."""
    return world.update(world.need(Lodger, lodger_id), name=name).name


def lodging(knows: Callable[[cw.World, str], Mapping[str, Any] | None] | None) -> cw.StatefulEnvironment:
    scenarios = {"house": cw.Scenario(lambda rng, scale: [Lodger("L00001", f"Ilse {rng.randrange(10**6)}")])}
    tools = [find_lodgers, rename_lodger]
    return cw.StatefulEnvironment("lodging", rows=[Lodger], tools=tools, scenarios=scenarios, knowledge=knows)


def test_tools_that_nothing_tells_what_they_take_are_named(found: Explored) -> None:
    """One of them executes, but never finds anything."""
    blind = explore(lodging(None), calls=CALLS)
    assert blind.missing == ("rename_lodger",)
    assert blind.untold == ("find_lodgers", "rename_lodger")
    knowing = explore(lodging(lambda world, who: {"name": world.need(Lodger, "L00001").name}), calls=CALLS)
    assert knowing.untold == found.untold == ()


def test_a_bug_in_what_is_known_is_not_passed_over() -> None:
    with pytest.raises(ComponentError, match="of the environment 'lodging' raised ZeroDivisionError"):
        explore(lodging(lambda world, who: {"share": 1 // 0}), calls=CALLS)


def test_every_witness_comes_to_the_same_in_a_fresh_session(found: Explored) -> None:
    witnesses = [one for tool in found.witnesses.values() for one in tool]
    witnesses += [one for tool in found.failures.values() for one in tool.values()]
    assert len(witnesses) > 10
    for witness in witnesses:
        came = outcomes(depot(), witness.scenario, witness.seed, witness.calls)
        assert all(outcome.executed or outcome.kind == "refused" for outcome in came[:-1])
        assert (came[-1].kind, came[-1].code or witness.code) == (witness.kind, witness.code or came[-1].code)


def test_the_shortest_witness_comes_first_and_is_as_short_as_the_rules_allow(found: Explored) -> None:
    shortest = {tool: len(witnesses[0].calls) for tool, witnesses in found.witnesses.items()}
    assert shortest == {
        "list_parcels": 1,
        "sign_in": 1,
        "fetch_parcel": 2,
        "open_gate": 1,
        "close_gate": 2,
        "drive_out": 2,
    }


def test_failures_have_their_codes(found: Explored) -> None:
    assert set(found.failures["fetch_parcel"]) >= {"AUTH_REQUIRED", "NOT_FOUND"}
    assert set(found.failures["drive_out"]) == {"GATE_CLOSED"}
    assert found.failures["sign_in"]["BAD_PIN"].kind == "refused"


def test_what_repairs_a_failure_is_told(found: Explored) -> None:
    assert set(found.repairs["GATE_CLOSED"]) == {"open_gate"}
    assert set(found.repairs["ALREADY_OPEN"]) == {"close_gate"}


def test_values_are_told_by_where_they_came_from(found: Explored) -> None:
    by_place = {(one.origin, one.owner, one.path): one for one in found.values}
    parcels = by_place["result", "list_parcels", "items[].parcel_id"]
    assert parcels.types == ("string",)
    assert parcels.count == 6
    assert ("knowledge", "me", "pin") in by_place


def test_the_budget_is_kept_to_the_call() -> None:
    far = Far(disposable=True)
    assert explore(far, seeds=(3,), calls=57).calls == 57
    assert len(far.calls) == 57


class Telling(Far):
    """A server with a place of its own to look at: its sessions tell what they have come to."""

    def open(self, scenario: str = "", seed: int = 0) -> FarSession:
        return TellingSession(self, self.inner.open(scenario, seed))


class TellingSession(FarSession):
    def goal_state(self) -> Any:
        return self.session.goal_state()


def test_few_calls_of_a_server_are_spent_on_states_that_nobody_tells_apart() -> None:
    def begun_anew(far: Any) -> float:
        explorer = Explorer(far, sorted(far.tools))
        explorer.explore("", 0, 300)
        assert len(explorer.states) > 4
        return sum(explorer._some_state("") is explorer.states[0] for _ in range(1000)) / 1000

    assert 0.6 < begun_anew(Far(disposable=True)) < 0.8  # a half, and a third or more of the rest
    assert 0.3 < begun_anew(Telling(disposable=True)) < 0.5


def test_destructive_tools_of_a_server_wait_for_leave() -> None:
    shy, bold, scratch = Far(), Far(), Far(disposable=True)
    left_out = explore(shy, seeds=(0,), calls=200)
    assert left_out.forbidden == ("close_gate",)
    assert "close_gate" not in left_out.tools
    assert "close_gate" not in shy.calls
    assert explore(bold, seeds=(0,), calls=200, allow_destructive=True).forbidden == ()
    assert "close_gate" in bold.calls
    assert explore(scratch, seeds=(0,), calls=200).forbidden == ()
    assert explore(Far(disposable=False), seeds=(0,), calls=50).forbidden == ("close_gate",)


def test_the_whole_is_the_same_in_every_process_whatever_the_seed_of_hashes(tmp_path: Path) -> None:
    program = (
        "import json, callwright as cw\n"
        "from callwright_plugins.synthesis.exploration.explored import explore\n"
        "print(json.dumps(explore(cw.environment('team_chat'), calls=500).as_json(), sort_keys=True))\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(json.loads(said[0])["witnesses"]) >= 6


def test_a_witness_goes_through_json(found: Explored) -> None:
    for witness in found.witnesses["fetch_parcel"]:
        assert Witness.from_json(json.loads(json.dumps(witness.as_json()))) == witness


@pytest.mark.parametrize(
    "row",
    [None, {}, {"scenario": "", "seed": 0, "calls": [3], "kind": "ok"}, {"scenario": "", "seed": "0", "calls": []}],
)
def test_what_is_no_witness_is_said_to_be_none(row: object) -> None:
    with pytest.raises(DataError):
        Witness.from_json(row)


def test_a_value_is_found_in_every_place_that_holds_it_and_in_the_worlds_before() -> None:
    rng, bank = Random(4), Bank()
    places = [bank.number(Place("result", "look", f"items[].{name}")) for name in "abc"]

    def see(many: int) -> None:
        for _ in range(many):  # places are full after 64 values, and forget some
            bank.keep(rng.choice(places), ("number" if rng.random() < 0.5 else "string", str(rng.randrange(90))))

    def held() -> dict[Key, set[int]]:
        keys = {key for values in bank.values for key in values}
        return {key: {number for number, values in enumerate(bank.values) if key in values} for key in keys}

    def holders() -> dict[Key, set[int]]:
        return {key: numbers for key, numbers in bank.holders.items() if numbers}

    see(900)
    first = held()
    assert len(first) > 64
    assert holders() == first
    memory = bank.remembered()
    bank.forget()
    assert holders() == {}
    see(30)
    assert holders() == held() != first
    bank.take_up(memory)
    assert holders() == held() == first


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        explore(depot(), calls=0)
    with pytest.raises(UsageError):
        explore(depot(), seeds=())


def test_the_tools_of_a_shipped_environment_are_all_made_to_execute() -> None:
    assert explore(cw.environment("video_meeting")).missing == ()
