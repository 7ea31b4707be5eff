"""Stateful environments: typed functions over rows, with sessions that open, fork and reset in microseconds.

    @cw.row("books", prefix="B")
    class Book:
        id: str
        title: str
        copies: int

    @cw.tool
    def lend(world: cw.World, /, book_id: str) -> dict[str, int]:
        "Lend a copy of a book."
        book = world.need(Book, book_id)
        if not book.copies:
            raise cw.ToolError("NONE_LEFT", f"no copy of {book.title!r} is left")
        return {"left": world.update(book, copies=book.copies - 1).copies}

    library = cw.StatefulEnvironment(
        "library", rows=[Book], tools=[lend], scenarios={"typical": cw.Scenario(make_books, "a village library")}
    )

A call that fails leaves the state as it was: what it changed before is undone. Helper tools (``_reset``,
``_dump_state`` …) belong to whoever runs the environment; no agent is offered them or may call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from random import Random
from threading import Lock
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from callwright.environments.base import Base
from callwright.environments.briefing.policy import Policy, written
from callwright.environments.calling import ReadyTool, call_tool, in_use, ready_function
from callwright.environments.goals.comparing import Comparison
from callwright.environments.goals.goal import Goal, check_rows
from callwright.environments.goals.states import end_state
from callwright.environments.hazards.policy import Fault, Hazards, RateLimit
from callwright.environments.helpers import HELPERS, READY_HELPERS
from callwright.environments.knowledge.asking import ME, tell
from callwright.environments.living.called_by_users import CalledByUsers
from callwright.environments.living.events import EventKind
from callwright.environments.living.moving import MovingTime
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.money.charges import Bank, Charges
from callwright.environments.paging import Fit, fitting
from callwright.environments.people.introducing import introduced
from callwright.environments.people.person import People
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.rows import table_of
from callwright.environments.undeclared import account_of, holds_foreign
from callwright.environments.world import World, difference
from callwright.errors import (
    CallwrightError,
    ComponentError,
    InfrastructureFailure,
    NameClash,
    SessionInUse,
    UnknownName,
    UsageError,
)
from callwright.pickling import ByName, need_name
from callwright.tools.spec import FunctionTool, ToolSpec

#: What may be added to the tools of an environment: sequences of tools. Where a registry makes the environment (a
#: recipe, the command line, :func:`callwright.environment`), names of registered toolsets, too.
Toolsets: TypeAlias = Sequence[Sequence[FunctionTool]]
#: When sessions begin unless a scenario says otherwise: Monday, 2 March 2026, 09:00 UTC.
NOW: Final = 1_772_442_000
_BASES_KEPT: Final = 16
_MADE_AGAIN: Final = ("entries", "user_entries", "_specs", "base")


@frozen
class Scenario:
    """A named kind of world: ``build(random, scale)`` yields its rows, the same ones for the same seed.

    ``scale`` multiplies the number of entities; 1 is the normal size. ``now`` is when sessions begin (seconds, UTC).
    ``clock`` is how time moves in them unless a task says otherwise; ``None``: it stands still. ``faults`` befall calls
    and ``limits`` bound them unless a task says otherwise (:mod:`callwright.environments.hazards`).
    """

    build: Callable[[Random, float], Iterable[Any]] = field(repr=False)
    summary: str = ""
    now: int = NOW
    clock: ClockPolicy | None = None
    faults: tuple[Fault, ...] = field(default=(), converter=tuple)
    limits: tuple[RateLimit, ...] = field(default=(), converter=tuple)

    @property
    def hazards(self) -> Hazards:
        """Its faults and limits."""
        return Hazards(self.faults, self.limits)


class StatefulEnvironment(ByName, Environment):
    """An environment of rows, tools and named scenarios; the first scenario is the one that ``""`` opens.

    ``tools`` are functions whose positional-only first parameter is the :class:`callwright.World`. ``toolsets`` are
    added to them: sequences of such functions. ``scale`` multiplies the number of entities of every scenario.
    ``policy`` holds the rules that a model is told, ``person(world)`` names who is signed in; with either of them,
    prompts hold a briefing (:meth:`briefing`). ``knowledge(world, entity)`` says what a user knows and no tool tells
    (:meth:`StatefulSession.knowledge`). ``events`` are the kinds of events that time brings, in the order in
    which they happen at one moment; they happen in sessions whose clock moves (:meth:`StatefulSession.keep_time`).
    ``user_tools`` are for the user of an episode (:mod:`callwright.walk.users`); agents are never offered them.
    ``people(world)`` is whom rows name, ``charges`` what is paid by them, ``bank`` how: for environments of several.
    Raises :class:`callwright.errors.NameClash` for two tools, tables or kinds of events of one name.
    """

    def __init__(
        self,
        name: str,
        *,
        rows: Sequence[type[Any]],
        tools: Sequence[FunctionTool],
        scenarios: Mapping[str, Scenario],
        toolsets: Toolsets = (),
        scale: float = 1.0,
        policy: Policy | None = None,
        person: Callable[[World], str] | None = None,
        knowledge: Callable[[World, str], Mapping[str, Any] | None] | None = None,
        events: Sequence[EventKind] = (),
        user_tools: Sequence[FunctionTool] = (),
        people: Callable[[World], People] | None = None,
        charges: Charges | None = None,
        bank: Bank | None = None,
    ) -> None:
        if not scenarios:
            raise UsageError(f"environment {name!r} has no scenario")
        _check_toolsets(name, toolsets)
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1000:
            raise UsageError(f"environment {name!r}: scale must be a number above 0 and at most 1000, not {scale!r}")
        self._name = name
        self.policy, self.person, self.knowledge, self.people = policy, person, knowledge, people
        self.charges, self.bank = charges, bank
        self.scale = float(scale)
        self.scenarios = dict(scenarios)
        self.kinds = tuple(rows)
        names = [table_of(kind).name for kind in self.kinds]
        for table in names:
            if names.count(table) > 1:
                raise NameClash(f"environment {name!r} has two tables named {table!r}")
        self.events = tuple(events)
        kinds = [kind.name for kind in self.events]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise NameClash(f"environment {name!r} has two kinds of events named {kind!r}")
        self.entries: dict[str, ReadyTool] = {}
        self._functions = (*tools, *(one for toolset in toolsets for one in toolset))
        for added in self._functions:
            self._add(added, self.entries)
        self.fit: Fit | None = None
        self._of_users = tuple(user_tools)
        self.user_entries: dict[str, ReadyTool] = {}
        for added in self._of_users:
            self._add(added, self.user_entries)
        self._specs = {tool_name: entry.spec for tool_name, entry in self.entries.items()}
        self._foreign = holds_foreign((*self._functions, *self._of_users))
        self.base = lru_cache(maxsize=_BASES_KEPT)(self._build)

    def __getstate__(self) -> dict[str, Any]:
        for name, scenario in self.scenarios.items():
            need_name(scenario.build, f"scenario {name!r} of environment {self._name!r}")
        for what, given in (("person", self.person), ("knowledge", self.knowledge), ("people", self.people)):
            if given is not None:
                need_name(given, f"{what} of environment {self._name!r}")
        return {key: value for key, value in self.__dict__.items() if key not in _MADE_AGAIN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.entries = {added.spec.name: self._ready(added) for added in self._functions}
        self.user_entries = {added.spec.name: ready_function(added) for added in self._of_users}
        self._specs = {tool_name: entry.spec for tool_name, entry in self.entries.items()}
        self.base = lru_cache(maxsize=_BASES_KEPT)(self._build)

    def _add(self, added: FunctionTool, entries: dict[str, ReadyTool]) -> None:
        if not isinstance(added, FunctionTool):
            raise UsageError(
                f"environment {self._name!r}: {added!r:.80} is not a tool; decorate it with @callwright.tool"
            )
        if added.spec.name in self.entries or added.spec.name in HELPERS or added.spec.name in entries:
            raise NameClash(f"environment {self._name!r} has two tools named {added.spec.name!r}")
        entries[added.spec.name] = ready_function(added)

    def fitted(self, fit: Fit) -> StatefulEnvironment:
        """The same environment with results and listings that fit a model with little room
        (:class:`callwright.environments.paging.Fit`); worlds, digests and what calls do are the same.
        """
        other: StatefulEnvironment = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.fit = fit
        other.entries = {added.spec.name: other._ready(added) for added in self._functions}
        other._specs = {name: entry.spec for name, entry in other.entries.items()}
        return other

    def _ready(self, added: FunctionTool) -> ReadyTool:
        entry = ready_function(added)
        return entry if self.fit is None else fitting(entry, self.fit)

    def _build(self, scenario: str, seed: int, people: People | None = None) -> Base:
        if people is not None:
            return introduced(self.base(scenario, seed), self.people, people)
        made = self.scenarios[scenario]
        rows = made.build(Random(f"{self._name}/{scenario}/{seed}"), self.scale)
        base = Base(rows, now=made.now, seed=seed, kinds=self.kinds)
        base.origin = _base_of, (self, scenario, seed)
        return base

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool that agents may be offered; helper tools are not among them."""
        return self._specs

    @property
    def user_tools(self) -> Mapping[str, ToolSpec]:
        """The tools of the user of an episode: :meth:`StatefulSession.user_call` runs them."""
        return {name: entry.spec for name, entry in self.user_entries.items()}

    @property
    def helpers(self) -> Mapping[str, ToolSpec]:
        """The hidden tools: :meth:`StatefulSession.helper` runs them."""
        return {name: helper.spec for name, helper in HELPERS.items()}

    @property
    def foreign(self) -> bool:
        """Whether a tool is code that is not part of this distribution."""
        return self._foreign

    @property
    def pure(self) -> bool:
        """True: rows cannot change, and tools make what they return anew."""
        return True

    @property
    def briefs(self) -> bool:
        """Whether the environment has a policy, or somebody is signed in."""
        return self.policy is not None or self.person is not None

    def briefing(self, session: StatefulSession) -> str:
        """What a model is told of a session as it is now: rules, time, and who is signed in; else an empty text."""
        return session.briefing()

    def open(self, scenario: str = "", seed: int = 0) -> StatefulSession:
        """A fresh session. The first session of a scenario and seed also builds its rows.

        Raises :class:`callwright.errors.UnknownName` for a scenario that does not exist.
        """
        scenario = self.scenario_name(scenario)
        session = StatefulSession(self, World(self.base(scenario, seed)))
        opened = self.scenarios[scenario]
        session._clock = opened.clock
        if opened.faults or opened.limits:
            session.meet_hazards(opened.hazards)
        return session

    def scenario_name(self, scenario: str) -> str:
        """The name itself, or that of the first scenario for ``""``."""
        if not scenario:
            return next(iter(self.scenarios))
        if not isinstance(scenario, str):
            raise UsageError(f"the name of a scenario is a text, not {scenario!r:.80}")
        if scenario not in self.scenarios:
            raise UnknownName(f"scenario of {self._name!r}", scenario, self.scenarios)
        return scenario


