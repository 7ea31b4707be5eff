"""Comparing end states: what was to change has changed, and nothing else has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.environments.goals.matching import Fact, renaming
from callwright.environments.goals.pairing import paired
from callwright.environments.goals.states import UNTOUCHED, EndState, is_of_parts, is_of_rows
from callwright.environments.goals.words import Parsed, Several, parsed, written
from callwright.errors import DataError
from callwright.language.long_numbers import json_text
from callwright.language.shortening import shortened

_WIDTH: Final = 80
NOT_THERE: Final = "not there"
AS_IT_WAS: Final = "as it was"


@frozen
class Difference:
    """A place at which two states differ, and what is there, as texts of at most 80 characters.

    Rows are named ``orders[O00031].quantity``, with the id that they have in the state that was found.
    """

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path or 'the state'} is {self.found}, expected {self.expected}"


@frozen
class Comparison:
    """What comparing came to. Truth is equality.

    ``right`` rows (or paths) have become what they should, ``wrong`` ones have not, or should not have changed. One
    that differs counts once, and one that is as it was before and should be is not counted. ``differences`` has one
    for each field of the wrong ones.
    """

    right: int = 0
    wrong: int = 0
    differences: tuple[Difference, ...] = field(default=(), repr=False)

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.wrong

    @property
    def credit(self) -> float:
        """In [0, 1]: the right among all rows that changed or should have; 1 if and only if nothing differs."""
        return self.right / (self.right + self.wrong) if self.wrong else 1.0

    def __bool__(self) -> bool:
        return self.equal


def compare(before: EndState | None, expected: EndState, found: EndState) -> Comparison:
    """Hold the state that was found against the expected one; ``before`` is that from which both went out.

    States of rows (:func:`callwright.environments.goals.end_state`) are equal if a renaming of what the session named
    makes them so: rows are told apart by what is in them and by what refers to them, never by the order in which they
    were made. ``before`` may be ``None`` for sessions that begin with their scenario. Any other JSON is compared path
    by path; without ``before`` every path counts. The two must be of the same scenario and seed. Those of several
    environments are compared part by part.

    Raises :class:`callwright.errors.DataError` if only one of the two is of rows, or of several environments.
    """
    if is_of_parts(expected) != is_of_parts(found):
        raise DataError("one of the two end states is of several environments and the other is not")
    if is_of_parts(expected):
        return _compare_parts(before, expected, found)
    if is_of_rows(expected) != is_of_rows(found):
        raise DataError("one of the two end states is of rows and the other is not: they are of two environments")
    if is_of_rows(expected):
        return _compare_rows(before, expected, found)
    return _compare_paths(before, expected, found)


def equal_states(expected: EndState, found: EndState) -> bool:
    """Whether :func:`compare` finds the two equal, without finding out what differs: for whoever compares many.

    Raises :class:`callwright.errors.DataError` as that does.
    """
    return Standard(expected).equals(found)


class Standard:
    """A state that many are held against (:func:`equal_states`): what is in it is read once. Nobody may change it."""

    def __init__(self, state: EndState) -> None:
        self.state = state
        self._parts: dict[str, Standard] = {}

    @cached_property
    def _labels(self) -> list[tuple[str, str, str]]:
        return _labels(self.state)

    @cached_property
    def _text(self) -> str:
        return repr(self.state)

    @cached_property
    def _facts(self) -> list[Fact]:
        return [unit.fact for unit in units(self.state)]

    def equals(self, found: EndState) -> bool:
        """Whether a state that was found is equal to it. Raises :class:`callwright.errors.DataError`."""
        if is_of_parts(self.state) and is_of_parts(found):
            wanted, there = self.state["parts"], found["parts"]
            for name in dict.fromkeys((*wanted, *there)):
                as_begun = UNTOUCHED if is_of_rows(wanted.get(name, there.get(name))) else {}
                mine = self._part(name) if name in wanted else Standard(as_begun)
                if not mine.equals(there.get(name, as_begun)):
                    return False
            return True
        if not (is_of_rows(self.state) and is_of_rows(found)):
            return compare(None, self.state, found).equal
        if self._labels != _labels(found):  # a renaming changes none of them
            return False
        if self.state is found or self._text == repr(found):
            return True
        return renaming(self._facts, [unit.fact for unit in units(found)]) is not None

    def _part(self, name: str) -> Standard:
        if name not in self._parts:
            self._parts[name] = Standard(self.state["parts"][name])
        return self._parts[name]


def _compare_parts(before: EndState | None, expected: EndState, found: EndState) -> Comparison:
    first = before["parts"] if before is not None and is_of_parts(before) else {}
    wanted, there = expected["parts"], found["parts"]
    comparisons = []
    for name in dict.fromkeys((*wanted, *there)):
        of_rows = is_of_rows(wanted.get(name, there.get(name)))
        as_begun = UNTOUCHED if of_rows else {}
        states = first.get(name, as_begun if of_rows else None), wanted.get(name, as_begun), there.get(name, as_begun)
        comparisons.append(placed(name, compare(*states)))
    return joined(comparisons)


def placed(part: str, comparison: Comparison) -> Comparison:
    """A comparison of one of several environments: its differences are named ``email.drafts[D00031].subject``."""
    differences = (evolve(one, path=f"{part}.{one.path}" if one.path else part) for one in comparison.differences)
    return evolve(comparison, differences=tuple(differences))


# Rows -----------------------------------------------------------------------------------------------------------------


@frozen
class Unit:
    """A row that differs from the scenario. ``fields`` is empty for one that is gone."""

    part: str  # changed, gone, new
    table: str
    key: Any
    fields: Mapping[str, Parsed] = field(repr=False)
    shown: Mapping[str, Any] = field(repr=False)

    @property
    def label(self) -> tuple[str, str, str]:
        """What is never renamed."""
        return self.part, self.table, "" if self.part == "new" else repr(self.key)

    @property
    def place(self) -> str:
        """``orders[O00031]``."""
        return f"{self.table}[{self.key if isinstance(self.key, str) else json_text(self.key)}]"

    @property
    def fact(self) -> Fact:
        """The whole row."""
        return self.label, Several(tuple(Several((name, value)) for name, value in self.fields.items()))


def units(state: EndState) -> Iterator[Unit]:
    """The rows that differ from the scenario. Raises :class:`callwright.errors.DataError` for what is no state."""
    try:
        names = frozenset(state["made"])
        for table, parts in state["tables"].items():
            for row in parts.get("changed", ()):
                fields = row["fields"]
                yield Unit("changed", table, row["key"], {n: parsed(v, names) for n, v in fields.items()}, fields)
            for key in parts.get("gone", ()):
                yield Unit("gone", table, key, {}, {})
            for row in parts.get("new", ()):
                key = next(iter(row.values()), "")
                yield Unit("new", table, key, {n: parsed(v, names) for n, v in row.items()}, row)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"not an end state of rows ({type(error).__name__}: {error}): {state!r:.100}") from error


def _labels(state: EndState) -> list[tuple[str, str, str]]:
    """The labels of its rows (:attr:`Unit.label`) in order, without reading what is in them."""
    try:
        state["made"]
        return sorted(
            (part, table, "" if part == "new" else repr(row if part == "gone" else row["key"]))
            for table, parts in state["tables"].items()
            for part in ("changed", "gone", "new")
            for row in parts.get(part, ())
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"not an end state of rows ({type(error).__name__}: {error}): {state!r:.100}") from error


def _compare_rows(before: EndState | None, expected: EndState, found: EndState) -> Comparison:
    if (before is None or not _labels(before)) and (expected is found or repr(expected) == repr(found)):
        return Comparison(len(_labels(expected)))  # most of what is compared is as it should be, to the letter
    wanted, there = list(units(expected)), list(units(found))
    first = {unit.fact for unit in units(before)} if before is not None else set()
    names = renaming([unit.fact for unit in wanted], [unit.fact for unit in there])
    if names is not None:
        return Comparison(sum(unit.fact not in first for unit in wanted))
    pairs, naming = paired(wanted, there)
    right = wrong = 0
    differences: list[Difference] = []
    for mine, theirs in pairs:
        shown = list(_between(mine, theirs, naming))
        differences += shown
        if shown:
            wrong += 1
        elif mine is not None and mine.fact not in first:
            right += 1
    if not wrong:  # the same row by row, and yet no renaming was found in the given time
        wrong, said = 1, Difference("", "the expected one", "too much alike in itself to be told apart from it")
        differences.append(said)
    return Comparison(right, wrong, tuple(differences))


def _between(mine: Unit | None, theirs: Unit | None, naming: Mapping[str, str]) -> Iterator[Difference]:
    if mine is None or theirs is None:
        unit = mine or theirs
        assert unit is not None
        texts = [_whole(unit), AS_IT_WAS if unit.part != "new" else NOT_THERE]
        yield Difference(unit.place, *(texts if mine else reversed(texts)))
        return
    if mine.part != theirs.part:
        yield Difference(theirs.place, _whole(mine), _whole(theirs))
        return
    for name in dict.fromkeys((*mine.fields, *theirs.fields)):
        first, second = mine.fields.get(name), theirs.fields.get(name)
        as_named = None if first is None else written(first, lambda one: naming.get(one, f"{one} of the other"))
        if as_named != (None if second is None else written(second, str)):
            yield Difference(f"{theirs.place}.{name}", _field(mine, name), _field(theirs, name))


def _whole(unit: Unit) -> str:
    return {"gone": "gone", "changed": "changed"}.get(unit.part, "") or _text(unit.shown)


def _field(unit: Unit, name: str) -> str:
    value = unit.shown.get(name, unit)
    if value is unit:
        return AS_IT_WAS
    return _text(value["unordered"] if isinstance(value, Mapping) and value.keys() == {"unordered"} else value)


def _text(value: Any) -> str:
    return shortened(json_text(value, ensure_ascii=False), _WIDTH)


# Paths ----------------------------------------------------------------------------------------------------------------

ABSENT: Final = object()


@frozen
class Container:
    """That there is an object or a list at a path; what is in it has paths of its own."""

    kind: str  # {} or []
    empty: bool = field(eq=False)


def _compare_paths(before: EndState | None, expected: EndState, found: EndState) -> Comparison:
    first, mine, theirs = ({} if state is None else dict(paths(state)) for state in (before, expected, found))
    right = 0
    differences: list[Difference] = []
    for path in dict.fromkeys((*first, *mine, *theirs)):
        wanted, there = mine.get(path, ABSENT), theirs.get(path, ABSENT)
        if differs(wanted, there):
            differences.append(Difference(".".join(path), leaf_text(wanted), leaf_text(there)))
        elif same(wanted, there) and differs(first.get(path, ABSENT), there):
            right += 1
    return Comparison(right, len(differences), tuple(sorted(differences, key=lambda one: one.path)))


def paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every scalar of a JSON value with the way to it, and a :class:`Container` for every object and list within."""
    inner: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inner = list(value.items())
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    else:
        yield path, value
        return
    if path:
        yield path, Container("{}" if isinstance(value, Mapping) else "[]", not inner)
    for key, one in inner:
        yield from paths(one, (*path, str(key)))


def differs(one: Any, other: Any) -> bool:
    """Whether what two states have at a path differs, and no path further within says so."""
    full = Container in (type(one), type(other)) and not (getattr(one, "empty", True) and getattr(other, "empty", True))
    return not same(one, other) and not (full and ABSENT in (one, other))


def leaf_text(value: Any) -> str:
    """What is at a path, as text."""
    if value is ABSENT:
        return NOT_THERE
    return value.kind if isinstance(value, Container) else _text(value)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, and true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def joined(comparisons: Sequence[Comparison]) -> Comparison:
    """Several comparisons as one, such as those of a goal's parts."""
    whole = Comparison()
    for one in comparisons:
        whole = evolve(
            whole,
            right=whole.right + one.right,
            wrong=whole.wrong + one.wrong,
            differences=(*whole.differences, *one.differences),
        )
    return whole
