"""Goals that are stated: this holds, this has changed, and nothing else has.

    {
      "holds": [{"table": "orders", "where": {"restaurant_id": "R00003"}, "has": {"payment": "cash"}, "count": 1}],
      "changed": [{"table": "order_items"}, {"table": "profile", "fields": ["card_available_cents"], "must": false}],
      "nothing_else": true
    }

A value of ``where`` and ``has`` is what a field must be, or one of ``{"at_least": 5}``, ``{"at_most": 5}``,
``{"one_of": […]}``, ``{"contains": "ink"}`` and ``{"not": …}`` (of which the last takes any of these). States that are
not of rows are named by path: ``{"path": "items.2", "is": "ink"}`` holds, ``{"path": "items"}`` has changed.

A goal may be shown in place of that: ``{"state": {…}}`` is the end state of a session that reached it (:mod:`.states`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.goals.comparing import (
    ABSENT,
    AS_IT_WAS,
    Comparison,
    Difference,
    compare,
    differs,
    leaf_text,
    paths,
    same,
)
from callwright.environments.goals.states import EndState, compared_fields, end_state
from callwright.environments.rows import key_text, row_json, table_of
from callwright.environments.world import World
from callwright.errors import DataError, UnknownName
from callwright.language.long_numbers import json_text
from callwright.language.shortening import shortened

_WIDTH: Final = 80


@frozen
class Holds:
    """There are rows whose fields are as in ``where``, ``count`` of them if that is given, all of them as in ``has``.

    Or, with ``path``: what is there in a state that is not of rows is ``value``.
    """

    table: str = ""
    where: Mapping[str, Any] = field(factory=dict)
    has: Mapping[str, Any] = field(factory=dict)
    count: int | None = None
    path: str = ""
    value: Any = None

    def __str__(self) -> str:
        return self.path or f"{self.table}{_short(self.where) if self.where else ''}"


@frozen
class Changed:
    """Rows whose fields are as in ``where``, before or after, may change, in these ``fields`` or (none given) wholly.

    With ``must`` one of them has to. Or, with ``path``: what is there or within.
    """

    table: str = ""
    where: Mapping[str, Any] = field(factory=dict)
    fields: tuple[str, ...] = ()
    must: bool = True
    path: str = ""

    def __str__(self) -> str:
        return self.path or f"{self.table}{_short(self.where) if self.where else ''}"


@frozen
class Goal:
    """What is to hold in the end, what is to have changed, and whether everything else is to be as it was.

    What makes something hold may change for it: a row that it speaks of if it is new, its fields in ``has`` if not, and
    its going where ``count`` is 0. A goal of nothing is that nothing changes.

    ``state`` shows it: the end state of a session that reached it, which whoever reaches it too leaves, but for the
    names that sessions choose. Then nothing else is stated.
    """

    holds: tuple[Holds, ...] = ()
    changed: tuple[Changed, ...] = ()
    nothing_else: bool = True
    state: EndState | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON, without what is as it is by default."""
        found: dict[str, Any] = {}
        if self.state is not None:
            return {"state": self.state}
        if self.holds:
            found["holds"] = [
                {"path": one.path, "is": one.value}
                if one.path
                else _without_defaults({"table": one.table, "where": one.where, "has": one.has, "count": one.count})
                for one in self.holds
            ]
        if self.changed:
            found["changed"] = [
                _without_defaults(
                    {"table": one.table, "where": one.where, "fields": list(one.fields), "path": one.path}
                )
                | ({} if one.must else {"must": False})
                for one in self.changed
            ]
        return {**found, "nothing_else": self.nothing_else}

    @classmethod
    def from_json(cls, value: Any) -> Goal:
        """Read it. Raises :class:`callwright.errors.DataError` for what is no goal, with the place."""
        given = _object(value, "a goal", ("holds", "changed", "nothing_else", "state"))
        if given.get("state") is not None:
            if len(given) > 1:
                raise DataError("a goal that is shown by a 'state' states nothing else")
            return cls(state=given["state"])
        holds = tuple(_holds(one, f"holds[{at}]") for at, one in enumerate(_list(given, "holds")))
        changed = tuple(_changed(one, f"changed[{at}]") for at, one in enumerate(_list(given, "changed")))
        nothing_else = given.get("nothing_else", True)
        if not isinstance(nothing_else, bool):
            raise DataError(f"nothing_else of a goal must be true or false, not {nothing_else!r:.80}")
        return cls(holds, changed, nothing_else)


# Of rows --------------------------------------------------------------------------------------------------------------


