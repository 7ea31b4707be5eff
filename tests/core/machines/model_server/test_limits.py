"""One limiter for a whole command: connections, retries and worker processes take from it together."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from grants import Grants, most_in
from grants import environment as recorded
from hypothesis import given
from hypothesis import strategies as st
from stand_in_server import Faults, StandIn, chat, fault, usage

import callwright as cw
import callwright.machines.command_folder as common
from callwright.machines.command_folder import SharedNumbers
from callwright.machines.model_server import Server
from callwright.machines.model_server.limiter import Limiter

MESSAGES = [{"role": "user", "content": "What is twice two?"}]


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def most_in_a_minute(times: Sequence[tuple[float, float]]) -> float:
    """The most that began in any 60 s: brute force over all windows that begin with a request."""
    return max(sum(amount for at, amount in times if start <= at < start + 60) for start, _ in times)


@given(
    rate=st.sampled_from([1.0, 7.0, 60.0, 61.5, 600.0]),
    pauses=st.lists(st.floats(0, 3), min_size=1, max_size=30),
    seed=st.integers(0, 1000),
)
def test_no_minute_holds_more_than_the_limit(rate: float, pauses: list[float], seed: int) -> None:
    """Whoever asks when, whatever pauses there were before: at most 5% more than the limit, and no less by waiting."""
    clock, draw = Clock(), random.Random(seed)
    limiter = Limiter(SharedNumbers(f"{seed}-{draw.random()}", 2), requests=rate, clock=clock)
    times: list[tuple[float, float]] = []
    while len(times) < min(2.5 * rate, 160):
        wait = limiter.take(0)
        if wait > 0:
            clock.now += wait + draw.choice([0.0, 0.001, 0.05])  # who waits wakes up late
        else:
            times.append((clock.now, 1.0))
            if draw.random() < 0.05:
                clock.now += draw.choice(pauses) * 20
    assert most_in_a_minute(times) <= max(rate * 1.05, rate + 1e-9)


def test_tokens_are_limited_and_corrected() -> None:
    clock = Clock()
    limiter = Limiter(SharedNumbers("tokens", 2), tokens=6000, clock=clock)
    assert limiter.take(500) == 0
    assert limiter.take(500) == pytest.approx(5)  # 500 tokens at 100 a second
    limiter.correct(-400)  # it used 100
    assert limiter.take(500) == pytest.approx(1)
    clock.now += 1
    assert limiter.take(500) == 0
    limiter.correct(100)  # it used more
    assert limiter.take(1) == pytest.approx(6)
    times = []
    for size in [300, 200, 1000, 50] * 30:
        while (wait := limiter.take(size)) > 0:
            clock.now += wait
        times.append((clock.now, float(size)))
    assert most_in_a_minute(times) <= 6000 + 1000  # what the last one has is paid for after it began


def test_retries_and_batches_take_from_it(monkeypatch: pytest.MonkeyPatch, grants: Grants) -> None:
    """With 40% failures and batches of ten."""
    from callwright.machines.model_server import connection as module

    monkeypatch.setattr(module, "pause", lambda tries, draw: 0.001)
    with StandIn(faults=Faults(0.4, seed=2)) as there:
        server = Server(model="m", base_url=there.url, requests_per_minute=3000, concurrency=32, retries=20)
        for batch in range(15):
            server.all([lambda one, n=n, b=batch: one.complete(f"{b}/{n}") for n in range(10)])
        assert server.usage.failed == 0
        assert len(there.asked) == len(grants.times()) > 200
        assert most_in(grants.times(), 2.0) <= 50 * (2 + 0.2) + 1


def test_worker_processes_take_from_the_same(tmp_path: Path, grants: Grants) -> None:
    """Four processes that know of each other nothing but the environment they inherit."""
    program = tmp_path / "worker.py"
    program.write_text(
        "import sys, grants\n"
        "from callwright.machines.model_server import Server\n"
        "server = Server(model='m', base_url=sys.argv[1], requests_per_minute=2400, concurrency=8)\n"
        "server.all([lambda one, n=n: one.complete(f'{sys.argv[2]}/{n}') for n in range(40)])\n"
    )
    common.name_folder()
    with StandIn() as there:
        workers = [
            subprocess.Popen([sys.executable, str(program), there.url, str(n)], env=recorded(grants.path))
            for n in range(4)
        ]
        assert [worker.wait() for worker in workers] == [0] * 4
        assert len(there.asked) == len(grants.times()) == 160
        assert most_in(grants.times(), 1.0) <= 40 * (1 + 0.2) + 1
        assert most_in(grants.times(), 3.0) <= 40 * (3 + 0.2) + 1


def test_the_workers_of_an_executor_inherit_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no server was made before they were started."""
    from callwright.machines import ChunkWork, make_executor

    monkeypatch.delenv(common.FOLDER)
    monkeypatch.setattr(common, "_named_here", [])
    with make_executor("process", 2) as executor:
        found = set(executor.map(ChunkWork(dict, _folder), [1, 2, 3, 4]))
    assert found == {os.environ[common.FOLDER]}


