"""Values travel: pickled, copied, and scored in processes that were started afresh."""

from __future__ import annotations

import copy
import gc
import hashlib
import importlib
import multiprocessing
import pickle
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright import pickling
from callwright.environments import Base
from callwright.plugins import Registry, load_plugins
from callwright.testing.pickling import elsewhere

sys.path.append(str(Path(__file__).parent / "machines" / "support"))
sys.path.append(str(Path(__file__).parent / "support"))  # which processes that are started here are told of
pickled: Any = importlib.import_module("sent_values")


@pytest.fixture(autouse=True)
def _nothing_else_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests of this process made, with registries of their own, answers to the same descriptions."""
    monkeypatch.setattr(pickling, "_LIVING", weakref.WeakValueDictionary())
    monkeypatch.setattr(pickling, "_RECENT", deque(maxlen=16))


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as made:
        yield made


# Tools ----------------------------------------------------------------------------------------------------------------


def test_a_specification_forgets_what_it_compiled() -> None:
    spec = pickled.days.spec
    before = pickle.dumps(spec)
    spec_compiled = spec.compiled
    assert pickle.dumps(spec) == before
    assert again(spec) == spec == copy.deepcopy(spec)
    assert "compiled" not in again(spec).__dict__
    assert spec.compiled is spec_compiled


def test_a_copy_of_a_specification_may_be_changed() -> None:
    spec = copy.deepcopy(pickled.days.spec)
    spec.parameters["properties"]["weeks"]["type"] = "string"
    assert pickled.days.spec.parameters["properties"]["weeks"]["type"] == "integer"


@pytest.mark.parametrize("tool", [pickled.days, pickled.another_name])
def test_a_tool_is_found_by_the_name_of_its_function(tool: Any) -> None:
    tool.call(None, {"weeks": 2})
    assert again(tool) is tool
    assert copy.copy(tool) is copy.deepcopy(tool) is tool


def test_a_tool_beside_its_function_and_one_with_another_specification() -> None:
    assert again(pickled.WRAPPED) == pickled.WRAPPED
    assert again(pickled.METHOD).call(None, {"days": 2}) == 48
    other = evolve(pickled.days, spec=evolve(pickled.days.spec, description="Other words."))
    assert again(other) == other
    assert again(other).call(None, {"weeks": 3}) == 21


def test_a_local_tool_says_what_to_do() -> None:
    tool = pickled.local_tool()
    with pytest.raises(cw.UsageError) as caught:
        pickle.dumps(tool)
    assert str(caught.value) == (
        "the tool 'count' cannot be sent to another process: it is the function 'local_tool.<locals>.count' of the "
        "module 'sent_values', which no process can find by that name, because it is made inside of "
        "another function. Define it with def at the top level of a module that both processes can import"
    )
    assert copy.deepcopy(cw.environment("local", tools=[tool])).open().call("count", {"text": "abc"}).value == 3


def test_a_tool_whose_name_was_taken_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = pickled.days
    monkeypatch.setattr(pickled, "days", 7)
    with pytest.raises(cw.UsageError, match="because that name stands for something else there"):
        pickle.dumps(tool)


MAIN = """
import pickle, sys
import callwright as cw

@cw.tool
def days(weeks: int) -> int:
    "Days."
    return 7 * weeks

if sys.argv[1] == "same":
    assert pickle.loads(pickle.dumps(days)) is days
else:
    sys.stdout.write(pickle.dumps(days).hex())
