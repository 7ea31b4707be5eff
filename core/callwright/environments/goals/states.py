"""End states: what a session has made of its scenario, as JSON and without bookkeeping.

    {
      "form": "rows",
      "made": ["O00031"],
      "tables": {
        "orders": {"new": [{"id": "O00031", "quantity": 2, …}]},
        "cart_items": {"gone": ["CI00001"]},
        "coupons": {"changed": [{"key": "SPRING10", "fields": {"uses_left": 4}}]}
      }
    }

``made`` are the names that the session chose: comparing renames them. A changed row has the fields that differ from the
scenario. A field whose order means nothing is ``{"unordered": […]}``, a stamp from within the session
``{"time": "now"}``, a time that counts from another field ``{"seconds": …}``. Empty parts are left out: an untouched
session is ``{"form": "rows", "made": [], "tables": {}}``.

It costs what changed, travels between processes, and task files can hold it.

The state of a session over several environments is ``{"form": "parts", "parts": {"email": {"form": "rows", …}}}``; one
without changes is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from callwright.environments.base import Base
from callwright.environments.goals.words import WORD
from callwright.environments.rows import Table, row_json, table_of
from callwright.environments.world import World

#: An end state, as JSON.
EndState: TypeAlias = Any
ROWS: Final = "rows"
PARTS: Final = "parts"
#: Of rows, as the scenario has them.
UNTOUCHED: Final[EndState] = {"form": ROWS, "made": [], "tables": {}}


def is_of_rows(state: EndState) -> bool:
    """Whether an end state is that of rows; any other JSON is compared path by path."""
    return isinstance(state, Mapping) and state.get("form") == ROWS


def is_of_parts(state: EndState) -> bool:
    """Whether an end state is that of several environments."""
    return isinstance(state, Mapping) and state.get("form") == PARTS


def end_state(world: World) -> dict[str, EndState]:
    """What a world has become, for :func:`callwright.environments.goals.compare`."""
    made: set[str] = set()
    tables: dict[str, dict[str, list[Any]]] = {}
    changes = world.changes()
    for kind, changed in changes.items():
        table = table_of(kind)
        made |= world.made_ids(kind)
        if table.generated:
            made.update(
                value
                for key, row in changed.items()
                if row is not None and key not in world.base.rows(kind)
                for value in (getattr(row, name) for name in table.generated)
                if isinstance(value, str) and value
            )
    for kind in sorted(changes, key=lambda kind: table_of(kind).name):
        table = table_of(kind)
        if table.is_compared:
            first = world.base.rows(kind)
            rows = ((key, first.get(key), row) for key, row in changes[kind].items())
            parts = _parts(table, rows, world.base.now, world.now)
            if parts:
                tables[table.name] = parts
    _forget_replaced(world, made, tables)
    # Of long texts the words are many: they are looked for only where something was named.
    return {"form": ROWS, "made": sorted(made & set(_words(tables))) if made else [], "tables": tables}


def _forget_replaced(world: World, made: set[str], tables: dict[str, dict[str, list[Any]]]) -> None:
    """A row of the scenario that is gone, and a new one that is like it in everything but its id, are nothing.

    Unless one of the two ids stands anywhere else: then it matters which of them is there.
    """
    if not any("gone" in parts and "new" in parts for parts in tables.values()):
        return
    words = Counter(_words(tables))
    for kind in world.changes():
        table = table_of(kind)
        parts = tables.get(table.name, {})
        if not (parts.get("gone") and parts.get("new")) or len(table.key) > 1:
            continue
        (name,) = table.key
        first, since, until = world.base.rows(kind), world.base.now, world.now
        waiting: dict[str, list[str]] = {}
        for row in parts["new"]:
            if row.get(name) in made and words[row[name]] == 1:
                waiting.setdefault(_without(row, name), []).append(row[name])
        for key in [key for key in parts["gone"] if isinstance(key, str) and words[key] == 1]:
            alike = waiting.get(_without(compared_fields(table, first[key], since, until), name))
            if alike and key not in _referred_to(world.base):
                new = alike.pop()
                parts["gone"].remove(key)
                parts["new"] = [row for row in parts["new"] if row.get(name) != new]
        tables[table.name] = {part: rows for part, rows in parts.items() if rows}
        if not tables[table.name]:
            del tables[table.name]


def _referred_to(base: Base) -> frozenset[str]:
    """Every word in the rows of a scenario but their own keys; found once."""
    known: frozenset[str] | None = base.derived.get(_referred_to)
    if known is None:
        known = base.derived[_referred_to] = frozenset(
            word
            for kind, rows in base.tables.items()
            for row in rows.values()
            for name, value in row_json(row).items()
            if table_of(kind).key != (name,)
            for word in _words(value)
        )
    return known


def _without(row: Mapping[str, Any], name: str) -> str:
    return repr({field: value for field, value in row.items() if field != name})


def _parts(table: Table, rows: Iterable[tuple[Any, Any, Any]], since: int, until: int) -> dict[str, list[Any]]:
    new: list[Any] = []
    gone: list[Any] = []
    changed: list[Any] = []
    for key, before, after in rows:
        if after is None:
            gone.append(_json(key))
        elif before is None:
            new.append(compared_fields(table, after, since, until))
        else:
            was, now = (compared_fields(table, row, since, until) for row in (before, after))
            fields = {name: value for name, value in now.items() if was[name] != value}
            if fields:
                changed.append({"key": _json(key), "fields": fields})
    found = {"changed": changed, "gone": gone, "new": new}
    return {name: sorted(part, key=repr) for name, part in found.items() if part}


def compared_fields(table: Table, row: Any, since: int, until: int) -> dict[str, Any]:
    """The fields of a row that comparing looks at, as they are compared, in a session between two times."""
    found: dict[str, Any] = {}
    for name, value in zip(table.fields, table.values_of(row), strict=True):
        if name in table.bookkeeping:
            continue
        if name in table.stamps and isinstance(value, int) and since <= value <= until:
            found[name] = {"time": "now"}
        elif name in table.relative and value and (start := getattr(row, table.relative[name])):
            found[name] = {"seconds": value - start}
        elif name in table.unordered:
            found[name] = {"unordered": sorted((_json(inner) for inner in value), key=repr)}
        else:
            found[name] = _json(value)
    return found


def _json(value: Any) -> Any:
    return [_json(inner) for inner in value] if isinstance(value, tuple) else value


def _words(value: Any) -> list[str]:
    """Everything in the texts of a JSON value that could be a name."""
    found: list[str] = []
    left = [value]
    while left:
        one = left.pop()
        kind = type(one)
        if kind is dict:
            left += one.values()
        elif kind is list:
            left += one
        elif kind is str or isinstance(one, str):
            found.append(one)
            found += [word for word in WORD.findall(one) if word != one]
    return found