def _folder(state: Any, chunk: int) -> str:
    return common.name_folder()


def test_threads_that_start_workers_at_once_name_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker inherits what its own thread found: two names would be two limits."""
    drawn = secrets.token_hex

    def slowly(length: int) -> str:
        time.sleep(0.05)
        return drawn(length)

    monkeypatch.delenv(common.FOLDER, raising=False)
    monkeypatch.setattr(common, "_named_here", [])
    monkeypatch.setattr(secrets, "token_hex", slowly)
    together = threading.Barrier(8)

    def name(_: int) -> str:
        together.wait()
        return common.name_folder()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(name, range(8)))) == 1


def test_a_command_is_part_of_another_command_and_of_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "_kind", ["callwright-program-"])
    for program, kept in (("callwright-command-1", True), ("callwright-program-1", False), (None, False)):
        if program is None:
            monkeypatch.delenv(common.FOLDER, raising=False)
        else:
            monkeypatch.setenv(common.FOLDER, f"/tmp/{program}")
        common.begin_command()
        assert (os.environ.get(common.FOLDER) == f"/tmp/{program}") is kept
    monkeypatch.setattr(common, "_named_here", [])
    assert "callwright-command-" in common.name_folder()
    assert common.is_first()


def test_what_cannot_be_shared_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on another machine has its share of each limit: together they keep it."""
    for name, value in common.for_workers(4, same_machine=False).items():
        monkeypatch.setenv(name, value)
    assert common.share() == 4
    server = Server(model="m", requests_per_minute=400, max_cost=8.0, prices=(1.0, 1.0))
    assert server.budget is not None
    assert server.budget.most == 2.0
    limiter = server.limiter()
    assert limiter is not None
    assert limiter.take(0) == 0
    waits = [limiter.take(0) for _ in range(2)]
    assert max(waits) <= 60 / 100
    assert os.environ[common.FOLDER] not in ("", "x")


def test_a_refused_or_failed_try_gives_its_tokens_back(grants: Grants) -> None:
    with StandIn(lambda asked: fault("429") if asked.number < 4 else chat("ok", counted=usage(10, 5))) as there:
        server = Server(model="m", base_url=there.url, tokens_per_minute=6000)
        server.all([lambda one: one.chat(MESSAGES, max_tokens=900)])
        takes = grants.takes()
        assert len(takes) == len(there.asked) >= 4
        assert min(tokens for _, tokens, _ in takes) >= 900
        assert {wait for _, _, wait in takes} == {0}  # 9 s were to be waited between tries of 900 tokens each
        limiter = server.limiter()
        assert limiter is not None
        limiter._clock = lambda: takes[-1][0]
        assert limiter.take(1) == pytest.approx(0.15)  # the 15 tokens that were used, at 100 a second


def test_those_who_wait_begin_in_order() -> None:
    limiter = Limiter(SharedNumbers("order", 2), requests=6000)
    begun: list[int] = []

    async def one(number: int) -> None:
        await limiter.taken(0)
        begun.append(number)

    async def all_of_them() -> None:
        await asyncio.gather(*map(one, range(40)))

    asyncio.run(all_of_them())
    assert begun == list(range(40))


def test_wrong_limits_are_refused() -> None:
    for wrong in ({"requests_per_minute": 0}, {"tokens_per_minute": -1}, {"max_cost": float("inf")}):
        with pytest.raises(cw.UsageError, match=next(iter(wrong))):
            Server(model="m", prices=(1.0, 1.0), **wrong)  # type: ignore[arg-type]
