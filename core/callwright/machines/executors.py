"""Executors: the same work in this thread, in threads, in processes or on Ray, with the same results in the same order.

    work = ChunkWork(prepare=partial(open_scorer, description), run=score_rows)
    with make_executor("process", workers=8) as executor:
        for result in executor.map(work, chunks):
            ...

``prepare`` makes what a worker needs (a pipeline, say) once in each worker; ``run`` takes it and a chunk. Both are
functions of modules, and chunks and results are values, so that they reach processes and other machines. When a worker
dies or hangs, another one gets its chunk, and nothing is lost. A chunk that costs several workers is divided until what
is to blame stands alone (:class:`.chunk_work.Salvage`), or ends the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from callwright.errors import UnknownName, UsageError
from callwright.machines.chunk_work import (
    Chunk,
    ChunkWork,
    ClosingExecutor,
    Executor,
    Result,
    State,
    run_to_the_end,
)
from callwright.machines.command_folder import hear_workers
from callwright.machines.in_order import in_order
from callwright.machines.worker_process import WorkerProcess


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
    """One chunk after another in this thread. What kills a worker kills this process, and nothing ends what hangs."""

    name: Final = "serial"

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results, each computed when it is asked for."""
        with self.places(work) as (run,):
            for chunk in chunks:
                yield run(chunk)

    @contextmanager
    def places(self, work: ChunkWork[State, Chunk, Result]) -> Iterator[list[Callable[[Chunk], Result]]]:
        yield [partial(work.run, work.prepare())]


class ThreadExecutor(ClosingExecutor):
    """Threads of this process with one common state: for work that waits, such as for a server's answers."""

    name: Final = "thread"

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order.

        Nothing ends a thread that hangs, so that a chunk without a result after its limit ends the work.
        """
        with self.places(work) as places:
            yield from in_order(places, chunks, work.time_limit)

    @contextmanager
    def places(self, work: ChunkWork[State, Chunk, Result]) -> Iterator[list[Callable[[Chunk], Result]]]:
        """The same for each thread, with the common state. Nothing holds them to the time limit."""
        yield [partial(work.run, work.prepare())] * self.workers


class ProcessExecutor(ClosingExecutor):
    """Processes of this machine, each started afresh (``spawn``), so that no lock, thread or open file is inherited.

    They end when this process does, however it ends.
    """

    name: Final = "process"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._processes: list[WorkerProcess] = []

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. A process that dies or hangs is replaced, and its chunk done again."""
        with self.places(work) as places:
            for result in in_order(places, chunks):
                hear_workers()
                yield result

    @contextmanager
    def places(self, work: ChunkWork[State, Chunk, Result]) -> Iterator[list[Callable[[Chunk], Result]]]:
        """One for each process, which starts with its first chunk."""
        processes = [WorkerProcess(work) for _ in range(self.workers)]
        self._processes += processes

        def asking(process: WorkerProcess) -> Callable[[Chunk], Result]:
            return lambda chunk: run_to_the_end(work, chunk, process.ask)

        try:
            yield [asking(process) for process in processes]
        finally:
            for process in processes if work.farewell else ():
                process.dismiss()
            for process in processes:
                process.close()
                self._processes.remove(process)

    def close(self) -> None:
        """Kill the processes that are left."""
        for process in self._processes:
            process.close()


def _ray(workers: int) -> Executor:
    from callwright.machines.on_ray.executor import RayExecutor

    return RayExecutor(workers)


EXECUTORS: Final[dict[str, Callable[[int], Executor]]] = {
    "serial": SerialExecutor,
    "thread": ThreadExecutor,
    "process": ProcessExecutor,
    "ray": _ray,
}
