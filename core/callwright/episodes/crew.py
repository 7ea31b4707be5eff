"""A crew: threads for the jobs of many episodes, where what belongs together is done by the same one.

    crew = Crew(workers=8)
    job = crew.submit(function)                  # by whoever is free; the function is told by which one
    job = crew.submit(function, home=3)          # by this one: a session lives there

An executor's ``map`` gives any chunk to any worker. A session is opened by one worker and stays with it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from callwright.machines.job import Job

#: What is done, given the number of the thread that does it.
Work = Callable[[int], Any]


class Crew:
    """``workers`` threads. They are daemons: one that hangs does not keep the process from ending."""

    def __init__(self, workers: int) -> None:
        self._lock = threading.Lock()
        self._own = [SimpleQueue[Job | None]() for _ in range(workers)]
        #: Who has nothing to do; who had something last is asked first, and later ones may never be needed.
        self._free = dict.fromkeys(reversed(range(workers)))
        self._for_anyone = deque[Job]()
        for number in range(workers):
            threading.Thread(target=self._serve, args=(number,), name=f"callwright crew {number}", daemon=True).start()

    def submit(self, work: Work, home: int | None = None) -> Job:
        """Have something done, by the thread ``home`` or whichever is free first."""
        job = Job(work)
        with self._lock:
            if home is None and not self._free:
                self._for_anyone.append(job)
                return job
            if home is None:
                home, _ = self._free.popitem()
            else:
                self._free.pop(home, None)
            self._own[home].put(job)
        return job

    def close(self) -> None:
        """What is not begun is never done; threads end after what they are at. Nobody waits for them."""
        with self._lock:
            self._for_anyone.clear()
            for own in self._own:
                with suppress(Empty):  # its thread may take it at any moment
                    while True:
                        own.get_nowait()
                own.put(None)

    def _serve(self, number: int) -> None:
        own = self._own[number]
        while (job := own.get()) is not None:
            job.do(number)
            del job  # or what it holds would live until the next one
            with self._lock:
                if own.empty():
                    if self._for_anyone:
                        own.put(self._for_anyone.popleft())
                    else:
                        self._free[number] = None
