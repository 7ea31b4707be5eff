"""Work in chunks: what is done with each chunk, what an executor promises, and what happens inside of a worker.

An executor says where the workers are: :mod:`.executors`, or :mod:`.on_ray.executor`, which is loaded when asked for.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from attrs import frozen

from callwright.errors import ComponentError, RunError

State = TypeVar("State")
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

#: How many workers may be lost to the same chunk before it is given up.
MOST_DEATHS: Final = 3
#: Chunks that wait for each worker, so that none is idle while results are read in order.
AHEAD: Final = 3
#: Seconds for workers to close what they have opened, where work says that they may have.
FAREWELL: Final = 5.0
#: Seconds for a worker to be ready for its first chunk: imports, a corpus to read, a component's model to load.
START_LIMIT: Final = 300.0
#: What stands for the chunk after the last one.
END: Final[Any] = object()


@frozen
class Salvage(Generic[Chunk, Result]):
    """How work goes on without what kills or hangs its workers. All are functions of modules, or ``partial`` of those.

    ``parts``: a chunk in two smaller ones, or just itself where it cannot be divided. ``joined``: the result of a
    chunk, from those of its parts. ``lost``: the result of an indivisible chunk that cost several workers, and how they
    were lost, in words.
    """

    parts: Callable[[Chunk], Sequence[Chunk]]
    joined: Callable[[Sequence[Result]], Result]
    lost: Callable[[Chunk, str], Result]


@frozen
class ChunkWork(Generic[State, Chunk, Result]):
    """What is done with each chunk. All functions can be pickled: functions of modules, or ``partial`` of those.

    ``time_limit`` (seconds): a chunk that has no result by then hangs; its worker is killed and counts as lost. The
    time begins when the worker is ready, that is, after ``prepare``, which has ``start_limit`` (seconds). Without
    ``salvage`` a chunk that costs :data:`MOST_DEATHS` workers ends the work, and so do as many that are never ready.
    ``farewell`` (seconds): processes that are done get so long to close what they opened before they are killed.
    """

    prepare: Callable[[], State]
    run: Callable[[State, Chunk], Result]
    salvage: Salvage[Chunk, Result] | None = None
    time_limit: float | None = None
    farewell: float = 0.0
    start_limit: float = START_LIMIT


class Executor(Protocol):
    """Runs work on chunks, several at a time."""

    @property
    def name(self) -> str:
        """``serial``, ``thread``, ``process`` or ``ray``."""

    @property
    def workers(self) -> int:
        """How many chunks are worked on at a time."""

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in the order of the chunks, which are read as they are needed.

        What ``prepare`` or ``run`` raises is raised here. Raises :class:`callwright.errors.RunError` for a chunk
        that cost several workers, if nothing of it can be salvaged.
        """

    def places(
        self, work: ChunkWork[State, Chunk, Result]
    ) -> AbstractContextManager[Sequence[Callable[[Chunk], Result]]]:
        """The workers one by one, for whoever decides which of them gets what, such as those who hold sessions there.

        Each is a function that gives the result of a chunk, for one thread at a time. A worker that dies or hangs is
        replaced as in :meth:`map`; what it held is gone then.
        """

    def close(self) -> None:
        """Give the workers back. Closing twice is allowed."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ClosingExecutor:
    """The number of workers and ``with``, for every executor."""

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


# Workers that are lost ------------------------------------------------------------------------------------------------


class WorkerLost(Exception):
    """A worker died of a chunk, or hung and was killed. The message says how."""


class WorkerNotReady(Exception):
    """A worker died or hung before it was ready, which no chunk is to blame for. The message says how."""


def started(start: Callable[[], Result]) -> Result:
    """A worker that is ready. ``start`` raises :class:`WorkerNotReady` and begins with a new one then.

    Raises :class:`callwright.errors.RunError` for :data:`MOST_DEATHS` one after the other that are not.
    """
    how = ""
    for _ in range(MOST_DEATHS):
        try:
            return start()
        except WorkerNotReady as lost:
            how = str(lost)
    raise RunError(
        f"{MOST_DEATHS} workers were lost one after the other before they could begin ({how}); what was finished "
        "before is kept. Run with one worker to see why"
    )


def run_to_the_end(work: ChunkWork[Any, Chunk, Result], chunk: Chunk, ask: Callable[[Chunk], Result]) -> Result:
    """The result of a chunk, whatever it costs. ``ask`` raises :class:`WorkerLost` and begins with a new worker then.

    A worker may have died by no fault of the chunk (the kernel was out of memory), so it is tried again. Then it is
    divided until what kills workers stands alone, and that is left out.
    """
    return _salvaged(work, chunk, ask, MOST_DEATHS)


def _salvaged(work: ChunkWork[Any, Chunk, Result], chunk: Chunk, ask: Callable[[Chunk], Result], tries: int) -> Result:
    salvage, how = work.salvage, ""
    parts = salvage.parts(chunk) if salvage is not None else ()
    for _ in range(tries if len(parts) > 1 else MOST_DEATHS):
        try:
            return ask(chunk)
        except WorkerLost as lost:
            how = str(lost)
    if salvage is None:
        raise RunError(
            f"{MOST_DEATHS} workers were lost one after the other to the same chunk of work ({how}); what was finished "
            "before is kept. Run with one worker to see why"
        )
    if len(parts) < 2:
        return salvage.lost(chunk, how)
    # By now it is known that the chunk is to blame, so that each half has one try before it is divided, too.
    return salvage.joined([_salvaged(work, part, ask, 1) for part in parts])


# Inside of a worker, and what comes out of one ------------------------------------------------------------------------

_state: Any = None
_failed: Exception | None = None


def prepare_worker(prepare: Callable[[], Any]) -> None:
    """Make a new worker's state. A failure waits for the first chunk: raised here it would look like a lost worker."""
    global _state, _failed
    try:
        _state = prepare()
    except Exception as error:
        _failed = _portable(error)


def run_chunk(run: Callable[[Any, Any], Any], chunk: Any) -> tuple[bool, Any]:
    """Run one chunk in a worker that was prepared: whether it failed, and the result or what was raised."""
    return (True, _failed) if _failed is not None else _attempt(run, _state, chunk)


def _attempt(run: Callable[[Any, Any], Any], state: Any, chunk: Any) -> tuple[bool, Any]:
    """Whether it failed, and the result or what it raised: many exceptions can only travel as values."""
    try:
        return False, run(state, chunk)
    except Exception as error:
        return True, _portable(error)


def _portable(error: Exception) -> Exception:
    """The error with the worker's trace as a note; for an error that cannot be pickled, one that tells it in words."""
    where = "".join(traceback.format_exception(error))
    try:
        error.add_note(f"in a worker:\n{where}")
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever an exception of somebody else does when it is pickled
        error = ComponentError(f"{type(error).__name__} in a worker: {error}")
        error.add_note(f"in a worker:\n{where}")
    return error


def opened(outcome: tuple[bool, Any]) -> Any:
    """The result of :func:`run_chunk`, outside of the worker. Raises what was raised in it."""
    failed, value = outcome
    if failed:
        raise value
    return value
