"""Worlds: the state of a session as an overlay over rows that all sessions of a scenario share.

A :class:`callwright.environments.Base` is built once for a scenario, seed and scale, and never changes. A
:class:`World` holds what one session has made different: it opens in about a microsecond, costs a few kilobytes, and is
reset by dropping the difference.

Every change is also written to a journal, so that a call that fails half-way is undone. The digest of the whole state
stays beside it, because it is brought up to date from the rows that changed since it was last asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from random import Random
from typing import Any, Final, TypeVar

from callwright.environments.base import NO_ROWS, Base, Key, having, overlaid, reordered
from callwright.environments.rows import key_text, row_json, table_of
from callwright.environments.sizes import MOST_STATE, bounds, size_of, state_too_large
from callwright.errors import ComponentError, UsageError
from callwright.language.markup import Diff
from callwright.tools.spec import ToolError

R = TypeVar("R")
T = TypeVar("T")
_ABSENT: Final = object()


class World:
    """What the tools of a session see: tables of rows, a clock, new ids, and random numbers of its own.

    Rows are named by their class: ``world.get(Account, "A00017")``. Tables are read in the order of the scenario, with
    new rows after them in the order of their keys, so that what a tool lists depends on the state alone.
    """

    __slots__ = (
        "_ahead",
        "_changed",
        "_counters",
        "_digest_before",
        "_draws",
        "_fingerprints",
        "_held",
        "_journal",
        "_now",
        "_over",
        "_timeless",
        "_total",
        "_touched",
        "_warning",
        "base",
        "known_digest",
    )

    def __init__(self, base: Base) -> None:
        self.base = base
        self._now = base.now
        self._draws = 0
        self._changed: dict[type[Any], dict[Key, Any]] = {}  # a row, or None for one of the base that was dropped
        self._held = 0  # the size of the rows in there
        self._counters: dict[type[Any], int] = {}
        self._journal: list[Callable[[], None]] | None = []
        self._touched: dict[tuple[type[Any], Key], Any] = {}  # rows as they were when the digest was last computed
        self._total: int | None = None
        self._fingerprints: dict[tuple[type[Any], Key], int] = {}  # of the rows that differed from the base then
        self._warning: tuple[str, str] | None = None
        self._ahead: tuple[Callable[[World], None], World] | None = None
        #: The digest of the state as it is, if nothing has changed since it was computed.
        self.known_digest: str | None = None
        self._digest_before: str | None = None  # of the state when the call at hand began
        self._timeless: str | None = None  # the digest without the clock, as long as it is known

    def __reduce__(self) -> Any:
        """Between calls: what is undone after a failure, and what was computed to save time, stays here."""
        return _world, (self.base, self._now, self._draws, self._changed, self._counters, self._held)

    # Reading ----------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The session's time, in seconds of the Unix clock (UTC). It moves only when :meth:`advance` moves it."""
        return self._now

    def get(self, kind: type[R], key: Key) -> R | None:
        """The row with this key, or ``None``."""
        changed = self._changed.get(kind)
        if changed is not None and key in changed:
            return changed[key]  # type: ignore[no-any-return]
        return self.base.rows_by_kind.get(kind, NO_ROWS).get(key)

    def need(self, kind: type[R], key: Key, code: str = "NOT_FOUND", message: str = "") -> R:
        """The row with this key; a call that names another one fails with ``code``."""
        changed = self._changed.get(kind)
        row: R | None
        if changed is not None and key in changed:
            row = changed[key]
        else:
            row = self.base.rows_by_kind.get(kind, NO_ROWS).get(key)
        if row is None:
            raise ToolError(code, message or f"there is no {key_text(key)!r} in {table_of(kind).name}")
        return row

    def rows(self, kind: type[R]) -> Iterator[R]:
        """Every row of a table, as the table is now: what is changed on the way does not show."""
        changed = self._changed.get(kind)
        base: Mapping[Key, R] = self.base.rows(kind)
        if not changed:
            return iter(base.values())
        return iter(overlaid(list(base.values()), base, changed, self.base, kind))

    def find(self, kind: type[R], /, **equals: Any) -> list[R]:
        """The rows whose fields have these values, in the order of the table; quick if one of the fields is indexed."""
        index = table_of(kind).index
        for field in equals:
            if field in index:
                break
        else:
            return having(self.rows(kind), equals)
        value = equals.pop(field)
        rows: Mapping[Key, R] = self.base.rows_with(kind, field, value)
        changed = self._changed.get(kind)
        if not changed:
            return having(rows.values(), equals) if equals else list(rows.values())
        rows = dict(rows)
        others: list[tuple[Key, R]] = []
        for key, row in changed.items():
            if row is None or getattr(row, field) != value:
                rows.pop(key, None)
            elif key in rows:
                rows[key] = row  # keeps its place
            else:
                others.append((key, row))
        if others:
            base, position = self.base.rows(kind), self.base.position
            others += rows.items()
            others.sort(key=lambda pair: (position(kind, pair[0]), pair[0] if pair[0] not in base else ""))
            return having(map(itemgetter(1), others), equals)
        return having(rows.values(), equals)

    def count(self, kind: type[Any], /, **equals: Any) -> int:
        """How many rows have these values."""
        changed, base = self._changed.get(kind), self.base.rows(kind)
        if not equals:
            if not changed:
                return len(base)
            return len(base) + sum(-1 if row is None else key not in base for key, row in changed.items())
        if len(equals) == 1 and not changed:
            ((field, value),) = equals.items()
            if field in table_of(kind).index:
                return len(self.base.rows_with(kind, field, value))
        return len(self.find(kind, **equals))

    def table(self, kind: type[R]) -> Mapping[Key, R]:
        """The rows of a table by key, in no promised order: to look up many of them. Nobody may change it."""
        changed = self._changed.get(kind)
        base: Mapping[Key, R] = self.base.rows(kind)
        if not changed:
            return base
        rows = dict(base)
        rows.update(changed)
        return {key: row for key, row in rows.items() if row is not None} if None in changed.values() else rows

    def derived(self, compute: Callable[[World], T], *kinds: type[Any]) -> T:
        """``compute(world)``, which reads these tables and nothing else: counts, means, a road graph.

        For the tables as the scenario has them it is computed once and remembered by the function; once the session
        has changed one of them, in every call. Nobody may change what is returned.
        """
        if any(kind in self._changed for kind in kinds):
            return compute(self)
        found = self.base.derived.get(compute, _ABSENT)
        if found is _ABSENT:
            found = self.base.derived[compute] = compute(World(self.base))
        return found  # type: ignore[no-any-return]

    def prepared(
        self, kind: type[R], prepare: Callable[[R], T], order: Callable[[R], Any] | None = None
    ) -> Sequence[T]:
        """``prepare(row)`` of every row, in the order of the table or in that of the keys that ``order`` gives.

        Rows with equal keys stay in the order of the table. For the rows of the scenario it is computed once and
        remembered by the two functions, which therefore must look at nothing but the row: name them at module level.
        A search that lower-cases texts, or sorts by time, does so once and not in every call. Nobody may change what
        is returned.
        """
        base: Mapping[Key, R] = self.base.rows(kind)
        at_first: tuple[list[Any], list[T]] | None = self.base.derived.get((kind, prepare, order))
        if at_first is None:
            keys: list[Any] = []
            rows = list(base.values())
            if order is not None:
                place = [(order(row), number) for number, row in enumerate(rows)]
                keys = sorted(place)
                rows = [rows[number] for _, number in keys]
            at_first = self.base.derived[kind, prepare, order] = (keys, [prepare(row) for row in rows])
        changed = self._changed.get(kind)
        if not changed:
            return at_first[1]
        if order is None:
            return overlaid(
                list(at_first[1]),
                base,
                {key: None if row is None else prepare(row) for key, row in changed.items()},
                self.base,
                kind,
            )
        return reordered(at_first, base, changed, prepare, order, self.base, kind)

    def ahead(self, settle: Callable[[World], None]) -> World:
        """What this world will be once ``settle`` has run on it, without changing it: for tools that only read where
        time brings changes. It is worked out once and remembered until something changes; nobody may write to it."""
        if self._ahead is None or self._ahead[0] is not settle:
            later = self.fork()
            settle(later)
            self._ahead = (settle, later)
        return self._ahead[1]

    # Writing ----------------------------------------------------------------------------------------------------------

    def put(self, row: R) -> R:
        """Put a row in its place, in place of the one with its key if there is one. Returns it."""
        kind = type(row)
        hash(row)  # a list or a dict inside would be shared with whoever made it; this raises a TypeError
        self._set(kind, table_of(kind).key_of(row), row)
        return row

    def update(self, row: R, **changes: Any) -> R:
        """Put a copy of a row with some fields changed in its place. Returns the copy."""
        kind = type(row)
        table = table_of(kind)
        values = list(table.values_of(row))
        for name, value in changes.items():
            place = table.places.get(name)
            if place is None:
                raise UsageError(f"rows of {table.name!r} have no field {name!r}")
            hash(value)  # as in put
            values[place] = value
        changed: R = table.made(values)
        key = table.key_of(changed)
        if key != table.key_of(row):
            raise UsageError(f"update cannot change the key of a row of {table.name!r}; drop it and put another")
        self._set(kind, key, changed)
        return changed

    def drop(self, row: Any) -> None:
        """Take a row away; nothing happens if its key is not there."""
        kind = type(row)
        self._set(kind, table_of(kind).key_of(row), None)

    def new_id(self, kind: type[Any]) -> str:
        """The next unused id of a table: its prefix and a number, counted by this session."""
        table, rows = table_of(kind), self.base.rows(kind)
        before = number = self._counters.get(kind, len(rows))
        while True:
            number += 1
            key = table.identifier(number)
            if key not in rows and self.get(kind, key) is None:
                break
        self._note(lambda: self._counters.__setitem__(kind, before))
        self._counters[kind] = number
        return key

    def advance(self, seconds: int) -> None:
        """Let time pass. Raises :class:`callwright.UsageError` for a negative number."""
        if seconds < 0:
            raise UsageError("time does not run backwards")
        before, timeless = self._now, self._timeless
        self._note(lambda: setattr(self, "_now", before))
        self._now += seconds
        self._timeless = timeless

    def random(self) -> Random:
        """A generator for this call. Each is different, and the session's seed and how many it has drawn fix it."""
        before = self._draws
        self._note(lambda: setattr(self, "_draws", before))
        self._draws += 1
        return Random(f"{self.base.seed}/{self._draws}")

    def warn(self, code: str, message: str) -> None:
        """Say that the call at hand does only a part of what was asked: its outcome becomes ``partial``."""
        self._warning = (code, message)

    def _set(self, kind: type[Any], key: Key, row: Any) -> None:
        base_row = self.base.rows_by_kind.get(kind, NO_ROWS).get(key)
        changed = self._changed.get(kind)
        before = base_row if changed is None else changed.get(key, base_row)
        if before is row or before == row:
            return
        self._note(lambda: self._place(kind, key, before, base_row, before is base_row))
        self._place(kind, key, row, base_row, before is not base_row and row == base_row)
        if self._held > bounds().state:
            raise state_too_large()

    def _place(self, kind: type[Any], key: Key, row: Any, base_row: Any, as_at_first: bool) -> None:
        changed = self._changed.get(kind)
        if changed is None:
            changed = self._changed[kind] = {}
        if self._total is not None and (kind, key) not in self._touched:
            self._touched[kind, key] = changed.get(key, base_row)
        here = changed.get(key)
        if here is not None:
            self._held -= size_of(table_of(kind).values_of(here), MOST_STATE)
        if row is not None and not as_at_first:
            self._held += size_of(table_of(kind).values_of(row), MOST_STATE)
        if as_at_first:  # also None for a row that the base does not have
            changed.pop(key, None)
            if not changed:
                del self._changed[kind]
        else:
            changed[key] = row

    def _note(self, undo: Callable[[], None]) -> None:
        if self._journal is None:
            raise ComponentError("a tool that is declared read_only changed the state, the clock or the random numbers")
        self._journal.append(undo)
        self._ahead = self.known_digest = self._timeless = None

    # Calls ------------------------------------------------------------------------------------------------------------

    def begin(self, read_only: bool) -> None:
        """A call begins; one that is ``read_only`` may not change anything."""
        self._journal = None if read_only else []
        self._warning = None
        self._digest_before = self.known_digest

    def end(self) -> tuple[str, str] | None:
        """The call is over; its warning, if it gave one."""
        # The journal of the call that is over. There is none before the first, so that opening costs nothing for it.
        self._over: list[Callable[[], None]] | None = self._journal
        self._journal = []
        self._digest_before = self.known_digest
        return self._warning

    def undo(self) -> None:
        """Take back everything since the call began."""
        if self._journal:
            self._ahead = None
            for undo in reversed(self._journal):
                undo()
            self.known_digest, self._timeless = self._digest_before, None
        self._journal, self._over = [], None

    def take_back(self) -> None:
        """Take back the last call, which is over and stayed: for whoever finds out then that it must not be.

        Nothing may have been changed since.
        """
        over, self._over = self._over, None
        for undo in reversed(over or ()):
            undo()
        self._ahead = self.known_digest = self._digest_before = self._timeless = None

    # The whole --------------------------------------------------------------------------------------------------------

    def changes(self) -> Mapping[type[Any], Mapping[Key, Any]]:
        """The rows that differ from the scenario, ``None`` for one that is gone. Nobody may change it."""
        return self._changed

    def made_ids(self, kind: type[Any]) -> set[str]:
        """The ids that :meth:`new_id` has made, also those of rows that are not there any more."""
        first = self.base.rows(kind)
        numbers = range(len(first) + 1, self._counters.get(kind, 0) + 1)
        return {made for made in map(table_of(kind).identifier, numbers) if made not in first}

    def fork(self) -> World:
        """Another world in the same state, which goes its own way."""
        other = World(self.base)
        other._now, other._draws = self._now, self._draws
        other._changed = {kind: dict(rows) for kind, rows in self._changed.items()}
        other._held, other._counters = self._held, dict(self._counters)
        other._fingerprints = dict(self._fingerprints)
        other._touched, other._total = dict(self._touched), self._total
        other.known_digest = other._digest_before = self.known_digest
        other._timeless = self._timeless
        return other

    def digest(self) -> str:
        """A hash of rows, clock, counters and random state: equal states have equal ones, whatever led to them."""
        if self.known_digest is None:
            self._count_changes()
            text = f"{self._total}|{self._now}|{self._draws}|{self.base.seed}|{self._counted()}"
            self.known_digest = hashlib.sha256(text.encode()).hexdigest()
        return self.known_digest

    def timeless_digest(self) -> str:
        """As :meth:`digest`, but for the clock: for whoever keeps one clock for several worlds."""
        if self._timeless is None:
            self._count_changes()
            text = f"{self._total}|{self._draws}|{self.base.seed}|{self._counted()}"
            self._timeless = hashlib.sha256(text.encode()).hexdigest()
        return self._timeless

    def _counted(self) -> list[tuple[str, int]]:
        rows = self.base.rows
        return sorted(
            (table_of(kind).name, number) for kind, number in self._counters.items() if number != len(rows(kind))
        )

    def _count_changes(self) -> None:
        """Bring the sum of the fingerprints up to date."""
        base = self.base
        if self._total is None:
            self._total = base.total
            self._touched = {
                (kind, key): base.rows(kind).get(key) for kind, rows in self._changed.items() for key in rows
            }
        for place, before in self._touched.items():
            kind, key = place
            now = self.get(kind, key)
            if now is before:
                continue
            if before is not None:
                known = self._fingerprints.pop(place, None)
                self._total -= base.fingerprint(kind, key) if known is None else known
            if now is not None:
                self._fingerprints[place] = after = table_of(kind).fingerprint(now)
                self._total += after
        self._touched.clear()

    def dump(self) -> dict[str, Any]:
        """The whole state as JSON: ``{"now": …, "tables": {name: [row, …]}}``."""
        kinds = {table_of(kind).name: kind for kind in (*self.base.tables, *self._changed)}
        return {
            "now": self._now,
            "tables": {name: [row_json(row) for row in self.rows(kinds[name])] for name in sorted(kinds)},
        }

    def changed_rows(self) -> dict[str, dict[str, Any]]:
        """What differs from the scenario, as JSON: by table and key the row, or ``None`` for one that is gone."""
        return {
            table_of(kind).name: {
                key_text(key): None if rows[key] is None else row_json(rows[key]) for key in sorted(rows)
            }
            for kind, rows in sorted(self._changed.items(), key=lambda pair: table_of(pair[0]).name)
        }


