"""Whether two sets of facts are the same but for the names in them, and which name is which then.

This is isomorphism of small graphs: what a session changed, not the world. Names are coloured by the facts that hold
them and the colours of the other names there, until nothing splits any more (colour refinement, Weisfeiler and Leman
1968). Nearly always the colours decide. What no name ties together is matched part by part: equal parts, such as twenty
equal orders with their lines, fit whichever way they are taken. What still looks alike within a part is tried out, one
name at a time (individualisation), and every answer "yes" is checked fact by fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from callwright.environments.goals.words import Naming, Parsed, names_in, written

#: What holds, and of what: a label that must be the same on both sides, and a value with names in it.
Fact: TypeAlias = tuple[Any, Parsed]
#: How many values are written at most in search of a renaming: about two seconds. Beyond, two states are not the same.
MOST_WRITTEN: Final = 400_000
#: How many names are tried out in a row at most; each is a Python frame.
_MOST_TRIED: Final = 300


def renaming(
    expected: Sequence[Fact], found: Sequence[Fact], most_written: int = MOST_WRITTEN
) -> dict[str, str] | None:
    """Names of ``expected`` to names of ``found``, one to one, such that the facts become equal; ``None`` if none is.

    Also ``None`` if more than ``most_written`` values would have to be looked at: no result of a model takes long.
    """
    if len(expected) != len(found):
        return None
    return _Search(expected, found, most_written).renaming()


class _Side:
    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = facts
        self.holding: dict[str, list[Fact]] = {}
        for fact in facts:
            for name in names_in(fact[1]):
                self.holding.setdefault(name, []).append(fact)

    def under(self, naming: Naming) -> Counter[Any]:
        return Counter((label, written(value, naming)) for label, value in self.facts)

    def parts(self, colours: Mapping[str, int]) -> list[tuple[Any, list[Fact]]]:
        """Facts that hang together by names, those without names each for itself, and what colours say of each part."""
        part_of = {name: name for name in self.holding}

        def root(name: str) -> str:
            while part_of[name] != name:
                part_of[name] = name = part_of[part_of[name]]
            return name

        found: dict[Any, list[Fact]] = {}
        named = [(fact, sorted(names_in(fact[1]))) for fact in self.facts]
        for _, names in named:
            for name in names[1:]:
                part_of[root(name)] = root(names[0])
        for at, (fact, names) in enumerate(named):
            found.setdefault(root(names[0]) if names else at, []).append(fact)
        return [
            (tuple(sorted(repr((label, written(value, colours.__getitem__))) for label, value in part)), part)
            for part in found.values()
        ]

    def signature(self, name: str, colours: Mapping[str, int]) -> Any:
        naming: Naming = lambda other: -1 if other == name else colours[other]  # noqa: E731
        return tuple(sorted(repr((label, written(value, naming))) for label, value in self.holding[name]))


def _nameless(name: str) -> str:
    return ""


_Colours: TypeAlias = tuple[dict[str, int], dict[str, int]]


class _Search:
    def __init__(self, expected: Sequence[Fact], found: Sequence[Fact], most: int) -> None:
        self.expected, self.found = _Side(expected), _Side(found)
        self.left = most
        self.goal = self.found.under(str)

    def renaming(self) -> dict[str, str] | None:
        names, others = self.expected.holding, self.found.holding
        if len(names) != len(others):
            return None
        if names and self.expected.under(_nameless) != self.found.under(_nameless):
            return None  # they differ in more than names
        if self.expected.under(str) == self.goal:  # the same names in the same places
            return {name: name for name in names}
        if not names:
            return None
        colours = self._refined((dict.fromkeys(names, 0), dict.fromkeys(others, 0)))
        if colours is None:
            return None
        mine, theirs = self.expected.parts(colours[0]), self.found.parts(colours[1])
        if Counter(key for key, _ in mine) != Counter(key for key, _ in theirs):
            return None
        alike: dict[Any, list[list[Fact]]] = {}
        for key, part in theirs:
            alike.setdefault(key, []).append(part)
        answer: dict[str, str] = {}
        for key, part in mine:
            for at, other in enumerate(alike[key]):
                search = _Search(part, other, self.left)
                found = search.of_one_part()
                self.left = search.left
                if found is not None:
                    answer |= found
                    del alike[key][at]
                    break
            else:
                return None
        return answer

    def of_one_part(self) -> dict[str, str] | None:
        names, others = self.expected.holding, self.found.holding
        return self._from((dict.fromkeys(names, 0), dict.fromkeys(others, 0)), 0) if self.left > 0 else None

    def _from(self, colours: _Colours, tried: int) -> dict[str, str] | None:
        refined = self._refined(colours)
        if refined is None:
            return None
        mine, theirs = map(_classes, refined)
        guess = {
            name: other
            for colour, names in mine.items()
            for name, other in zip(sorted(names), sorted(theirs[colour]), strict=True)
        }
        self.left -= len(self.expected.facts)
        if self.expected.under(guess.__getitem__) == self.goal:
            return guess
        unclear = [(len(names), colour) for colour, names in mine.items() if len(names) > 1]
        if not unclear or tried >= _MOST_TRIED:
            return None
        _, colour = min(unclear)
        name, fresh = min(mine[colour]), len(mine)
        for other in sorted(theirs[colour]):
            marked = ({**refined[0], name: fresh}, {**refined[1], other: fresh})
            if (answer := self._from(marked, tried + 1)) is not None:
                return answer
            if self.left <= 0:
                return None
        return None

    def _refined(self, colours: _Colours) -> _Colours | None:
        """The coarsest finer colours that nothing splits; ``None`` if the two sides differ in them."""
        known = len(set(colours[0].values()))
        while True:
            seen: dict[Any, int] = {}
            finer: _Colours = ({}, {})
            for side, old, new in zip((self.expected, self.found), colours, finer, strict=True):
                for name, colour in old.items():
                    self.left -= len(side.holding[name])
                    signature = (colour, side.signature(name, old))
                    new[name] = seen.setdefault(signature, len(seen))
            if self.left <= 0 or Counter(finer[0].values()) != Counter(finer[1].values()):
                return None
            if len(seen) == known:
                return finer
            colours, known = finer, len(seen)


def _classes(colours: Mapping[str, int]) -> dict[int, list[str]]:
    classes: dict[int, list[str]] = {}
    for name, colour in colours.items():
        classes.setdefault(colour, []).append(name)
    return classes
