"""Executors: the same work in this thread, in threads, in processes or on Ray, with the same results in the same order.

    work = ChunkWork(prepare=partial(open_scorer, description), run=score_rows)
    with make_executor("process", workers=8) as executor:
        for result in executor.map(work, chunks):
            ...

``prepare`` makes what a worker needs (a pipeline, say) once in each worker; ``run`` takes it and a chunk. Both are
functions of modules, and chunks and results are values, so that they reach processes and other machines. When a worker
dies, another one gets its chunk, and nothing is lost. Only a chunk that kills several workers ends the work.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from typing import Any, Final

from callwright.errors import RunError, UnknownName, UsageError
from callwright.machines.chunk_work import (
    AHEAD,
    END,
    MOST_DEATHS,
    Chunk,
    ChunkWork,
    ClosingExecutor,
    Executor,
    Result,
    State,
    opened,
    prepare_worker,
    run_chunk,
)


def make_executor(name: str, workers: int = 1) -> Executor:
    """An executor by name.

    Raises :class:`callwright.errors.UnknownName` for another name, :class:`callwright.UsageError` for fewer workers
    than one, and :class:`callwright.errors.MissingExtra` for ``ray`` where it is not installed.
    """
    if type(workers) is not int or workers < 1:
        raise UsageError(f"the number of workers must be 1 or more, not {workers!r}")
    if name not in EXECUTORS:
        raise UnknownName("executor", name, EXECUTORS)
    return EXECUTORS[name](workers)


class SerialExecutor(ClosingExecutor):
    """One chunk after another in this thread."""

    name: Final = "serial"

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results, each computed when it is asked for."""
        state = work.prepare()
        for chunk in chunks:
            yield work.run(state, chunk)


class ThreadExecutor(ClosingExecutor):
    """Threads of this process with one common state: for work that waits, such as for a server's answers."""

    name: Final = "thread"

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order."""
        state, waiting = work.prepare(), deque[Future[Result]]()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="callwright") as pool:
            try:
                for chunk in chunks:
                    waiting.append(pool.submit(work.run, state, chunk))
                    if len(waiting) >= self.workers * AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


class ProcessExecutor(ClosingExecutor):
    """Processes of this machine, each started afresh (``spawn``), so that no lock, thread or open file is inherited."""

    name: Final = "process"

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. When a process dies, all processes start again and do again what they had."""
        source, waiting = iter(chunks), deque[_Waiting]()
        pool = self._pool(work)
        try:
            while True:
                while len(waiting) < self.workers * AHEAD:
                    chunk = next(source, END)
                    if chunk is END:
                        break
                    waiting.append(_Waiting(chunk))
                    try:
                        waiting[-1].future = pool.submit(run_chunk, work.run, chunk)
                    except BrokenProcessPool:
                        waiting[-1].future = None
                        break
                if not waiting:
                    return
                try:
                    if waiting[0].future is None:
                        raise BrokenProcessPool
                    result = waiting[0].future.result()
                except BrokenProcessPool:
                    pool.shutdown(wait=False, cancel_futures=True)
                    pool = self._again(work, waiting)
                    continue
                waiting.popleft()
                yield opened(result)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, work: ChunkWork[Any, Any, Any], workers: int | None = None) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers or self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=prepare_worker,
            initargs=(work.prepare,),
        )

    def _again(self, work: ChunkWork[Any, Any, Any], waiting: deque[_Waiting]) -> ProcessPoolExecutor:
        """Start new processes, after the first chunk, for which everybody waits, has run alone.

        Nobody knows which of the chunks killed its process. A process that dies with one chunk alone died of it: these
        deaths are counted, and :data:`MOST_DEATHS` of them end the work with :class:`callwright.errors.RunError`.
        """
        while True:
            alone = self._pool(work, 1)
            first = waiting[0]
            if first.future is not None and first.future.done() and not _broken(first.future):
                break
            first.future = alone.submit(run_chunk, work.run, first.chunk)
            if not _broken(first.future):
                break
            first.deaths += 1
            alone.shutdown(wait=False)
            if first.deaths == MOST_DEATHS:
                raise RunError(
                    f"{MOST_DEATHS} worker processes died one after the other of the same chunk of work; what was "
                    "finished before is kept. Run with --executor serial to see why"
                )
        alone.shutdown(wait=True)
        pool = self._pool(work)
        for task in list(waiting)[1:]:
            if task.future is None or _broken(task.future, wait=False):
                task.future = pool.submit(run_chunk, work.run, task.chunk)
        return pool


class _Waiting:
    """A chunk, its result to come, and how many processes it killed."""

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk
        self.future: Future[Any] | None = None
        self.deaths = 0


def _broken(future: Future[Any], wait: bool = True) -> bool:
    """Whether this chunk's process died. A chunk that raised an error of its own is not broken."""
    if not wait and not future.done():
        return True
    if future.cancelled():
        return True
    return isinstance(future.exception(), BrokenProcessPool)


def _ray(workers: int) -> Executor:
    from callwright.machines.ray_executor import RayExecutor

    return RayExecutor(workers)


EXECUTORS: Final[dict[str, Callable[[int], Executor]]] = {
    "serial": SerialExecutor,
    "thread": ThreadExecutor,
    "process": ProcessExecutor,
    "ray": _ray,
}
