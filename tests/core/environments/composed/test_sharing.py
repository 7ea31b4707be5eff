"""What parts share wherever they live: money, hazards of one part, and a state in a file."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
import callwright.machines.command_folder as common
from callwright.environments import ClockPolicy, Fault, Hazards, RateLimit
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.hazards.policy import read_hazards
from callwright.environments.isolated import placing
from callwright.errors import DataError, UsageError
from callwright.language.program import Call, Program
from callwright.walk.execution import Execution, ExecutionRules, execute

sys.path.append(str(Path(__file__).parents[2] / "support"))
foreign: Any = importlib.import_module("foreign_shop")

BOTH = ComposedEnvironment([foreign.SHOP, foreign.BANK])
SPREE = Program(
    (Call(0, "buy", {"cents": 400}), Call(1, "buy", {"cents": 700}), Call(2, "balance", {}), Call(3, "bought", {}))
)


@pytest.fixture(autouse=True)
def nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    yield
    placing._places.clear()
    placing._said.clear()
    BOTH._placed.clear()


# Money ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", ["none", "auto", "process"])
def test_parts_pay_from_one_account_wherever_they_live(isolation: Any) -> None:
    trace = execute(SPREE, BOTH, BOTH.tools, rules=ExecutionRules(isolation=isolation))
    assert [record.outcome.code or record.outcome.value for record in trace.records[1:]] == ["DECLINED", 600, 1]
    assert (trace.records[0].outcome.value["process"] == os.getpid()) == (isolation == "none")
    clock = ClockPolicy(call=10)
    execution = Execution(BOTH, BOTH.tools, rules=ExecutionRules(isolation=isolation), clock=clock)
    try:
        traces = [execution.run(Program((call,))) for call in SPREE.calls]
    finally:
        execution.close()
    assert [one.records[0].outcome.code or one.records[0].outcome.value for one in traces[1:]] == ["DECLINED", 600, 1]


@pytest.mark.parametrize("hazards", [None, Hazards((Fault("stale_read", 0.0),))])
@pytest.mark.parametrize("clock", [None, ClockPolicy(call=10)])
def test_of_a_call_that_the_bank_declines_nothing_has_happened(hazards: Any, clock: Any) -> None:
    def opened() -> Any:
        session = BOTH.open()
        session.keep_time(clock)
        session.meet_hazards(hazards)
        session.call("buy", {"cents": 300})
        return session

    tried, untried = opened(), opened()
    assert tried.digest() == untried.digest()
    assert tried.call("buy", {"cents": 701}).code == "DECLINED"
    assert untried.call("buy", {"cents": "701"}).kind == "schema_error"
    assert tried.now == untried.now, "it took its time all the same"
    assert tried.digest() == untried.digest()
    for session in (tried, untried):
        assert session.call("buy", {"cents": 700}).value["bought"] == 2
        assert session.call("balance", {}).value == 0
    assert tried.digest() == untried.digest()
    assert tried.fork().diff() == untried.diff()


def test_a_part_in_a_process_of_its_own_shares_no_money_and_says_so() -> None:
    for parts in ([cw.isolated(foreign.SHOP), foreign.BANK], [foreign.SHOP, cw.isolated(foreign.BANK)]):
        with pytest.raises(UsageError, match=r"lives in a process of its own.*isolate the whole.*money=\"own\""):
            ComposedEnvironment(parts)
        session = ComposedEnvironment(parts, money="own").open()
        assert session.call("buy", {"cents": 400}).kind == "ok"
        assert session.call("balance", {}).value == 1000
        session.close()


# Hazards --------------------------------------------------------------------------------------------------------------


def test_hazards_may_be_those_of_one_part() -> None:
    session = BOTH.open()
    stated = read_hazards("bank.unavailable=1,shop.limit=1/60")
    assert read_hazards(json.loads(json.dumps(stated.to_json()))) == stated
    assert stated.faults == (Fault("unavailable", 1.0, ("bank.*",)),)
    assert stated.limits == (RateLimit(1, 60, "shop.*"),)
    session.meet_hazards(stated)
    assert [session.call("balance", {}).code for _ in range(3)] == ["UNAVAILABLE", "UNAVAILABLE", ""]
    assert [session.call("bought", {}).code for _ in range(3)] == ["", "RATE_LIMITED", "RATE_LIMITED"]
    alone = foreign.BANK.open()
    alone.meet_hazards(stated)
    assert alone.call("balance", {}).kind == "ok"
    with pytest.raises(DataError, match="a fault is one of"):
        read_hazards("bank.broken=1")


def test_time_that_a_part_elsewhere_loses_passes_for_all() -> None:
    there = ComposedEnvironment([cw.isolated(foreign.SHOP), foreign.BANK], money="own")
    here = ComposedEnvironment([foreign.SHOP, foreign.BANK], money="own")
    found = []
    for environment in (here, there):
        session = environment.open()
        begun = session.now
        session.keep_time(ClockPolicy(call=10))
        session.meet_hazards(Hazards((Fault("timeout", 1.0, ("bought",), seconds=30),)))
        outcomes = [
            session.call(tool, given) for tool, given in (("bought", {}), ("buy", {"cents": 1}), ("balance", {}))
        ]
        found.append(([outcome.code for outcome in outcomes], session.now - begun, session.digest()))
        session.close()
    assert found[0] == found[1]
    assert found[0][:2] == (["TIMED_OUT", "", ""], 64)


# The state ------------------------------------------------------------------------------------------------------------


def test_a_state_goes_on_in_another_session() -> None:
    session = BOTH.open()
    session.keep_time(ClockPolicy(call=10))
    session.call("buy", {"cents": 400})
    state = json.loads(json.dumps(session.dump()))
    other = BOTH.open()
    other.load(state)
    assert other.now == session.now
    assert other.dump() == state
    assert other.call("buy", {"cents": 601}).code == "DECLINED", "what was paid is paid once"
    assert other.call("buy", {"cents": 600}).kind == "ok"
    assert other.call("balance", {}).value == 0
    with pytest.raises(DataError, match=r"part in the state.*'shopp'.*Did you mean 'shop'"):
        other.load({"now": 0, "parts": {"shopp": {"now": 0, "tables": {}}}})
    with pytest.raises(DataError, match=r"shop: .*'purchase'"):
        other.load({"now": 0, "parts": {"shop": {"now": 0, "tables": {"purchase": []}}}})
    functions = ComposedEnvironment([foreign.SHOP, cw.environment("plain", tools=[_one])])
    with pytest.raises(UsageError, match="the state of 'plain' is not in tables"):
        functions.open().dump()


@cw.tool
def _one() -> int:
    """One."""
    return 1
