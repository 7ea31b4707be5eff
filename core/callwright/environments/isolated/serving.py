"""What goes on inside of a process of sessions."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import call_session, open_session
from callwright.environments.sizes import size_of
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure
from callwright.language.program import Call
from callwright.machines.footprints import Footprint, Streams
from callwright.machines.interrupts import leave_signals_to_the_parent
from callwright.tools.spec import ToolSpec

T = TypeVar("T")
#: The status of a process whose pipe a tool has closed.
LOST_ITS_PIPE: Final = 113
#: How a process leaves whose parent is gone; nobody is there to read it.
_ORPHAN: Final = 1
#: Seconds between two looks at whether the parent is still there.
_LOOK: Final = 0.5


@frozen
class Greeting:
    """What a process is told first: who asks, and its limits."""

    parent: int
    arguments: tuple[str, ...]
    cpu: float | None
    memory: int | None
    result: int


@frozen
class Failed:
    """What was raised."""

    error: BaseException


@frozen
class Over:
    """Nothing more comes."""


@frozen
class Handle:
    """A session of the other side, by number, and which methods it has beyond those of the protocol."""

    number: int
    methods: frozenset[str] = frozenset()


class _Watched(Session):
    """A session as it is asked here: what comes of a call is bounded, and what it did to the process is undone."""

    def __init__(self, environment: Environment, opened: Callable[[], Session], most: int, streams: Streams) -> None:
        """Open it."""
        self._most, self._streams = most, streams
        self.environment = environment
        self.inner: Session = self.watched(f"opening a session of {environment.name!r}", opened)

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Those of the environment."""
        return self.environment.tools

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        before = Footprint()
        try:
            outcome = call_session(self.inner, Call(0, tool, {}), arguments)
        finally:
            changed = before.undone() or self._streams.undone()
        if changed is not None:
            return Outcome("infrastructure_error", None, changed[0], _shared(tool, changed[1]))
        if size_of(outcome.value, self._most) > self._most:
            message = f"the result of {tool} is larger than {self._most:,} characters"
            return Outcome("execution_error", None, "result_too_large", message)
        return outcome if type(outcome) is Outcome else evolve(outcome)

    def digest(self) -> str:
        return self.watched("the digest of a session", self.inner.digest)

    def close(self) -> None:
        self.watched("closing a session", self.inner.close)

    def watched(self, what: str, work: Callable[[], T]) -> T:
        """Do something else. Raises :class:`callwright.InfrastructureFailure` for what that did to the process."""
        before = Footprint()
        try:
            found = work()
        finally:
            changed = before.undone() or self._streams.undone()
        if changed is not None:
            raise InfrastructureFailure(_shared(what, changed[1]))
        return found


def _shared(what: str, done: str) -> str:
    return f"{what} {done}; tools share it with other sessions"


