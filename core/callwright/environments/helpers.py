"""Helper tools: what whoever runs a stateful environment may do with a session, and no agent may.

They look at the whole state, move the clock, load another scenario, and let tools fail. They are tools like any other,
with the session itself in the place of the world; :meth:`callwright.environments.StatefulSession.helper` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol, TypeVar

from pydantic import Field

from callwright.environments.base import load_base
from callwright.environments.calling import ReadyTool, ready
from callwright.environments.rows import row_json, table_of
from callwright.environments.world import World
from callwright.errors import UnknownName
from callwright.tools.spec import FunctionTool, tool

T = TypeVar("T")

#: The clock is moved by ten years at a time at most: worlds live through what happens on the way.
_MOST_SECONDS: Final = 315_360_000


class HelpedEnvironment(Protocol):
    """What helpers ask of the environment of a session."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def kinds(self) -> Sequence[type[Any]]:
        """The classes of its rows."""

    @property
    def entries(self) -> Mapping[str, ReadyTool]:
        """The tools of agents by name."""

    @property
    def user_entries(self) -> Mapping[str, ReadyTool]:
        """The tools of users by name."""


class HelpedSession(Protocol):
    """What helpers need of a session."""

    world: World

    @property
    def environment(self) -> HelpedEnvironment:
        """Its environment."""

    def restart(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the first state of this scenario and seed, or of another one, in the midst of a call."""

    def diff(self) -> dict[str, Any]:
        """What changed since the first state."""

    def let_pass(self, seconds: int) -> None:
        """Move the clock; where time moves, what falls due happens."""

    def enter(self, world: World) -> None:
        """Go on in another world."""

    def inject(self, tool: str, code: str, nth: int) -> None:
        """Let the ``nth`` next call of a tool fail."""


#: What helps, by name, with its annotations.
_DECLARED: Final[dict[str, tuple[Callable[..., Any], dict[str, Any]]]] = {}


def _helper(name: str, **annotations: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        _DECLARED[name] = function, annotations
        return function

    return declare


@_helper(name="_reset", hidden=True)
def _reset(session: HelpedSession, /) -> dict[str, str]:
    """Back to the first state of the scenario."""
    session.restart()
    return {"digest": session.world.digest()}


@_helper(name="_dump_state", hidden=True, read_only=True)
def _dump_state(session: HelpedSession, /) -> dict[str, Any]:
    """The whole state: time and tables."""
    return session.world.dump()


@_helper(name="_digest", hidden=True, read_only=True)
def _digest(session: HelpedSession, /) -> dict[str, str]:
    """The hash of the whole state."""
    return {"digest": session.world.digest()}


@_helper(name="_diff", hidden=True, read_only=True)
def _diff(session: HelpedSession, /) -> dict[str, Any]:
    """What changed since the first state of the scenario."""
    return session.diff()


@_helper(name="_list_tables", hidden=True, read_only=True)
def _list_tables(session: HelpedSession, /) -> dict[str, Any]:
    """The tables with their fields and numbers of rows."""
    return {
        table_of(kind).name: {"fields": list(table_of(kind).fields), "rows": session.world.count(kind)}
        for kind in session.environment.kinds
    }


@_helper(name="_get_unique_values", hidden=True, read_only=True)
def _get_unique_values(session: HelpedSession, /, table: str, field: str) -> list[Any]:
    """The values of a field, each once, in the order in which they first appear."""
    kind = _kind(session, table, field)
    values = dict.fromkeys(getattr(row, field) for row in session.world.rows(kind))
    return [list(value) if isinstance(value, tuple) else value for value in values]


@_helper(name="_count", hidden=True, read_only=True)
def _count(session: HelpedSession, /, table: str, filter: dict[str, Any] | None = None) -> dict[str, int]:
    """How many rows have these values."""
    kind = _kind(session, table, *(filter or {}))
    return {"count": session.world.count(kind, **(filter or {}))}


@_helper(name="_get_rows", hidden=True, read_only=True)
def _get_rows(
    session: HelpedSession,
    /,
    table: str,
    filter: dict[str, Any] | None = None,
    limit: Annotated[int, Field(ge=0)] = 100,
) -> list[dict[str, Any]]:
    """Rows with these values, at most ``limit``."""
    kind = _kind(session, table, *(filter or {}))
    return [row_json(row) for row in session.world.find(kind, **(filter or {}))[:limit]]


@_helper(name="_advance_clock", hidden=True)
def _advance_clock(session: HelpedSession, /, seconds: Annotated[int, Field(ge=0, le=_MOST_SECONDS)]) -> dict[str, int]:
    """Let time pass. In a session whose clock moves, what falls due happens."""
    session.let_pass(int(seconds))
    return {"now": session.world.now}


@_helper(name="_load_scenario", hidden=True)
def _load_scenario(
    session: HelpedSession, /, name: str = "", seed: int | None = None, state: dict[str, Any] | None = None
) -> dict[str, str]:
    """Begin again in another scenario by name, or in the state that ``_dump_state`` gave."""
    if state is not None:
        base = session.world.base
        session.enter(World(load_base(session.environment.kinds, state, seed=base.seed if seed is None else seed)))
    else:
        session.restart(name, seed)
    return {"digest": session.world.digest()}


@_helper(name="_inject_fault", hidden=True)
def _inject_fault(
    session: HelpedSession,
    /,
    tool: str,
    code: Annotated[str, Field(min_length=1)],
    nth: Annotated[int, Field(ge=1)] = 1,
) -> dict[str, Any]:
    """Let the nth next call of a tool fail with a code; the code ``infrastructure`` is a broken machine."""
    environment = session.environment
    if tool not in environment.entries and tool not in environment.user_entries:
        raise UnknownName(f"tool of {environment.name!r}", tool, [*environment.entries, *environment.user_entries])
    session.inject(tool, code, int(nth))
    return {"tool": tool, "code": code, "nth": int(nth)}


def _kind(session: HelpedSession, table: str, *fields: str) -> type[Any]:
    kinds = {table_of(kind).name: kind for kind in session.environment.kinds}
    if table not in kinds:
        raise UnknownName(f"table of {session.environment.name!r}", table, kinds)
    for name in fields:
        if name not in table_of(kinds[table]).fields:
            raise UnknownName(f"field of {table!r}", name, table_of(kinds[table]).fields)
    return kinds[table]


class _OnceAsked(Mapping[str, T]):
    """What is made of each helper when it is first asked for: schemas take a while, and few sessions need them."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in _DECLARED:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _DECLARED

    def __iter__(self) -> Iterator[str]:
        return iter(_DECLARED)

    def __len__(self) -> int:
        return len(_DECLARED)


def _tool(name: str) -> FunctionTool:
    function, annotations = _DECLARED[name]
    return tool(name=name, **annotations)(function)


#: The helper tools of every stateful environment, by name. Their first parameter is the session.
HELPERS: Final[Mapping[str, FunctionTool]] = _OnceAsked(_tool)

#: The same, ready for calls.
READY_HELPERS: Final[Mapping[str, ReadyTool]] = _OnceAsked(
    lambda name: ready(HELPERS[name].spec, HELPERS[name].function)
)
