"""What the gates let through, and what they reject for which reason."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.functions import FunctionEnvironment
from callwright.language.program import Call, Program, plain
from callwright.plugins import default_registry
from callwright_plugins.synthesis.gates import GATES, gate
from callwright_plugins.synthesis.gates.attempts import comes_right, is_right
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.mutants import mutants
from callwright_plugins.synthesis.gates.replay import fingerprint, replayed_elsewhere
from callwright_plugins.synthesis.gates.running import further, run
from callwright_plugins.worlds_mini.corpus import WorldsMini

IDS = [task.id for task in cw.corpus("worlds-mini-v1")["validation"]]
EACH = 12


@cache
def corpus() -> WorldsMini:
    made: WorldsMini = cw.corpus("worlds-mini-v1")
    return made


def with_gold(task: cw.Task, turns: list[Program]) -> cw.Task:
    stated: list[dict[str, Any]] = [
        {"calls": [{"tool": call.tool, "arguments": plain(call.arguments)} for call in turn.calls]}
        if turn.calls
        else {"say": turn.text or "So it is."}
        for turn in turns
    ]
    return evolve(task, facts={**task.facts, "gold": stated})


# Conversations written by hand ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
def test_a_conversation_that_was_written_by_hand_passes_all_gates(name: str) -> None:
    gated = gate(corpus().task(name))
    assert gated.rejected is None
    assert gated.passed == tuple(one.name for one in GATES)


@pytest.mark.parametrize("name", IDS[::3])
def test_a_mutant_in_the_place_of_its_reference_never_passes(name: str) -> None:
    task = corpus().task(name)
    for what, turns in corpus().mutants(name):
        if any(call.id != place for turn in turns for place, call in enumerate(turn.calls)):
            continue  # without a call, what refers to later ones cannot be written down
        rejected = gate(with_gold(task, turns)).rejected
        assert rejected is not None, what
        assert rejected.stage in ("replay", "sound"), (what, rejected)


def test_a_reference_in_another_legal_order_passes_too() -> None:
    tried = 0
    for name in IDS[::4]:
        for turns in corpus().orders(name):
            tried += 1
            assert gate(with_gold(corpus().task(name), turns)).rejected is None, name
    assert tried >= 5


def test_mutants_of_every_kind_are_drawn_and_are_always_the_same() -> None:
    kinds: Counter[str] = Counter()
    for name in IDS[:8]:
        case = Case(corpus().task(name), None, default_registry())
        found = list(mutants(case))
        assert found == list(mutants(Case(corpus().task(name), None, default_registry())))
        assert all(one.turns != tuple(case.turns) for one in found)
        kinds.update(one.kind for one in found)
    assert set(kinds) == {"entity", "tool", "dropped", "value", "too many"}


# What gates do not do twice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS[::7])
def test_runs_that_remember_come_to_what_fresh_sessions_come_to(name: str) -> None:
    case = Case(corpus().task(name), None, default_registry())
    for turns in [case.turns, (), *(one.turns for one in islice(mutants(case), 8))]:
        here, fresh = case.run(turns), run(case.task, turns)
        assert fingerprint(here) == fingerprint(fresh)
        assert (here.state, here.first, here.first_digest) == (fresh.state, fresh.first, fresh.first_digest)
        assert (here.reached is None) == (fresh.reached is None)
        assert here.reached is None or fresh.reached is None or here.reached.equal == fresh.reached.equal


@pytest.mark.parametrize("name", IDS[::7])
def test_further_calls_come_to_what_all_of_them_come_to_at_once(name: str) -> None:
    case = Case(corpus().task(name), None, default_registry())
    at = max(place for place, turn in enumerate(case.turns) if turn.calls)
    turn = case.turns[at]
    looks = [spec.name for spec in case.task.tools.values() if not spec.hidden][:5]
    calls = [Call(len(turn.calls) + place, tool, {}) for place, tool in enumerate(looks)]
    at_once = run(case.task, [*case.turns[:at], evolve(turn, calls=(*turn.calls, *calls))]).turns[-1]
    found = list(further(case.task, case.turns[: at + 1], calls, case.environment))
    assert [record for _, _, record in found] == list(at_once[len(turn.calls) :])
    assert [before for _, before, _ in found] == [one.state for one in at_once[len(turn.calls) - 1 : -1]]


@pytest.mark.parametrize("name", IDS[::3])
def test_whoever_calls_nothing_has_done_nothing_after_one_turn_as_after_ten(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = is_right(Case(corpus().task(name), None, default_registry()), ())
    monkeypatch.setattr(Case, "goes_by_calls", False)
    assert is_right(Case(corpus().task(name), None, default_registry()), ()) == short


# Eight kinds of bad task ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planting(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("gates_benchmark", root / "benchmarks" / "gates.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gates_benchmark"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def goods(planting: ModuleType) -> list[Any]:
    found: list[Any] = planting.good_tasks(("crm", "iot_devices", "banking"), seeds=(0, 1), calls=900)
    return found


def test_good_tasks_are_not_lost(goods: list[Any]) -> None:
    assert len(goods) >= 100
    assert [(good.task.query, found) for good in goods if (found := gate(good.task).rejected) is not None] == []


@pytest.mark.parametrize(
    "kind",
    ["unsolvable", "already solved", "ambiguous", "foreign entity", "leaked secret", "wrong gold", "brittle answer"],
)
def test_bad_tasks_are_rejected_for_the_right_reason(planting: ModuleType, goods: list[Any], kind: str) -> None:
    tasks = planting.planted(goods, kind, EACH)
    assert len(tasks) >= 4
    assert Counter(planting.outcome(task, kind) for task in tasks) == {"right": len(tasks)}


def test_a_copy_with_other_words_is_a_near_duplicate(planting: ModuleType, goods: list[Any]) -> None:
    assert planting.duplicates_found(goods, EACH) == {"right": EACH}


# Replay ---------------------------------------------------------------------------------------------------------------


@cw.tool(read_only=True)
def which_process() -> int:
    """The number of this process."""
    return os.getpid()


COUNTED: list[int] = []


@cw.tool(read_only=True)
def count_up() -> int:
    """How often it was asked."""
    COUNTED.append(1)
    return len(COUNTED)


def odd_task(tool: str, answer: Any) -> cw.Task:
    environment = FunctionEnvironment("odd", [which_process, count_up])
    program = Program((Call(0, tool, {}),))
    return cw.Task("odd", "How many?", environment.tools, cw.Answer((answer,)), environment, program=program)


@pytest.mark.parametrize("name", IDS[::5])
def test_what_is_right_is_what_evaluate_calls_right(name: str) -> None:
    case = Case(corpus().task(name), None, default_registry())
    variants = [case.turns, (), *(one.turns for one in islice(mutants(case), 8))]
    verdicts = [is_right(case, turns) for turns in variants]
    assert verdicts[0]
    assert [comes_right(case, turns) for turns in variants] == verdicts
    assert not all(verdicts)


def test_an_answer_beside_a_goal_that_nothing_changes_is_no_task() -> None:
    """Evaluate goes by the goal then, and whoever calls nothing has reached it."""
    bank = cw.environment("banking")
    session = bank.open("", 4)
    call = Call(0, "get_account", {"account_id": "A00002"})
    answer = cw.Answer((session.call(call.tool, dict(call.arguments)).value,))
    unchanged = {"state": session.goal_state()}  # type: ignore[attr-defined]
    session.close()
    task = cw.Task("t", "What is on account A00002?", bank.tools, answer, bank, seed=4, program=Program((call,)))
    assert gate(task).rejected is None
    rejected = gate(evolve(task, facts={"goal": unchanged})).rejected
    assert rejected is not None
    assert (rejected.stage, rejected.reason) == ("sound", "doing nothing earns it")


def test_what_differs_from_call_to_call_is_no_task() -> None:
    rejected = gate(odd_task("count_up", 1)).rejected
    assert rejected is not None
    assert (rejected.stage, rejected.reason) == ("replay", "another end when it is made again")


def test_a_task_without_a_reference_cannot_be_replayed() -> None:
    rejected = gate(evolve(odd_task("count_up", 1), program=None)).rejected
    assert rejected is not None
    assert rejected.reason == "there is no reference"


def test_a_reference_that_cannot_be_read_is_said_to_be_so() -> None:
    rejected = gate(evolve(odd_task("count_up", 1), facts={"gold": [{"shout": 1}]})).rejected
    assert rejected is not None
    assert "'say' or with 'calls'" in rejected.evidence["error"]


def test_what_differs_from_process_to_process_is_found_in_another_one() -> None:
    same, other = replayed_elsewhere([corpus().task(IDS[0]), odd_task("which_process", os.getpid())])
    assert same is None
    assert other is not None
    assert other.reason == "another end in another process"


def test_a_process_that_cannot_replay_is_said_to_have_ended() -> None:
    """Read from standard input, a program is no file that another process could import."""
    program = (
        "from callwright_plugins.synthesis.gates.replay import replayed_elsewhere\n"
        "from callwright_plugins.worlds_mini.corpus import WorldsMini\n"
        f"replayed_elsewhere([WorldsMini().task({IDS[0]!r})])\n"
    )
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the process that replays references ended after 0 tasks" in done.stderr.splitlines()[-1]
