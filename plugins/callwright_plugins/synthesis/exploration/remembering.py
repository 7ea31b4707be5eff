"""Remembering: sessions that stand at places of a world, where each call is executed once for everyone who makes it.

Whoever tries out calls makes the same first ones again and again: planning in a world, variants of a reference. What
came of a call is kept at the place where it was made, and places are told apart by their digests: two ways that come
to the same state go on together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from callwright.capability import has
from callwright.environments.capabilities import Forks
from callwright.environments.composed.session import ComposedSession
from callwright.environments.protocol import (
    ChecksGoals,
    Environment,
    Outcome,
    ServesUsers,
    TellsGoalState,
    TellsTime,
)
from callwright.environments.stateful.environment import StatefulEnvironment
from callwright.environments.stateful.session import StatefulSession
from callwright_plugins.synthesis.exploration.states import known_to
from callwright_plugins.synthesis.exploration.witness import copied


class _Place:
    """Where sessions of a world have come to: one that stands there, and what each call that was made came to."""

    __slots__ = ("_goals", "_state", "calls", "digest", "session", "world")

    def __init__(self, session: Any, digest: str, world: dict[str, _Place]) -> None:
        self.session, self.digest, self.world = session, digest, world
        self.calls: dict[tuple[str, str, str], tuple[Outcome, _Place]] = {}
        self._state: tuple[Any] | None = None
        #: By identity: goals, with what they come to here.
        self._goals: dict[int, tuple[Any, Any]] = {}
        world[digest] = self

    def after(self, by: str, tool: str, arguments: Mapping[str, Any]) -> tuple[Outcome, _Place]:
        """What a call comes to here, and where it leads; ``by`` is the method of a session that makes it."""
        key = by, tool, repr(arguments)
        found = self.calls.get(key)
        if found is None:
            session = self.session.fork()
            outcome: Outcome = getattr(session, by)(tool, copied(arguments))
            digest = session.digest()
            there = self if digest == self.digest else self.world.get(digest)
            if there is None:
                there = _Place(session, digest, self.world)
            found = self.calls[key] = outcome, there
        return found

    def state(self) -> Any:
        """What has come about here, as the environment tells it."""
        if self._state is None:
            self._state = (self.session.goal_state(),)
        return self._state[0]

    def checked(self, goal: Mapping[str, Any]) -> Any:
        """What a goal comes to here."""
        found = self._goals.get(id(goal))
        if found is None:
            found = self._goals[id(goal)] = goal, self.session.check_goal(goal)
        return found[1]


class Remembered:
    """A session of this process that stands at a place of its world: a fork is free, and a call is executed once.

    What a call comes to is handed to everyone who makes it there, and nobody changes it.
    """

    __slots__ = ("_own", "place")
    #: Its results were held against the bound of sizes when they were made.
    bounds_results = True

    def __init__(self, place: _Place, own: Any = None) -> None:
        self.place, self._own = place, own

    @classmethod
    def of(cls, session: Forks) -> Remembered:
        """One that stands where a session stands, which is not called any more: its forks are."""
        return cls(_Place(session, session.digest(), {}), session)

    def fork(self) -> Remembered:
        """Another one that is where this one is."""
        return Remembered(self.place)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """As :meth:`callwright.environments.protocol.Session.call`."""
        outcome, self.place = self.place.after("call", tool, arguments)
        return outcome

    @property
    def user_call(self) -> Callable[[str, Mapping[str, Any]], Outcome] | None:
        """As :class:`callwright.environments.protocol.ServesUsers`; ``None`` where the session serves none."""
        return self._user_call if has(self.place.session, ServesUsers) else None

    def _user_call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        outcome, self.place = self.place.after("user_call", tool, arguments)
        return outcome

    def digest(self) -> str:
        """As :meth:`callwright.environments.protocol.Session.digest`."""
        return self.place.digest

    @property
    def goal_state(self) -> Callable[[], Any] | None:
        """As :class:`callwright.environments.protocol.TellsGoalState`; ``None`` where the session tells none."""
        return self.place.state if has(self.place.session, TellsGoalState) else None

    @property
    def check_goal(self) -> Callable[[Mapping[str, Any]], Any] | None:
        """As :class:`callwright.environments.protocol.ChecksGoals`; ``None`` where the session checks none. A goal that
        was asked about is not changed afterwards.
        """
        return self.place.checked if has(self.place.session, ChecksGoals) else None

    @property
    def tell_time(self) -> Callable[[], int] | None:
        """As :class:`callwright.environments.protocol.TellsTime`; ``None`` where the session tells none."""
        session = self.place.session
        return session.tell_time if has(session, TellsTime) else None

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What somebody knows there."""
        return known_to(self.place.session, entity)

    @property
    def places(self) -> int:
        """How many places of the world are known."""
        return len(self.place.world)

    def forget(self) -> None:
        """Let go of what calls from here came to: other conversations are about other worlds."""
        places = self.place.world
        for one in places.values():
            one.calls.clear()  # which lead from place to place, and back again
        places.clear()
        places[self.place.digest] = self.place

    def close(self) -> None:
        """Give the session back that it was made of; nothing for a fork."""
        if self._own is not None:
            self._own.close()


def goes_by_calls(session: Any) -> bool:
    """Whether what a session comes to hangs on nothing but the calls that are made in it, so that it may be remembered.

    So it is in worlds of rows whose time stands still and in which nothing befalls calls. Of any other session it is
    not known.
    """
    if isinstance(session, ComposedSession):
        return session.clock is None and not session.hazards and all(map(_stands_still, session.environment.parts))
    return isinstance(session, StatefulSession) and session.clock is None and not session.hazards


def _stands_still(environment: Environment) -> bool:
    return isinstance(environment, StatefulEnvironment) and all(
        one.clock is None and not one.hazards for one in environment.scenarios.values()
    )
