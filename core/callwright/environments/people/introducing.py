"""Introducing people: the rows of a scenario with other names, addresses and logins in place of those that it drew.

What a person is called is replaced wherever it stands: as a value of its own, in texts, and in two fields for the first
and the last name. Ids and numbers stay; so do near-namesakes, which stay near.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from callwright.environments.base import Base
from callwright.environments.people.person import People, Person
from callwright.environments.rows import Table, table_of
from callwright.environments.world import World

#: Fields that hold the two halves of a name.
_HALVES: Final = (("first", "last"), ("first_name", "last_name"))
_NUMBERED: Final = re.compile(r"(\d+) (.+)")


def introduced(base: Base, find: Callable[[World], People] | None, people: People) -> Base:
    """The same scenario, in which those whom ``find`` finds are called as ``people`` are, one like the other in order.

    Namesakes are called alike. Who is left over on either side is not introduced, or stays. Tables that
    :attr:`People.untouched` names stay as they are. Raises :class:`callwright.errors.DataError` where two rows would
    have one key.
    """
    found = People() if find is None else find(World(base))
    mine = found.me.name if found.me is not None else ""
    apart: dict[str, Person] = {}
    for one in found.others:
        if one.name != mine:
            apart.setdefault(one.name, one)
    pairs = list(zip(apart.values(), people.others, strict=False))
    if found.me is not None and people.me is not None:
        pairs.insert(0, (found.me, people.me))
    renaming = _Renaming(pairs)
    kept = set(found.untouched)
    rows = [
        row if table.name in kept else renaming.row(table, row)
        for kind, held in base.rows_by_kind.items()
        for table in (table_of(kind),)
        for row in held.values()
    ]
    made = Base(rows, now=base.now, seed=base.seed, kinds=[*base.rows_by_kind])
    if base.origin is not None:  # made in the same way elsewhere, and then introduced
        made.origin = base.origin[0], (*base.origin[1], people)
    return made


class _Renaming:
    def __init__(self, pairs: Iterable[tuple[Person, Person]]) -> None:
        self.exact: dict[str, str] = {}
        self.halves: dict[tuple[str, str], tuple[str, str]] = {}
        self.cities: dict[str, tuple[str, str]] = {}
        self.homes: dict[tuple[str, str], tuple[str, str]] = {}
        texts: dict[str, str] = {}
        for old, new in pairs:
            self.halves.setdefault((old.first, old.last), (new.first, new.last))
            for name in ("name", "email", "phone", "address"):
                _note(texts, getattr(old, name), getattr(new, name))
            _note(self.exact, old.street, new.street)
            if old.login:
                login = styled(old.login, new.login)
                _note(self.exact, old.login, login)
                _note(texts, f"@{old.login}", f"@{login}")
                _note(texts, f"/home/{old.login}", f"/home/{login}")
            if old.city:
                for key in (old.name, old.street):
                    self.cities.setdefault(key, (old.city, new.city))
            numbers = _NUMBERED.fullmatch(old.street), _NUMBERED.fullmatch(new.street)
            if numbers[0] and numbers[1]:
                self.homes.setdefault(numbers[0].groups(), numbers[1].groups())  # type: ignore[arg-type]
        self.exact.update(texts)
        self.texts = texts
        self.tokens = tuple(texts)
        either = "|".join(re.escape(token) for token in sorted(texts, key=len, reverse=True))
        self.replace: Callable[[str], str] = lambda text: text
        if either:
            pattern = re.compile(rf"(?<![\w.])(?:{either})(?![\w@])")
            self.replace = lambda text: pattern.sub(lambda met: texts[met.group()], text)

    def row(self, table: Table, row: Any) -> Any:
        values = table.values_of(row)
        changed = [self.value(value) for value in values]
        for first, last in _HALVES:
            if first in table.places and last in table.places:
                at = table.places[first], table.places[last]
                half = self.halves.get((values[at[0]], values[at[1]]))
                if half is not None:
                    changed[at[0]], changed[at[1]] = half
        self._move(table, values, changed)
        return row if tuple(changed) == tuple(values) else table.made(changed)

    def value(self, value: Any) -> Any:
        if type(value) is str:
            known = self.exact.get(value)
            if known is not None:
                return known
            for token in self.tokens:
                if token in value:
                    return self.replace(value)
            return value
        if type(value) is tuple:
            return tuple([self.value(inner) for inner in value])
        return value

    def _move(self, table: Table, values: tuple[Any, ...], changed: list[Any]) -> None:
        """The city beside a name or a street, and a house whose number and street are two fields."""
        if "number" in table.places and "street" in table.places:
            number, street = table.places["number"], table.places["street"]
            home = self.homes.get((str(values[number]), values[street]))
            if home is not None:
                changed[number], changed[street] = int(home[0]), home[1]
                self._city(values, changed, f"{values[number]} {values[street]}")
        for value in values:
            if type(value) is str and value in self.cities:
                self._city(values, changed, value)

    def _city(self, values: tuple[Any, ...], changed: list[Any], beside: str) -> None:
        old, new = self.cities.get(beside, ("", ""))
        for place, value in enumerate(values):
            if old and value == old:
                changed[place] = new


def _note(names: dict[str, str], old: str, new: str) -> None:
    if old and new:
        names.setdefault(old, new)


def styled(old: str, login: str) -> str:
    """A login written as another one is: ``ada_berg``, ``ada.berg`` or, like ``uma``, ``aberg``."""
    if "_" in old:
        return login.replace(".", "_")
    if "." in old:
        return login
    first, dot, last = login.partition(".")
    return f"{first[0]}{last.replace('.', '')}" if dot else login
