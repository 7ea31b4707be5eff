"""An environment whose sessions live in processes of their own."""

from __future__ import annotations

import pickle
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count, repeat
from typing import Any, Final, Literal

from callwright.capability import has
from callwright.environments.isolated.pool import SessionPool
from callwright.environments.isolated.process import CannotMoveThere, ProcessLost, SessionLimits, SessionProcess
from callwright.environments.isolated.serving import Handle
from callwright.environments.protocol import Briefs, Environment, Outcome, Session, TakesAnything, declares
from callwright.errors import InfrastructureFailure, UsageError
from callwright.tools.spec import ToolSpec

#: Where sessions of tools live: foreign code in processes where it can (``auto``), all in them, or none.
Isolation = Literal["auto", "process", "none"]
DEFAULT_LIMITS: Final = SessionLimits()
#: Seconds in which a process has to start, and to make an environment: it imports the tools, and what they import.
_MAKE: Final = 120.0
_MAINS: Final = (b"__main__", b"__mp_main__")
_numbers: Final = count()
_CLOSING: Final = "closing a session"


def isolated(environment: Environment, limits: SessionLimits = DEFAULT_LIMITS) -> IsolatedEnvironment:
    """The same environment with its sessions in a pool of processes, which are killed where they go over ``limits``.

    What a session has beyond the protocol (``fork``, ``reset``, ``snapshot`` …) is there too, if it is a method;
    anything else of it is not at hand. Raises :class:`callwright.UsageError` for an environment that cannot be made
    again in another process: its tools have to be functions of a module.
    """
    return _isolated(environment, SessionPool(limits, spread=True))


def isolated_in(environment: Environment, pool: SessionPool) -> IsolatedEnvironment:
    """The same environment with its sessions in a pool that it shares with others.

    Raises :class:`.process.CannotMoveThere`, also for tools of the script that runs (``__main__``): to make them again
    would be to run it again.
    """
    return _isolated(environment, pool, again=False)


def _isolated(environment: Environment, pool: SessionPool, *, again: bool = True) -> IsolatedEnvironment:
    if isinstance(environment, IsolatedEnvironment):
        return environment
    kind = _IsolatedAnything if has(environment, TakesAnything) and environment.takes_anything else IsolatedEnvironment
    return kind(environment, pool, again=again)


class IsolatedEnvironment(Environment):
    """What :func:`isolated` returns."""

    keeps_time: Literal[True] = True
    out_of_process: Literal[True] = True
    foreign: Literal[False] = False  # nothing of it runs in this process

    def __init__(self, inner: Environment, pool: SessionPool, *, again: bool = True) -> None:
        """``again`` allows that the script which runs here is run again there, because its functions are tools."""
        self.inner, self.pool = inner, pool
        try:
            self._made = pickle.dumps(inner)
        except UsageError as error:
            raise CannotMoveThere(str(error)) from error
        except Exception as error:
            raise CannotMoveThere(
                f"environment {inner.name!r} cannot run in a process of its own, because it cannot be sent there: "
                f'{error}. Make its tools functions of a module, or keep it in this process (isolation = "none")'
            ) from error
        self._main: dict[str, Any] | None = None
        if any(main in self._made for main in _MAINS):
            if not again:
                raise CannotMoveThere(
                    f"environment {inner.name!r} holds functions of the script that runs here, and another process "
                    "would have to run it again. Define them in a module"
                )
            from multiprocessing import spawn

            self._main = spawn.get_preparation_data("callwright sessions")
        self._number = next(_numbers)
        self._proved = False
        weakref.finalize(self, pool.forget, self._number).atexit = False

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

    @property
    def limits(self) -> SessionLimits:
        """What its sessions may use."""
        return self.pool.limits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def briefs(self) -> bool:
        """As the environment does."""
        return declares(self.inner, Briefs) and bool(self.inner.briefs)  # type: ignore[attr-defined]

    def briefing(self, session: Session) -> str:
        """What the environment tells of a session, which says it itself, where it lives."""
        told: str = session.briefing() if self.briefs else ""  # type: ignore[attr-defined]
        return told

    def open(self, scenario: str = "", seed: int = 0) -> IsolatedSession:
        """A fresh session, in the process that holds the fewest."""
        process = self._take()
        try:
            handle = process.ask(f"opening a session of {self.name!r}", ("open", self._number, scenario, seed))
        except BaseException:
            self.pool.give_back(process)
            raise
        return IsolatedSession(self, process, handle)

    def once(
        self, scenario: str, seed: int, what: Iterator[str], work: Callable[..., Iterator[Any]], *given: Any
    ) -> Iterator[Any]:
        """What ``work(session, *given)`` yields there with a session that is opened for it and closed after it.

        ``work`` is a function of a module. It yields once when the session is open, then once for each of ``what``,
        which name what it does meanwhile. All of it is one request, and as fast as that.
        """
        process = self._take()
        opening = f"opening a session of {self.name!r}"
        try:
            request = ("once", self._number, scenario, seed, work, given)
            yield from process.stream(chain((opening, opening), what, repeat(_CLOSING)), request)
        finally:
            self.pool.give_back(process)

    def prove(self) -> None:
        """Make it in a process, as the first session would. Raises :class:`.process.CannotMoveThere`."""
        self.pool.give_back(self._take())

    def close(self) -> None:
        """End all processes of the pool. Sessions that are open are lost; new ones start new processes."""
        self.pool.close()

    def _take(self) -> SessionProcess:
        try:
            process = self.pool.take()
            try:
                if self._number not in process.made:
                    self._make(process)
            except BaseException:
                self.pool.give_back(process)
                raise
        except CannotMoveThere as error:
            if self._proved:  # it could, before: the machine is at its limits
                raise InfrastructureFailure(str(error)) from error
            raise
        self._proved = True
        return process

    def _make(self, process: SessionProcess) -> None:
        cannot = f"environment {self.name!r} cannot run in a process of its own"
        try:
            request = ("make", self._number, self._made, self._main, tuple(sys.path))
            made = process.ask(f"making environment {self.name!r}", request, _MAKE)
        except ProcessLost as lost:
            raise CannotMoveThere(
                f'{cannot}: {lost}. A script that does this guards what it runs with `if __name__ == "__main__":`'
            ) from lost
        except Exception as error:
            raise CannotMoveThere(f"{cannot}: {error}") from error
        if made != (self.name, tuple(self.tools)):
            raise CannotMoveThere(f"{cannot}: what is made there has another name or other tools")
        process.made.add(self._number)


