"""One process in which sessions live: asked one thing at a time, and killed when it does not answer in time."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.isolated.serving import Failed, serve
from callwright.environments.sizes import MOST_VALUE
from callwright.errors import InfrastructureFailure, UsageError

_GIGABYTE: Final = 2**30
#: Seconds in which a process has to start: it imports the tools, and whatever they import.
_START: Final = 120.0


def _positive(instance: Any, attribute: Any, value: float | None) -> None:
    if value is not None and not value > 0:
        raise UsageError(f"the limit {attribute.name!r} of isolated sessions is a positive number, not {value!r}")


@frozen
class SessionLimits:
    """What sessions in processes may use. ``None`` is no limit.

    ``time``: seconds for opening, each call, each digest and closing; ``cpu``: seconds of processor time for the same,
    of all threads of the process; ``memory``: bytes of data that a process may hold (``RLIMIT_DATA``, where the system
    has it); ``result``: size of one result (:mod:`callwright.environments.sizes`). ``processes``: how many processes
    share the sessions; where one is killed, the sessions in it are lost and their samples masked.
    """

    time: float | None = field(default=30.0, validator=_positive)
    cpu: float | None = field(default=None, validator=_positive)
    memory: int | None = field(default=4 * _GIGABYTE, validator=_positive)
    result: int = field(default=MOST_VALUE, validator=_positive)
    processes: int = field(default=2, validator=_positive)


class ProcessLost(InfrastructureFailure):
    """The process of a session is gone; ``code`` says why: ``timeout``, ``cpu``, ``memory`` or ``exited``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SessionProcess:
    """A process, started at once. It is for many threads, which take turns."""

    def __init__(self, environment: bytes, name: str, limits: SessionLimits) -> None:
        self.sessions = 0
        self.lost: str | None = None
        self._limits, self._turn = limits, threading.Lock()
        context = multiprocessing.get_context("spawn")  # no lock, thread or open file is inherited
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve,
            args=(theirs, environment, limits.cpu, limits.memory, limits.result),
            name=f"callwright session of {name}",
            daemon=True,  # it ends with this one, and holds nothing that anybody needs
        )
        self.process.start()
        theirs.close()  # or the death of the process would never be seen here
        try:
            with self._turn:
                ready = self._receive(f"starting the process of environment {name!r}", _START)
        except ProcessLost as lost:
            raise UsageError(
                f"environment {name!r} cannot run in a process of its own: {lost}. A script that does this guards what "
                'it runs with `if __name__ == "__main__":`'
            ) from lost
        if isinstance(ready, Failed):
            self.kill()
            raise UsageError(f"environment {name!r} cannot run in a process of its own: {ready.error}")

    def ask(self, what: str, request: tuple[Any, ...]) -> Any:
        """The answer to a request. ``what`` names it in errors.

        Raises what was raised there, and :class:`ProcessLost` if there is no answer, or none in time.
        """
        with self._turn:
            if self.lost is not None:
                raise ProcessLost("exited", f"{what}: the process of this session was lost before: {self.lost}")
            try:
                self._connection.send(request)
            except (OSError, EOFError):
                raise self._gone(what) from None
            answer = self._receive(what, self._limits.time)
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    def _receive(self, what: str, limit: float | None) -> Any:
        try:
            if not self._connection.poll(limit):
                self.lost = f"{what} took more than {limit:g} s"
                self.kill()
                raise ProcessLost("timeout", self.lost)
            return pickle.loads(self._connection.recv_bytes())
        except (OSError, EOFError):
            raise self._gone(what) from None
        except BaseException:  # Ctrl-C, or an answer that cannot be read: the next one would be taken for this one
            self.lost = self.lost or f"{what} was interrupted"
            self.kill()
            raise

    def _gone(self, what: str) -> ProcessLost:
        self.process.join(1.0)
        status = self.process.exitcode
        self.kill()
        code = "exited"
        if status is not None and self._limits.cpu is not None and status == -getattr(signal, "SIGXCPU", 0):
            code, how = "cpu", f"used more than {self._limits.cpu:g} s of processor time"
        elif status is not None and status < 0:
            how = f"ended its process by signal {-status}"
            with contextlib.suppress(ValueError):
                how = f"ended its process by {signal.Signals(-status).name}"
        else:
            how = f"ended its process with status {status}"
        self.lost = f"{what} {how}"
        return ProcessLost(code, self.lost)

    def kill(self) -> None:
        """End it, whatever it does. Ending it twice is allowed."""
        self.lost = self.lost or "it was closed"
        self.process.kill()
        self.process.join()
        self._connection.close()
