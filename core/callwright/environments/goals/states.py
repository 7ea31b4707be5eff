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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from callwright.environments.goals.words import WORD
from callwright.environments.rows import Table, table_of
from callwright.environments.world import World

#: An end state, as JSON.
EndState: TypeAlias = Any
ROWS: Final = "rows"


def is_of_rows(state: EndState) -> bool:
    """Whether an end state is that of rows; any other JSON is compared path by path."""
    return isinstance(state, Mapping) and state.get("form") == ROWS


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
    return {"form": ROWS, "made": sorted(made & set(_words(tables))), "tables": tables}


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


def _words(value: Any) -> Iterator[str]:
    """Everything in the texts of a JSON value that could be a name."""
    if isinstance(value, str):
        yield value
        for found in WORD.finditer(value):
            yield found.group()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
