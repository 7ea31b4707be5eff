"""Event loops in the background of a process: one for rewards and clients that wait, one for tools.

    score = event_loop.run(judge.score(attempt))           # from synchronous code, also inside of a running loop
    score = await event_loop.arun(judge.score(attempt))    # from a coroutine of any loop, which is not blocked
    future = event_loop.submit(judge.score(attempt))       # to be waited for later

A client that was opened in one loop cannot be used in another, and a caller's loop comes and goes. Here is one that
stays. It starts when something is first submitted, in a thread that does not keep the process from ending, and is made
again in a forked process. :func:`in_thread` is the other way round: it keeps what computes or blocks out of a loop.

Tools have a loop of their own (:data:`TOOLS`): a component that waits may execute an attempt, whose tools wait, too.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from callwright.errors import ComponentError

T = TypeVar("T")
#: How long what is left may take to stop when the interpreter leaves, in seconds.
_FAREWELL: Final = 2.0
#: What takes longer than that in a thread may be waiting for something, in seconds.
_SHORT: Final = 0.02
#: What takes longer than that and computes next to nothing waits, in seconds, however busy the machine is.
_LONG: Final = 1.0
#: How long a loop may take for one turn before it counts as blocked, in seconds.
_TURN: Final = 1.0
#: Threads for what computes.
COMPUTING: Final = 2
#: Threads in all. Where there are more than :data:`COMPUTING`, they wait for the most part.
MOST_THREADS: Final = 32


class Background:
    """A loop and its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._awaited: dict[int, Future[Any]] = {}

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start ``work`` in the loop. Cancelling the future cancels it."""
        with self._lock:  # or the loop could be given up, and stop, before it hears of it
            return asyncio.run_coroutine_threadsafe(work, self._running())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for ``work``, from any thread. If the wait is interrupted, ``work`` is cancelled.

        Raises what ``work`` raises, and :class:`callwright.errors.ComponentError` in the loop itself, where it would
        wait for itself.
        """
        if self.here():
            work.close()
            raise ComponentError(
                "this would wait for itself: synchronous code that runs in a background event loop (in a coroutine of "
                "a component or a tool) asked for something asynchronous there. Await it in place of that"
            )
        future, thread = self.submit(work), threading.get_ident()
        self._awaited[thread] = future
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._awaited.pop(thread, None)

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``, which runs in this loop, from any loop. Cancelling this cancels ``work``."""
        if self.here():
            return await work
        return await asyncio.wrap_future(self.submit(work))

    def here(self) -> bool:
        """Whether this thread is that of the loop."""
        return threading.current_thread() is self._thread

    def let_go(self, thread: threading.Thread) -> threading.Thread | None:
        """Cancel what another thread waits for here. Returns the thread that goes on all the same, if one does.

        It is that thread if it does not wait here. It is the loop's own if a coroutine blocks the loop, which is
        given up then: what comes later gets a new one, and its thread ends with the last of what it has.
        """
        future, loop, own = self._awaited.get(thread.ident or 0), self._loop, self._thread
        if future is None or loop is None or own is None:
            return thread
        future.cancel()
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        if turned.wait(_TURN):
            return None
        with self._lock:
            if self._loop is loop:
                self._loop = self._thread = None
                loop.call_soon_threadsafe(_wind_up, loop)
        return own

    def leave(self) -> None:
        """Cancel what is left, so that nothing is torn down in the middle; for the end of the process."""
        loop, thread = self._loop, self._thread
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

    def forget(self) -> None:
        """In a forked process: no thread came along."""
        self.__init__(self._name)  # type: ignore[misc]

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            loop = self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._turn, args=(loop,), daemon=True, name=self._name)
            self._thread.start()
        return self._loop

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        if self._loop is not loop:  # it was given up, and has nothing left
            loop.close()


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """In a loop that was given up, when it turns again: stop it after the last of its tasks."""
    for task in asyncio.all_tasks(loop):
        task.add_done_callback(lambda _: _wind_up(loop))
        return
    loop.stop()


#: For rewards, clients of servers, and whatever else waits.
WAITING: Final = Background("callwright waiting")
#: For tools and sessions.
TOOLS: Final = Background("callwright tools")
submit, run, arun, here = WAITING.submit, WAITING.run, WAITING.arun, WAITING.here


class _Threads:
    """Threads for what computes or blocks, which do not keep the process from ending.

    There are :data:`COMPUTING` of them, as those that compute would only be in each other's way, and in that of the
    event loop that waits for them: each may hold the interpreter's lock for one switch interval before the loop has its
    turn.
    Where all have been busy with one job each for a while, none has computed and the lock was free, they wait for
    something, and there are twice as many. Those leave again as soon as their jobs are short, or compute. On a machine
    that is busy with other things nothing says whether the lock was free: there they are given longer. What computes
    but has no processor there does not wait.
    """

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        #: When each thread began with its job; ``None`` if it has none.
        self.begun: dict[threading.Thread, float | None] = {}
        self.watched = threading.Event()
        self.lock = threading.Lock()
        #: By event loop: what holds jobs back there, so that a thousand at once cost it nothing before their turn.
        self.gates: WeakKeyDictionary[asyncio.AbstractEventLoop, _Gate] = WeakKeyDictionary()

    def start(self, job: Callable[[], None]) -> None:
        self.jobs.put(job)
        if not self.begun:
            with self.lock:
                if not self.begun:
                    for _ in range(COMPUTING):
                        self._add()
                    threading.Thread(target=self._watch, daemon=True, name="callwright watch").start()
        if not self.watched.is_set():
            self.watched.set()

    def _add(self) -> None:
        thread = threading.Thread(target=self._serve, daemon=True, name="callwright work")
        self.begun[thread] = None
        thread.start()

    def _serve(self) -> None:
        own = threading.current_thread()
        while True:
            job = self.jobs.get()
            began, used = time.monotonic(), time.thread_time()
            self.begun[own] = began
            job()
            del job  # or what it holds would live as long as the thread waits
            self.begun[own] = None
            waited = time.monotonic() - began >= _SHORT and time.thread_time() - used < _SHORT
            if len(self.begun) > COMPUTING and not waited:
                with self.lock:
                    if len(self.begun) > COMPUTING:
                        del self.begun[own]
                        return

    def _watch(self) -> None:
        while True:
            self.watched.wait()
            began, used = time.monotonic(), self._used()
            time.sleep(_SHORT)
            took, computed = time.monotonic() - began, self._used() - used
            if self.jobs.empty():
                self.watched.clear()
                if not self.jobs.empty():  # it came in between
                    self.watched.set()
            elif computed < took / 20:  # or they compute
                free = took < _SHORT + sys.getswitchinterval()
                before = began if free else began - _LONG
                with self.lock:
                    waiting = all(since is not None and since < before for since in self.begun.values())
                    if waiting and not any(map(_wants_to_run, self.begun)):
                        for _ in range(min(len(self.begun), MOST_THREADS - len(self.begun))):
                            self._add()

    def _used(self) -> float:
        """Seconds in which threads computed, or waited for a processor to compute with, where the system says that."""
        with self.lock:  # none leaves
            return sum(map(_used, self.begun))


def _used(thread: threading.Thread) -> float:
    try:
        with open(f"/proc/self/task/{thread.native_id}/schedstat", "rb") as file:  # noqa: PTH123 - of each thread
            computed, queued, _ = map(int, file.read().split())
            return (computed + queued) / 1e9
    except (OSError, ValueError):
        if thread.ident is None or not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def _wants_to_run(thread: threading.Thread) -> bool:
    """Whether a thread runs, or would if it had a processor, where the system says that."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat", "rb") as file:  # noqa: PTH123 - of each thread
            return file.read().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False


