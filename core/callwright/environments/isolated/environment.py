"""An environment whose sessions live in processes of their own."""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from callwright.environments.isolated.process import ProcessLost, SessionLimits, SessionProcess
from callwright.environments.isolated.serving import Handle
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, UsageError
from callwright.tools.spec import ToolSpec

#: Where the sessions of an environment live.
Isolation = Literal["none", "process"]
DEFAULT_LIMITS: Final = SessionLimits()


def isolated(environment: Environment, limits: SessionLimits = DEFAULT_LIMITS) -> IsolatedEnvironment:
    """The same environment with its sessions in a pool of processes, which are killed where they go over ``limits``.

    What a session has beyond the protocol (``fork``, ``reset``, ``snapshot`` …) is there too, if it is a method;
    anything else of it is not at hand. Raises :class:`callwright.UsageError` for an environment that cannot be made
    again in another process: its tools have to be functions of a module.
    """
    if isinstance(environment, IsolatedEnvironment):
        return environment
    kind = _IsolatedAnything if getattr(environment, "takes_anything", False) else IsolatedEnvironment
    return kind(environment, limits)


class IsolatedEnvironment(Environment):
    """What :func:`isolated` returns."""

    keeps_time: Literal[True] = True

    def __init__(self, inner: Environment, limits: SessionLimits) -> None:
        self.inner, self.limits = inner, limits
        try:
            self._made = pickle.dumps(inner)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(
                f"environment {inner.name!r} cannot run in a process of its own, because it cannot be sent there: "
                f'{error}. Make its tools functions of a module, or keep it in this process (isolation = "none")'
            ) from error
        self._guard = threading.Lock()
        self._processes: list[SessionProcess] = []
        weakref.finalize(self, _kill, self._processes)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return isolated, (self.inner, self.limits)

    def __deepcopy__(self, memo: Any) -> IsolatedEnvironment:
        return self

    @property
    def name(self) -> str:
        """The name of the environment."""
        return self.inner.name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by name."""
        return self.inner.tools

    @property
    def pure(self) -> bool:
        """As the environment is."""
        return self.inner.pure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def open(self, scenario: str = "", seed: int = 0) -> IsolatedSession:
        """A fresh session, in the process that holds the fewest."""
        with self._guard:
            process = self._place()
            process.sessions += 1
        try:
            handle = process.ask(f"opening a session of {self.name!r}", ("open", scenario, seed))
        except BaseException:
            process.sessions -= 1
            raise
        return IsolatedSession(self.name, process, handle)

    def close(self) -> None:
        """End all processes. Sessions that are open are lost; new ones start new processes."""
        with self._guard:
            _kill(self._processes)

    def _place(self) -> SessionProcess:
        self._processes[:] = [process for process in self._processes if process.lost is None]
        best = min(self._processes, key=lambda process: process.sessions, default=None)
        if best is None or (best.sessions and len(self._processes) < self.limits.processes):
            best = SessionProcess(self._made, self.name, self.limits)
            self._processes.append(best)
        return best


class _IsolatedAnything(IsolatedEnvironment):
    @property
    def takes_anything(self) -> Literal[True]:
        """True, as of the environment."""
        return True


class IsolatedSession(Session):
    """A session that lives in a process of the pool."""

    def __init__(self, environment: str, process: SessionProcess, handle: Handle) -> None:
        self._environment, self._process, self._handle, self._closed = environment, process, handle, False

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """One call. A tool that ends, blocks or exhausts its process is an ``infrastructure_error``."""
        try:
            outcome: Outcome = self._process.ask(tool, ("call", self._number, tool, arguments))
        except ProcessLost as lost:
            return Outcome("infrastructure_error", None, lost.code, str(lost))
        return outcome

    def digest(self) -> str:
        """The digest."""
        found: str = self._process.ask("the digest of a session", ("digest", self._number))
        return found

    def close(self) -> None:
        """Give it back."""
        if self._closed:
            return
        self._closed = True
        self._process.sessions -= 1
        if self._process.lost is None:
            self._process.ask("closing a session", ("close", self._handle.number))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._handle.methods:
            raise AttributeError(
                f"a session of {self._environment!r} has no method {name!r}, or what it holds is not at hand, because "
                "it lives in a process of its own"
            )

        def method(*given: Any, **named: Any) -> Any:
            sent = tuple(value._handle if isinstance(value, IsolatedSession) else value for value in given)
            found = self._process.ask(f"{name!r} of a session", ("method", self._number, name, sent, named))
            if isinstance(found, Handle):
                self._process.sessions += 1
                return IsolatedSession(self._environment, self._process, found)
            return found

        return method

    @property
    def _number(self) -> int:
        if self._closed:
            raise UsageError(f"the session of {self._environment!r} is closed")
        return self._handle.number

    def __reduce__(self) -> Any:
        raise InfrastructureFailure("a session that lives in a process of its own cannot be sent to another one")


def _kill(processes: list[SessionProcess]) -> None:
    while processes:
        processes.pop().kill()
