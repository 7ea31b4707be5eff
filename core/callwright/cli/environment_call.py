"""One call in a session of its own: of somebody else's environment in a process that can be killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from callwright.capability import has
from callwright.cli.state_files import dumped, load_state
from callwright.commands.safe_text import say
from callwright.environments.capabilities import Diffs, Forks
from callwright.environments.clock import TIME_LIMIT, TimedSession, TookTooLong, time_limit_for
from callwright.environments.isolated.environment import IsolatedEnvironment, isolated_in
from callwright.environments.isolated.pool import SessionPool
from callwright.environments.isolated.process import CannotMoveThere, ProcessLost, SessionLimits
from callwright.environments.living.opening import prepare
from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, declares
from callwright.environments.sessions import is_foreign, open_session

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.living.policy import ClockPolicy

_DIGEST = "the digest of a session"


@frozen
class OneCall:
    """What is called. ``state``: a file with the state in which the session begins, if it exists."""

    tool: str
    arguments: dict[str, Any]
    clock: ClockPolicy | None = None
    hazards: Hazards | None = None
    state: Path | None = None


@frozen
class Called:
    """What came of it: the outcome, what it changed, and the state that it left, if there was to be one.

    Of a session that was lost in the call nothing but the outcome is known.
    """

    outcome: Outcome
    diff: dict[str, Any] = field(factory=dict)
    digest: str = ""
    state: dict[str, Any] | None = None


def call_once(environment: Environment, scenario: str, seed: int, call: OneCall) -> Called:
    """Call in a fresh session. A tool of a plugin that ends or blocks its process is an ``infrastructure_error``.

    Raises :class:`callwright.InfrastructureFailure` where the session is lost before the call or after it, and what
    opening it or its state raises.
    """
    there, name = elsewhere(environment), environment.name
    if there is not None:
        with contextlib.closing(there):
            return _gathered(there.once(scenario, seed, iter((call.tool, _DIGEST)), _steps, call, name))
    limit = time_limit_for(environment, None)
    session: Any = (
        _Here(open_session(environment, scenario, seed))
        if limit is None
        else TimedSession(environment, scenario, seed, limit)
    )
    with contextlib.closing(session):
        return _gathered(_steps(session, call, name))


def elsewhere(environment: Environment) -> IsolatedEnvironment | None:
    """Somebody else's environment with a process of its own, which knows the modules that are found by now.

    ``None`` for ours, and for one that no other process can make again, which is said. Whoever asks closes it.
    """
    if isinstance(environment, IsolatedEnvironment):
        return environment
    if declares(environment, OutOfProcess) or not is_foreign(environment):
        return None
    try:
        there = isolated_in(environment, SessionPool(SessionLimits(time=TIME_LIMIT, processes=1), spread=False))
        there.prove()
    except CannotMoveThere as error:
        say(f"{error}. So the tool runs in this process, which it may end")
        return None
    return there


class _Here:
    """A session of this process, as :func:`_steps` takes it."""

    def __init__(self, inner: Session) -> None:
        self.inner, self.call, self.digest, self.close = inner, inner.call, inner.digest, inner.close


def _steps(session: Any, call: OneCall, environment: str) -> Iterator[Any]:
    """Where the session lives: nothing when it is ready, then the outcome, then all that came of it."""
    inner = session.inner
    prepare(inner, call.clock, call.hazards, environment)
    if call.state is not None:
        load_state(inner, call.state)
    # Sessions that fork need not say what changed, as those of servers do not.
    before = inner.fork() if has(inner, Forks) and has(inner, Diffs) else None
    yield None
    outcome = session.call(call.tool, call.arguments)
    yield outcome
    diff = {}
    if before is not None:
        diff = inner.diff(before)
        before.close()
    yield Called(outcome, diff, session.digest(), None if call.state is None else dumped(inner))


def _gathered(steps: Iterator[Any]) -> Called:
    next(steps)
    try:
        outcome = next(steps)
    except (ProcessLost, TookTooLong) as lost:
        return Called(Outcome("infrastructure_error", None, getattr(lost, "code", "timeout"), str(lost)))
    called = Called(outcome)
    for found in steps:  # to the end, where the session is closed
        called = found
    return called
