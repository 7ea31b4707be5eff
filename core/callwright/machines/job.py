"""Jobs: something that one thread does and another one waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from typing import Any

from callwright.errors import RunError


class Job:
    """Something to do, whether a thread has begun with it, and what came of it.

    ``work`` is given what the thread that does it has: its number, say, or its worker.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.begun = threading.Event()
        self.future: Future[Any] = Future()

    def do(self, given: Any) -> None:
        """Do it, in this thread."""
        self.begun.set()
        try:
            self.future.set_result(self.work(given))
        except BaseException as error:  # whatever it is, it is raised where the result is asked for
            self.future.set_exception(error)

    def result(self, time_limit: float | None = None, late: str = "a thread has no result after {limit}") -> Any:
        """What came of it. Raises what it raised.

        ``time_limit`` (seconds, from its beginning): nothing ends a thread that hangs, so that one that takes longer
        raises :class:`callwright.errors.RunError` with the words ``late``, in which ``{limit}`` is the time limit.
        """
        if time_limit is None:
            return self.future.result()
        self.begun.wait()
        try:
            return self.future.result(time_limit)
        except TimeoutError:
            if self.future.done():  # raised by the work itself
                raise
            raise RunError(late.format(limit=f"{time_limit:g} s")) from None
