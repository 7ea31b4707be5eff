"""Lanes: threads that work for an event loop, each thing always in the same one.

What belongs together (the calls of one session) is done in one lane, in order and in one thread, so that a library may
hold its objects to the thread that made them. What does not runs side by side, and the loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Lanes:
    """At most ``most`` threads, begun as they are needed. They are daemons: one that hangs holds no process back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lanes: list[Lane] = []

    @contextlib.contextmanager
    def one(self) -> Iterator[Lane]:
        """A lane, of those that few others use."""
        lane = min(self._lanes, key=lambda one: one.users, default=None)
        if lane is None or (lane.users and len(self._lanes) < self._most):
            lane = Lane()
            self._lanes.append(lane)
        lane.users += 1
        try:
            yield lane
        finally:
            lane.users -= 1

    def close(self) -> None:
        """The threads end when they have done what they are at; nobody waits for them."""
        for lane in self._lanes:
            lane.jobs.put(None)
        self._lanes.clear()


class Lane:
    """One thread and what waits for it."""

    def __init__(self) -> None:
        self.users = 0
        self.jobs = SimpleQueue[tuple[asyncio.Future[Any], Context, Callable[..., Any], tuple[Any, ...]] | None]()
        threading.Thread(target=self._work, name="callwright lane", daemon=True).start()

    async def do(self, call: Callable[..., T], /, *arguments: Any) -> T:
        """What a function returns, or raises, that is called in the thread, in this context."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.jobs.put((done, copy_context(), call, arguments))
        failed, value = await done
        if failed:
            raise value
        result: T = value
        return result

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            done, context, call, arguments = job
            outcome: tuple[bool, Any]
            try:
                outcome = False, context.run(call, *arguments)
            except BaseException as error:  # belongs to the one that waits
                outcome = True, error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                done.get_loop().call_soon_threadsafe(_settle, done, outcome)
            del job, done, context, call, arguments, outcome  # or the last one would live until the next


def _settle(done: asyncio.Future[Any], outcome: tuple[bool, Any]) -> None:
    if not done.done():  # cancelled
        done.set_result(outcome)
