"""Executors: the same work in this thread, in threads, in processes or on Ray, with the same results in the same order.

    work = Work(prepare=partial(open_scorer, description), run=score_rows)
    with make_executor("process", workers=8) as executor:
        for result in executor.map(work, chunks):
            ...

``prepare`` makes what a worker needs (a pipeline, say) once in each worker; ``run`` takes it and a chunk. Both are
functions of modules, and chunks and results are values, so that they reach processes and other machines. A worker that
dies takes nothing with it: its chunk goes to another one. Only a chunk that several workers died of ends the work.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from attrs import frozen

from callwright.errors import ComponentError, MissingExtra, RunError, UnknownName, UsageError

State = TypeVar("State")
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

#: How many workers may die while they have the same chunk before it is given up.
MOST_DEATHS: Final = 3
#: Chunks that wait for each worker, so that none is idle while results are read in order.
_AHEAD: Final = 3


@frozen
class Work(Generic[State, Chunk, Result]):
    """What is done with each chunk. Both functions can be pickled: functions of modules, or ``partial`` of those."""

    prepare: Callable[[], State]
    run: Callable[[State, Chunk], Result]


class Executor(Protocol):
    """Runs work on chunks, several at a time."""

    @property
    def name(self) -> str:
        """``serial``, ``thread``, ``process`` or ``ray``."""

    @property
    def workers(self) -> int:
        """How many chunks are worked on at a time."""

    def map(self, work: Work[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in the order of the chunks, which are read as they are needed.

        What ``prepare`` or ``run`` raises is raised here. Raises :class:`callwright.errors.RunError` for a chunk of
        which several workers died.
        """

    def close(self) -> None:
        """Give the workers back. Closing twice is allowed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


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


class _Closing:
    """``with`` for executors."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def close(self) -> None:
        """Nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SerialExecutor(_Closing):
    """One chunk after another in this thread."""

    name: Final = "serial"

    def map(self, work: Work[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results, each computed when it is asked for."""
        state = work.prepare()
        for chunk in chunks:
            yield work.run(state, chunk)


class ThreadExecutor(_Closing):
    """Threads of this process with one common state: for work that waits, such as for a server's answers."""

    name: Final = "thread"

    def map(self, work: Work[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order."""
        state, waiting = work.prepare(), deque[Future[Result]]()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="callwright") as pool:
            try:
                for chunk in chunks:
                    waiting.append(pool.submit(work.run, state, chunk))
                    if len(waiting) >= self.workers * _AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


# Processes ------------------------------------------------------------------------------------------------------------

_state: Any = None
_failed: Exception | None = None


def _prepare(prepare: Callable[[], Any]) -> None:
    """In a new process. A failure is kept for the first chunk: an initialiser that raises breaks the pool instead."""
    global _state, _failed
    try:
        _state = prepare()
    except Exception as error:
        _failed = _portable(error)


def _run(run: Callable[[Any, Any], Any], chunk: Any) -> tuple[bool, Any]:
    return (True, _failed) if _failed is not None else _attempt(run, _state, chunk)


def _attempt(run: Callable[[Any, Any], Any], state: Any, chunk: Any) -> tuple[bool, Any]:
    """Whether it failed, and the result or what it raised: failures travel as values, since many cannot otherwise."""
    try:
        return False, run(state, chunk)
    except Exception as error:
        return True, _portable(error)


def _portable(error: Exception) -> Exception:
    """The error with the trace of the worker as a note; one that cannot be pickled in words."""
    where = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"in a worker:\n{where}")
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever an exception of somebody else does when it is pickled
        error = ComponentError(f"{type(error).__name__} in a worker: {error}")
        error.add_note(f"in a worker:\n{where}")
    return error


def _opened(outcome: tuple[bool, Any]) -> Any:
    failed, value = outcome
    if failed:
        raise value
    return value


class ProcessExecutor(_Closing):
    """Processes of this machine, each started afresh (``spawn``), so that no lock, thread or open file is inherited."""

    name: Final = "process"

    def map(self, work: Work[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. When a process dies all are started again, and what they had is done again."""
        source, waiting = iter(chunks), deque[_Waiting]()
        pool = self._pool(work)
        try:
            while True:
                while len(waiting) < self.workers * _AHEAD:
                    chunk = next(source, _END)
                    if chunk is _END:
                        break
                    waiting.append(_Waiting(chunk))
                    try:
                        waiting[-1].future = pool.submit(_run, work.run, chunk)
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
                yield _opened(result)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, work: Work[Any, Any, Any], workers: int | None = None) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers or self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare,
            initargs=(work.prepare,),
        )

    def _again(self, work: Work[Any, Any, Any], waiting: deque[_Waiting]) -> ProcessPoolExecutor:
        """New processes. Which of the chunks killed a process is not known, so the first, which everybody waits for,
        is tried alone; a chunk of which its process dies even so is counted."""
        while True:
            alone = self._pool(work, 1)
            first = waiting[0]
            if first.future is not None and first.future.done() and not _broken(first.future):
                break
            first.future = alone.submit(_run, work.run, first.chunk)
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
                task.future = pool.submit(_run, work.run, task.chunk)
        return pool


