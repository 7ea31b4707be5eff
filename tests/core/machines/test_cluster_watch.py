"""What a killed command leaves of its cluster is ended, and nothing else; what a shut-down one leaves is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from callwright.machines.on_ray import cluster_watch
from callwright.machines.on_ray.cluster_watch import MARK, ClusterWatch, members

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

SLEEPER = "import time; time.sleep(600)"
#: Starts a watch, one process within the cluster and one after it, says their ids, and goes as it is told.
COMMAND = f"""
import subprocess, sys, time
from callwright.machines.on_ray.cluster_watch import ClusterWatch
watch = ClusterWatch.start()
inside = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
watch.started()
outside = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
print(inside.pid, outside.pid, watch.mark, flush=True)
if sys.argv[1] == "close":
    watch.close()
elif sys.argv[1] == "end":
    watch.close(end=True)
else:
    time.sleep(600)
"""


@pytest.fixture
def ended() -> Iterator[list[int]]:
    processes: list[int] = []
    yield processes
    for process in processes:
        if lives(process):
            os.kill(process, signal.SIGKILL)


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone_within(seconds: float, process: int) -> bool:
    end = time.monotonic() + seconds
    while lives(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not lives(process)


@pytest.mark.parametrize("how", ["killed", "killed with its group", "end", "close"])
def test_what_has_the_mark_is_ended_unless_the_cluster_was_shut_down(how: str, ended: list[int]) -> None:
    words = [sys.executable, "-c", COMMAND, how]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as command:
        assert command.stdout is not None
        inside, outside, mark = command.stdout.readline().split()
        ended += [int(inside), int(outside)]
        if how == "killed":
            assert members(mark) == [int(inside)]
            command.kill()
        elif how == "killed with its group":
            child = subprocess.Popen([sys.executable, "-c", SLEEPER], env={**os.environ, MARK: mark})
            ended.append(child.pid)  # of another session, as Ray's workers are
            os.killpg(command.pid, signal.SIGKILL)
            assert child.wait(60) == -signal.SIGKILL
        command.wait(120)
    if how == "close":
        assert lives(int(inside))
    else:
        assert gone_within(60, int(inside))
    if how != "killed with its group":
        assert lives(int(outside))


@pytest.mark.parametrize(
    ("title", "session", "found"),
    [
        ("ray::DashboardAgent", "session_2026-11-28_07-17-35_025560_4711", True),
        ("ray::DashboardAgent", "session_2026-11-28_07-17-35_025560_47110", False),
        ("tail", "session_2026-11-28_07-17-35_025560_4711", False),
    ],
    ids=["an agent", "of another cluster", "who looks into it"],
)
def test_an_agent_without_the_mark_is_known_by_its_title_and_its_files(
    title: str, session: str, found: bool, ended: list[int], tmp_path: Path
) -> None:
    log = tmp_path / session / "logs" / "agent.log"
    log.parent.mkdir(parents=True)
    words = [title, "-c", f"file = open({str(log)!r}, 'w'); print('open', flush=True); {SLEEPER}"]
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    with subprocess.Popen(
        words, executable=sys.executable, stdout=subprocess.PIPE, text=True, env=environment
    ) as agent:
        ended.append(agent.pid)
        assert agent.stdout is not None
        assert agent.stdout.readline() == "open\n"
        assert (agent.pid in members("4711-1")) == found
        agent.kill()


def test_nothing_is_watched_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster_watch, "_PROCESSES", str(tmp_path))
    watch = ClusterWatch.start()
    assert MARK not in os.environ
    watch.started()
    watch.close()


_RAY = """
import time
from functools import partial
import executor_work as work
from callwright.machines import ChunkWork, make_executor
with make_executor("ray", 1) as executor:
    for _ in executor.map(ChunkWork(partial(work.prepare, 1), work.double), [[n] for n in range(3)]):
        print(executor._watch.mark, flush=True)
        time.sleep(600)
"""


def agents(mark: str) -> set[int]:
    """Ray's agents that have set their titles and were started by a process of the cluster."""
    cluster, found = members(mark), set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            title = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in cluster and title.startswith((b"ray::DashboardAgent", b"ray::RuntimeEnvAgent")):
                found.add(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'callwright[ray]'")
def test_of_a_killed_command_nothing_of_ray_is_left() -> None:
    support = Path(__file__).parent / "support"
    environment = {**os.environ, "PYTHONPATH": str(support), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, "-c", _RAY], stdout=subprocess.PIPE, text=True, env=environment) as command:
        assert command.stdout is not None
        mark = command.stdout.readline().strip()
        assert len(members(mark)) >= 3  # the control store, the raylet, an actor
        end = time.monotonic() + 60
        while len(found := agents(mark)) < 2 and time.monotonic() < end:
            time.sleep(0.1)
        assert len(found) == 2
        assert found <= set(members(mark)), "their titles may have taken the mark's place"
        command.kill()
        command.wait()
    end = time.monotonic() + 30  # Ray's agents alone would take a minute
    while members(mark) and time.monotonic() < end:
        time.sleep(0.1)
    assert members(mark) == []
