"""What goes on inside of a process of sessions."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import traceback
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import call_session, open_session
from callwright.environments.sizes import size_of
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure
from callwright.language.program import Call
from callwright.machines.interrupts import leave_signals_to_the_parent
from callwright.machines.worker_process import die_with_the_parent

#: How a process leaves that a tool made by forking: it would go on with the work of its parent.
_FORKED: Final = 1


@frozen
class Failed:
    """What was raised."""

    error: BaseException


@frozen
class Handle:
    """A session of the other side, by number, and which methods it has beyond those of the protocol."""

    number: int
    methods: frozenset[str] = frozenset()


class _Sessions:
    def __init__(self, environment: Environment, cpu: float | None, result: int) -> None:
        self._environment, self._cpu, self._result = environment, cpu, result
        self._open: dict[int, Session] = {}
        self._numbers = count()
        self._forked = False
        os.register_at_fork(after_in_parent=self._note_fork)

    def _note_fork(self) -> None:
        self._forked = True

    def answer(self, request: tuple[Any, ...]) -> Any:
        """The answer to a request, under the limits."""
        operation, *given = request
        _limit_cpu(self._cpu)
        process, folder = os.getpid(), str(Path.cwd())
        self._forked = False
        try:
            answer = getattr(self, f"do_{operation}")(*given)
        except BaseException as error:
            answer = Failed(_portable(error))
        if os.getpid() != process:  # a tool has forked, and this is the child
            os._exit(_FORKED)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        done = "forked" if self._forked else "chdir" if _moved_from(folder) else ""
        if done:
            what = given[1] if operation == "call" else operation
            why = "started a copy of its process (fork)" if done == "forked" else "changed the working folder"
            lost = f"{what} {why}; tools share their process with other sessions"
            return (
                Outcome("infrastructure_error", None, done, lost)
                if operation == "call"
                else Failed(InfrastructureFailure(lost))
            )
        return answer

    def do_open(self, scenario: str, seed: int) -> Handle:
        return self._handle(open_session(self._environment, scenario, seed))

    def do_call(self, number: int, tool: str, arguments: dict[str, Any]) -> Outcome:
        outcome = call_session(self._open[number], Call(0, tool, {}), arguments)
        if size_of(outcome.value, self._result) > self._result:
            message = f"the result of {tool} is larger than {self._result:,} characters"
            outcome = Outcome("execution_error", None, "result_too_large", message)
        return outcome if type(outcome) is Outcome else evolve(outcome)

    def do_digest(self, number: int) -> str:
        return self._open[number].digest()

    def do_close(self, number: int) -> None:
        self._open.pop(number).close()

    def do_method(self, number: int, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        found = getattr(self._open[number], name)(*map(self._opened, given), **named)
        return self._handle(found) if hasattr(found, "call") and hasattr(found, "digest") else found

    def _opened(self, value: Any) -> Any:
        return self._open[value.number] if isinstance(value, Handle) else value

    def _handle(self, session: Session) -> Handle:
        number = next(self._numbers)
        self._open[number] = session
        kind = type(session)
        methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name, None))}
        return Handle(number, frozenset(methods - {"call", "digest", "close"}))


def serve(connection: Connection, environment: bytes, cpu: float | None, memory: int | None, result: int) -> None:
    """Answer requests until nobody is there any more."""
    leave_signals_to_the_parent()
    threading.Thread(target=die_with_the_parent, name="callwright parent", daemon=True).start()
    # What is printed must not stand in the output of a command.
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        sessions = _Sessions(pickle.loads(environment), cpu, result)
        _limit_memory(memory)
    except BaseException as error:
        connection.send_bytes(pickle.dumps(Failed(_portable(error))))
        return
    connection.send_bytes(pickle.dumps(None))
    with contextlib.suppress(EOFError, OSError):
        while True:
            try:
                request = connection.recv()
            except (EOFError, OSError):
                return
            answer = sessions.answer(request)
            try:
                sent = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # a value that is not JSON
                words = f"what {request[0]!r} returned cannot be sent to another process: {error}"
                sent = pickle.dumps(Failed(ComponentError(words)))
            connection.send_bytes(sent)


def _portable(error: BaseException) -> BaseException:
    """The error, or one in words where it cannot travel; one that no process should end by is told in words, too."""
    if isinstance(error, CallwrightError):
        with contextlib.suppress(Exception):
            pickle.loads(pickle.dumps(error))
            return error
    where = "".join(traceback.format_exception(error)[-2:]).strip()
    return ComponentError(f"{type(error).__name__} in the process of a session: {error}\n{where}")


def _moved_from(folder: str) -> bool:
    try:
        moved = str(Path.cwd()) != folder
    except OSError:  # the folder is gone
        moved = True
    if moved:
        with contextlib.suppress(OSError):
            os.chdir(folder)
    return moved


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
