"""Forks of databases that share what nobody has asked of them: of fields, rows of tables, and items of lists.

A database is a model of pydantic. It is parsed once; a fork begins empty, makes a field when somebody asks for it, and
copies a row or an item when somebody takes it. To compare two forks is to compare what either of them took.

This runs in tau2's own interpreter, where nothing of Callwright can be imported.
"""

from __future__ import annotations

import copy
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

#: Classes of forks, by those of the databases.
_kinds: dict[Any, Any] = {}
#: Classes of models, as they are met.
_models: set[Any] = set()


class Rows(dict[Any, Any]):
    """A table that shares its rows with the parsed one until they are taken."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.taken: set[Any] = set()

    def __getitem__(self, key: Any) -> Any:
        row = super().__getitem__(key)
        if key not in self.taken:
            self.taken.add(key)
            row = copied(row, {})
            super().__setitem__(key, row)
        return row

    def __setitem__(self, key: Any, row: Any) -> None:
        self.taken.add(key)
        super().__setitem__(key, row)

    def get(self, key: Any, default: Any = None) -> Any:
        """The row, taken."""
        try:
            return self[key]
        except KeyError:
            return default

    def values(self) -> Any:
        """All rows, taken."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """All rows with their keys, taken."""
        return [(key, self[key]) for key in self]

    def pop(self, key: Any, *default: Any) -> Any:
        """The row, taken out."""
        self.get(key)
        return super().pop(key, *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The row, taken, or put there."""
        if key not in self:
            self[key] = default
        return self[key]

    def __deepcopy__(self, memo: Any) -> Any:
        return {key: copy.deepcopy(row, memo) for key, row in self.items()}


class Items(list[Any]):
    """A list of models that shares each with the parsed one until it is taken."""

    def __init__(self, items: Any) -> None:
        super().__init__(list.__getitem__(items, slice(None)))  # as they are: to go through them is to take them
        self._shared = set(range(len(items)))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.all_taken()[at]
        item = list.__getitem__(self, at)
        place = at if at >= 0 else at + len(self)
        if place in self._shared:
            self._shared.discard(place)
            item = copied(item, {})
            list.__setitem__(self, place, item)
        return item

    def __iter__(self) -> Any:
        place = 0
        while place < len(self):
            yield self[place]
            place += 1

    def all_taken(self) -> list[Any]:
        """A plain list of all, taken."""
        for place in [*self._shared]:
            self[place]
        return list.__getitem__(self, slice(None))


def _taking(name: str) -> Any:
    method = getattr(list, name)

    def taken(self: Items, *given: Any, **named: Any) -> Any:
        self.all_taken()  # places are others from now on, or all are looked at
        return method(self, *given, **named)

    return taken


for _name in (
    *("__add__", "__contains__", "__delitem__", "__eq__", "__ne__", "__iadd__", "__imul__", "__mul__", "__reversed__"),
    *("__setitem__", "copy", "count", "index", "insert", "pop", "remove", "reverse", "sort", "__reduce_ex__"),
):
    setattr(Items, _name, _taking(_name))


#: What nobody can change.
_SCALARS = frozenset({str, int, float, bool, type(None), bytes, date, datetime, time, timedelta, Decimal})


