"""Work in chunks: what is done with each chunk, what an executor promises, and what happens inside of a worker.

An executor says where the workers are: :mod:`.executors`, or :mod:`.ray_executor`, which is loaded when asked for.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from attrs import frozen

from callwright.errors import ComponentError

State = TypeVar("State")
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

#: How many workers may die with the same chunk before the work ends.
MOST_DEATHS: Final = 3
#: Chunks that wait for each worker, so that none is idle while results are read in order.
AHEAD: Final = 3
#: What stands for the chunk after the last one.
END: Final[Any] = object()


@frozen
class ChunkWork(Generic[State, Chunk, Result]):
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

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in the order of the chunks, which are read as they are needed.

        What ``prepare`` or ``run`` raises is raised here. Raises :class:`callwright.errors.RunError` for a chunk
        that killed several workers.
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


# Inside of a worker, and what comes out of one ------------------------------------------------------------------------

_state: Any = None
_failed: Exception | None = None


def prepare_worker(prepare: Callable[[], Any]) -> None:
    """Make a new worker's state. A failure waits for the first chunk: raised here it would break the whole pool."""
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
