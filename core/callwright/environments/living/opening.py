"""Opening a session for the programs of a model, as a task and its conditions want it, and closing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callwright.capability import has
from callwright.environments.clock import TimedSession, time_limit_for
from callwright.environments.protocol import Environment, MeetsHazards, MovesTime, Session
from callwright.environments.sessions import open_session
from callwright.errors import InfrastructureFailure

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.living.policy import ClockPolicy


def open_for(
    environment: Environment,
    scenario: str,
    seed: int,
    time_limit: float | None,
    clock: ClockPolicy | None,
    hazards: Hazards | None,
) -> Session:
    """A fresh session, its time moving by ``clock``, its calls meeting ``hazards``; ``None``: as its scenario says.

    ``time_limit`` is in seconds (:func:`callwright.environments.clock.time_limit_for`). Raises what opening raises, and
    :class:`callwright.UsageError` where time does not move, or nothing can go wrong.
    """
    limit = time_limit_for(environment, time_limit)
    session = (
        open_session(environment, scenario, seed) if limit is None else TimedSession(environment, scenario, seed, limit)
    )
    if clock is not None or hazards is not None:
        prepare(session, clock, hazards, environment.name)
    return session


def prepare(session: Session, clock: ClockPolicy | None, hazards: Hazards | None, name: str) -> None:
    """As :func:`open_for`, for a session that is open; it is closed if that cannot be.

    ``name`` is that of its environment.
    """
    from callwright.environments.living.asking import keep_time, meet_hazards

    try:
        if clock is not None:
            keep_time(session, clock, name)
        if hazards is not None:
            meet_hazards(session, hazards, name)
    except BaseException:
        close(session)
        raise


def close(session: Session) -> None:
    """Give a session back."""
    try:
        session.close()
    except InfrastructureFailure:  # everything that was to be learned of the session is known
        return


def moves_time(session: Session) -> bool:
    """Whether turns of a user take time in a session."""
    inner = session.inner if type(session) is TimedSession else session
    return has(inner, MovesTime)


def next_turn(session: Any) -> None:
    """The model has a turn, for sessions with limits that hold for one."""
    inner = session.inner if type(session) is TimedSession else session
    if has(inner, MeetsHazards):
        inner.next_turn()
