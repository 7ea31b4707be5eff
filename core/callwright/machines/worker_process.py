"""One worker process: started afresh, asked one chunk at a time, killed when it hangs, and gone when its parent is."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import parent_process
from typing import Any, Final

from callwright.errors import RunError
from callwright.machines.chunk_work import (
    ChunkWork,
    WorkerLost,
    WorkerNotReady,
    opened,
    prepare_worker,
    run_chunk,
    started,
)
from callwright.machines.command_folder import name_folder
from callwright.machines.interrupts import leave_signals_to_the_parent

#: How a worker leaves whose parent is gone; nobody is there to read it.
_ORPHAN: Final = 1


class WorkerProcess:
    """A place for a process. One is started when a chunk comes, and a new one after it was lost."""

    def __init__(self, work: ChunkWork[Any, Any, Any]) -> None:
        self._work = work
        self._guard = threading.Lock()  # between the thread that asks and the one that closes
        self._process: Any = None
        self._connection: Connection | None = None
        self._ready = False
        self._closed = False
        self._busy = False

    def ask(self, chunk: Any) -> Any:
        """The result of a chunk.

        Raises what was raised in the worker, and :class:`.chunk_work.WorkerLost` if it died or had no result in time.
        """
        connection = started(self._readied)
        limit = self._work.time_limit
        self._busy = True
        try:
            connection.send(chunk)
            if not connection.poll(limit):
                self._end()
                raise WorkerLost(f"no result after {limit:g} s")
            outcome = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError) as gone:  # the other end of the pipe closed
            how = self._end()
            if self._closed:
                raise RunError("the workers were closed") from gone
            raise WorkerLost(how) from gone
        self._busy = False
        return opened(outcome)

    def _readied(self) -> Connection:
        """The way to a process that is ready. Raises :class:`.chunk_work.WorkerNotReady` if it died or hangs."""
        connection = self._started()
        if self._ready:
            return connection
        limit = self._work.start_limit
        self._busy = True
        try:
            if not connection.poll(limit):
                self._end()
                raise WorkerNotReady(f"not ready after {limit:g} s")
            connection.recv_bytes()
        except (EOFError, OSError) as gone:
            how = self._end()
            if self._closed:
                raise RunError("the workers were closed") from gone
            raise WorkerNotReady(how) from gone
        self._busy, self._ready = False, True
        return connection

    def dismiss(self) -> None:
        """Say that nothing more will come. A process that has nothing to do leaves then, as if it had ended."""
        with self._guard:
            self._closed = True
            if self._connection is not None and not self._busy:
                self._connection.close()

    def close(self) -> None:
        """Kill the process, whatever it does. The thread that waits for it gets a :class:`RunError`."""
        with self._guard:
            self._closed = True
            process = self._process
        if process is not None:
            if self._connection is not None and self._connection.closed:
                process.join(self._work.farewell)
            process.kill()
            process.join()

    def _started(self) -> Connection:
        with self._guard:
            if self._closed:
                raise RunError("the workers were closed")
            if self._connection is None:
                name_folder()  # in the environment that the process inherits
                context = multiprocessing.get_context("spawn")  # no lock, thread or open file is inherited
                mine, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, self._work.prepare, self._work.run), name="callwright worker"
                )
                process.start()
                theirs.close()  # or the death of the process would never be seen here
                self._process, self._connection = process, mine
            return self._connection

    def _end(self) -> str:
        """Make sure that the process is gone; how it ended, in words."""
        process, connection = self._process, self._connection
        with self._guard:
            self._process = self._connection = None
            self._ready = False
        if connection is not None:
            connection.close()
        if process is None:
            return "closed"
        process.join(1.0)  # one that died is still to be waited for
        if process.is_alive():
            process.kill()
            process.join()
        return _how(process.exitcode)


def _how(status: int | None) -> str:
    if status is None or status >= 0:
        return f"its process ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"its process was killed by {signal.Signals(-status).name}"
    return f"its process was killed by signal {-status}"


# Inside of the process ------------------------------------------------------------------------------------------------


def _serve(connection: Connection, prepare: Callable[[], Any], run: Callable[[Any, Any], Any]) -> None:
    leave_signals_to_the_parent()
    threading.Thread(target=die_with_the_parent, name="callwright parent", daemon=True).start()
    gc.disable()  # what a worker imports and opens stays: it would be looked through again and again
    prepare_worker(prepare)
    gc.freeze()
    gc.enable()
    with contextlib.suppress(EOFError, OSError):  # the parent closed the pipe: there is nothing more to do
        connection.send_bytes(b"ready")
        while True:
            outcome = run_chunk(run, connection.recv())
            connection.send_bytes(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))


def die_with_the_parent() -> None:
    """For a thread of a process: wait until the parent is gone, and end."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(_ORPHAN)