_END: Final[Any] = object()


class _Waiting:
    """A chunk, its result to come, and how many processes died of it."""

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk
        self.future: Future[Any] | None = None
        self.deaths = 0


def _broken(future: Future[Any], wait: bool = True) -> bool:
    """Whether a process died of it. One that raised something of its own is not broken."""
    if not wait and not future.done():
        return True
    if future.cancelled():
        return True
    return isinstance(future.exception(), BrokenProcessPool)


# Ray ------------------------------------------------------------------------------------------------------------------


class RayExecutor(_Closing):
    """Actors of a Ray cluster: the one of ``RAY_ADDRESS``, the one this process is connected to, or one made here."""

    name: Final = "ray"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtra("the executor 'ray'", "ray", error.name or "ray") from error
        self._ray: Any = ray
        self._started = False

    def map(self, work: Work[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. When an actor dies another takes its place and its chunk."""
        ray = self._ray
        if not ray.is_initialized():
            cluster = os.environ.get("RAY_ADDRESS")
            local: dict[str, Any] = {} if cluster else {"num_cpus": self.workers, "include_dashboard": False}
            ray.init(log_to_driver=False, configure_logging=False, **local)
            self._started = True
        actor_class = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=0)(_Actor)
        actors = [actor_class.remote(work.prepare, work.run) for _ in range(self.workers)]
        source, waiting = iter(chunks), deque[tuple[Any, int, Any]]()
        number = 0
        try:
            while True:
                while len(waiting) < self.workers * _AHEAD:
                    chunk = next(source, _END)
                    if chunk is _END:
                        break
                    waiting.append((chunk, number, actors[number % self.workers].run.remote(chunk)))
                    number += 1
                if not waiting:
                    return
                chunk, place, reference = waiting.popleft()
                yield self._result(actors, chunk, place, reference)
        finally:
            for actor in actors:
                ray.kill(actor)

    def _result(self, actors: list[Any], chunk: Any, place: int, reference: Any) -> Any:
        for death in range(MOST_DEATHS):
            try:
                return _opened(self._ray.get(reference))
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.WorkerCrashedError):
                reference = actors[(place + death + 1) % self.workers].run.remote(chunk)
        raise RunError(f"{MOST_DEATHS} Ray actors died one after the other of the same chunk of work")

    def close(self) -> None:
        """Leave the cluster, if it was joined here."""
        if self._started:
            self._ray.shutdown()
            self._started = False


class _Actor:
    """One worker of a Ray cluster."""

    def __init__(self, prepare: Callable[[], Any], run: Callable[[Any, Any], Any]) -> None:
        _prepare(prepare)
        self._work = run

    def run(self, chunk: Any) -> tuple[bool, Any]:
        """Whether it failed, and the result or what it raised."""
        return _run(self._work, chunk)


EXECUTORS: Final[dict[str, Callable[[int], Executor]]] = {
    "serial": SerialExecutor,
    "thread": ThreadExecutor,
    "process": ProcessExecutor,
    "ray": RayExecutor,
}
