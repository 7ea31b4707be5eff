"""A sliding window: so many things are awaited at once, each begins when another one ends, results come in order.

There is no barrier: a slow one holds back what comes after it in the order, but not the work on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Seconds that connections have to close in when the work is stopped.
_CLOSING: Final = 10.0


def in_window(
    opened: Callable[[], AbstractAsyncContextManager[Callable[[Job], Awaitable[Result]]]],
    jobs: Sequence[Job],
    *,
    width: int,
    ahead: int,
) -> Generator[list[Result]]:
    """The results of all jobs in their order, in lists of those that are there.

    ``opened`` makes what works on one job, within the event loop of a thread of its own, so that this also goes on
    within a running loop. At most ``width`` jobs are under way, and none is begun that stands ``ahead`` or more places
    after the first whose result was not taken.

    What a job raises is raised here in its place in the order: the results before it are given out, nothing is begun
    after it, and what is under way behind it has until then. Whoever stops reading ends all that is under way.
    """
    window: _Window[Job, Result] = _Window(opened, jobs, width, ahead)
    thread = threading.Thread(target=window.run, name="callwright window", daemon=True)
    thread.start()
    try:
        while (ready := window.ready.get()) is not None:
            if isinstance(ready, BaseException):
                raise ready
            yield ready
            window.taken(len(ready))
    finally:
        window.stop()
        thread.join(_CLOSING)


class _Window(Generic[Job, Result]):
    """What happens in the thread. Only ``ready``, ``taken`` and ``stop`` are for others."""

    def __init__(self, opened: Any, jobs: Sequence[Job], width: int, ahead: int) -> None:
        self.ready = SimpleQueue[list[Result] | BaseException | None]()
        self._opened, self._jobs, self._width, self._ahead = opened, jobs, width, ahead
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._live: set[asyncio.Task[None]] = set()
        self._done: dict[int, tuple[bool, Any]] = {}
        self._begun = self._given = self._taken = 0
        self._failed = False

    def run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except BaseException as error:  # belongs to the thread that reads
            self.ready.put(error)
        else:
            self.ready.put(None)

    def taken(self, count: int) -> None:
        """So many results were taken, in another thread: there is room for as many."""

        def take() -> None:
            self._taken += count
            self._begin()

        self._tell(take)

    def stop(self) -> None:
        """End what is under way. Called in another thread."""
        self._tell(self._over.set)

    def _tell(self, call: Callable[[], Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nothing is under way
            self._loop.call_soon_threadsafe(call)

    async def _run(self) -> None:
        async with self._opened() as work:
            self._work = work
            try:
                self._begin()
                await self._over.wait()
            finally:
                live = list(self._live)
                for task in live:
                    task.cancel()
                await asyncio.gather(*live, return_exceptions=True)

    def _begin(self) -> None:
        """Begin as many as there is room for."""
        while (
            self._begun < len(self._jobs)
            and not (self._failed or self._over.is_set())
            and len(self._live) < self._width
            and self._begun - self._taken < self._ahead
        ):
            task = self._loop.create_task(self._one(self._begun))
            self._live.add(task)
            task.add_done_callback(self._ended)
            self._begun += 1
        if self._given == len(self._jobs):
            self._over.set()

    async def _one(self, place: int) -> None:
        try:
            self._done[place] = False, await self._work(self._jobs[place])
        except BaseException as error:  # is raised where the results are read, in its turn
            self._done[place] = True, error
            self._failed = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._live.discard(task)
        if not self._over.is_set():
            self._give()
            self._begin()

    def _give(self) -> None:
        """Give out what is there, up to the first that is not."""
        ready: list[Result] = []
        failure: BaseException | None = None
        while failure is None and self._given in self._done:
            failed, value = self._done.pop(self._given)
            self._given += 1
            if failed:
                failure = value
            else:
                ready.append(value)
        if ready:
            self.ready.put(ready)
        if failure is not None:
            self.ready.put(failure)
            self._over.set()
