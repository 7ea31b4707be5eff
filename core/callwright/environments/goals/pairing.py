"""Which row of one end state is meant by which of another, where the two differ: for credit and for evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from callwright.environments.goals.words import Name, Naming, Parsed, Several, written

if TYPE_CHECKING:
    from callwright.environments.goals.comparing import Unit

_Pairs: TypeAlias = "list[tuple[Unit | None, Unit | None]]"
#: How often rows are paired anew with the names that the last pairing gave.
_ROUNDS: Final = 3
#: Up to so many rows of a table are held against one another field by field; more are taken in order.
_MOST_CLOSE: Final = 64
_NUMBER: Final = re.compile(r"\d+")


def paired(expected: Sequence[Unit], found: Sequence[Unit]) -> tuple[_Pairs, dict[str, str]]:
    """Every row with its partner or ``None``, and the names of ``expected`` that are names of ``found`` then.

    Rows of the scenario are their own partners. New ones of a table are paired where they are equal, the others by how
    many fields agree, so that as many have a partner as can; names in them count by kind at first, then by what was
    paired.
    """
    fixed = {unit.label[1:]: unit for unit in found if unit.part != "new"}
    pairs: _Pairs = []
    for unit in expected:
        if unit.part != "new":
            pairs.append((unit, fixed.pop(unit.label[1:], None)))
    pairs += [(None, unit) for unit in fixed.values()]
    mine: Naming = _kind
    theirs: Naming = _kind
    for _ in range(_ROUNDS):
        new = _paired_new(expected, found, mine, theirs)
        distances = [(_distance(pair, mine, theirs), pair) for pair in (*pairs, *new)]
        names = _learned([pair for _, pair in sorted(distances, key=itemgetter(0))])
        mine, theirs = _named(names), str
    return [*pairs, *new], names


def _named(names: Mapping[str, str]) -> Naming:
    """What the names of one side are on the other; one that is not there stays its own."""
    return lambda name: names.get(name, f"{name}?")


def _kind(name: str) -> str:
    return _NUMBER.sub("#", name)


def _paired_new(expected: Sequence[Unit], found: Sequence[Unit], mine: Naming, theirs: Naming) -> _Pairs:
    pairs: _Pairs = []
    for table in dict.fromkeys(unit.table for unit in (*expected, *found) if unit.part == "new"):
        waiting: dict[Any, list[Unit]] = {}
        for unit in found:
            if unit.part == "new" and unit.table == table:
                waiting.setdefault(written(unit.fact[1], theirs), []).append(unit)
        left: list[Unit] = []
        for unit in expected:
            if unit.part == "new" and unit.table == table:
                equal = waiting.get(written(unit.fact[1], mine))
                if equal:
                    pairs.append((unit, equal.pop(0)))
                else:
                    left.append(unit)
        pairs += _closest(left, [unit for units in waiting.values() for unit in units], mine, theirs)
    return pairs


def _closest(expected: list[Unit], found: list[Unit], mine: Naming, theirs: Naming) -> _Pairs:
    pairs: _Pairs = []
    if max(len(expected), len(found)) <= _MOST_CLOSE:
        ranked = sorted(
            (_distance((one, other), mine, theirs), row, column)
            for row, one in enumerate(expected)
            for column, other in enumerate(found)
        )
        rows, columns = set(range(len(expected))), set(range(len(found)))
        for _, row, column in ranked:
            if row in rows and column in columns:
                rows.remove(row)
                columns.remove(column)
                pairs.append((expected[row], found[column]))
        expected, found = [expected[row] for row in sorted(rows)], [found[column] for column in sorted(columns)]
    return [*pairs, *zip_longest(expected, found)]


def _distance(pair: tuple[Unit | None, Unit | None], mine: Naming, theirs: Naming) -> int:
    """In how many fields two rows differ; many for a row that has no partner."""
    one, other = pair
    if one is None or other is None:
        return 1 << 20
    missing = sum(name not in one.fields for name in other.fields)
    return missing + sum(
        name not in other.fields or bool(written(value, mine) != written(other.fields[name], theirs))
        for name, value in one.fields.items()
    )


def _learned(pairs: _Pairs) -> dict[str, str]:
    """Which name stands where which other one does, the surest pairs first."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for one, other in pairs:
        if one is not None and other is not None:
            for name, value in one.fields.items():
                _learn_of(names, taken, value, other.fields.get(name))
    return names


def _learn_of(names: dict[str, str], taken: set[str], mine: Parsed, theirs: Parsed) -> None:
    if type(mine) is Name and type(theirs) is Name:
        if mine.name not in names and theirs.name not in taken:
            names[mine.name] = theirs.name
            taken.add(theirs.name)
    elif type(mine) is Several and type(theirs) is Several and mine.ordered and theirs.ordered:
        for one, other in zip(mine.values, theirs.values, strict=False):
            _learn_of(names, taken, one, other)