def check_rows(goal: Goal, world: World, before: World | None = None) -> Comparison:
    """Hold a world against a goal. ``before`` is the world from which it went out, by default that of the scenario.

    Every assertion counts once, but for one that held before already, and so does everything else that changed. Raises
    :class:`callwright.errors.DataError` for a goal that names a table or a field that is not there.
    """
    if goal.state is not None:
        return compare(None if before is None else end_state(before), goal.state, end_state(world))
    before = before or World(world.base)
    kinds = {table_of(kind).name: kind for kind in (*world.base.tables, *world.changes())}
    _check_names(goal, kinds)
    tally = _Tally()
    for held in goal.holds:
        found = _failing(held, world, kinds)
        if found is not None:
            tally.wrong(str(held), *found)
        elif _failing(held, before, kinds) is not None:
            tally.right += 1
    happened: set[int] = set()
    for change in _changes(world, before):
        allowed = {at for at, one in enumerate(goal.changed) if _allows(one, change)}
        happened |= allowed
        left = set(change.fields)
        for at in allowed:
            left -= set(goal.changed[at].fields or change.fields)
        for held in goal.holds:
            left -= set(_accounted(held, change))
        if left and goal.nothing_else:
            tally.wrong(change.place(left), AS_IT_WAS, change.shown(left))
    for at, one in enumerate(goal.changed):
        if at in happened and one.must:
            tally.right += 1
        elif one.must:
            tally.wrong(str(one), "changed", AS_IT_WAS)
    return tally.comparison()


@frozen
class _Change:
    table: str
    key: Any
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    fields: tuple[str, ...]

    def place(self, fields: set[str]) -> str:
        whole = self.before is None or self.after is None
        return f"{self.table}[{key_text(self.key)}]" + ("" if whole else f".{','.join(sorted(fields))}")

    def shown(self, fields: set[str]) -> str:
        if self.after is None:
            return "gone"
        shown = self.after if self.before is None else {name: self.after[name] for name in sorted(fields)}
        return _short(shown)


def _changes(world: World, before: World) -> Iterator[_Change]:
    for kind in sorted({*world.changes(), *before.changes()}, key=lambda kind: table_of(kind).name):
        table = table_of(kind)
        if not table.is_compared:
            continue
        for key in sorted({*world.changes().get(kind, ()), *before.changes().get(kind, ())}, key=repr):
            old, new = before.get(kind, key), world.get(kind, key)
            if old == new:
                continue
            was, now = ({} if r is None else compared_fields(table, r, world.base.now, world.now) for r in (old, new))
            fields = tuple(name for name in (now or was) if was.get(name, ABSENT) != now.get(name, ABSENT))
            if fields:
                yield _Change(
                    table.name,
                    key,
                    None if old is None else row_json(old),
                    None if new is None else row_json(new),
                    fields,
                )


def _allows(one: Changed, change: _Change) -> bool:
    if one.table != change.table or not any(_fit(one.where, row) for row in (change.before, change.after)):
        return False
    return not one.fields or (None not in (change.before, change.after) and not {*one.fields}.isdisjoint(change.fields))


def _accounted(held: Holds, change: _Change) -> Iterable[str]:
    """The fields of a change that make something hold."""
    if held.table != change.table:
        return ()
    if change.after is None:
        return change.fields if held.count == 0 and _fit(held.where, change.before) else ()
    if held.count == 0 or not (_fit(held.where, change.after) and _fit(held.has, change.after)):
        return ()
    return change.fields if change.before is None else (*held.has, *held.where)


def _failing(held: Holds, world: World, kinds: Mapping[str, type[Any]]) -> tuple[str, str] | None:
    """What is expected and what is there instead; ``None`` if it holds."""
    scalars = {name: value for name, value in held.where.items() if isinstance(value, str | int | float)}
    found = world.find(kinds[held.table], **scalars)
    meant = [row for row in map(row_json, found) if _fit(held.where, row)]
    if (len(meant) != held.count) if held.count is not None else not meant:
        return "there" if held.count is None else f"{held.count} of them", f"{len(meant)} of them" if meant else "none"
    for row in meant:
        if not _fit(held.has, row):
            return _short(held.has), _short({name: row[name] for name in held.has})
    return None


def _fit(wanted: Mapping[str, Any], row: Mapping[str, Any] | None) -> bool:
    return row is not None and all(_fits(value, row.get(name)) for name, value in wanted.items())


def _fits(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        ((operator, given),) = wanted.items()
        if operator in _OPERATORS:
            try:
                return _OPERATORS[operator](given, value)
            except (TypeError, AttributeError):  # 5 is not at least "a", and no text contains it
                return False
    return same(wanted, value)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "at_least": lambda given, value: bool(value >= given),
    "at_most": lambda given, value: bool(value <= given),
    "one_of": lambda given, value: any(same(one, value) for one in given),
    "contains": lambda given, value: (
        given.casefold() in value.casefold() if isinstance(value, str) else any(same(given, one) for one in value)
    ),
    "not": lambda given, value: not _fits(given, value),
}


