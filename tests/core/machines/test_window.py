"""A sliding window: order, bounds, failures in their place, and an end whenever it is wanted."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from callwright.machines.lanes import Lanes
from callwright.machines.window import in_window


class Work:
    """Doubles numbers after a while, and counts."""

    def __init__(self, wait: Callable[[int], float], fails: frozenset[int] = frozenset()) -> None:
        self.wait, self.fails = wait, fails
        self.now = self.most = self.closed = 0
        self.begun: list[int] = []
        self.cancelled: list[int] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Callable[[int], Awaitable[int]]]:
        yield self.one
        self.closed += 1

    async def one(self, job: int) -> int:
        self.begun.append(job)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.wait(job))
        except asyncio.CancelledError:
            self.cancelled.append(job)
            raise
        finally:
            self.now -= 1
        if job in self.fails:
            raise ValueError(str(job))
        return 2 * job


@pytest.mark.parametrize(("width", "ahead"), [(1, 1), (1, 9), (5, 1), (5, 3), (5, 50), (200, 200)])
def test_results_come_in_order_and_no_bound_is_passed(width: int, ahead: int) -> None:
    taken = 0
    draw = random.Random(width)
    worst = 0

    def wait(job: int) -> float:
        nonlocal worst
        worst = max(worst, job - taken)
        return draw.random() * 0.004

    work = Work(wait)
    found: list[int] = []
    for some in in_window(work, range(120), width=width, ahead=ahead):
        assert some
        found += some
        taken = len(found)
    assert found == [2 * job for job in range(120)]
    assert work.begun == list(range(120))
    assert work.most == min(width, ahead, 120) or ahead < 120
    assert work.most <= width
    assert worst < ahead + width  # "taken" is told to the window a moment later than it is counted here
    assert (work.now, work.closed) == (0, 1)


def test_one_that_is_slow_holds_back_results_and_no_work() -> None:
    slow = threading.Event()
    finished: list[int] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[int], Awaitable[int]]]:
        async def one(job: int) -> int:
            while job == 0 and not slow.is_set():
                await asyncio.sleep(0.001)
            finished.append(job)
            if len(finished) == 50:
                slow.set()
            return job

        yield one

    # The first one ends when 50 others have ended, which with a barrier anywhere would never be.
    assert [one for some in in_window(opened, range(90), width=4, ahead=60) for one in some] == list(range(90))


def test_of_nothing_nothing_comes() -> None:
    work = Work(lambda job: 0)
    assert list(in_window(work, [], width=3, ahead=3)) == []
    assert work.closed == 1


def test_a_failure_is_raised_after_what_comes_before_it() -> None:
    work = Work(lambda job: 0.02 if job < 3 else 0.001, fails=frozenset({3, 5}))
    found: list[int] = []
    with pytest.raises(ValueError, match=r"^3$"):
        found.extend(one for some in in_window(work, range(100), width=6, ahead=50) for one in some)
    assert found == [0, 2, 4]
    assert len(work.begun) < 12
    assert work.now == 0


def test_a_connection_that_cannot_be_opened_is_told() -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        raise OSError("no route")
        yield

    with pytest.raises(OSError, match="no route"):
        list(in_window(opened, range(3), width=2, ahead=2))


def test_who_stops_reading_ends_what_is_under_way() -> None:
    work = Work(lambda job: 0 if job < 10 else 60)
    reading = in_window(work, range(100), width=8, ahead=100)
    assert next(reading)[0] == 0
    reading.close()
    assert work.now == 0
    assert len(work.cancelled) == len([job for job in work.begun if job >= 10])
    assert "callwright window" not in {thread.name for thread in threading.enumerate()}


def test_a_job_that_cancels_itself_is_a_failure_and_not_a_silence() -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        async def one(job: int) -> int:
            raise asyncio.CancelledError

        yield one

    with pytest.raises(asyncio.CancelledError):
        list(in_window(opened, range(3), width=2, ahead=2))


# Lanes ----------------------------------------------------------------------------------------------------------------


def test_a_lane_is_one_thread_and_there_are_no_more_than_so_many() -> None:
    async def work() -> tuple[list[set[int]], int]:
        lanes = Lanes(3)

        async def user(number: int) -> set[int]:
            with lanes.one() as lane:
                found = set()
                for _ in range(5):
                    found.add(await lane.do(threading.get_ident))
                    await asyncio.sleep(0)
                return found

        found = await asyncio.gather(*map(user, range(10)))
        lanes.close()
        return list(found), len(set.union(*found))

    each, threads = asyncio.run(work())
    assert all(len(one) == 1 for one in each)
    assert threads == 3
    assert threading.get_ident() not in set.union(*each)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), StopIteration()])
def test_what_a_call_raises_is_raised_where_it_is_awaited(error: BaseException) -> None:
    def fail() -> None:
        raise error

    async def work() -> BaseException | None:
        lanes = Lanes(1)
        with lanes.one() as lane:
            try:
                await lane.do(fail)
            except BaseException as raised:
                assert await lane.do(int, "7") == 7
                return raised
        return None

    found = asyncio.run(work())
    # Python turns a StopIteration that leaves a coroutine into a RuntimeError.
    assert found is error or (isinstance(error, StopIteration) and isinstance(found, RuntimeError))
