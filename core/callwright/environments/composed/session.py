"""Composed sessions: one session of several, with one clock and one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from attrs import evolve

from callwright.capability import has
from callwright.environments.calling import in_use, unknown_tool
from callwright.environments.capabilities import Diffs, HoldsNotices, Snapshots
from callwright.environments.composed.goals import check_parts, states_of
from callwright.environments.composed.money import Purse
from callwright.environments.composed.parts import UNKNOWN, Part
from callwright.environments.goals.comparing import Comparison
from callwright.environments.hazards.policy import Hazards
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.living.moving import MovingTime
from callwright.environments.living.passing import MOST_EVENTS, most_told
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import MeetsHazards, Outcome, Session
from callwright.environments.sizes import TooLarge, check_result
from callwright.errors import ComponentError, DataError, UnknownName, UsageError
from callwright.language.markup import Diff
from callwright.tools.spec import ToolSpec

if TYPE_CHECKING:
    from callwright.environments.composed.environment import ComposedEnvironment


class ComposedSession(MovingTime, Session):
    """A session over several environments, for one thread at a time.

    A part is opened when it is first needed. All parts have one time: it passes in all of them after a call of any, and
    what falls due happens in the order of the times, at one time in that of the parts. A call that fails leaves its
    part as that promises, and no other part knows of it.
    """

    __slots__ = (
        "_begins",
        "_closed",
        "_hazards",
        "_head",
        "_known",
        "_known_at",
        "_now",
        "_opens",
        "_parts",
        "_purse",
        "_scenario",
        "_seed",
        "_touched",
        "environment",
        "people",
    )
    bounds_results = True
    environment: ComposedEnvironment

    def __init__(self, environment: ComposedEnvironment, scenario: str, seed: int) -> None:
        opens = environment.opens(scenario, seed)
        self.environment, self._scenario, self._seed = environment, scenario, seed
        self._turn = Lock()
        self._closed = False
        self._exposure = None
        self._hazards: Hazards | None = None
        self._begin(opens)
        self._clock = environment.clock_of(opens)

    def _begin(self, opens: tuple[tuple[str, int], ...]) -> None:
        self._opens = opens
        #: Who is signed in to all parts, and whom they know; ``None``: each part has people of its own.
        self.people = self.environment.people_of(self._seed)
        self._begins = self._now = self.environment.begins(opens)
        self._parts = [Part(*one) for one in zip(self.environment.parts, opens, strict=True)]
        self._purse = self._purse_of(self._parts)
        self._notices: tuple[str, ...] = ()
        self._user_turns = 0
        self._head = ""
        self._known, self._known_at = "", UNKNOWN
        self._touched: list[Part] = []

    # Calls ------------------------------------------------------------------------------------------------------------

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Have the part whose tool it is execute a call, then let its time pass for all parts."""
        outcome = self._call(tool, self.environment.routes.get(tool), self.environment.tools, arguments, "call")
        if not self._notices or outcome.kind == "unknown_tool":
            return outcome
        told = (*outcome.notices, *self._notices)
        self._notices = ()
        return evolve(outcome, notices=most_told(told))

    def user_call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call of the user, by a tool of :attr:`.ComposedEnvironment.user_tools`, which no agent is offered.

        What the person is told meanwhile stays for the agent to read.
        """
        environment = self.environment
        return self._call(tool, environment.user_routes.get(tool), environment.user_tools, arguments, "user_call")

    def _call(
        self,
        tool: str,
        route: tuple[int, str] | None,
        specs: Mapping[str, ToolSpec],
        arguments: dict[str, Any],
        method: str,
    ) -> Outcome:
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            if route is None:
                return unknown_tool(tool)
            part, original = self._parts[route[0]], route[1]
            session = part.session
            if session is None or part.at != self._now:
                session = self._opened(part)
            reads = specs[tool].read_only
            if not reads or not part.world_now or part.takes_time:  # worlds see to it that reading changes nothing
                part.due = UNKNOWN
                if not part.stale:
                    part.stale = True
                    self._touched.append(part)
            call: Callable[..., Outcome] = session.call if method == "call" else getattr(session, method)
            purse = self._purse
            if purse is None or reads or not purse.pays(part):
                outcome = call(original, arguments)
            else:
                outcome = purse.call(part, call, original, arguments)
            if not part.bounded:
                try:
                    check_result(tool, outcome.value)
                except TooLarge as error:
                    outcome = Outcome("execution_error", None, error.code, error.message)
            if part.takes_time or (part.world_now and not reads):
                now = session.world.now if part.world_now else session.tell_time()
                if now > self._now:  # its tool took its time
                    self._now = part.at = now
            if part.takes_time and method == "user_call" and has(session, HoldsNotices):
                told = *outcome.notices, *session.take_notices()  # which the part keeps for the agent's next call of it
                self._notices, outcome = (*self._notices, *told), evolve(outcome, notices=())
            if self._clock is not None and outcome.kind != "unknown_tool":
                latency = 0 if part.takes_time else specs[tool].latency
                self.let_pass(self._clock.of_call(self._now) + latency)
            return outcome
        finally:
            turn.release()

    def tell_time(self) -> int:
        """The time in the world, in seconds since 1970 (UTC)."""
        return self._now

    def _purse_of(self, parts: list[Part]) -> Purse | None:
        number = self.environment.bank_number
        if number is None:
            return None
        return Purse(parts[number], self.environment.parts[number].bank, self._asked)  # type: ignore[attr-defined]

    def _asked(self, part: Part) -> Any:
        """The session of the bank, in which something is posted."""
        session = self._opened(part)
        self._touch(part)
        return session

    def _opened(self, part: Part) -> Any:
        """The session of a part, at the time of the whole."""
        if part.session is not None:
            return part.open(self._now)
        session = part.open(self._now, self.people)
        if self._hazards is not None and has(session, MeetsHazards):
            session.meet_hazards(self._hazards.under(self.environment.names_in(part.name), part.name))
        part.keep_time(self._clock is not None, self._hazards is not None)
        return session

    # Time -------------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The time of all parts, in seconds of the Unix clock (UTC)."""
        return self._now

    def keep_time(self, policy: ClockPolicy | None) -> None:
        """Let the time of all parts move by a policy from now on; ``None`` lets it stand still."""
        self._clock = policy
        for part in self._parts:
            if part.session is not None:
                part.keep_time(policy is not None, self._hazards is not None)

    def let_pass(self, seconds: int) -> None:
        """Let time pass for all parts; where it moves, what falls due happens. See :meth:`elapse`."""
        end = self._now + seconds
        if self._clock is not None:
            lively = [part for part in self._parts if part.lives]
            for _ in range(MOST_EVENTS):
                following: tuple[int, Part] | None = None
                for part in lively:
                    moment = part.next_due(self._opened)
                    if moment is not None and moment <= end and (following is None or moment < following[0]):
                        following = moment, part
                if following is None:
                    break
                moment, part = following
                self._now = max(self._now, moment)
                if part.session is None:
                    self._opened(part)
                self._touch(part)
                self._notices = (*self._notices, *part.live_until(self._now))
                if self._purse is not None and self._purse.pays(part):
                    self._purse.settle(part)
            else:
                raise ComponentError(f"more than {MOST_EVENTS} events happen in {self.environment.name!r} until {end}")
        self._now = end

    # Hazards ----------------------------------------------------------------------------------------------------------

    @property
    def hazards(self) -> Hazards | None:
        """Those that were named for the whole; ``None``: parts meet what their scenarios say."""
        return self._hazards

    def meet_hazards(self, hazards: Hazards | None) -> None:
        """Let calls meet these hazards, which name tools as the whole does. Draws and limits are those of each part.

        ``None`` are none. Parts that can meet none, such as functions, meet none.
        """
        self._hazards = hazards or Hazards()
        for part in self._parts:
            session = part.session
            if session is not None and has(session, MeetsHazards):
                session.meet_hazards(self._hazards.under(self.environment.names_in(part.name), part.name))
                part.keep_time(self._clock is not None, True)

    def next_turn(self) -> None:
        """The model has another turn: where time stands still, limits of rates begin anew."""
        for part in self._parts:
            if part.session is not None and has(part.session, MeetsHazards):
                part.session.next_turn()

    # The whole --------------------------------------------------------------------------------------------------------

    def part(self, name: str) -> Any:
        """The session of a part, at the time of the whole: for whoever runs the session, not for tools.

        Raises :class:`callwright.errors.UnknownName`.
        """
        for part in self._parts:
            if part.name == name:
                session = self._opened(part)
                part.handed = True
                self._touch(part)
                return session
        raise UnknownName("part", name, [part.name for part in self._parts])

    def digest(self) -> str:
        """A hash of the states of all parts and of the time; it costs what was touched since it was last asked for."""
        if not self._touched and self._now == self._known_at:
            return self._known  # asked for after every call, most of which change nothing
        if not self._turn.acquire(False):
            raise in_use()
        try:
            return self._digest()
        finally:
            self._turn.release()

    def _digest(self) -> str:
        changed = self._now != self._known_at
        handed = False
        for part in self._touched:
            before = part.mark
            if part.measured() != before:
                changed = True
            handed = handed or part.handed
        self._touched = [part for part in self._touched if part.handed] if handed else []
        if changed:
            self._head = self._head or json.dumps([self.environment.name, self._opens, repr(self.people)])
            marks = ",".join([part.mark for part in self._parts])
            text = f"{self._head}|{self._now}|{marks}"
            self._known, self._known_at = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), self._now
        return self._known

    def fork(self) -> ComposedSession:
        """Another session in the same state, which goes its own way.

        Parts whose sessions cannot be forked are copied. Raises what copying a live connection raises.
        """
        self._enter()
        try:
            other = ComposedSession.__new__(ComposedSession)
            other.environment, other._turn, other._closed = self.environment, Lock(), self._closed
            other._opens, other._begins, other._head = self._opens, self._begins, self._head
            other._scenario, other._seed, other.people = self._scenario, self._seed, self.people
            other._parts = [part.fork() for part in self._parts]
            other._purse = other._purse_of(other._parts)
            other._now, other._clock = self._now, self._clock
            other._exposure, other._hazards = None, self._hazards
            other._known, other._known_at = self._known, self._known_at
            other._touched = [part for part in other._parts if part.stale]
            other._notices, other._user_turns = self._notices, self._user_turns
            return other
        finally:
            self._turn.release()

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the first state of this scenario and seed, or of another one. The clock moves on as it did."""
        self._enter()
        try:
            scenario = self._scenario if scenario is None else scenario
            seed = self._seed if seed is None else seed
            opens = self.environment.opens(scenario, seed)
            self._scenario, self._seed = scenario, seed
            for part in self._parts:
                part.close()
            self._begin(opens)
        finally:
            self._turn.release()

    def diff(self, since: ComposedSession | None = None) -> dict[str, Any]:
        """What changed since the first state, or since ``since``, as JSON: tables are named ``email.messages``.

        Of parts without a method ``diff`` it says nothing.
        """
        found = Diff()
        for number, part in enumerate(self._parts):
            if part.session is None or not has(part.session, Diffs):
                continue
            before = None if since is None else since._parts[number].session
            parts = part.session.diff() if before is None else part.session.diff(before)
            found |= {f"{part.name}.{table}": change for table, change in parts.items() if table != "clock"}
        begun = self._begins if since is None else since._now
        if self._now != begun:
            found["clock"] = [begun, self._now]
        return found

    def snapshot(self) -> dict[str, Any]:
        """What differs from the scenarios, as JSON, by part."""
        return {
            part.name: part.session.snapshot()
            for part in self._parts
            if part.session is not None and has(part.session, Snapshots) and part.measured()
        }

    def dump(self) -> dict[str, Any]:
        """Everything as JSON, which :meth:`load` reads: ``{"now": seconds, "parts": {name: {"now": …, "tables": …}}}``.

        Raises :class:`callwright.UsageError` where the state of a part is not in tables.
        """
        parts: dict[str, Any] = {}
        for part in self._parts:
            session = self._opened(part)
            if not part.world_now:
                raise UsageError(
                    f"the state of {part.name!r} is not in tables of this process, so it cannot be written"
                )
            parts[part.name] = session.world.dump()
        return {"now": self._now, "parts": parts}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on in the state that :meth:`dump` told; parts that it does not name are as they are.

        Raises :class:`callwright.errors.DataError` for one of other parts or tables.
        """
        self._enter()
        try:
            self._now = state["now"]
            known = {part.name: part for part in self._parts}
            for name, tables in state["parts"].items():
                if name not in known:
                    raise DataError(str(UnknownName("part in the state", name, known)))
                part = known[name]
                session = self._opened(part)
                loaded = session.helper("_load_scenario", {"state": dict(tables)})
                if not loaded.executed:
                    raise DataError(f"{name}: {loaded.message}")
                part.posted = {}  # what was paid until then is paid
                part.at = session.now
                self._touch(part)
        finally:
            self._turn.release()

    def goal_state(self) -> dict[str, Any]:
        """What the session has made of its scenarios, without bookkeeping, part by part
        (:mod:`callwright.environments.goals`).
        """
        self._enter()
        try:
            return states_of(self._parts, self._opened)
        finally:
            self._turn.release()

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        """Hold what is there against a goal, as JSON, whose tables and paths begin with their parts: ``email.drafts``.

        Raises :class:`callwright.errors.DataError` for a goal that cannot be read, or names what no part has.
        """
        self._enter()
        try:
            return check_parts(goal, self._parts, self._opened)
        finally:
            self._turn.release()

    def knowledge(self, entity: str = "me") -> dict[str, Any]:
        """What is known of somebody in all parts.

        What one part knows, or all that know it agree on, has its own name; else it is named ``banking.pin``.
        """
        self._enter()
        try:
            told = {part.name: self._known_in(part, entity) for part in self._parts}
        finally:
            self._turn.release()
        found: dict[str, Any] = {}
        for name in dict.fromkeys(name for known in told.values() for name in known):
            values = {part: known[name] for part, known in told.items() if name in known}
            first = next(iter(values.values()))
            if all(value == first for value in values.values()):
                found[name] = first
            else:
                found |= {f"{part}.{name}": value for part, value in values.items()}
        return found

    def _known_in(self, part: Part, entity: str) -> dict[str, Any]:
        return knowledge_of(self._opened(part), entity)

    def briefing(self) -> str:
        return self.environment.briefing(self)

    def opened(self, names: Iterable[str]) -> list[Any]:
        """The sessions of parts, to be read only."""
        wanted = set(names)
        return [self._opened(part) for part in self._parts if part.name in wanted]

    def close(self) -> None:
        """Give the sessions of the parts back. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            for part in self._parts:
                part.close()

    def _touch(self, part: Part) -> None:
        """Something may happen in a part: its digest is asked for again."""
        part.due = UNKNOWN
        if part not in self._touched:
            part.stale = True
            self._touched.append(part)

    def _enter(self) -> None:
        if not self._turn.acquire(False):
            raise in_use()
