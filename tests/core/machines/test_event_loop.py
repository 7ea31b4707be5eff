"""The event loops in the background, and the threads that keep what computes or blocks out of any loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

from callwright.errors import ComponentError
from callwright.machines import event_loop


async def two() -> int:
    await asyncio.sleep(0)
    return 2


def test_the_loop_runs_what_any_thread_asks_for_also_inside_of_another_loop() -> None:
    async def inside() -> tuple[int, int]:
        return event_loop.run(two()), await event_loop.arun(two())

    assert event_loop.run(two()) == 2
    assert asyncio.run(inside()) == (2, 2)
    assert event_loop.run(inside_of_its_own()) == "refused"


async def inside_of_its_own() -> str:
    with pytest.raises(ComponentError, match="would wait for itself"):
        event_loop.run(two())
    assert await event_loop.arun(two()) == 2
    return "refused"


def test_threads_take_what_blocks() -> None:
    async def many() -> list[int]:
        barrier = threading.Barrier(8)

        def meet(number: int) -> int:
            barrier.wait(30)
            return number

        return await asyncio.gather(*(event_loop.in_thread(meet, number) for number in range(8)))

    assert asyncio.run(many()) == list(range(8))
    assert event_loop.run(many()) == list(range(8))


def test_what_blocks_has_its_threads_on_a_busy_machine_too() -> None:
    """Where every wake-up comes late, nothing says that the interpreter's lock was free meanwhile."""
    program = """
import asyncio, threading, time
from callwright.machines import event_loop
on_time = time.sleep
event_loop.time.sleep = lambda seconds: on_time(seconds + 0.06)
meeting = threading.Barrier(8)
async def main():
    await asyncio.gather(*(event_loop.in_thread(meeting.wait, 60) for _ in range(8)))
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_loop_that_was_given_up_does_what_it_has_and_its_thread_ends() -> None:
    tools = event_loop.Background("given up")
    hold, blocked, begun, found = threading.Event(), threading.Event(), threading.Event(), []

    async def block() -> None:
        blocked.set()
        hold.wait()

    async def late() -> int:
        begun.set()
        await asyncio.sleep(0.01)
        return 7

    def cancelled() -> None:
        with pytest.raises(CancelledError):
            tools.run(block())

    def waits(thread: threading.Thread) -> None:
        """Start it, and go on when what it asks for is on its way to the loop."""
        thread.start()
        while thread.ident not in tools._awaited:
            time.sleep(0.001)

    blocks = threading.Thread(target=cancelled, daemon=True)
    asks = threading.Thread(target=lambda: found.append(tools.run(late())), daemon=True)
    try:
        waits(blocks)
        blocked.wait()
        waits(asks)
        own = tools.let_go(blocks)
        assert own is not None
        assert own not in (blocks, asks)
        assert own.is_alive()
        assert tools.run(two()) == 2  # in another loop
        assert not begun.is_set()
    finally:
        hold.set()
    for thread in (blocks, asks, own):
        thread.join(120)
        assert not thread.is_alive()
    assert found == [7]
    tools.leave()
    assert tools._loop is not None
    tools._loop.close()


def burned() -> tuple[int, int]:
    """Many jobs that compute, all at once: how many threads had one at most, and the loop's turns meanwhile."""
    under_way = most = 0

    def burn() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        until = time.thread_time() + 0.04  # longer than what waits needs to be told from it
        while time.thread_time() < until:
            pass
        under_way -= 1

    async def service() -> int:
        turns, going = 0, asyncio.gather(*(event_loop.in_thread(burn) for _ in range(32)))
        while not going.done():
            await asyncio.sleep(0.001)
            turns += 1
        await going
        return turns

    turns = asyncio.run(service())
    return most, turns


def test_what_computes_takes_few_threads_and_leaves_the_loop_its_turns() -> None:
    """32 threads would each keep the loop waiting for its turn: it would have about eight.

    Where the machine is kept from computing at all, what computes looks like what waits, and gets more threads.
    """
    tries = []
    for _ in range(10):
        most, turns = burned()
        tries.append((most, turns))
        if most <= 2 * event_loop.COMPUTING and turns > 32:
            return
    pytest.fail(f"never few threads and many turns of the loop: {tries}")


def test_threads_that_came_for_what_waits_leave_when_they_compute() -> None:
    free, pool = threading.Event(), event_loop._threads.begun
    blocked: list[int] = []

    def block() -> None:
        blocked.append(1)
        free.wait()

    async def wait() -> None:
        going = asyncio.gather(*(event_loop.in_thread(block) for _ in range(8)))
        while len(blocked) < 8:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # none of them was short
        free.set()
        await going

    asyncio.run(wait())
    assert len(pool) > event_loop.COMPUTING
    for _ in range(10):
        burned()
        if len(pool) <= event_loop.COMPUTING:
            return
    pytest.fail(f"{len(pool)} threads stay")


def test_jobs_do_not_compete_with_the_turn_of_the_loop_in_which_they_come() -> None:
    async def many() -> list[int]:
        begun: list[int] = []

        async def ask(number: int) -> None:
            await event_loop.in_thread(begun.append, number)

        tasks = [asyncio.create_task(ask(number)) for number in range(100)]
        await asyncio.sleep(0)  # all of them have asked now
        time.sleep(0.05)
        assert begun == []
        await asyncio.gather(*tasks)
        return sorted(begun)

    assert asyncio.run(many()) == list(range(100))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    code = """
import asyncio, os
from callwright.machines import event_loop
from callwright.testing import parametrize_with_checks
assert event_loop.run(asyncio.sleep(0, 1)) == 1
child = os.fork()
if not child:
    os._exit(event_loop.run(asyncio.sleep(0, 7)))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert event_loop.run(asyncio.sleep(0, 1)) == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_next_that_finds_nothing_in_a_thread_is_raised_where_it_is_awaited() -> None:
    """No future of asyncio takes a ``StopIteration``: whoever awaited it would wait for ever."""

    async def asked() -> object:
        return await asyncio.wait_for(event_loop.in_thread(next, iter(())), 60)

    with pytest.raises(RuntimeError, match="next raised StopIteration"):
        asyncio.run(asked())