class _IsolatedAnything(IsolatedEnvironment):
    @property
    def takes_anything(self) -> Literal[True]:
        """True, as of the environment."""
        return True


class IsolatedSession(Session):
    """A session that lives in a process of the pool."""

    def __init__(self, environment: IsolatedEnvironment, process: SessionProcess, handle: Handle) -> None:
        #: The environment as it is here.
        self.environment = environment
        self._process, self._handle, self._closed = process, handle, False

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """One call. A tool that ends, blocks or exhausts its process is an ``infrastructure_error``."""
        try:
            outcome: Outcome = self._process.ask(tool, ("call", self._number, tool, arguments))
        except ProcessLost as lost:
            return Outcome("infrastructure_error", None, lost.code, str(lost))
        return outcome

    def stream(self, what: Iterator[str], work: Callable[..., Iterator[Any]], *given: Any) -> Iterator[Any]:
        """What ``work(session, *given)`` yields there: as :meth:`IsolatedEnvironment.once`, in this session."""
        first = "the digest of a session"
        names = chain((first, first), what, repeat("the session"))
        return self._process.stream(names, ("stream", self._number, work, given))

    @property
    def lost(self) -> bool:
        """Whether its process is gone: whatever it is asked fails."""
        return self._process.lost is not None

    def digest(self) -> str:
        found: str = self._process.ask("the digest of a session", ("digest", self._number))
        return found

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.environment.pool.give_back(self._process)
        if self._process.lost is None:
            self._process.ask(_CLOSING, ("close", self._handle.number))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._handle.methods:
            raise AttributeError(
                f"a session of {self.environment.name!r} has no method {name!r}, or what it holds is not at hand, "
                "because it lives in a process of its own"
            )

        def method(*given: Any, **named: Any) -> Any:
            sent = tuple(self._sent(name, value) for value in given)
            known = {key: self._sent(name, value) for key, value in named.items()}
            found = self._process.ask(f"{name!r} of a session", ("method", self._number, name, sent, known))
            if isinstance(found, Handle):
                self._process.sessions += 1
                return IsolatedSession(self.environment, self._process, found)
            return found

        return method

    def _sent(self, name: str, value: Any) -> Any:
        """What the other side is told of an argument: of a session its number, which means nothing elsewhere."""
        if not isinstance(value, IsolatedSession):
            return value
        if value._process is not self._process:
            raise UsageError(
                f"{name!r} of a session of {self.environment.name!r} is given a session that lives in another process. "
                'Give it a fork of this one, which lives where it does, or open both with isolation = "none"'
            )
        return Handle(value._number)

    @property
    def _number(self) -> int:
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        return self._handle.number

    def __reduce__(self) -> Any:
        raise InfrastructureFailure("a session that lives in a process of its own cannot be sent to another one")