class _Gate:
    """What one event loop has in the threads: so many at a time, each batch begun in a turn of its own.

    Jobs that come in one turn of the loop begin after it, or they would compete with the rest of that turn.
    """

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(MOST_THREADS)
        self.coming: list[Callable[[], None]] = []

    def start(self, job: Callable[[], None]) -> None:
        if not self.coming:
            asyncio.get_running_loop().call_soon(self._begin)
        self.coming.append(job)

    def _begin(self) -> None:
        coming, self.coming = self.coming, []
        for job in coming:
            _threads.start(job)


_threads = _Threads()


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Await ``function(*arguments)`` in a thread, from any loop: :data:`MOST_THREADS` at once in a process, at most.

    Of those that compute, :data:`COMPUTING` are under way at once. Cancelling this leaves the thread behind: Python
    cannot stop one. It does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    gate = _threads.gates.get(loop)
    if gate is None:
        gate = _threads.gates[loop] = _Gate()
    async with gate.places:
        found: Future[T] = Future()
        gate.start(partial(_do, found, partial(contextvars.copy_context().run, called, function, *arguments)))
        return await asyncio.wrap_future(found)


def called(function: Callable[..., T], *arguments: Any) -> T:
    """``function(*arguments)`` for an event loop that waits for it: what a thread is given, such as by asyncio's
    ``to_thread``.

    A ``StopIteration``, as of a ``next`` that found nothing, comes as the :class:`RuntimeError` that a coroutine makes
    of it: no future of a loop takes one, and whoever awaits it would wait for ever.
    """
    try:
        return function(*arguments)
    except StopIteration as error:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise RuntimeError(f"{name} raised StopIteration: a next() found nothing and had no default") from error


def _do(found: Future[T], call: Callable[[], T]) -> None:
    if not found.set_running_or_notify_cancel():
        return
    try:
        value = call()
    except BaseException as error:  # whatever it is, it is raised where the result is awaited
        found.set_exception(error)
    else:
        found.set_result(value)


def _leave() -> None:
    for background in (TOOLS, WAITING):
        background.leave()


def _forget() -> None:
    global _threads
    for background in (TOOLS, WAITING):
        background.forget()
    _threads = _Threads()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
