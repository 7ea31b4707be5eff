"""Sessions in which users act, too: by tools of their own, on the same world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callwright.capability import has
from callwright.environments.calling import OneThread, unknown_tool
from callwright.environments.protocol import By, Outcome, ServesUsers, Session
from callwright.environments.sessions import call_session
from callwright.environments.undeclared import account_of
from callwright.environments.world import World
from callwright.errors import CallwrightError, ComponentError, UsageError
from callwright.language.program import Call


class CalledByUsers(OneThread):
    """What a session over a world does for its user. A class with it gives it the rest of its attributes."""

    __slots__ = ()
    environment: Any
    world: World
    _closed: bool
    #: Failures that were injected, for tools of the user as for others.
    _faults: dict[str, tuple[int, str]] | None

    def user_call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call of the user, by a tool that no agent is offered; as a call of the agent otherwise.

        Where the clock moves, it takes its time and the latency of its tool. It meets the hazards of the session, whose
        limits count the calls of the user apart. What the person is told meanwhile stays for the agent to read.
        """
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        try:
            return self.call_with_care(tool, arguments, self._fault if self._faults else None, "user")
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the environment {self.environment.name!r}"
            ) from error

    def call_with_care(
        self, tool: str, arguments: dict[str, Any], fault: Callable[[str], Outcome | None] | None, by: By = "agent"
    ) -> Outcome:
        """A call that takes time, or of which something may go wrong."""
        raise NotImplementedError

    def _fault(self, tool: str) -> Outcome | None:
        raise NotImplementedError

    def tell_time(self) -> int:
        """The time in the world, in seconds since 1970 (UTC)."""
        return self.world.now


class _AsUser:
    """A session whose calls are those of its user."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[str, dict[str, Any]], Outcome]) -> None:
        self.call = call


def call_as_user(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
    """Have a session execute a call of its user; as :func:`callwright.environments.sessions.call_session`."""
    if not has(session, ServesUsers):
        return unknown_tool(call.tool)
    return call_session(_AsUser(session.user_call), call, arguments)  # type: ignore[arg-type]


def call_by(by: str, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
    """Have a session execute a call of the ``agent``, or of its ``user`` by a tool of its own."""
    return call_session(session, call, arguments) if by == "agent" else call_as_user(session, call, arguments)
