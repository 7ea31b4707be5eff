"""Sessions of functions over a backend: a transaction around each call, and whatever else the backend can do."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from callwright.capability import has
from callwright.digests import digest_of
from callwright.environments.backends.backend import Backend, Forkable, Loads, Tables, Transacts
from callwright.environments.calling import call_tool, in_use
from callwright.environments.protocol import Outcome, Session
from callwright.environments.undeclared import account_of
from callwright.errors import CallwrightError, ComponentError, InfrastructureFailure, UsageError
from callwright.language.markup import Diff

if TYPE_CHECKING:
    from callwright.environments.functions import FunctionEnvironment


class _Transaction:
    """A call in a backend; ``state`` is what tools are given."""

    __slots__ = ("_open", "state")

    def __init__(self, state: Backend) -> None:
        self.state = state
        self._open = False

    def begin(self, read_only: bool) -> None:
        if has(self.state, Transacts):
            self.state.begin(read_only)
            self._open = True

    def end(self) -> None:
        if self._open and has(self.state, Transacts):
            self._open = False
            self.state.commit()

    def undo(self) -> None:
        if self._open and has(self.state, Transacts):
            self._open = False
            self.state.rollback()


class BackedSession(Session):
    """A session whose state is a :class:`callwright.environments.backends.Backend`.

    It is closed when it is given back, and at the latest when nobody has it any more.
    """

    bounds_results = True

    def __init__(self, environment: FunctionEnvironment, state: Backend, opened: tuple[str, int]) -> None:
        self.environment, self._opened = environment, opened
        self._turn = Lock()
        self._first: Tables | None = None
        self._have(state)

    def _have(self, state: Backend) -> None:
        self._held = _Transaction(state)
        self._finalizer = weakref.finalize(self, state.close)

    @property
    def state(self) -> Backend:
        """The backend."""
        return self._held.state

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments, then run the function in a transaction, which is taken back where it fails."""
        held, environment = self._held, self.environment
        try:
            return call_tool(environment.ready, tool, arguments, held, held, self._turn, None, environment.undeclared)
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the tool (undeclared='raise')"
            ) from error

    def digest(self) -> str:
        return digest_of(self._tables())

    def snapshot(self) -> dict[str, Any]:
        """The whole state, as tables."""
        return {name: [dict(row) for row in rows] for name, rows in self._tables().items()}

    def dump(self) -> dict[str, Any]:
        """The whole state as a file of ``callwright env snapshot`` has it. There is no time here."""
        return {"now": 0, "tables": self.snapshot()}

    def diff(self, since: BackedSession | None = None) -> dict[str, Any]:
        """What is different from the start, or from another session, by table: rows ``added`` and ``removed``."""
        before = self._begun() if since is None else since._tables()
        return difference(before, self._tables())

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        first, second = self._opened
        opened = (first if scenario is None else scenario, second if seed is None else seed)
        state = self.environment.backend(*opened)  # first: where there is no such scenario, the session stays
        self.close()
        self._opened, self._first = opened, None
        self._have(state)

    def load(self, state: Mapping[str, Any]) -> None:
        """Have the state of a snapshot. Raises :class:`callwright.UsageError` for a backend that cannot."""
        if not has(self.state, Loads):
            raise UsageError(f"the state of {self.environment.name!r} cannot be put back: it has no load()")
        self.state.load(state["tables"])

    def close(self) -> None:
        self._finalizer()

    def __reduce__(self) -> Any:
        raise UsageError(f"a session of {self.environment.name!r} is a live connection, which no process can hand on")

    def _begun(self) -> Tables:
        """The tables that it began with: those of a fresh one, since most sessions are never asked."""
        if self._first is None:
            fresh = self.environment.backend(*self._opened)
            try:
                self._first = fresh.tables()
            finally:
                fresh.close()
        return self._first

    def _tables(self) -> Tables:
        if not self._turn.acquire(False):
            raise in_use()
        try:
            return self._held.state.tables()
        except CallwrightError:
            raise
        except Exception as error:
            raise InfrastructureFailure(f"the state of {self.environment.name!r} cannot be read: {error}") from error
        finally:
            self._turn.release()


class ForkedSession(BackedSession):
    """A session over a backend that can be copied. Forks are of the session's own class, which is made alike."""

    def fork(self) -> Self:
        state = self.state
        assert has(state, Forkable)
        other = type(self)(self.environment, state.fork(), self._opened)
        other._first = self._first
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.environment, self.state, self._opened)


class GoalTold:
    """What a session has come to, as the function ``goal_state`` of its environment says it."""

    __slots__ = ()
    environment: FunctionEnvironment
    state: Any

    def goal_state(self) -> Any:
        """See :class:`callwright.environments.protocol.TellsGoalState`."""
        return self.environment.goal_of(self.state)


class _ToldBackedSession(GoalTold, BackedSession):
    """A session over a backend that tells what it has come to."""


class _ToldForkedSession(GoalTold, ForkedSession):
    """One that can be forked as well."""


def session_over(
    environment: FunctionEnvironment, state: Backend, opened: tuple[str, int], tells_goal: bool = False
) -> BackedSession:
    """A session over a backend, which forks if the backend does, and tells its goal state if it is to."""
    kind: type[BackedSession]
    if has(state, Forkable):
        kind = _ToldForkedSession if tells_goal else ForkedSession
    else:
        kind = _ToldBackedSession if tells_goal else BackedSession
    return kind(environment, state, opened)


def difference(before: Tables, after: Tables) -> dict[str, Any]:
    """What changed from one state to another, in the form that diffs of worlds have
    (:func:`callwright.environments.world.difference`).

    Rows are known by their first column where it tells all of them apart; otherwise they are only added and removed.
    """
    found = Diff()
    for name in sorted({*before, *after}):
        old, new = before.get(name, ()), after.get(name, ())
        was, now = _keyed(old), _keyed(new)
        if was is None or now is None:
            was, now = _counted(old), _counted(new)
        changed = {
            key: {field: [row.get(field), now[key].get(field)] for field in row if row[field] != now[key].get(field)}
            for key, row in was.items()
            if key in now and row != now[key]
        }
        parts = {
            "added": {key: now[key] for key in sorted(now.keys() - was.keys())},
            "removed": {key: was[key] for key in sorted(was.keys() - now.keys())},
            "changed": dict(sorted(changed.items())),
        }
        if any(parts.values()):
            found[name] = {part: rows for part, rows in parts.items() if rows}
    return found


def _keyed(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]] | None:
    keyed = {str(next(iter(row.values()), "")): dict(row) for row in rows}
    return keyed if len(keyed) == len(rows) else None


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By their whole content, and equal ones by how many there were before."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        key, number = digest_of(dict(row))[:12], 0
        while f"{key}-{number}" in found:
            number += 1
        found[f"{key}-{number}"] = dict(row)
    return found