"""


def test_a_tool_of_a_script_is_found_in_that_script_only() -> None:
    for how in ("same", "send"):
        found = subprocess.run([sys.executable, "-c", MAIN, how], capture_output=True, text=True, check=True)
    with pytest.raises(cw.UsageError) as caught:
        pickle.loads(bytes.fromhex(found.stdout))
    assert str(caught.value) == (
        "a tool was sent to this process as __main__.days, but there is no tool of this name; here another program is "
        "__main__. Keep tools in a module that both processes can import, and the same version of it"
    )


# Environments and sessions --------------------------------------------------------------------------------------------


def test_an_environment_of_a_registry_is_pickled_by_its_name() -> None:
    bank = cw.environment("banking")
    bank.open("typical", 3).call("list_accounts", {})
    assert again(bank) is copy.deepcopy(bank) is bank
    assert len(pickle.dumps(bank)) < 300
    small = cw.environment("banking", scale=0.5)
    assert again(small) is small
    assert again(small) is not bank
    there = elsewhere(small, "a small bank")
    assert there is not small
    assert there.scale == 0.5
    assert there.open("typical", 3).digest() == small.open("typical", 3).digest()


def test_one_object_answers_to_one_description_while_it_is_used() -> None:
    text = pickle.dumps(cw.environment("banking", scale=0.25))
    first = pickle.loads(text)
    assert pickle.loads(text) is first
    seen = weakref.ref(first)
    del first
    pickling._RECENT.clear()
    gc.collect()
    assert seen() is None
    assert pickle.loads(text).scale == 0.25


def test_an_environment_of_a_registry_with_objects_is_pickled_by_its_parts() -> None:
    ours = load_plugins(extra={"ours": SimpleNamespace()})
    bank = ours.create("environment", "banking")
    copied = elsewhere(bank, "the bank")
    assert copied.open("typical", 3).digest() == bank.open("typical", 3).digest()
    assert len(pickle.dumps(bank)) < 40_000  # its tools and scenarios by name, no rows


def test_a_library_made_by_hand() -> None:
    here = pickled.library(scale=2.0)
    session = here.open("", 7)
    for _ in range(3):
        assert session.call("lend", {"book_id": "B00002"}).kind in ("ok", "execution_error")
        assert session.call("buy", {"shelf": 2}).kind == "ok"
    before = session.digest()
    for other in (again(session), copy.deepcopy(session), elsewhere(session, "the session")):
        assert other.digest() == before
        assert other.world.now == session.world.now
        assert other.world.dump() == session.world.dump()
        assert other.call("buy", {"shelf": 1}) == session.fork().call("buy", {"shelf": 1})
        assert other.digest() != before
        assert other.call("lend", {"book_id": "nobody"}).kind == "execution_error"
    assert session.digest() == before
    assert copy.deepcopy(session).world.base is session.world.base


def test_sessions_share_their_base_where_they_arrive() -> None:
    one, other = again([pickled.library().open("", 7), pickled.library().open("", 7)])
    assert one.world.base is not other.world.base  # two libraries were sent
    bank = cw.environment("banking")
    one, other = again(bank.open("typical", 7)), again(bank.open("typical", 7))
    assert one.world.base is other.world.base is bank.open("typical", 7).world.base


def test_a_state_that_was_loaded_travels_with_its_rows() -> None:
    session = pickled.library().open("", 7)
    session.call("buy", {"shelf": 3})
    loaded = pickled.library().open("", 7)
    assert loaded.helper("_load_scenario", {"state": session.world.dump()}).kind == "ok"
    copied = elsewhere(loaded, "the session")
    assert copied.digest() == loaded.digest()
    assert copied.world.dump() == session.world.dump()
    base: Base = loaded.world.base
    assert copy.deepcopy(base) is base


def test_writes_outside_of_calls_travel_too() -> None:
    session = pickled.library().open("", 7)
    session.world.put(pickled.Book("B90000", 1, 1))
    assert again(session).digest() == session.digest()


def test_a_closed_session_and_its_faults() -> None:
    session = pickled.library().open()
    session.helper("_inject_fault", {"tool": "buy", "code": "BROKEN", "nth": 2})
    other = again(session)
    assert [other.call("buy", {"shelf": 1}).kind for _ in range(2)] == ["ok", "execution_error"]
    session.close()
    with pytest.raises(cw.UsageError, match="is closed"):
        again(session).call("buy", {"shelf": 1})


def test_function_environments_and_their_sessions() -> None:
    diary = cw.environment("diary", tools=[pickled.note, pickled.days], state=pickled.notes)
    session = diary.open("monday", 4)
    session.call("note", {"text": "a"})
    other = elsewhere(session, "the session")
    assert other.state == ["monday", "4", "a"]
    assert other.call("note", {"text": "b"}).value == 4
    assert session.digest() != other.digest()
    assert elsewhere(diary, "the diary").open("x", 1).state == ["x", "1"]
    assert copy.deepcopy(diary) is diary
    assert again(diary).tools["note"] is pickled.note.spec
    local = cw.environment("diary", tools=[pickled.note], state=lambda scenario, seed: [])
    with pytest.raises(cw.UsageError, match=r"the state of environment 'diary' cannot be sent .*at the top level"):
        pickle.dumps(local)
    lambdas = cw.StatefulEnvironment(
        "l", rows=[pickled.Book], tools=[], scenarios={"one": cw.Scenario(lambda random, scale: [])}
    )
    with pytest.raises(cw.UsageError, match=r"scenario 'one' of environment 'l' cannot be sent .*at the top level"):
        pickle.dumps(lambdas)


# Registries -----------------------------------------------------------------------------------------------------------


def test_a_registry_is_pickled_as_its_description() -> None:
    registry = load_plugins(blocked=["report"])
    registry.add(pickled, name="sent")
    other = again(registry)
    assert isinstance(other, Registry)
    assert other is not registry
    assert other.description() == registry.description()
    assert pickled.names_of(other) == pickled.names_of(registry)
    assert len(pickle.dumps(registry)) < 300


def test_a_registry_with_objects_says_what_to_do() -> None:
    with pytest.raises(cw.UsageError, match=r"'ours' is an object of this process.*add an importable module instead"):
        pickle.dumps(load_plugins(extra={"ours": SimpleNamespace()}, entry_points=False))


# Tasks and what becomes of them ---------------------------------------------------------------------------------------

CORPORA = ["toolworld-mini-v1", "depthbench-v1"]


def fingerprint(value: Any) -> str:
    """As caches of data sets name what was computed with a value."""
    return hashlib.sha256(pickle.dumps(value)).hexdigest()


@pytest.mark.parametrize("name", CORPORA)
def test_a_task_is_the_same_before_and_after_it_was_scored(name: str) -> None:
    corpus, form, recipe = cw.corpus(name), cw.parser("json"), cw.reward("tier")
    for split in corpus.splits:
        task = corpus[split][1]
        before = fingerprint([task, recipe, form])
        attempt = cw.Attempt(task, form.render(task.program), form)
        reward = recipe.score_attempt(attempt)
        assert reward.total == 1.0
        assert fingerprint([task, recipe, form]) == before
        other = again(attempt)
        assert recipe.score_attempt(other) == reward == again(reward)
        assert other.trace == attempt.trace
        assert other.task.environment is task.environment
        assert again(task) == task == copy.deepcopy(task)
        assert len(pickle.dumps(task)) < 10_000


def test_corpora_and_their_splits_are_pickled_as_how_they_were_made() -> None:
    for corpus in (cw.corpus("toolworld-mini-v1", seed=4), cw.corpus("depthbench-v1")):
        for split in corpus.splits:
            tasks = corpus[split]
            assert tasks[3].query
            other = elsewhere(tasks, "the tasks")
            assert (len(other), other[3], len(pickle.dumps(tasks)) < 300) == (len(tasks), tasks[3], True)
        assert again(corpus) is corpus


def test_processes_that_were_started_afresh_score_what_was_scored_here(pool: ProcessPoolExecutor) -> None:
    form = cw.parser("json")
    tasks, texts = [], []
    for name in CORPORA:
        corpus = cw.corpus(name)
        tasks += [corpus[split][index] for split in corpus.splits for index in (0, 5)]
    for task in tasks:
        texts.append(form.render(task.program))
        assert cw.reward("tier").score(task, texts[-1]).total == 1.0
    found = list(pool.map(pickled.total, tasks, texts))
    assert [total for total, _ in found] == [1.0] * len(tasks)
    assert len({place for _, place in found}) == len(CORPORA)  # one environment for all tasks of a corpus


def test_sessions_go_on_in_processes_that_were_started_afresh(pool: ProcessPoolExecutor) -> None:
    for environment, calls in (
        (pickled.library(), [("buy", {"shelf": 1}), ("lend", {"book_id": "B00001"})]),
        (cw.environment("banking"), [("list_customers", {}), ("find_customer", {})]),
    ):
        session = environment.open("", 5)
        pickled.go_on(session, calls)
        there = pool.submit(pickled.go_on, session, calls).result()
        assert there == pickled.go_on(session, calls)


def test_registries_travel_to_processes_that_were_started_afresh(pool: ProcessPoolExecutor) -> None:
    registry = load_plugins(blocked=["report", "lab"])
    assert pool.submit(pickled.names_of, registry).result() == pickled.names_of(registry)
