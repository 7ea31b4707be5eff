"""One event loop in the background of a process, for whatever waits: rewards, tools, clients of servers.

    score = event_loop.run(judge.score(attempt))           # from synchronous code, also inside of a running loop
    score = await event_loop.arun(judge.score(attempt))    # from a coroutine of any loop, which is not blocked
    future = event_loop.submit(judge.score(attempt))       # to be waited for later

A client that was opened in one loop cannot be used in another, and a caller's loop comes and goes. Here is one that
stays. It starts when something is first submitted, in a thread that does not keep the process from ending, and is made
again in a forked process. :func:`in_thread` is the other way round: it keeps what computes or blocks out of a loop.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from callwright.errors import UsageError

T = TypeVar("T")
#: How long what is left may take to stop when the interpreter leaves, in seconds.
_FAREWELL: Final = 2.0
#: Threads for what blocks, at most. They wait for the most part; more would only be in each other's way.
MOST_THREADS: Final = 32


class _Background:
    """The loop and its thread, and the threads for what blocks."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.threads = 0
        self.idle = threading.Semaphore(0)

    def running(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if self.loop is None or self.thread is None or not self.thread.is_alive():
                loop = self.loop = asyncio.new_event_loop()
                self.thread = threading.Thread(target=_turn, args=(loop,), daemon=True, name="callwright waiting")
                self.thread.start()
            return self.loop

    def start(self, job: Callable[[], None]) -> None:
        self.jobs.put(job)
        if not self.idle.acquire(blocking=False):
            with self.lock:
                if self.threads < MOST_THREADS:
                    self.threads += 1
                    threading.Thread(target=self._serve, daemon=True, name="callwright work").start()

    def _serve(self) -> None:
        while True:
            try:
                job = self.jobs.get_nowait()
            except Empty:
                self.idle.release()
                job = self.jobs.get()
            job()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


_background = _Background()


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start ``work`` in the loop. Cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, _background.running())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for ``work``, from any thread. If the wait is interrupted, ``work`` is cancelled.

    Raises what ``work`` raises, and :class:`callwright.UsageError` in the background loop itself, where it would wait
    for itself.
    """
    if here():
        work.close()
        raise UsageError(
            "this would wait for itself: synchronous code that runs in the background event loop (a coroutine of a "
            "component or a tool) asked for something asynchronous there. Await it in place of that"
        )
    future = submit(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work``, which runs in the background loop, from any loop. Cancelling this cancels ``work``."""
    if here():
        return await work
    return await asyncio.wrap_future(submit(work))


def here() -> bool:
    """Whether this thread is that of the background loop."""
    return threading.current_thread() is _background.thread


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Await ``function(*arguments)`` in a thread, from any loop: at most :data:`MOST_THREADS` at once in a process.

    Cancelling this leaves the thread behind: Python cannot stop one. It does not keep the process from ending.
    """
    found: Future[T] = Future()
    call = partial(contextvars.copy_context().run, function, *arguments)

    def job() -> None:
        if not found.set_running_or_notify_cancel():
            return
        try:
            value = call()
        except BaseException as error:  # whatever it is, it is raised where the result is awaited
            found.set_exception(error)
        else:
            found.set_result(value)

    _background.start(job)
    return await asyncio.wrap_future(found)


def _leave() -> None:
    """Cancel what is left, so that nothing is torn down in the middle."""
    loop, thread = _background.loop, _background.thread
    if loop is None or thread is None or not thread.is_alive():
        return

    async def stop() -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=_FAREWELL)
        loop.call_soon(loop.stop)

    asyncio.run_coroutine_threadsafe(stop(), loop)
    thread.join(2 * _FAREWELL)


def _forget() -> None:
    """In a forked process: no thread came along."""
    global _background
    _background = _Background()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
