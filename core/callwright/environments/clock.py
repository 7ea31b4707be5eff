"""The clock: what is asked of a session is answered in time, or the sample is masked and the session given up.

An ``async`` tool is cancelled. Python cannot stop a thread: what else runs into the limit is left behind in a thread
of its own, which gives the session back if it ever ends. Two such threads already slow everything down, so no third is
risked: then the command stops and says what to do. Only a process can be killed.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.protocol import Environment, KeepsTime, Outcome, Session, declares
from callwright.environments.sessions import is_foreign, open_session
from callwright.errors import ComponentError, InfrastructureFailure
from callwright.language.program import Call
from callwright.machines.footprints import Footprint

T = TypeVar("T")
#: Seconds for opening, a call, a digest or closing where code of somebody else runs and nobody says otherwise.
TIME_LIMIT: Final = 30.0
#: How many threads may be left behind that still run.
MOST_STUCK: Final = 2
#: The threads of a process in which nothing but tools runs: one waits for the other.
_WAITING_AND_WORKING: Final = 2


def time_limit_for(environment: Environment, stated: float | None) -> float | None:
    """The limit that holds here, in seconds: the stated one, else 30 for foreign code. ``inf`` is none.

    ``None`` is none either, and holds for environments that keep limits themselves (``callwright.isolated``).
    """
    if stated is None:
        return TIME_LIMIT if is_foreign(environment) else None
    if stated == math.inf or declares(environment, KeepsTime):  # which kills what takes too long
        return None
    return stated


class TookTooLong(InfrastructureFailure):
    """What was asked of a session had no answer in time; the session is given up."""


class _Worker:
    """A thread that does one thing after the other for another thread, which waits for it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=_work, args=(self.asked,), name="callwright session", daemon=True)
        self.thread.start()

    def __del__(self) -> None:
        self.asked.put(None)  # the thread that it worked for is gone


def _work(asked: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := asked.get()) is not None:
        task()
        del task  # or the session would live as long as the thread waits


_here: Final = threading.local()
_stuck: Final[list[tuple[threading.Thread, str]]] = []


class TimedSession(Session):
    """A session of which everything is asked in another thread, for at most ``limit`` seconds each."""

    def __init__(self, environment: Environment, scenario: str, seed: int, limit: float) -> None:
        """Open it. Raises :class:`TookTooLong` and whatever opening raises.

        Raises :class:`callwright.errors.ComponentError` if too many threads are left behind already.
        """
        self._limit, self._lost = limit, False
        self.inner = self._within(
            f"opening a session of {environment.name!r}", lambda: open_session(environment, scenario, seed)
        )

    def caller(self, inner: Callable[[Session, Call, dict[str, Any]], Outcome]) -> Callable[..., Outcome]:
        """How calls reach the session: as before, but in time."""

        def call(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
            try:
                return self._within(call.tool, lambda: _watched(call, lambda: inner(self.inner, call, arguments)))
            except TookTooLong as late:
                return Outcome("infrastructure_error", None, "timeout", str(late))

        return call

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return self._within(tool, lambda: self.inner.call(tool, arguments))

    def moved(self, name: str, *given: Any) -> None:
        """Ask what moves the session's time (:class:`callwright.environments.protocol.MovesTime`)."""
        self._within("the time of a session", lambda: getattr(self.inner, name)(*given))

    def asked(self, what: str, question: Callable[[], T]) -> T:
        """What a question to the session inside comes to."""
        return self._within(what, question)

    def knowledge(self, entity: str = "me") -> dict[str, Any]:
        """What somebody knows (:mod:`callwright.environments.knowledge`); empty where the session says nothing."""
        return self._within("what a user knows", lambda: knowledge_of(self.inner, entity))

    def digest(self) -> str:
        return self._within("the digest of a session", self.inner.digest)

    def close(self) -> None:
        """Give the session back. One that was given up is closed by its thread, if that ever ends."""
        if not self._lost:
            self._within("closing a session", self.inner.close)

    def _within(self, what: str, work: Callable[[], T]) -> T:
        if self._lost:
            raise TookTooLong(f"{what}: the session was given up")
        if _in_the_loop_of_tools():  # a tool asks, whose own time this is; what waits for its loop is refused at once
            return work()
        worker = _worker()
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

        def task() -> None:
            try:
                answer.put((True, work()))
            except BaseException as error:  # belongs to the thread that waits
                answer.put((False, error))
            if self._lost:
                self._give_back()

        worker.asked.put(task)
        try:
            done, found = answer.get(timeout=self._limit)
        except queue.Empty:
            self._give_up(worker, what)
            raise TookTooLong(f"{what} took more than {self._limit:g} s") from None
        except BaseException:  # Ctrl-C while waiting: what goes on there is nobody's any more
            self._give_up(worker, what)
            raise
        if done:
            value: T = found
            return value
        try:
            raise found
        finally:
            del found  # which would hold this frame, and this frame it

    def _give_up(self, worker: _Worker, what: str) -> None:
        self._lost = True
        busy = _let_go(worker.thread)
        if busy is not None:
            _stuck.append((busy, what))
        _here.worker = None
        worker.asked.put(None)  # it ends with what it does now; the error that is raised may hold it for long

    def _give_back(self) -> None:
        session = getattr(self, "inner", None)
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()


def _in_the_loop_of_tools() -> bool:
    loaded = sys.modules.get("callwright.machines.event_loop")
    return loaded is not None and loaded.TOOLS.here()


def _let_go(thread: threading.Thread) -> threading.Thread | None:
    """Cancel the ``async`` tool that a thread waits for. What goes on all the same: that thread, or the event loop."""
    from callwright.machines import event_loop

    return event_loop.TOOLS.let_go(thread)


def _watched(call: Call, work: Callable[[], Outcome]) -> Outcome:
    """A call, and what it did to this process (:mod:`callwright.machines.footprints`).

    Other threads may change the folder and the variables for good reasons: these are only held against a tool where
    nobody else can have done it.
    """
    before = Footprint(alone=threading.active_count() <= _WAITING_AND_WORKING)
    try:
        outcome = work()
    finally:
        changed = before.undone()
    if changed is None:
        return outcome
    return Outcome("infrastructure_error", None, changed[0], f"{call.tool} {changed[1]}; this process is not its own")


def too_many_stuck() -> bool:
    """Whether so many threads were left behind and still run that no further one is risked."""
    if _stuck:
        _stuck[:] = [(thread, what) for thread, what in _stuck if thread.is_alive()]
    return len(_stuck) >= MOST_STUCK


def all_ended(seconds: float) -> bool:
    """Whether all threads that were left behind end within so many seconds."""
    until = time.monotonic() + seconds
    for thread, _ in [*_stuck]:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread, _ in _stuck)


def _worker() -> _Worker:
    """The worker of this thread, which is kept from session to session unless something hangs in it."""
    worker: _Worker | None = getattr(_here, "worker", None)
    if worker is not None and worker.process == os.getpid():
        return worker
    if too_many_stuck():
        named = ", ".join(what for _, what in _stuck)
        raise ComponentError(
            f"{len(_stuck)} threads still run that went over their time limit ({named}), and no thread can be stopped: "
            "each slows everything down. This is a bug of these tools. Run them in processes, which can be killed: "
            "callwright.isolated(environment), or --isolation process"
        )
    worker = _here.worker = _Worker()
    return worker