class _Sessions:
    def __init__(self, connection: Connection[Any, Any], cpu: float | None, result: int, streams: Streams) -> None:
        self._connection, self._cpu, self._result, self._streams = connection, cpu, result, streams
        self._environments: dict[int, Environment] = {}
        self._open: dict[int, _Watched] = {}
        self._numbers = count()

    def serve(self, request: tuple[Any, ...]) -> None:
        """Answer a request, under the limits."""
        operation, *given = request
        if operation == "drop":  # nobody waits for an answer
            self._environments.pop(given[0], None)
            return
        _limit_cpu(self._cpu)
        process = os.getpid()
        try:
            answer = getattr(self, f"do_{operation}")(*given)
        except BaseException as error:
            answer = Failed(_portable(error))
        if os.getpid() != process:  # made by a tool that forked while an environment was made
            os._exit(_ORPHAN)
        self._send(operation, answer)

    def _send(self, operation: str, answer: Any) -> None:
        try:
            sent = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # a value that is not JSON
            words = f"what {operation!r} returned cannot be sent to another process: {error}"
            sent = pickle.dumps(Failed(ComponentError(words)))
        self._connection.send_bytes(sent)

    def do_make(
        self, number: int, made: bytes, main: dict[str, Any] | None, paths: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        if not {*paths} <= {*sys.path}:  # folders that the parent has come to know since it started this process
            sys.path[:] = [*paths, *(path for path in sys.path if path not in paths)]
            importlib.invalidate_caches()
        if main is not None:
            from multiprocessing import spawn

            spawn.prepare(main)
        environment = self._environments[number] = pickle.loads(made)
        return environment.name, tuple(environment.tools)

    def do_open(self, environment: int, scenario: str, seed: int) -> Handle:
        return self._handle(self._opened(environment, scenario, seed))

    def do_call(self, number: int, tool: str, arguments: dict[str, Any]) -> Outcome:
        return self._open[number].call(tool, arguments)

    def do_digest(self, number: int) -> str:
        return self._open[number].digest()

    def do_close(self, number: int) -> None:
        self._open.pop(number).close()

    def do_method(self, number: int, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        session = self._open[number]
        known = {key: self._inner(value) for key, value in named.items()}
        method = partial(getattr(session.inner, name), *map(self._inner, given), **known)
        found = session.watched(f"{name!r} of a session", method)
        if not (hasattr(found, "call") and hasattr(found, "digest")):
            return found
        return self._handle(_Watched(session.environment, lambda: found, self._result, self._streams))

    def do_stream(self, number: int, work: Callable[..., Iterator[Any]], given: tuple[Any, ...]) -> Over:
        for found in work(self._open[number], *given):
            self._send("stream", found)
        return Over()

    def do_once(
        self, environment: int, scenario: str, seed: int, work: Callable[..., Iterator[Any]], given: tuple[Any, ...]
    ) -> Over:
        """Open a session, stream, and close it."""
        session = self._opened(environment, scenario, seed)
        try:
            for found in work(session, *given):
                self._send("stream", found)
        finally:
            session.close()
        return Over()

    def do_work(self, work: Callable[..., None], given: tuple[Any, ...]) -> Over:
        """Anything else that may be lost with its process: what ``work(tell, *given)`` tells is sent at once."""
        work(partial(self._send, "work"), *given)
        return Over()

    def _opened(self, environment: int, scenario: str, seed: int) -> _Watched:
        made = self._environments[environment]
        return _Watched(made, lambda: open_session(made, scenario, seed), self._result, self._streams)

    def _inner(self, value: Any) -> Any:
        return self._open[value.number].inner if isinstance(value, Handle) else value

    def _handle(self, session: _Watched) -> Handle:
        number = next(self._numbers)
        self._open[number] = session
        kind = type(session.inner)
        methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name, None))}
        return Handle(number, frozenset(methods - {"call", "digest", "close"}))


def serve(handle: int) -> None:
    """Answer requests until nobody is there any more."""
    leave_signals_to_the_parent()
    connection: Connection[Any, Any] = Connection(handle)
    streams = Streams()
    try:
        greeting: Greeting = connection.recv()
        sys.argv[:] = greeting.arguments
        threading.Thread(target=_end_with, args=(greeting.parent,), name="callwright parent", daemon=True).start()
        sessions = _Sessions(connection, greeting.cpu, greeting.result, streams)
        _limit_memory(greeting.memory)
        connection.send_bytes(pickle.dumps(None))
        while True:
            sessions.serve(connection.recv())
    except EOFError:
        return
    except OSError:  # the pipe is gone: the parent is too, or a tool closed it
        os._exit(LOST_ITS_PIPE)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(_ORPHAN)


def _portable(error: BaseException) -> BaseException:
    """The error, or one in words where it cannot travel; one that no process should end by is told in words, too."""
    if isinstance(error, CallwrightError):
        with contextlib.suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return error
    where = "".join(traceback.format_exception(error)[-2:]).strip()
    return ComponentError(f"{type(error).__name__} in the process of a session: {error}\n{where}")


def _limit_cpu(seconds: float | None) -> None:
    if seconds is None:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):  # where the system knows such limits
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))


def _limit_memory(most: int | None) -> None:
    if most is None:
        return
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
