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

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from attrs import field, frozen
from pydantic import Field
from typing_extensions import is_typeddict

from callwright.environments.protocol import Environment, Outcome, OutcomeKind, Session
from callwright.environments.rows import row_json, table_of
from callwright.environments.world import Base, World, difference, load_base
from callwright.errors import InfrastructureFailure, NameClash, UnknownName, UsageError
from callwright.pickling import ByName, need_name
from callwright.plugins import Registry
from callwright.tools.spec import ArgumentError, FunctionTool, ToolError, ToolSpec, tool
from callwright.tools.validation import check_arguments

#: What may be added to the tools of an environment: names of registered toolsets, or sequences of tools.
Toolsets: TypeAlias = Sequence[str | Sequence[FunctionTool]]
#: When sessions begin unless a scenario says otherwise: Monday, 2 March 2026, 09:00 UTC.
NOW: Final = 1_772_442_000
_BASES_KEPT: Final = 16
_LONGEST_MESSAGE: Final = 600
#: The clock is moved by ten years at a time at most: worlds live through what happens on the way.
_MOST_SECONDS: Final = 315_360_000


@frozen
class Scenario:
    """A named kind of world: ``build(random, scale)`` yields its rows, the same ones for the same seed.

    ``scale`` multiplies the number of entities; 1 is the normal size. ``now`` is when sessions begin (seconds, UTC).
    """

    build: Callable[[Random, float], Iterable[Any]] = field(repr=False)
    summary: str = ""
    now: int = NOW


class StatefulEnvironment(ByName):
    """An environment of rows, tools and named scenarios; the first scenario is the one that ``""`` opens.

    ``tools`` are functions whose positional-only first parameter is the :class:`callwright.World`. ``toolsets`` are
    added to them: sequences of such functions, or names of registered toolsets. ``scale`` multiplies the number of
    entities of every scenario. Raises :class:`callwright.errors.NameClash` for two tools or tables of one name.
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
        registry: Registry | None = None,
    ) -> None:
        if not scenarios:
            raise UsageError(f"environment {name!r} has no scenario")
        if isinstance(toolsets, str) or not isinstance(toolsets, Sequence):
            raise UsageError(
                f"environment {name!r}: toolsets must be a list of toolsets or their names, not {toolsets!r:.80}"
            )
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1000:
            raise UsageError(f"environment {name!r}: scale must be a number above 0 and at most 1000, not {scale!r}")
        self._name = name
        self.scale = float(scale)
        self.scenarios = dict(scenarios)
        self.kinds = tuple(rows)
        names = [table_of(kind).name for kind in self.kinds]
        for table in names:
            if names.count(table) > 1:
                raise NameClash(f"environment {name!r} has two tables named {table!r}")
        self.entries: dict[str, _Entry] = {}
        self._functions = (*tools, *(one for toolset in toolsets for one in _toolset(toolset, registry)))
        for added in self._functions:
            self._add(added)
        self._specs = {tool_name: entry.spec for tool_name, entry in self.entries.items()}
        self.base = lru_cache(maxsize=_BASES_KEPT)(self._build)

    def __getstate__(self) -> dict[str, Any]:
        for name, scenario in self.scenarios.items():
            need_name(scenario.build, f"scenario {name!r} of environment {self._name!r}")
        return {key: value for key, value in self.__dict__.items() if key not in ("entries", "_specs", "base")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.entries = {added.spec.name: _entry(added) for added in self._functions}
        self._specs = {tool_name: entry.spec for tool_name, entry in self.entries.items()}
        self.base = lru_cache(maxsize=_BASES_KEPT)(self._build)

    def _add(self, added: FunctionTool) -> None:
        if not isinstance(added, FunctionTool):
            raise UsageError(
                f"environment {self._name!r}: {added!r:.80} is not a tool; decorate it with @callwright.tool"
            )
        if added.spec.name in self.entries or added.spec.name in HELPERS:
            raise NameClash(f"environment {self._name!r} has two tools named {added.spec.name!r}")
        self.entries[added.spec.name] = _entry(added)

    def _build(self, scenario: str, seed: int) -> Base:
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
    def helpers(self) -> Mapping[str, ToolSpec]:
        """The hidden tools: :meth:`StatefulSession.helper` runs them."""
        return {name: helper.spec for name, helper in HELPERS.items()}

    @property
    def pure(self) -> bool:
        """True: rows cannot change, and tools make what they return anew."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> StatefulSession:
        """A fresh session. The first session of a scenario and seed also builds its rows.

        Raises :class:`callwright.errors.UnknownName` for a scenario that does not exist.
        """
        return StatefulSession(self, World(self.base(self.scenario_name(scenario), seed)))

    def scenario_name(self, scenario: str) -> str:
        """The name itself, or that of the first scenario for ``""``."""
        if not scenario:
            return next(iter(self.scenarios))
        if not isinstance(scenario, str):
            raise UsageError(f"the name of a scenario is a text, not {scenario!r:.80}")
        if scenario not in self.scenarios:
            raise UnknownName(f"scenario of {self._name!r}", scenario, self.scenarios)
        return scenario