def copied(value: Any, memo: dict[int, Any]) -> Any:
    """A copy that shares what nobody can change: a third of what deepcopy takes, or pickle.

    ``memo`` holds the copies so far by the id of what they are of, so that one object stays one.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    known = memo.get(id(value))
    if known is not None:
        return known
    if kind is list or kind is Items:
        made: Any = []
        memo[id(value)] = made
        made.extend(one if type(one) in _SCALARS else copied(one, memo) for one in value)
        return made
    if kind is dict:
        made = memo[id(value)] = {}
        for key, one in value.items():
            made[key] = one if type(one) in _SCALARS else copied(one, memo)
        return made
    if kind not in _models:
        if isinstance(value, Enum):
            return value
        if not hasattr(kind, "model_fields"):
            return copy.deepcopy(value)
        _models.add(kind)
    if value.__pydantic_private__ is None and value.__pydantic_extra__ is None:
        fields: dict[str, Any] = {}
        made = memo[id(value)] = _bare(kind, fields, None, value.__pydantic_fields_set__)
        for key, one in value.__dict__.items():
            fields[key] = one if type(one) in _SCALARS else copied(one, memo)
        return made
    return copy.deepcopy(value)


class Parsed:
    """A database as it was parsed, or as a task begins with it, which nobody changes; fields by name.

    ``tables`` are fields that hold models by key. What a fork of ``before`` has not asked for is shared with it.
    """

    def __init__(self, db: Any, before: Parsed | None = None) -> None:
        self.db = db
        self.fields: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        for name in type(db).model_fields:
            if before is not None and name not in db.__dict__:
                self.fields[name] = before.fields[name]
            else:
                self.fields[name] = getattr(db, name)
        self.tables = {name for name, value in self.fields.items() if _is_table(value)}
        self.lists = {name for name, value in self.fields.items() if _is_list(value)}
        _forked(type(db))

    def holds(self, name: str, key: Any, rows: Rows) -> bool:
        """Whether a row of a fork is the one that was parsed; also one that neither has."""
        first = self.fields[name]
        if key not in rows or key not in first:
            return key not in rows and key not in first
        return bool(dict.__getitem__(rows, key) == first[key])

    def difference(self, name: str, db: Any) -> str:
        """A text of a field of a fork, which is equal where what the field holds is equal. Of rows it has those that
        are not as they were parsed.
        """
        table, asked = name in self.tables, name in db.__dict__
        value = db.__dict__.get(name)
        if asked and not isinstance(value, Rows):
            return _text(_value_of(db, name))
        if not table:
            return self.text(name)
        if not asked:
            return "{}"
        held = {
            str(key): _text(_dumped(value, key) if key in value else None)
            for key in value.taken | (self.fields[name].keys() - value.keys())
            if not self.holds(name, key, value)
        }
        return json.dumps(held, sort_keys=True)

    def fork(self) -> Any:
        """A database of its own that shares what nobody has asked of it yet."""
        return _bare(_forked(type(self.db)), {}, {"_parsed": self})

    def own(self, name: str) -> Any:
        """A field for a fork."""
        value = self.fields[name]
        if name in self.tables:
            return Rows(value)
        return Items(value) if name in self.lists else copied(value, {})

    def text(self, name: str) -> str:
        """A field as it was parsed, as the text of which a digest is made."""
        if name not in self._texts:
            self._texts[name] = _text(_value_of(self.db, name))
        return self._texts[name]


def _is_table(value: Any) -> bool:
    if isinstance(value, Rows):
        return True
    return isinstance(value, dict) and all(hasattr(type(row), "model_fields") for row in value.values())


def _is_list(value: Any) -> bool:
    if isinstance(value, Items):
        return True
    return isinstance(value, list) and all(hasattr(type(one), "model_fields") for one in value)


def _forked(kind: Any) -> Any:
    """The class of the forks of a database: a field is made when somebody asks for it."""
    if kind not in _kinds:

        def given(self: Any, name: str) -> Any:
            parsed = (object.__getattribute__(self, "__pydantic_private__") or {}).get("_parsed")
            if parsed is None or name not in parsed.fields:
                raise AttributeError(name)
            self.__dict__[name] = value = parsed.own(name)
            return value

        members = {"__getattr__": given, "__module__": __name__, "__doc__": "A fork."}
        made = type(kind)(f"Forked{kind.__name__}", (kind,), members)
        _kinds[kind] = _kinds[made] = made  # what a fork begins with may be forked, too
    return _kinds[kind]


def _value_of(db: Any, name: str) -> Any:
    """A field, dumped by its model as a whole database is."""
    return _bare(type(db), {name: getattr(db, name)}, None).model_dump(include={name})


def _bare(kind: Any, fields: dict[str, Any], private: Any, stated: Any = ()) -> Any:
    """A model with these fields and no others, not even those with a default; ``stated`` are those that were set."""
    made = _new(kind)
    _set(made, "__dict__", fields)
    _set(made, "__pydantic_fields_set__", set(stated))
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", private)
    return made


_new, _set = object.__new__, object.__setattr__


def same(name: str, left: Any, right: Any, texts: dict[Any, str]) -> bool:
    """Whether two forks of a database hold the same in a field: equal texts, as of their digests, where they may differ
    at all. ``texts`` keeps those of the second, which nobody changes any more.
    """
    if name not in left.__dict__ and name not in right.__dict__:
        return True  # both as they were parsed
    mine, theirs = getattr(left, name), getattr(right, name)
    if isinstance(mine, Items) and isinstance(theirs, Items):
        pairs = zip(list.__iter__(mine), list.__iter__(theirs))  # noqa: B905 - of older interpreters, too
        return len(mine) == len(theirs) and all(a is b or _text(_plain(a)) == _text(_plain(b)) for a, b in pairs)
    if isinstance(mine, Rows) and isinstance(theirs, Rows):
        if mine.keys() != theirs.keys():
            return False
        taken = (mine.taken | theirs.taken) & mine.keys()
        return all(_text(_dumped(mine, key)) == _text(_dumped(theirs, key)) for key in taken)
    kept = id(right), name  # which lives as long as its reference
    if kept not in texts:
        texts[kept] = _text(_value_of(right, name))
    return _text(_value_of(left, name)) == texts[kept]


def _dumped(rows: Rows, key: Any) -> Any:
    return _plain(dict.__getitem__(rows, key))


def _plain(row: Any) -> Any:
    return row.model_dump() if hasattr(row, "model_dump") else row


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
