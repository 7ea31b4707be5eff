"""One event loop in a thread of its own, for everything that talks to servers.

Clients of the package ``mcp`` must be closed by the task that opened them, so none may live in the loop of a caller,
which comes and goes. Sync code waits for what it starts here; code in another event loop awaits it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final, Protocol, TypeVar

from callwright.errors import UsageError

T = TypeVar("T")
#: How long everything may take to stop when the interpreter leaves, in seconds.
_FAREWELL: Final = 10.0


class _Stoppable(Protocol):
    async def astop(self) -> None: ...


class Portal:
    """The loop and its thread. They start when something is first submitted, and again in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._owned: weakref.WeakSet[_Stoppable] = weakref.WeakSet()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start ``work`` in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for ``work``. If the wait is interrupted, ``work`` is cancelled."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError(
                "this would wait for itself: the synchronous form was called from a server's own event loop"
            )
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` from any event loop."""
        return await asyncio.wrap_future(self.submit(work))

    def own(self, stoppable: _Stoppable) -> None:
        """Have ``stoppable`` stopped when the interpreter leaves."""
        self._owned.add(stoppable)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                loop = self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._turn, args=(loop,), daemon=True, name="callwright-mcp")
                self._thread.start()
            return self._loop

    @staticmethod
    def _turn(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def leave(self) -> None:
        """Stop everything that is owned; for the end of the process."""
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            return

        async def stop() -> None:
            await asyncio.gather(*(one.astop() for one in list(self._owned)), return_exceptions=True)

        try:
            self.submit(stop()).result(_FAREWELL)
        except (FutureTimeout, RuntimeError):  # what still runs sees its stdin end with this process
            return

    def forget(self) -> None:
        """In a forked process: neither the thread nor the servers came along."""
        self.__init__()  # type: ignore[misc]


PORTAL: Final = Portal()
atexit.register(PORTAL.leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PORTAL.forget)