def _world(
    base: Base,
    now: int,
    draws: int,
    changed: dict[type[Any], dict[Key, Any]],
    counters: dict[type[Any], int],
    held: int,
) -> World:
    world = World(base)
    world._now, world._draws, world._changed, world._counters, world._held = now, draws, changed, counters, held
    return world


def difference(before: World, after: World) -> dict[str, Any]:
    """What changed from one world to another over the same base, as JSON.

    ``{table: {"added": {key: row}, "removed": {key: row}, "changed": {key: {field: [before, after]}}}}``, without empty
    parts; ``"clock": [before, after]`` if time passed. Raises :class:`callwright.UsageError` for different bases.
    """
    if before.base is not after.base:
        raise UsageError("the two states are not of one scenario; compare their dumps instead")
    found = Diff()
    for kind in sorted({*before._changed, *after._changed}, key=lambda kind: table_of(kind).name):
        table = table_of(kind)
        parts: dict[str, dict[str, Any]] = {"added": {}, "removed": {}, "changed": {}}
        for key in sorted({*before._changed.get(kind, ()), *after._changed.get(kind, ())}):
            old, new = before.get(kind, key), after.get(kind, key)
            if old == new:
                continue
            if old is None or new is None:
                parts["added" if old is None else "removed"][key_text(key)] = row_json(new if old is None else old)
                continue
            was, now = row_json(old), row_json(new)
            parts["changed"][key_text(key)] = {
                name: [was[name], now[name]] for name in table.fields if was[name] != now[name]
            }
        if any(parts.values()):
            found[table.name] = {name: part for name, part in parts.items() if part}
    if before.now != after.now:
        found["clock"] = [before.now, after.now]
    return found
