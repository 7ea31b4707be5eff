"""Bases: the rows that all sessions of a scenario share, built once and never changed.

What is computed of them is remembered here: indexes, positions, fingerprints, and whatever worlds derive. The functions
lay the rows that one session changed over them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from callwright.environments.rows import check_row, key_text, row_from_json, row_json, table_of
from callwright.errors import DataError

R = TypeVar("R")
T = TypeVar("T")
Key = Any
#: The rows of a table that is not there.
NO_ROWS: Final[Mapping[Any, Any]] = MappingProxyType({})


class Base:
    """The frozen rows of one scenario, with the time at which its sessions begin (seconds of the Unix clock, UTC).

    ``kinds`` are row classes whose tables are there even where the scenario has no rows of them.

    Raises :class:`callwright.errors.DataError` for two rows of one key, and for a row that holds anything that can
    change.
    """

    def __init__(self, rows: Iterable[Any], *, now: int, seed: int = 0, kinds: Iterable[type[Any]] = ()) -> None:
        self.now = now
        self.seed = seed
        tables: dict[type[Any], dict[Key, Any]] = {kind: {} for kind in kinds}
        keys_of: dict[type[Any], Callable[[Any], Key]] = {}
        for row in rows:
            kind = type(row)
            if kind not in keys_of:
                keys_of[kind] = table_of(kind).key_of
                tables.setdefault(kind, {})
            check_row(row)
            key = keys_of[kind](row)
            if tables[kind].setdefault(key, row) is not row:
                raise DataError(f"two rows of {table_of(kind).name!r} have the key {key_text(key)!r}")
        #: As ``tables``, and quicker to read; nobody may change it.
        self.rows_by_kind = tables
        self.tables: Mapping[type[Any], Mapping[Key, Any]] = MappingProxyType(tables)
        self._indexes: dict[tuple[type[Any], str], dict[Any, dict[Key, Any]]] = {}
        self._positions: dict[type[Any], dict[Key, int]] = {}
        self._fingerprints: dict[tuple[type[Any], Key], int] = {}
        #: What worlds over these rows have computed of them, by what computes it.
        self.derived: dict[Any, Any] = {}
        self._total: int | None = None
        #: The call that builds the same rows again, if there is one; else they are pickled.
        self.origin: tuple[Callable[..., Base], tuple[Any, ...]] | None = None

    def __reduce__(self) -> Any:
        if self.origin is not None:
            return self.origin
        return _base, (
            [row for rows in self.rows_by_kind.values() for row in rows.values()],
            self.now,
            self.seed,
            [*self.rows_by_kind],
        )

    def __deepcopy__(self, memo: Any) -> Base:
        return self  # it never changes

    def rows(self, kind: type[R]) -> Mapping[Key, R]:
        """The rows of a table by key; empty where the scenario has none."""
        return self.rows_by_kind.get(kind, NO_ROWS)

    def rows_with(self, kind: type[R], field: str, value: Any) -> Mapping[Key, R]:
        """The rows whose ``field`` is ``value`` by key, in the order of the table. The index is made once."""
        index = self._indexes.get((kind, field))
        if index is None:
            index = {}
            for key, row in self.rows(kind).items():
                index.setdefault(getattr(row, field), {})[key] = row
            self._indexes[kind, field] = index
        return index.get(value, NO_ROWS)

    def fingerprint(self, kind: type[Any], key: Key) -> int:
        """The fingerprint of a row; 0 for one that is not there."""
        found = self._fingerprints.get((kind, key))
        if found is None:
            row = self.rows(kind).get(key)
            found = self._fingerprints[kind, key] = 0 if row is None else table_of(kind).fingerprint(row)
        return found

    def position(self, kind: type[Any], key: Key) -> int:
        """Where a row stands in its table; after the last for one that is new."""
        positions = self._positions.get(kind)
        if positions is None:
            positions = self._positions[kind] = {key: number for number, key in enumerate(self.rows(kind))}
        return positions.get(key, len(positions))

    @property
    def total(self) -> int:
        """The sum of the fingerprints of all rows; computed once."""
        if self._total is None:
            self._total = self.count_again()
        return self._total

    def count_again(self) -> int:
        """The sum of the fingerprints as the rows are now: if it differs from ``total``, somebody changed a row."""
        return sum(
            fingerprint(row)
            for kind, rows in self.tables.items()
            for fingerprint in (table_of(kind).fingerprint,)
            for row in rows.values()
        )

    def dump(self) -> dict[str, Any]:
        """Everything, as JSON: what :func:`load_base` reads."""
        kinds = {table_of(kind).name: kind for kind in self.rows_by_kind}
        tables = {name: [row_json(row) for row in self.rows_by_kind[kinds[name]].values()] for name in sorted(kinds)}
        return {"now": self.now, "tables": tables}


def _base(rows: list[Any], now: int, seed: int, kinds: list[type[Any]]) -> Base:
    return Base(rows, now=now, seed=seed, kinds=kinds)


def load_base(kinds: Iterable[type[Any]], dumped: Mapping[str, Any], *, seed: int = 0) -> Base:
    """The base that a dump describes: ``{"now": …, "tables": {name: [row, …]}}``.

    Raises :class:`callwright.errors.DataError` for a table or a row that ``kinds`` do not know.
    """
    tables = dumped.get("tables")
    now = dumped.get("now")
    if not isinstance(tables, Mapping) or type(now) is not int:
        raise DataError('a state must be {"now": seconds, "tables": {name: [row, …]}}')
    known = {table_of(kind).name: kind for kind in kinds}
    rows: list[Any] = []
    for name, listed in tables.items():
        if name not in known:
            raise DataError(f"there is no table {name!r}; the tables are {', '.join(known)}")
        if not isinstance(listed, list) or not all(isinstance(value, Mapping) for value in listed):
            raise DataError(f"the table {name!r} must be a list of rows")
        rows += [row_from_json(known[name], value) for value in listed]
    return Base(rows, now=now, seed=seed, kinds=[known[name] for name in tables])


# Rows of a session over those of a base -------------------------------------------------------------------------------


def having(rows: Iterable[R], equals: Mapping[str, Any]) -> list[R]:
    """The rows whose fields have these values."""
    found = list(rows)
    for name, value in equals.items():
        found = [row for row in found if getattr(row, name) == value]
    return found


def overlaid(
    values: list[T],
    first: Mapping[Key, Any],
    changed: Mapping[Key, T | None],
    base: Base,
    kind: type[Any],
) -> list[T]:
    """``values`` of the rows of the base, with those of changed rows in their places and new ones behind."""
    dropped, new = [], []
    position = base.position
    for key, value in changed.items():
        if key not in first:
            new.append(key)
        elif value is None:
            dropped.append(position(kind, key))
        else:
            values[position(kind, key)] = value
    for place in sorted(dropped, reverse=True):
        del values[place]
    new.sort()
    values += [changed[key] for key in new]  # type: ignore[misc]
    return values


def reordered(
    at_first: tuple[list[Any], list[T]],
    first: Mapping[Key, R],
    changed: Mapping[Key, R | None],
    prepare: Callable[[R], T],
    order: Callable[[R], Any],
    base: Base,
    kind: type[R],
) -> list[T]:
    """What :meth:`World.prepared` gives in an order of its own where rows were changed."""
    keys, values = list(at_first[0]), list(at_first[1])
    for key in changed:
        if key in first:
            place = bisect_left(keys, (order(first[key]), base.position(kind, key)))
            del keys[place], values[place]
    number = len(first)
    for key in sorted(key for key in changed if key not in first):
        row = changed[key]
        assert row is not None
        place = bisect_left(keys, (order(row), number))
        keys.insert(place, (order(row), number))
        values.insert(place, prepare(row))
        number += 1
    for key, row in changed.items():
        if row is not None and key in first:
            named = (order(row), base.position(kind, key))
            place = bisect_left(keys, named)
            keys.insert(place, named)
            values.insert(place, prepare(row))
    return values
