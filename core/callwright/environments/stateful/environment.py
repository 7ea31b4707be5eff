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
from functools import lru_cache
from random import Random
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.base import Base
from callwright.environments.briefing.policy import Policy
from callwright.environments.calling import ReadyTool
from callwright.environments.hazards.policy import Fault, Hazards, RateLimit
from callwright.environments.helpers import HELPERS
from callwright.environments.living.events import EventKind
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.money.charges import Bank, Charges
from callwright.environments.paging import Fit, fitting
from callwright.environments.people.introducing import introduced
from callwright.environments.people.person import People
from callwright.environments.protocol import Environment
from callwright.environments.rows import table_of
from callwright.environments.stateful.session import StatefulSession
from callwright.environments.stateful.tools import Toolsets, check_toolsets, ready_function
from callwright.environments.undeclared import bugs_of, holds_foreign
from callwright.environments.world import World
from callwright.errors import DataError, NameClash, UnknownName, UsageError
from callwright.pickling import ByName, need_name
from callwright.tools.spec import FunctionTool, ToolSpec

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
        check_toolsets(name, toolsets)
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1000:
            raise UsageError(f"environment {name!r}: scale must be a number above 0 and at most 1000, not {scale!r}")
        self._name = name
        #: By which name worlds are drawn: that of the environment which this one extends.
        self.drawn_as = name
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

    @property
    def functions(self) -> tuple[FunctionTool, ...]:
        """The tools of agents as functions, those of toolsets included."""
        return self._functions

    @property
    def functions_of_users(self) -> tuple[FunctionTool, ...]:
        """The tools of users as functions."""
        return self._of_users

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
        with bugs_of(self._name, f"the scenario {scenario!r}"):
            rows = made.build(Random(f"{self.drawn_as}/{scenario}/{seed}"), self.scale)
            try:
                base = Base(rows, now=made.now, seed=seed, kinds=self.kinds)
            except DataError as error:
                raise DataError(f"environment {self._name!r}, scenario {scenario!r}, seed {seed}: {error}") from error
        base.origin = _base_of, (self, scenario, seed)
        return base

    @property
    def name(self) -> str:
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
        opened = self.scenarios.get(scenario) if type(scenario) is str else None
        if opened is None:
            scenario = self.scenario_name(scenario)
            opened = self.scenarios[scenario]
        session = StatefulSession(self, World(self.base(scenario, seed)))
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
