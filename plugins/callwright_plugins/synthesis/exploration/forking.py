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
from callwright_plugins.synthesis.exploration.witness import copied, text_of

#: Sessions of a server that are kept, each at the end of its calls.
_KEPT: Final = 3
#: Outcomes after which a session is where it was.
_NOTHING_CHANGED: Final = frozenset({"schema_error", "unknown_tool"})
#: Outcomes that say nothing of the place where a call was made: it is made again.
_NOT_KNOWN: Final = frozenset({"infrastructure_error", "unknown"})
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
    process for each, and a pool of them that waits for one of its own would wait for ever. To be at a place again takes
    a process of its own, mostly, so what was found out there is remembered.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.sessions: OrderedDict[_Path, Session] = OrderedDict()
        #: By place and call: what it came to.
        self.outcomes: dict[tuple[_Path, str], Outcome] = {}
        #: By place and question: what sessions there said.
        self.answers: dict[tuple[_Path, str], Any] = {}
        #: Whether sessions tell their goal state, once one was asked.
        self.tells: bool | None = None

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

    def forget(self, scenario: str, seed: int) -> None:
        """Let go of what was found out in a world."""
        for known in (self.outcomes, self.answers):
            for key in [one for one in known if one[0][:2] == (scenario, seed)]:
                del known[key]

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
        key = self._place(), text_of(call)
        outcome = self.kept.outcomes.get(key)
        if outcome is not None:
            self._go(call, outcome)
            return outcome
        with self._session() as session:
            outcome = session.call(tool, copied(arguments))
            self._go(call, outcome)
        if outcome.kind not in _NOT_KNOWN:
            self.kept.outcomes[key] = outcome
        return outcome

    def _go(self, call: Call, outcome: Outcome) -> None:
        """Be where a call leads."""
        spec = self.kept.environment.tools.get(call.tool)
        if spec is not None and not spec.read_only and outcome.kind not in _NOTHING_CHANGED:
            self.path = (*self.path, call)

    def digest(self) -> str:
        """As :meth:`callwright.environments.protocol.Session.digest`."""
        found: str = self._asked("digest", lambda session: session.digest())
        return found

    @property
    def goal_state(self) -> Callable[[], Any] | None:
        """As :class:`callwright.environments.protocol.TellsGoalState`; ``None`` where the sessions tell none."""
        if self.kept.tells is None:
            with self._session() as session:
                self.kept.tells = has(session, TellsGoalState)
        return self._goal_state if self.kept.tells else None

    def _goal_state(self) -> Any:
        return self._asked("goal_state", lambda session: session.goal_state())

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What somebody knows there."""
        found: Mapping[str, Any] = self._asked(f"knowledge {entity}", lambda session: known_to(session, entity))
        return found

    def _asked(self, question: str, ask: Callable[[Any], Any]) -> Any:
        key = self._place(), question
        if key not in self.kept.answers:
            with self._session() as session:
                self.kept.answers[key] = ask(session)
        return self.kept.answers[key]

    def forget(self) -> None:
        """Let go of what was found out here: other conversations are about other worlds."""
        self.kept.forget(self.scenario, self.seed)

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
