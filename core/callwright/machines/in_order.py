"""Results in the order of their chunks, whoever works on them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from callwright.machines.chunk_work import AHEAD, Chunk, Result
from callwright.machines.job import Job

#: What somebody is told whose thread hangs.
_LATE: Final = (
    "a chunk of work has no result after {limit}, and a thread that hangs cannot be ended; what was finished before is "
    "kept. With --executor process its worker is replaced"
)


def in_order(
    workers: list[Callable[[Chunk], Result]], chunks: Iterable[Chunk], time_limit: float | None = None
) -> Iterator[Result]:
    """The results of chunks in their order, each worker being a function that one thread calls.

    The threads are daemons: one that hangs for ever does not keep the process from ending.
    """
    waiting, jobs = deque[Job](), SimpleQueue[Job | None]()

    def serve(run: Callable[[Chunk], Result]) -> None:
        while (job := jobs.get()) is not None:
            job.do(run)

    for number, run in enumerate(workers):
        threading.Thread(target=serve, args=(run,), name=f"callwright {number}", daemon=True).start()
    try:
        for chunk in chunks:
            waiting.append(Job(partial(_run, chunk)))
            jobs.put(waiting[-1])
            if len(waiting) >= len(workers) * AHEAD:
                yield waiting.popleft().result(time_limit, _LATE)
        while waiting:
            yield waiting.popleft().result(time_limit, _LATE)
    finally:
        with suppress(Empty):  # nobody asks for what is left, of which a worker may take the last at any moment
            while True:
                jobs.get_nowait()
        for _ in workers:
            jobs.put(None)


def _run(chunk: Chunk, worker: Callable[[Chunk], Result]) -> Result:
    return worker(chunk)
