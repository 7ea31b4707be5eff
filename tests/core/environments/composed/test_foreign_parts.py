"""Foreign parts of a composed environment live in processes of their own; the others stay here."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
import callwright.machines.command_folder as common
from callwright.environments import clock
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.isolated import placing
from callwright.environments.sessions import is_foreign
from callwright.language.program import Call, Program
from callwright.walk.execution import Execution, ExecutionRules, execute

sys.path.append(str(Path(__file__).parents[2] / "support"))
wild_tools: Any = importlib.import_module("wild_tools")

WILD = cw.environment("wild", tools=wild_tools.TOOLS, state=wild_tools.numbers)
BOTH = ComposedEnvironment([cw.environment("calendar"), WILD])
WHO = Program((Call(0, "process", {}), Call(1, "list_calendars", {})))


@pytest.fixture(autouse=True)
def nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    yield
    clock._stuck.clear()
    placing._places.clear()
    placing._said.clear()
    BOTH._placed.clear()


@pytest.mark.parametrize("isolation", ["auto", "process", "none"])
def test_the_rules_say_where_they_live(isolation: Any) -> None:
    trace = execute(WHO, BOTH, BOTH.tools, rules=ExecutionRules(isolation=isolation))
    assert [record.outcome.kind for record in trace.records] == ["ok", "ok"]
    assert (trace.records[0].outcome.value == os.getpid()) == (isolation == "none")


def test_only_the_foreign_part_is_moved() -> None:
    there = BOTH.placed("auto", None)
    assert [one is other for one, other in zip(there.parts, BOTH.parts, strict=True)] == [True, False]
    assert there is BOTH.placed("auto", None)
    assert (is_foreign(BOTH), is_foreign(there)) == (True, False)
    assert BOTH.placed("none", None) is BOTH
    pair = ComposedEnvironment([cw.environment("calendar"), cw.environment("email")])
    assert pair.placed("auto", None) is pair
    assert not is_foreign(pair)


def test_what_a_foreign_part_breaks_is_masked_and_the_digest_is_the_same_there() -> None:
    here, there = (ExecutionRules(isolation=where) for where in ("none", "auto"))
    program = Program((Call(0, "add", {"n": 3}), Call(1, "list_calendars", {})))
    traces = [execute(program, BOTH, BOTH.tools, rules=rules) for rules in (here, there)]
    assert traces[0].final_state == traces[1].final_state
    assert traces[0].records[0].outcome == traces[1].records[0].outcome
    broken = execute(Program((Call(0, "leave", {"status": 3}),)), BOTH, BOTH.tools, rules=there)
    assert broken.masked is not None
    late = execute(
        Program((Call(0, "sleep", {"seconds": 30.0}),)),
        BOTH,
        BOTH.tools,
        rules=ExecutionRules(isolation="auto", time_limit=0.5),
    )
    assert late.masked is not None
    assert late.records[0].outcome.code == "timeout"


def test_a_session_with_a_foreign_part_goes_on_over_several_programs() -> None:
    execution = Execution(BOTH, BOTH.tools, rules=ExecutionRules(isolation="auto"), clock=cw.environments.ClockPolicy())
    try:
        first = execution.run(Program((Call(0, "add", {"n": 3}),)))
        second = execution.run(Program((Call(0, "add", {"n": 4}),)))
    finally:
        execution.close()
    assert (first.records[0].outcome.value, second.records[0].outcome.value) == ([3], [3, 4])


def test_a_stateful_part_in_a_process_of_its_own_has_the_same_clock() -> None:
    home = cw.environment("food_delivery")
    pairs = [ComposedEnvironment([cw.environment("calendar"), one]) for one in (home, cw.isolated(home))]
    sessions = [pair.open("typical", 1) for pair in pairs]
    for session in sessions:
        session.keep_time(cw.environments.ClockPolicy())
    told = []
    for session in sessions:
        session.call("list_calendars", {})
        session.elapse(86_400)
        outcome = session.call("list_calendars", {})
        told.append(
            (outcome, outcome.notices, session.now, session.goal_state(), session.digest(), session.briefing()[-200:])
        )
        session.close()
    assert told[0][:4] == told[1][:4]
    assert told[0][4] == told[1][4]
