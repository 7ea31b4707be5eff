"""One process in which sessions live: asked one thing at a time, and killed when it does not answer in time.

It is a fresh interpreter, not a copy of this one: no lock, thread or open file is inherited, and the script that runs
here is not run again there.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.isolated.serving import LOST_ITS_PIPE, Failed, Greeting, Over
from callwright.environments.sizes import MOST_VALUE
from callwright.errors import InfrastructureFailure, UsageError

_GIGABYTE: Final = 2**30
#: Seconds in which a process has to start, and to make an environment: it imports the tools, and what they import.
_START: Final = 120.0
#: The paths are set before anything else is imported, so that no file of the working folder stands in for a module.
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from callwright.environments.isolated.serving import serve; serve(int(sys.argv[1]))"
)
#: Processes of the process that this one was forked from. They are never let go of: they are not ours to end.
_OF_THE_PARENT: Final[list[Any]] = []


def _positive(instance: Any, attribute: Any, value: float | None) -> None:
    if value is not None and not value > 0:
        raise UsageError(f"the limit {attribute.name!r} of isolated sessions is a positive number, not {value!r}")


@frozen
class SessionLimits:
    """What sessions in processes may use. ``None`` is no limit.

    ``time``: seconds for opening, each call with the digest after it, and closing; ``cpu``: seconds of processor time
    for what is asked at once, of all threads of the process; ``memory``: bytes of data that a process may hold
    (``RLIMIT_DATA``, where the system has it); ``result``: size of one result (:mod:`callwright.environments.sizes`).
    ``processes``: how many processes share the sessions; where one is killed, the sessions in it are lost and their
    samples masked.
    """

    time: float | None = field(default=30.0, validator=_positive)
    cpu: float | None = field(default=None, validator=_positive)
    memory: int | None = field(default=4 * _GIGABYTE, validator=_positive)
    result: int = field(default=MOST_VALUE, validator=_positive)
    processes: int = field(default=2, validator=_positive)


class ProcessLost(InfrastructureFailure):
    """The process of a session is gone; ``code`` says why: ``timeout``, ``cpu``, ``exited`` or ``closed``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CannotMoveThere(UsageError):
    """An environment cannot be made again in another process, or no other process can be started."""


class SessionProcess:
    """A process, started at once. It is for many threads, which take turns."""

    def __init__(self, limits: SessionLimits) -> None:
        if not hasattr(select, "poll"):  # pragma: no cover - Windows
            raise CannotMoveThere("sessions in processes need a system with poll(), such as Linux or macOS")
        self.sessions = 0
        self.lost: str | None = None
        #: Numbers of the environments that were made there.
        self.made: set[int] = set()
        self.owner = os.getpid()
        self._limits, self._turn = limits, threading.Lock()
        self._connection: Connection[Any, Any]
        self._connection, theirs = Pipe()
        handle = theirs.fileno()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(handle), *sys.path],
                pass_fds=[handle],
                stdin=subprocess.DEVNULL,
                stdout=2 if _is_open(2) else subprocess.DEVNULL,  # what is printed is not in the output of a command
            )
        except OSError as error:
            raise CannotMoveThere(f"no process can be started: {error}") from error
        theirs.close()  # or the death of the process would never be seen here
        self._poll = select.poll()
        self._poll.register(self._connection.fileno(), select.POLLIN)
        try:
            with self._turn:
                self._send("starting", Greeting(self.owner, tuple(sys.argv), limits.cpu, limits.memory, limits.result))
                ready = self._receive("starting a process for sessions", _START)
        except ProcessLost as lost:
            raise CannotMoveThere(str(lost)) from lost
        if isinstance(ready, Failed):
            self.kill()
            raise CannotMoveThere(str(ready.error))

    @property
    def busy(self) -> bool:
        """Whether it is being asked something right now."""
        return self._turn.locked()

    def ask(self, what: str, request: tuple[Any, ...], limit: float | None = math.nan) -> Any:
        """The answer to a request, in time. ``what`` names it in errors.

        Raises what was raised there, and :class:`ProcessLost` if there is no answer, or none in time.
        """
        with self._turn:
            self._send(what, request)
            answer = self._receive(what, self._limits.time if limit is not None and math.isnan(limit) else limit)
        if isinstance(answer, Failed):
            raise answer.error
        return answer

    def stream(
        self, what: Iterator[str], request: tuple[Any, ...], limit: Callable[[], float | None] | None = None
    ) -> Iterator[Any]:
        """What a request yields there, each in time. ``what`` names each in errors; it has to be read to its end.

        ``limit`` says how many seconds the next one has, where that is not the time of the limits. Raises as
        :meth:`ask` does.
        """
        with self._turn:
            self._send(next(what), request)
            whole = False
            try:
                for name in what:
                    answer = self._receive(name, self._limits.time if limit is None else limit())
                    if type(answer) is Over or type(answer) is Failed:
                        whole = True
                        break
                    yield answer
            finally:
                if not whole:  # nobody reads the rest, and the next one would take it for its own
                    self.kill()
        if isinstance(answer, Failed):
            raise answer.error

    def drop(self, environment: int) -> None:
        """Forget an environment, if nothing else is being asked: it may be said at any moment, by any thread."""
        if self._turn.acquire(False):
            try:
                self.made.discard(environment)
                with contextlib.suppress(InfrastructureFailure):
                    self._send("forgetting", ("drop", environment))
            finally:
                self._turn.release()

    def _send(self, what: str, request: Any) -> None:
        if self.lost is not None:
            raise ProcessLost("exited", f"{what}: the process of this session was lost before: {self.lost}")
        if self.owner != os.getpid():
            raise ProcessLost(
                "exited", f"{what}: the process of this session belongs to the one that this is a copy of"
            )
        sent = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        try:
            self._connection.send_bytes(sent)
        except (OSError, EOFError):
            raise self._gone(what) from None

    def _receive(self, what: str, limit: float | None) -> Any:
        try:
            if not self._poll.poll(None if limit is None else math.ceil(min(limit, 1e6) * 1000)):
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
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.process.wait(1.0)
        code, how = "exited", f"ended its process with status {status}"
        if status is None or status == LOST_ITS_PIPE:
            code, how = "closed", "closed files of its process that are not its own"
        elif self._limits.cpu is not None and status == -getattr(signal, "SIGXCPU", 0):
            code, how = "cpu", f"used more than {self._limits.cpu:g} s of processor time"
        elif status < 0:
            how = f"ended its process by signal {-status}"
            with contextlib.suppress(ValueError):
                how = f"ended its process by {signal.Signals(-status).name}"
        self.lost = f"{what} {how}"
        self.kill()
        return ProcessLost(code, self.lost)

    def kill(self) -> None:
        """End it, whatever it does. Ending it twice is allowed."""
        self.lost = self.lost or "it was closed"
        if self.owner != os.getpid():
            _OF_THE_PARENT.append(self.process)
            return
        self.process.kill()
        self.process.wait()
        self._connection.close()


def _is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True