def _base_of(environment: StatefulEnvironment, scenario: str, seed: int) -> Base:
    """The base of a session that was sent to this process: built once, and shared."""
    return environment.base(scenario, seed)


class StatefulSession:
    """One isolated world of a :class:`StatefulEnvironment`. It is not for two threads at a time."""

    __slots__ = ("_closed", "_faults", "environment", "world")

    def __init__(self, environment: StatefulEnvironment, world: World) -> None:
        self.environment = environment
        self.world = world
        self._faults: dict[str, tuple[int, str]] | None = None
        self._closed = False

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments against the schema, then run the tool.

        ``unknown_tool``, also for helper tools; ``schema_error`` with the kind of the first mismatch as its code;
        ``execution_error`` with the code of the tool; ``partial`` with the code of its warning; ``empty`` for a page
        without items, an empty list or object, and ``None``. Raises what a tool raises apart from
        :class:`callwright.ToolError`, which is a bug of it, after undoing what it did.
        """
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        entry = self.environment.entries.get(tool)
        if entry is None:
            return Outcome("unknown_tool", None, "unknown_tool", f"there is no tool named {tool[:80]!r}")
        try:
            if not entry.is_valid(arguments):
                problem = check_arguments(entry.spec, arguments)[0]
                return Outcome("schema_error", None, problem.kind, _short(str(problem)))
        except UnicodeEncodeError:  # no parser lets such text through, but not every caller parses
            return Outcome("schema_error", None, "value", "an argument holds half of a surrogate pair")
        if entry.whole is not None:
            arguments = entry.whole(arguments)
        if self._faults:
            fault = self._fault(tool)
            if fault is not None:
                return fault
        world = self.world
        world.begin(entry.read_only)
        try:
            value = entry.run(world, arguments)
        except ToolError as error:
            world.undo()
            kind: OutcomeKind = "schema_error" if isinstance(error, ArgumentError) else "execution_error"
            return Outcome(kind, None, error.code, _short(error.message))
        except BaseException:
            world.undo()
            raise
        warning = world.end()
        if warning is not None:
            return Outcome("partial", value, *warning)
        if type(value) is dict:
            empty = not value or value.get("items") == []
        else:
            empty = value is None or value == [] or value == {}
        return Outcome("empty" if empty else "ok", value)

    def digest(self) -> str:
        """A hash of the whole state; it costs what changed since it was last asked for."""
        return self.world.digest()

    def fork(self) -> StatefulSession:
        """Another session in the same state, which goes its own way."""
        return StatefulSession(self.environment, self.world.fork())

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the first state of this scenario and seed, or of another one. Injected faults are forgotten."""
        base = self.world.base
        if scenario is not None or seed is not None:
            name = self.environment.scenario_name(scenario or "")
            base = self.environment.base(name, base.seed if seed is None else seed)
        self.world = World(base)
        self._faults = None

    def diff(self, since: StatefulSession | None = None) -> dict[str, Any]:
        """What changed since the scenario's first state, or since ``since``
        (:func:`callwright.environments.world.difference`).
        """
        return difference(World(self.world.base) if since is None else since.world, self.world)

    def snapshot(self) -> dict[str, Any]:
        """What differs from the scenario, as JSON, for rewards that compare final states path by path."""
        return self.world.changed_rows()

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Run a helper tool. Agents cannot: :meth:`call` does not know them.

        Raises :class:`callwright.errors.UnknownName` for one that does not exist.
        """
        if name not in HELPERS:
            raise UnknownName("helper tool", name, HELPERS)
        helper = HELPERS[name]
        problems = check_arguments(helper.spec, arguments or {})
        if problems:
            return Outcome("schema_error", None, problems[0].kind, str(problems[0]))
        try:
            value = helper.function(self, **(arguments or {}))
        except ToolError as error:
            return Outcome("execution_error", None, error.code, error.message)
        except UsageError as error:
            return Outcome("execution_error", None, "INVALID", str(error))
        return Outcome("empty" if value in ([], {}) else "ok", value)

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
        return Outcome("execution_error", None, code, "this failure was injected")


def _short(message: str) -> str:
    """A message as agents are told it: what they wrote themselves may stand in it, however long it was."""
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


# Tools ----------------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Entry:
    """What a call needs of a tool, looked up once."""

    spec: ToolSpec
    read_only: bool
    is_valid: Callable[[Any], bool]
    #: Writes whole numbers as ``int``, because JSON Schema takes 5.0 for an integer. ``None``: nothing is an integer.
    whole: Callable[[Any], Any] | None
    run: Callable[[World, dict[str, Any]], Any]


def _entry(added: FunctionTool) -> _Entry:
    spec = added.spec
    return _Entry(spec, spec.read_only, spec.compiled.literal.validator.is_valid, _whole(spec.parameters), _run(added))


def _run(added: FunctionTool) -> Callable[[World, dict[str, Any]], Any]:
    function = added.function
    hints = typing.get_type_hints(function, include_extras=True)
    returned = hints.pop("return", Any)
    if added.state is not None:
        hints.pop(added.state, None)
    if not all(map(_plain, hints.values())) or not _plain(returned):
        return added.call  # dates, models and the like are made of JSON and become JSON again
    if added.state is None:
        return lambda _, arguments: function(**arguments)
    return lambda world, arguments: function(world, **arguments)


def _plain(hint: Any) -> bool:
    """Whether values of an annotation are JSON as they are."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _plain(get_args(hint)[0])
    if origin is Literal:
        return True
    if origin in (Union, types.UnionType, list, dict):
        return all(map(_plain, get_args(hint)))
    return hint in (str, int, float, bool, None, type(None), list, dict, Any) or is_typeddict(origin or hint)


