"""Asking a session for its time and its hazards, wherever it is: here, under a time limit, in a process of its own."""

from __future__ import annotations

from typing import Any

from callwright.capability import has
from callwright.environments.clock import TimedSession
from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import MeetsHazards, MovesTime, Session
from callwright.errors import UsageError


def keep_time(session: Session, policy: ClockPolicy, name: str) -> None:
    """Let the time of a session move by a policy. ``name`` is that of its environment.

    Raises :class:`callwright.UsageError` where its time cannot move.
    """
    inner: Any = session.inner if isinstance(session, TimedSession) else session
    if not has(inner, MovesTime):
        raise UsageError(
            f"a clock is named, but time does not move in sessions of {name!r}: leave the clock out, or use a stateful "
            "environment"
        )
    _ask(session, "keep_time", policy)


def meet_hazards(session: Session, hazards: Hazards, name: str) -> None:
    """Let the calls of a session meet hazards. ``name`` is that of its environment.

    Raises :class:`callwright.UsageError` where nothing can go wrong, unless there are none.
    """
    inner: Any = session.inner if isinstance(session, TimedSession) else session
    if has(inner, MeetsHazards):
        _ask(session, "meet_hazards", hazards)
    elif hazards:
        raise UsageError(
            f"hazards are named, but sessions of {name!r} meet none: leave them out, or use a stateful environment"
        )


def user_turn(session: Session) -> None:
    """Let a turn of the user pass in a session whose time moves."""
    _ask(session, "user_turn")


def _ask(session: Session, name: str, *given: Any) -> None:
    if isinstance(session, TimedSession):
        session.moved(name, *given)
    else:
        getattr(session, name)(*given)
