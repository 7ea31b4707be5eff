"""Results in the order of their chunks, whoever works on them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, TimeoutError
from queue import SimpleQueue
from typing import Any

from callwright.errors import RunError
from callwright.machines.chunk_work import AHEAD, Chunk, Result


class _Job:
    """A chunk, its result to come, and whether a worker has begun with it."""

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk
        self.result: Future[Any] = Future()
        self.begun = threading.Event()


def in_order(
    workers: list[Callable[[Chunk], Result]], chunks: Iterable[Chunk], time_limit: float | None = None
) -> Iterator[Result]:
    """The results of chunks in their order, each worker being a function that one thread calls.

    The threads are daemons: one that hangs for ever does not keep the process from ending.
    """
    waiting, jobs = deque[_Job](), SimpleQueue[_Job | None]()

    def serve(run: Callable[[Chunk], Result]) -> None:
        while (job := jobs.get()) is not None:
            job.begun.set()
            try:
                job.result.set_result(run(job.chunk))
            except BaseException as error:  # whatever it is, it is raised where the result is asked for
                job.result.set_exception(error)

    for number, run in enumerate(workers):
        threading.Thread(target=serve, args=(run,), name=f"callwright {number}", daemon=True).start()
    try:
        for chunk in chunks:
            waiting.append(_Job(chunk))
            jobs.put(waiting[-1])
            if len(waiting) >= len(workers) * AHEAD:
                yield _result(waiting.popleft(), time_limit)
        while waiting:
            yield _result(waiting.popleft(), time_limit)
    finally:
        while not jobs.empty():  # nobody asks for what is left
            jobs.get()
        for _ in workers:
            jobs.put(None)


def _result(job: _Job, time_limit: float | None) -> Any:
    if time_limit is None:
        return job.result.result()
    job.begun.wait()
    try:
        return job.result.result(time_limit)
    except TimeoutError:
        if job.result.done():  # raised by the work itself
            raise
        raise RunError(
            f"a chunk of work has no result after {time_limit:g} s, and a thread that hangs cannot be ended; what was "
            "finished before is kept. With --executor process its worker is replaced"
        ) from None