def _whole(schema: Any) -> Callable[[Any], Any] | None:
    """What turns floats into ``int`` where the schema says integer; ``None`` where it says so nowhere."""
    if not isinstance(schema, Mapping):
        return None
    if schema.get("type") == "integer":
        return lambda value: int(value) if type(value) is float else value
    branches = [made for key in ("anyOf", "oneOf", "allOf") for made in map(_whole, schema.get(key) or ()) if made]
    if branches:
        only = branches[0]
        numbers = any(inner.get("type") == "number" for key in ("anyOf", "oneOf") for inner in schema.get(key) or ())
        return None if numbers else lambda value: only(value) if isinstance(value, float | list | dict) else value
    items = _whole(schema.get("items"))
    if items is not None:
        return lambda value: [items(inner) for inner in value] if isinstance(value, list) else value
    properties = {name: made for name, inner in (schema.get("properties") or {}).items() if (made := _whole(inner))}
    if not properties:
        return None

    def whole(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for name, made in properties.items():
            if name in value:
                given = value[name]
                if type(given) is not int:
                    value = {**value, name: made(given)}
        return value

    return whole


def _toolset(given: str | Sequence[FunctionTool], registry: Registry | None) -> Sequence[FunctionTool]:
    if not isinstance(given, str):
        return given
    from callwright.plugins import default_registry

    made: Sequence[FunctionTool] = (registry or default_registry()).create("toolset", given)
    return made


# Helper tools ---------------------------------------------------------------------------------------------------------


@tool(name="_reset", hidden=True)
def _reset(session: StatefulSession, /) -> dict[str, str]:
    """Back to the first state of the scenario."""
    session.reset()
    return {"digest": session.digest()}


@tool(name="_dump_state", hidden=True, read_only=True)
def _dump_state(session: StatefulSession, /) -> dict[str, Any]:
    """The whole state: time and tables."""
    return session.world.dump()


@tool(name="_digest", hidden=True, read_only=True)
def _digest(session: StatefulSession, /) -> dict[str, str]:
    """The hash of the whole state."""
    return {"digest": session.digest()}


@tool(name="_diff", hidden=True, read_only=True)
def _diff(session: StatefulSession, /) -> dict[str, Any]:
    """What changed since the first state of the scenario."""
    return session.diff()


@tool(name="_list_tables", hidden=True, read_only=True)
def _list_tables(session: StatefulSession, /) -> dict[str, Any]:
    """The tables with their fields and numbers of rows."""
    return {
        table_of(kind).name: {"fields": list(table_of(kind).fields), "rows": session.world.count(kind)}
        for kind in session.environment.kinds
    }


@tool(name="_get_unique_values", hidden=True, read_only=True)
def _get_unique_values(session: StatefulSession, /, table: str, field: str) -> list[Any]:
    """The values of a field, each once, in the order in which they first appear."""
    kind = _kind(session, table, field)
    values = dict.fromkeys(getattr(row, field) for row in session.world.rows(kind))
    return [list(value) if isinstance(value, tuple) else value for value in values]


@tool(name="_count", hidden=True, read_only=True)
def _count(session: StatefulSession, /, table: str, filter: dict[str, Any] | None = None) -> dict[str, int]:
    """How many rows have these values."""
    kind = _kind(session, table, *(filter or {}))
    return {"count": session.world.count(kind, **(filter or {}))}


@tool(name="_get_rows", hidden=True, read_only=True)
def _get_rows(
    session: StatefulSession,
    /,
    table: str,
    filter: dict[str, Any] | None = None,
    limit: Annotated[int, Field(ge=0)] = 100,
) -> list[dict[str, Any]]:
    """Rows with these values, at most ``limit``."""
    kind = _kind(session, table, *(filter or {}))
    return [row_json(row) for row in session.world.find(kind, **(filter or {}))[:limit]]


@tool(name="_advance_clock", hidden=True)
def _advance_clock(
    session: StatefulSession, /, seconds: Annotated[int, Field(ge=0, le=_MOST_SECONDS)]
) -> dict[str, int]:
    """Let time pass."""
    session.world.begin(read_only=False)
    session.world.advance(int(seconds))
    session.world.end()
    return {"now": session.world.now}


@tool(name="_load_scenario", hidden=True)
def _load_scenario(
    session: StatefulSession, /, name: str = "", seed: int | None = None, state: dict[str, Any] | None = None
) -> dict[str, str]:
    """Begin again in another scenario by name, or in the state that ``_dump_state`` gave."""
    if state is not None:
        base = session.world.base
        session.world = World(load_base(session.environment.kinds, state, seed=base.seed if seed is None else seed))
    else:
        session.reset(name, seed)
    return {"digest": session.digest()}


@tool(name="_inject_fault", hidden=True)
def _inject_fault(
    session: StatefulSession,
    /,
    tool: str,
    code: Annotated[str, Field(min_length=1)],
    nth: Annotated[int, Field(ge=1)] = 1,
) -> dict[str, Any]:
    """Let the nth next call of a tool fail with a code; the code ``infrastructure`` is a broken machine."""
    if tool not in session.environment.entries:
        raise UnknownName(f"tool of {session.environment.name!r}", tool, session.environment.entries)
    session.inject(tool, code, int(nth))
    return {"tool": tool, "code": code, "nth": int(nth)}


def _kind(session: StatefulSession, table: str, *fields: str) -> type[Any]:
    kinds = {table_of(kind).name: kind for kind in session.environment.kinds}
    if table not in kinds:
        raise UnknownName(f"table of {session.environment.name!r}", table, kinds)
    for name in fields:
        if name not in table_of(kinds[table]).fields:
            raise UnknownName(f"field of {table!r}", name, table_of(kinds[table]).fields)
    return kinds[table]


#: The helper tools of every stateful environment, by name. Their first parameter is the session.
HELPERS: Final[Mapping[str, FunctionTool]] = {
    helper.spec.name: helper
    for helper in (
        _reset,
        _dump_state,
        _digest,
        _diff,
        _list_tables,
        _get_unique_values,
        _count,
        _get_rows,
        _advance_clock,
        _load_scenario,
        _inject_fault,
    )
}


def _conforms(environment: StatefulEnvironment, session: StatefulSession) -> tuple[Environment, Session]:
    """Checked by mypy only: both classes fit their protocols."""
    return environment, session
