"""Executors give the same results in the same order, and a worker that dies takes nothing with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

import callwright as cw
from callwright.errors import ComponentError, MissingExtra, RunError, UnknownName, UsageError
from callwright.machines import in_order
from callwright.machines.chunk_work import ChunkWork
from callwright.machines.executors import EXECUTORS, make_executor
from callwright.machines.interrupts import Interrupted
from callwright.plugins import load_plugins

SUPPORT = Path(__file__).parent / "support"
LOCAL = ["serial", "thread", "process"]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of work, which spawned processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import executor_work

    return executor_work


CHUNKS = [[number, number + 1] for number in range(25)]


@pytest.mark.parametrize("name", LOCAL)
def test_results_come_in_order(work: Any, name: str) -> None:
    with make_executor(name, 3) as executor:
        assert (executor.name, executor.workers) == (name, 3)
        doubled = ChunkWork(partial(work.prepare, 1), work.double)
        assert list(executor.map(doubled, iter(CHUNKS))) == [[2 * a + 1, 2 * b + 1] for a, b in CHUNKS]
        assert list(executor.map(doubled, [])) == []


def test_who_stops_reading_waits_for_nothing_that_a_worker_took(
    monkeypatch: pytest.MonkeyPatch, taken_queue: type[SimpleQueue[Any]]
) -> None:
    """A worker takes the last job that waits just when the reader looks whether any is left."""

    monkeypatch.setattr(in_order, "SimpleQueue", taken_queue)
    held = threading.Event()

    def work(chunk: int) -> int:
        if chunk:
            held.wait()
        return chunk

    results: Any = in_order.in_order([work], range(9))
    assert next(results) == 0
    ended = threading.Thread(target=results.close, daemon=True)
    ended.start()
    ended.join(20)
    held.set()
    assert not ended.is_alive()


def test_preparation_is_done_once_a_worker(work: Any) -> None:
    with make_executor("process", 2) as executor:
        places = list(executor.map(ChunkWork(work.prepare, work.where), range(20)))
    assert all(prepared == ran != os.getpid() for prepared, ran in places)
    assert len({ran for _, ran in places}) <= 2


@pytest.mark.parametrize("name", LOCAL)
def test_what_work_raises_arrives(work: Any, name: str) -> None:
    with make_executor(name, 2) as executor:
        results = executor.map(ChunkWork(work.prepare, work.unknown), range(9))
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(UnknownName, match="no thing named 'x'") as caught:
            next(results)
        assert caught.value.known == ("y",)
        assert caught.value.exit_status == 2
        with pytest.raises(UsageError, match="no such corpus"):
            list(executor.map(ChunkWork(work.bad_preparation, work.unknown), range(3)))


def test_an_error_that_cannot_travel_arrives_in_words(work: Any) -> None:
    with make_executor("process", 1) as executor, pytest.raises(ComponentError, match="Stubborn in a worker: stubborn"):
        list(executor.map(ChunkWork(work.prepare, work.stubborn), [1]))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_loses_nothing(work: Any, tmp_path: Path, workers: int) -> None:
    with make_executor("process", workers) as executor:
        squares = ChunkWork(work.prepare, partial(work.die_once, str(tmp_path)))
        assert list(executor.map(squares, range(20))) == [number * number for number in range(20)]
    assert (tmp_path / "died").exists()


def test_a_chunk_that_kills_every_worker_ends_the_work(work: Any) -> None:
    with make_executor("process", 2) as executor:
        results = executor.map(ChunkWork(work.prepare, work.die_always), range(9))
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(RunError, match="same chunk of work"):
            next(results)


def test_wrong_requests() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'process'"):
        make_executor("processes", 2)
    with pytest.raises(UsageError, match="1 or more"):
        make_executor("thread", 0)
    assert list(EXECUTORS) == ["serial", "thread", "process", "ray"]


def test_every_error_can_travel() -> None:
    import pickle

    for error in (
        UnknownName("a", "b", ["c"]),
        MissingExtra("x", "ray", "ray"),
        cw.ToolError("C", "m"),
        UsageError("u"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


def plugin_list(registry: cw.Registry) -> list[tuple[str, str, str, str]]:
    return [(kind, lazy.name, lazy.plugin, str(lazy.target)) for kind, lazy in registry.components()]


def test_plugins_load_identically_in_a_spawned_worker(work: Any) -> None:
    registry = load_plugins(blocked=["report"])
    import callwright_plugins.toolworld as module

    other = load_plugins(entry_points=False, extra={"mine": module})
    with make_executor("process", 1) as executor:
        found = list(
            executor.map(ChunkWork(work.prepare, work.components_of), [registry.description(), other.description()])
        )
    assert found == [plugin_list(registry), plugin_list(other)]
    with pytest.raises(UsageError, match="object of this process"):
        load_plugins(entry_points=False, extra={"mine": object()}).description()


_RAY = """
import json, sys
from functools import partial
import callwright as cw
import executor_work as work
from callwright.machines import ChunkWork, make_executor
from callwright.errors import RunError, UnknownName
from callwright.plugins import load_plugins

registry = load_plugins(blocked=["report"])
found = {}
with make_executor("ray", 2) as executor:
    doubled = ChunkWork(partial(work.prepare, 1), work.double)
    found["doubled"] = list(executor.map(doubled, [[n, n + 1] for n in range(25)]))
    found["plugins"] = list(executor.map(ChunkWork(work.prepare, work.components_of), [registry.description()]))
    found["squares"] = list(executor.map(ChunkWork(work.prepare, partial(work.die_once, sys.argv[1])), range(20)))
    try:
        list(executor.map(ChunkWork(work.prepare, work.unknown), range(9)))
    except UnknownName as error:
        found["error"] = str(error)
    try:
        list(executor.map(ChunkWork(work.prepare, work.die_always), range(9)))
    except RunError as error:
        found["death"] = str(error)
print(json.dumps(found))
"""


def test_ray_is_loaded_when_it_is_asked_for() -> None:
    program = "import sys, callwright.machines.executors as e; e.make_executor('process', 2); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "callwright.machines.executors" in loaded
    assert not {"ray", "callwright.machines.on_ray.executor"} & set(loaded)


def test_what_ray_makes_of_a_signal_while_it_starts_is_that_signal(work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the process by ``sys.exit(15)``."""
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **_: sys.exit(signal.SIGTERM))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with make_executor("ray", 1) as executor, pytest.raises(Interrupted) as stopped:
        list(executor.map(ChunkWork(partial(work.prepare, 1), work.double), CHUNKS))
    assert stopped.value.exit_status == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'callwright[ray]'")
def test_ray_gives_the_same_and_survives_a_killed_actor(work: Any, tmp_path: Path) -> None:
    """In a process of its own, since Ray changes signal handlers and warnings of the process that it lives in."""
    done = subprocess.run(
        [sys.executable, "-c", _RAY, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["doubled"] == [[2 * a + 1, 2 * b + 1] for a, b in CHUNKS]
    assert [tuple(row) for row in found["plugins"][0]] == plugin_list(load_plugins(blocked=["report"]))
    assert found["squares"] == [number * number for number in range(20)]
    assert (tmp_path / "died").exists()
    assert "no thing named 'x'" in found["error"]
    assert "same chunk of work" in found["death"]