def _check_names(goal: Goal, kinds: Mapping[str, type[Any]]) -> None:
    parts: tuple[Holds | Changed, ...] = (*goal.holds, *goal.changed)
    for part in parts:
        if part.path:
            raise DataError(f"the goal names the path {part.path!r}, and this state is of rows: name tables")
        if part.table not in kinds:
            raise DataError(str(UnknownName("table of the goal", part.table, kinds)))
        named = (*part.where, *(part.has if isinstance(part, Holds) else part.fields))
        for name in named:
            fields = table_of(kinds[part.table]).fields
            if name not in fields:
                raise DataError(str(UnknownName(f"field of {part.table!r} in the goal", name, fields)))


# Of other states ------------------------------------------------------------------------------------------------------


def check_paths(goal: Goal, before: EndState, found: EndState) -> Comparison:
    """Hold a state that is not of rows against a goal. Raises :class:`callwright.errors.DataError` for one of rows."""
    if goal.state is not None:
        return compare(before, goal.state, found)
    parts: tuple[Holds | Changed, ...] = (*goal.holds, *goal.changed)
    for part in parts:
        if part.table:
            raise DataError(f"the goal names the table {part.table!r}, and this state is not of rows: name paths")
    first, last = dict(paths(before)), dict(paths(found))
    changed = [
        path for path in dict.fromkeys((*first, *last)) if differs(first.get(path, ABSENT), last.get(path, ABSENT))
    ]
    named = [(tuple(one.path.split(".")), one) for one in goal.changed]
    tally = _Tally()
    for held in goal.holds:
        there = _at(found, held.path)
        if not _fits(held.value, there):
            tally.wrong(held.path, _short(held.value), "not there" if there is ABSENT else _short(there))
        elif not _fits(held.value, _at(before, held.path)):
            tally.right += 1
    for path, one in named:
        if one.must and not any(other[: len(path)] == path for other in changed):
            tally.wrong(one.path, "changed", AS_IT_WAS)
        elif one.must:
            tally.right += 1
    spoken_of = [path for path, _ in named] + [tuple(held.path.split(".")) for held in goal.holds]
    for other in changed:
        if goal.nothing_else and not any(other[: len(path)] == path for path in spoken_of):
            tally.wrong(".".join(other), AS_IT_WAS, leaf_text(last.get(other, ABSENT)))
    return tally.comparison()


def _at(state: EndState, path: str) -> Any:
    for name in path.split("."):
        if isinstance(state, Mapping) and name in state:
            state = state[name]
        elif isinstance(state, list) and name.isdecimal() and int(name) < len(state):
            state = state[int(name)]
        else:
            return ABSENT
    return state


class _Tally:
    def __init__(self) -> None:
        self.right = 0
        self._differences: list[Difference] = []

    def wrong(self, path: str, expected: str, found: str) -> None:
        self._differences.append(Difference(path, expected, found))

    def comparison(self) -> Comparison:
        return Comparison(self.right, len(self._differences), tuple(self._differences))


# Reading --------------------------------------------------------------------------------------------------------------


def _without_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in given.items()
        if value is not None and value not in ("", {}, [])
    }


def _holds(value: Any, place: str) -> Holds:
    given = _object(value, place, ("table", "where", "has", "count", "path", "is"))
    count = given.get("count")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise DataError(f"count of {place} of a goal must be a number of rows, not {count!r:.80}")
    table, path = _named(given, place)
    if ("is" in given) != bool(path):
        raise DataError(f"{place} of a goal: 'path' and 'is' go together")
    where, has = (dict(_object(given.get(name, {}), f"{name} of {place}", None)) for name in ("where", "has"))
    return Holds(table, where, has, count, path, given.get("is"))


def _changed(value: Any, place: str) -> Changed:
    given = _object(value, place, ("table", "where", "fields", "must", "path"))
    must = given.get("must", True)
    fields = given.get("fields", [])
    if not isinstance(must, bool) or not isinstance(fields, list) or not all(isinstance(one, str) for one in fields):
        raise DataError(f"{place} of a goal: must is true or false, and fields a list of names")
    table, path = _named(given, place)
    where = dict(_object(given.get("where", {}), f"where of {place}", None))
    return Changed(table, where, tuple(fields), must, path)


def _named(given: Mapping[str, Any], place: str) -> tuple[str, str]:
    table, path = given.get("table", ""), given.get("path", "")
    if not isinstance(table, str) or not isinstance(path, str) or bool(table) == bool(path):
        raise DataError(f"{place} of a goal must have a 'table' or a 'path'")
    return table, path


def _object(value: Any, place: str, known: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{place} must be an object, not {value!r:.80}")
    for name in value:
        if known is not None and name not in known:
            raise DataError(str(UnknownName(f"part of {place}", str(name), known)))
    return value


def _list(given: Mapping[str, Any], name: str) -> list[Any]:
    value = given.get(name, [])
    if not isinstance(value, list):
        raise DataError(f"{name!r} of a goal must be a list, not {value!r:.80}")
    return value


def _short(value: Any) -> str:
    return shortened(json_text(value, ensure_ascii=False), _WIDTH)