def _base_of(environment: StatefulEnvironment, *made: Any) -> Base:
    """The base of a session that was sent to this process: built once, and shared."""
    return environment.base(*made)


class StatefulSession(MovingTime, CalledByUsers, Session):
    """One isolated world of a :class:`StatefulEnvironment`, for one thread at a time.

    A second thread is told so (:class:`callwright.errors.SessionInUse`); nothing it wanted to change is lost silently.
    """

    __slots__ = ("_closed", "_faults", "environment", "world")
    bounds_results = True

    def __init__(self, environment: StatefulEnvironment, world: World) -> None:
        self.environment = environment
        self.world = world
        self._faults: dict[str, tuple[int, str]] | None = None
        self._exposure = None
        self._clock = None
        self._notices = ()
        self._user_turns = 0
        self._closed = False
        self._turn = Lock()

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments against the schema, then run the tool (:mod:`callwright.environments.calling`).

        Helper tools are unknown. What a tool raises apart from :class:`callwright.ToolError` is a bug of it: what it
        did is undone, and :class:`callwright.errors.ComponentError` names the place. No model is charged with it.

        Where the clock moves, the call takes its time when it is over, whatever came of it, and the latency of the tool
        beside that; the outcome also tells what happened until then. Only a tool that is not there takes none: nothing
        was called.
        """
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        world = self.world
        try:
            if self._clock is not None or self._exposure is not None:
                return self.call_with_care(tool, arguments, self._fault if self._faults else None)
            return call_tool(
                self.environment.entries,
                tool,
                arguments,
                world,
                world,
                self._turn,
                self._fault if self._faults else None,
            )
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the environment {self.environment.name!r}"
            ) from error

    # The whole --------------------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """A hash of the whole state; it costs what changed since it was last asked for."""
        known = self.world.known_digest
        if known is not None:  # asked for after every call, most of which change nothing
            return known
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return self.world.digest()
        finally:
            turn.release()

    def fork(self) -> StatefulSession:
        """Another session in the same state, which goes its own way."""
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            other = StatefulSession(self.environment, self.world.fork())
            other._clock, other._notices, other._user_turns = self._clock, self._notices, self._user_turns
            other._exposure = None if self._exposure is None else copy(self._exposure)
            return other
        finally:
            turn.release()

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the first state of this scenario and seed, or of another one. Injected faults are forgotten.

        The clock moves on as it did (:meth:`keep_time`), also in another scenario; hazards are met as by a new session.
        """
        if self._turn.locked():
            raise in_use()
        self.restart(scenario, seed)

    def restart(self, scenario: str | None = None, seed: int | None = None) -> None:
        """As :meth:`reset`, for helpers: they run in the midst of a call."""
        base = self.world.base
        if scenario is not None or seed is not None:
            name = self.environment.scenario_name(scenario or "")
            base = self.environment.base(name, base.seed if seed is None else seed)
        self.world = World(base)
        self._faults, self._notices, self._user_turns = None, (), 0
        if self._exposure is not None:
            self.meet_hazards(self._exposure.hazards)

    def enter(self, world: World) -> None:
        """Go on in another world, as helpers do. Nothing of the one that was left is told."""
        self.world, self._notices, self._user_turns = world, (), 0

    def diff(self, since: StatefulSession | None = None) -> dict[str, Any]:
        """What changed since the scenario's first state, or since ``since``
        (:func:`callwright.environments.world.difference`).
        """
        return difference(World(self.world.base) if since is None else since.world, self.world)

    def briefing(self) -> str:
        """What :meth:`StatefulEnvironment.briefing` says."""
        environment = self.environment
        if not environment.briefs:
            return ""
        person = environment.person
        return written(environment.policy, self.world.now, "" if person is None else person(self.world))

    def knowledge(self, entity: str = ME) -> dict[str, Any]:
        """What somebody knows and no tool tells; ``"me"`` is the user whose session it is. Empty for strangers."""
        known = self.environment.knowledge
        if self._turn.locked():
            raise in_use()
        return {} if known is None else tell(known, self.world, entity, self.environment.name)

    def snapshot(self) -> dict[str, Any]:
        """What differs from the scenario, as JSON, for rewards that compare final states path by path."""
        return self.world.changed_rows()

    def goal_state(self) -> dict[str, Any]:
        """What the session has made of its scenario, without bookkeeping, for rewards that compare end states
        (:mod:`callwright.environments.goals`).
        """
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return end_state(self.world)
        finally:
            turn.release()

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        """Hold what is there against a goal, as JSON (:class:`callwright.environments.goals.Goal`).

        Raises :class:`callwright.errors.DataError` for a goal that cannot be read or is not of these tables.
        """
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return check_rows(Goal.from_json(goal), self.world)
        finally:
            turn.release()

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Run a helper tool. Agents cannot: :meth:`call` does not know them.

        Raises :class:`callwright.errors.UnknownName` for one that does not exist.
        """
        if name not in HELPERS:
            raise UnknownName("helper tool", name, HELPERS)
        try:
            return call_tool(READY_HELPERS, name, dict(arguments or {}), self, turn=self._turn)
        except SessionInUse:
            raise
        except UsageError as error:
            return Outcome("execution_error", None, "INVALID", str(error))

    def close(self) -> None:
        """Refuse calls from now on. Closing twice is allowed."""
        self._closed = True

    def inject(self, tool: str, code: str, nth: int) -> None:
        """Let the ``nth`` next valid call of a tool fail with ``code``; ``infrastructure`` is a broken machine."""
        self._faults = {**(self._faults or {}), tool: (nth, code)}

    def _fault(self, tool: str) -> Outcome | None:
        assert self._faults is not None
        if tool not in self._faults:
            return None
        left, code = self._faults.pop(tool)
        if left > 1:
            self._faults[tool] = (left - 1, code)
            return None
        if code == "infrastructure":
            raise InfrastructureFailure(f"{tool} failed because a fault was injected")
        return Outcome("execution_error", None, code, "this failure was injected", injected="fault")


# Tools ----------------------------------------------------------------------------------------------------------------


def _check_toolsets(name: str, toolsets: Any) -> None:
    if isinstance(toolsets, str) or not isinstance(toolsets, Sequence):
        raise UsageError(f"environment {name!r}: toolsets must be a list of toolsets, not {toolsets!r:.80}")
    for toolset in toolsets:
        if isinstance(toolset, str):
            raise UsageError(
                f"environment {name!r}: {toolset!r:.80} is the name of a toolset. Names are looked up where a registry "
                f"makes the environment: callwright.environment({name!r}, toolsets=[{toolset!r:.80}])"
            )
