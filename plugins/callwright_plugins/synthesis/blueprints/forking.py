"""Forking: sessions that can be where another one is, without a call being made twice; also where a server's cannot be
copied.

Planning tries the same first steps hundreds of times in a world: who somebody is, which accounts they have.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

from callwright.capability import has
from callwright.environments.capabilities import Forks
from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, TellsGoalState, declares
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.remembering import Remembered as Remembered
from callwright_plugins.synthesis.exploration.states import known_to
from callwright_plugins.synthesis.exploration.witness import copied
from callwright_plugins.synthesis.graph.trials import text_of

#: Sessions of a server that are kept, each at the end of its calls.
_KEPT: Final = 3
#: Outcomes after which a session is where it was.
_NOTHING_CHANGED: Final = frozenset({"schema_error", "unknown_tool"})
#: Scenario and seed, then the calls as texts.
_Path = tuple[Any, ...]


def opened(environment: Environment, scenario: str, seed: int) -> Any:
    """A session with ``fork``, ``forget`` and what planning asks of it: one that remembers its calls, or one that makes
    them again where the environment's own has no ``fork``.

    What a call comes to is handed to everyone who makes it there, and nobody changes it.
    """
    if not declares(environment, OutOfProcess):
        session = environment.open(scenario, seed)
        if has(session, Forks):
            return Remembered.of(session)
        session.close()
    return Replayed(_kept_of(environment), scenario, seed, ())


class _Kept:
    """Sessions of one server by world and by the calls that they have behind them; those used longest ago go first.

    All worlds of an environment share one, so that planning never holds more than a few sessions: a server has a
    process for each, and a pool of them that waits for one of its own would wait for ever.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.sessions: OrderedDict[_Path, Session] = OrderedDict()

    def take(self, place: _Path, path: tuple[Call, ...]) -> Session:
        """A session after these calls, which is the caller's to change until it is given back."""
        session = self.sessions.pop(place, None)
        if session is not None:
            return session
        while len(self.sessions) >= _KEPT:
            self.sessions.popitem(last=False)[1].close()
        session = self.environment.open(place[0], place[1])
        try:
            for call in path:
                session.call(call.tool, copied(call.arguments))
        except BaseException:
            session.close()
            raise
        return session

    def give(self, place: _Path, session: Session) -> None:
        """Keep a session that these calls were made in."""
        if place in self.sessions:
            session.close()
            return
        self.sessions[place] = session

    def close(self, scenario: str, seed: int) -> None:
        """Give the sessions of a world back."""
        for place in [one for one in self.sessions if one[:2] == (scenario, seed)]:
            self.sessions.pop(place).close()


_stores: WeakValueDictionary[int, _Kept] = WeakValueDictionary()


def _kept_of(environment: Environment) -> _Kept:
    found = _stores.get(id(environment))
    if found is None or found.environment is not environment:
        found = _stores[id(environment)] = _Kept(environment)
    return found


class Replayed:
    """A session by the calls that were made in it. A fork is free; a call is made in one that is there already."""

    def __init__(self, kept: _Kept, scenario: str, seed: int, path: tuple[Call, ...]) -> None:
        self.kept, self.scenario, self.seed, self.path = kept, scenario, seed, path

    def fork(self) -> Replayed:
        """Another one that is where this one is."""
        return Replayed(self.kept, self.scenario, self.seed, self.path)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """As :meth:`callwright.environments.protocol.Session.call`."""
        call = Call(len(self.path), tool, copied(arguments))
        with self._session() as session:
            outcome = session.call(tool, copied(arguments))
            spec = self.kept.environment.tools.get(tool)
            if spec is not None and not spec.read_only and outcome.kind not in _NOTHING_CHANGED:
                self.path = (*self.path, call)
        return outcome

    def digest(self) -> str:
        """As :meth:`callwright.environments.protocol.Session.digest`."""
        with self._session() as session:
            return session.digest()

    @property
    def goal_state(self) -> Callable[[], Any] | None:
        """As :class:`callwright.environments.protocol.TellsGoalState`; ``None`` where the sessions tell none."""
        with self._session() as session:
            if not has(session, TellsGoalState):
                return None
        return self._goal_state

    def _goal_state(self) -> Any:
        with self._session() as session:
            return session.goal_state()  # type: ignore[attr-defined]

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What somebody knows there."""
        with self._session() as session:
            return known_to(session, entity)

    def forget(self) -> None:
        """Nothing: few sessions are kept as it is."""

    def close(self) -> None:
        """Give back the sessions of all forks."""
        self.kept.close(self.scenario, self.seed)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        session = self.kept.take(self._place(), self.path)
        try:
            yield session
        except BaseException:
            session.close()
            raise
        self.kept.give(self._place(), session)

    def _place(self) -> _Path:
        return self.scenario, self.seed, *map(text_of, self.path)
