"""States: worlds that were reached, and how to be in one of them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define, field, frozen

from callwright.capability import has
from callwright.environments.capabilities import Forks
from callwright.environments.protocol import (
    Briefs,
    Disposable,
    Environment,
    Knows,
    Outcome,
    OutOfProcess,
    Session,
    TellsGoalState,
    TellsTime,
    declares,
)
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure
from callwright.language.program import Call
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.free import SOME_DAY
from callwright_plugins.synthesis.exploration.values import Key
from callwright_plugins.synthesis.exploration.witness import copied

#: After so many calls a reporter hears of them.
HEARD: Final = 10
_NOW: Final = re.compile(r"Now: (?:\w+, )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


@frozen
class Failed:
    """A call that failed: its arguments, and what the failure said."""

    arguments: dict[str, Any]
    message: str


@define(eq=False)
class State:
    """A world that a path of calls leads to from the scenario, and what was tried in it."""

    number: int
    path: tuple[Call, ...]
    digest: str
    session: Session | None
    #: By place: values that the calls of the path made or showed.
    local: dict[int, list[Key]] = field(factory=dict)
    #: By tool and outcome code: the last call of the tool that failed so here.
    failed: dict[tuple[str, str], Failed] = field(factory=dict)
    #: By tool: the arguments of the last call that executed here, and the kind of its outcome.
    executed: dict[str, tuple[dict[str, Any], str]] = field(factory=dict)
    tried: dict[str, int] = field(factory=dict)
    parent: State | None = None
    #: The texts that the last call of the path told and was not given.
    made: dict[Key, None] = field(factory=dict)


class OutOfCalls(Exception):
    """The budget of calls is used up."""


class Laboratory:
    """Opens, forks and replays sessions of one environment, scenario and seed, and counts the calls.

    Where sessions live elsewhere (a foreign server), states are reached by making their path's calls again, and those
    count; where they fork, states are kept and nothing is made twice.
    """

    def __init__(
        self, environment: Environment, scenario: str, seed: int, calls: int, reporter: Reporter = SILENT
    ) -> None:
        self.environment, self.scenario, self.seed, self.reporter = environment, scenario, seed, reporter
        self.left, self.made = calls, 0
        elsewhere = declares(environment, OutOfProcess)
        self.first = environment.open(scenario, seed)
        self.forks = not elsewhere and has(self.first, Forks)
        self.root = State(0, (), self.first.digest(), self.first if self.forks else None)
        self._here: State | None = None if self.forks else self.root
        self._last: Session | None = None
        self._session: Session | None = None if self.forks else self.first

    def close(self) -> None:
        """Give the sessions back."""
        self.reporter.advance(self.made % HEARD)
        for session in (self.first, self._session, None if self.forks else self._last):
            if session is not None:
                session.close()

    def enter(self, state: State) -> Session:
        """A session in this state."""
        if self._last is not None:  # nobody has settled there: whoever has few processes cannot wait for it
            if not self.forks:
                self._last.close()
            self._last = None
        if self._here is state and self._session is not None:
            return self._session
        if self._session is not None and self._session is not self.first:
            self._session.close()
        self._here, self._session = state, None
        if self.forks:
            kept = state.session
            assert kept is not None
            self._session = kept.fork()  # type: ignore[attr-defined]
        else:
            self._session = self._replayed(state)
        assert self._session is not None
        return self._session

    def _replayed(self, state: State) -> Session:
        session = self.environment.open(self.scenario, self.seed)
        try:
            for call in state.path:
                self._count()
                session.call(call.tool, copied(call.arguments))
        except BaseException:
            session.close()
            raise
        return session

    def call(self, state: State, tool: str, arguments: Mapping[str, Any]) -> tuple[Outcome, str]:
        """Make a call in a state; the outcome, and the digest afterwards. The state itself stays as it is."""
        session = self.enter(state)
        self._count()
        outcome = session.call(tool, copied(arguments))
        spec = self.environment.tools[tool]
        if outcome.kind == "infrastructure_error":
            self.leave()
            return outcome, state.digest
        if spec.read_only or (outcome.failed and outcome.kind != "refused" and self.forks):
            return outcome, state.digest
        try:
            after = session.digest()
        except InfrastructureFailure:
            self.leave()
            return outcome, state.digest
        if after != state.digest:
            self.leave(keep=True)
        return outcome, after

    def leave(self, *, keep: bool = False) -> None:
        """The session at hand is in no known state any more; ``keep``: it is the one of a new state."""
        self._last = self._session if keep else None
        if not keep and self._session is not None and self._session is not self.first:
            self._session.close()
        self._here = self._session = None

    def settle(self, parent: State, number: int, call: Call, digest: str) -> State:
        """Keep the state that the last call came to."""
        last, self._last = self._last, None
        assert last is not None
        state = State(number, (*parent.path, call), digest, last if self.forks else None, parent=parent)
        if not self.forks:
            self._here, self._session = state, last
        return state

    def known(self, entity: str) -> Mapping[str, Any]:
        """What somebody knows at first."""
        return known_to(self.enter(self.root), entity)

    def tells_states(self) -> bool:
        """Whether sessions tell what has come about in them."""
        return has(self.first, TellsGoalState)

    def now(self) -> datetime:
        """How late it is at first, as far as it is told: by the session, or by the briefing."""
        session, environment = self.enter(self.root), self.environment
        if declares(session, TellsTime):
            return datetime.fromtimestamp(session.tell_time(), UTC)  # type: ignore[attr-defined]
        if declares(environment, Briefs) and environment.briefs:  # type: ignore[attr-defined]
            said = _NOW.search(environment.briefing(session))  # type: ignore[attr-defined]
            if said:
                return datetime.strptime(said[1], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        return SOME_DAY

    def _count(self) -> None:
        if self.left <= 0:
            raise OutOfCalls
        self.left -= 1
        self.made += 1
        if self.made % HEARD == 0:
            self.reporter.advance(HEARD)


def may_destroy(environment: Environment) -> bool:
    """Whether what sessions of an environment destroy is gone with them.

    Sessions in this process hold their own state. A server says so where it runs in a folder that is thrown away.
    """
    if not declares(environment, OutOfProcess):
        return True
    return has(environment, Disposable) and environment.disposable


def allowed_tools(environment: Environment, allow_destructive: bool) -> tuple[list[str], list[str]]:
    """The tools that may be called, those that only read first, and those that may not be."""
    offered = {name: spec for name, spec in environment.tools.items() if not spec.hidden}
    everything = allow_destructive or may_destroy(environment)
    allowed = [name for name, spec in offered.items() if everything or not spec.destructive]
    allowed.sort(key=lambda name: (not offered[name].discovery, not offered[name].read_only))
    return allowed, [name for name in offered if name not in allowed]


def known_to(session: Session, entity: str) -> Mapping[str, Any]:
    """What somebody knows there; nothing where nobody is asked, or the name is no name.

    Raises :class:`callwright.errors.ComponentError` for a bug of the environment.
    """
    if not has(session, Knows):
        return {}
    try:
        known = session.knowledge(entity)
    except ComponentError:
        raise
    except CallwrightError:
        return {}
    return known if isinstance(known, Mapping) else {}
