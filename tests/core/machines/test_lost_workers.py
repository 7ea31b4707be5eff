"""Workers that die or hang: what is to blame is found by halving, and no worker outlives who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import RunError
from callwright.machines.chunk_work import ChunkWork, Salvage, WorkerLost, run_to_the_end
from callwright.machines.executors import make_executor

SUPPORT = Path(__file__).parent / "support"


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of work, which spawned processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import executor_work

    return executor_work


def test_what_kills_or_hangs_a_process_is_found_and_the_rest_is_done(work: Any) -> None:
    salvage = Salvage(work.halves, work.joined, work.lost)
    chunks = [list(range(start, start + 4)) for start in range(8, 24, 4)]  # two halvings each: enough to find one
    squares = ChunkWork(work.prepare, work.squares, salvage, time_limit=1.0)
    with make_executor("process", 2) as executor:
        found = work.joined(list(executor.map(squares, chunks)))
    assert [one for one in found if not isinstance(one, tuple)] == [n * n for n in range(8, 24) if n not in (13, 17)]
    assert [one for one in found if isinstance(one, tuple)] == [
        (13, "its process was killed by SIGKILL"),
        (17, "no result after 1 s"),
    ]
    assert found.index((13, "its process was killed by SIGKILL")) == 13 - 8  # in its place


def test_a_slow_start_and_deaths_before_it_are_not_charged_to_a_chunk(work: Any, tmp_path: Path) -> None:
    salvage = Salvage(work.halves, work.joined, work.lost)
    with make_executor("process", 1) as executor:
        slow = ChunkWork(partial(work.slow_start, 1.5), work.squares, salvage, time_limit=1.0)
        assert list(executor.map(slow, [[1], [13], [2]])) == [[1], [(13, "its process was killed by SIGKILL")], [4]]
        dying = ChunkWork(partial(work.die_before_it_is_ready, str(tmp_path), 2), work.squares, salvage, time_limit=1.0)
        assert list(executor.map(dying, [[3], [4]])) == [[9], [16]]


def test_workers_that_are_never_ready_end_the_work_in_words(work: Any, tmp_path: Path) -> None:
    salvage = Salvage(work.halves, work.joined, work.lost)
    with make_executor("process", 1) as executor:
        dying = ChunkWork(partial(work.die_before_it_is_ready, str(tmp_path), 9), work.squares, salvage)
        with pytest.raises(RunError, match=r"3 workers were lost .* before they could begin .*SIGKILL"):
            list(executor.map(dying, [[1]]))
        hanging = ChunkWork(partial(work.slow_start, 3600.0), work.squares, salvage, start_limit=0.5)
        with pytest.raises(RunError, match=r"not ready after 0\.5 s"):
            list(executor.map(hanging, [[1]]))


def test_without_salvage_a_chunk_that_hangs_ends_the_work(work: Any) -> None:
    with make_executor("process", 1) as executor, pytest.raises(RunError, match=r"no result after 0\.3 s"):
        list(executor.map(ChunkWork(work.prepare, work.squares, time_limit=0.3), [[17]]))


def test_a_thread_that_hangs_ends_the_work_in_words(work: Any) -> None:
    """In a process of its own, which has to end although the thread never does."""
    program = (
        "import executor_work as work\nfrom callwright.machines import ChunkWork, make_executor\n"
        "with make_executor('thread', 2) as executor:\n"
        "    try:\n"
        "        list(executor.map(ChunkWork(work.prepare, work.squares, time_limit=0.3), [[1], [17], [2]]))\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "a thread that hangs cannot be ended" in done.stdout


@pytest.mark.parametrize("size", [1, 2, 3, 64, 100])
def test_halving_finds_every_bad_number_with_few_tries(work: Any, size: int) -> None:
    bad = {0, size // 2, size - 1}
    asked: list[list[int]] = []

    def ask(chunk: list[int]) -> list[int]:
        asked.append(chunk)
        if bad & set(chunk):
            raise WorkerLost("dead")
        return list(chunk)

    made: Any = ChunkWork(work.prepare, work.squares, Salvage(work.halves, work.joined, work.lost))
    found = run_to_the_end(made, list(range(size)), ask)
    assert found == [(number, "dead") if number in bad else number for number in range(size)]
    assert len(asked) <= 3 + len(bad) * (2 * size.bit_length() + 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_no_worker_outlives_its_parent(work: Any, tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import sys\nfrom functools import partial\nimport executor_work as work\n"
        "from callwright.machines import ChunkWork, make_executor\n"
        "if __name__ == '__main__':\n"
        "    hang = ChunkWork(work.prepare, partial(work.names_itself_and_hangs, sys.argv[1]))\n"
        "    list(make_executor('process', 2).map(hang, range(4)))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.DEVNULL)
    workers: list[int] = []
    end = time.monotonic() + 120
    while len(workers) < 2 and time.monotonic() < end:
        workers = [int(one.name) for one in tmp_path.iterdir()]
        time.sleep(0.05)
    parent.send_signal(number)
    parent.wait(120)
    assert len(workers) == 2
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, workers))


def alive(process: int) -> bool:
    """Whether it runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_closing_the_executor_kills_what_hangs(work: Any, tmp_path: Path) -> None:
    hang = ChunkWork(work.prepare, partial(work.names_itself_and_hangs, str(tmp_path)))
    executor = make_executor("process", 1)
    results = executor.map(hang, range(2))
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            next(results)
        except RunError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    end = time.monotonic() + 120
    while not (begun := list(tmp_path.iterdir())) and time.monotonic() < end:
        time.sleep(0.05)
    executor.close()
    waiting.join(120)
    assert [str(error) for error in raised] == ["the workers were closed"]
    assert not alive(int(begun[0].name))
