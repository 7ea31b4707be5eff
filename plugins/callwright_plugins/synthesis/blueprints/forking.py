"""Forking: sessions that can be where another one is, also where a server's cannot be copied."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from callwright.capability import has
from callwright.environments.capabilities import Forks
from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, declares
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.states import known_to
from callwright_plugins.synthesis.exploration.witness import copied
from callwright_plugins.synthesis.graph.trials import text_of

#: Sessions of a server that are kept, each at the end of its calls.
_KEPT: Final = 6
#: Outcomes after which a session is where it was.
_NOTHING_CHANGED: Final = frozenset({"schema_error", "unknown_tool"})


def opened(environment: Environment, scenario: str, seed: int) -> Any:
    """A session with ``fork``: the environment's own where it has one, else one that makes its calls again."""
    if not declares(environment, OutOfProcess):
        session = environment.open(scenario, seed)
        if has(session, Forks):
            return session
        session.close()
    return Replayed(_Kept(environment, scenario, seed), ())


class _Kept:
    """Sessions by the calls that they have behind them; the one that was used longest ago goes first."""

    def __init__(self, environment: Environment, scenario: str, seed: int) -> None:
        self.environment, self.scenario, self.seed = environment, scenario, seed
        self.sessions: OrderedDict[tuple[str, ...], Session] = OrderedDict()

    def take(self, path: tuple[Call, ...]) -> Session:
        """A session after these calls, which is the caller's to change until it is given back."""
        session = self.sessions.pop(tuple(map(text_of, path)), None)
        if session is None:
            session = self.environment.open(self.scenario, self.seed)
            for call in path:
                session.call(call.tool, copied(call.arguments))
        return session

    def give(self, path: tuple[Call, ...], session: Session) -> None:
        """Keep a session that these calls were made in."""
        key = tuple(map(text_of, path))
        if key in self.sessions:
            session.close()
            return
        self.sessions[key] = session
        if len(self.sessions) > _KEPT:
            self.sessions.popitem(last=False)[1].close()

    def close(self) -> None:
        """Give all sessions back."""
        while self.sessions:
            self.sessions.popitem()[1].close()


class Replayed:
    """A session by the calls that were made in it. A fork is free; a call is made in one that is there already."""

    def __init__(self, kept: _Kept, path: tuple[Call, ...]) -> None:
        self.kept, self.path = kept, path

    def fork(self) -> Replayed:
        """Another one that is where this one is."""
        return Replayed(self.kept, self.path)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Outcome:
        """As :meth:`callwright.environments.protocol.Session.call`."""
        session = self.kept.take(self.path)
        call = Call(len(self.path), tool, copied(arguments))
        outcome = session.call(tool, copied(arguments))
        spec = self.kept.environment.tools.get(tool)
        if spec is not None and not spec.read_only and outcome.kind not in _NOTHING_CHANGED:
            self.path = (*self.path, call)
        self.kept.give(self.path, session)
        return outcome

    def digest(self) -> str:
        """As :meth:`callwright.environments.protocol.Session.digest`."""
        session = self.kept.take(self.path)
        found = session.digest()
        self.kept.give(self.path, session)
        return found

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What somebody knows there."""
        session = self.kept.take(self.path)
        found = known_to(session, entity)
        self.kept.give(self.path, session)
        return found

    def close(self) -> None:
        """Give back the sessions of all forks."""
        self.kept.close()
