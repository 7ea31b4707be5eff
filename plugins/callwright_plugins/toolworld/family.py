"""Families of tasks: one composition of tools, the words that ask for it and the calls that answer it.

The *slots* of a family are the values that its queries name. A family with its slots filled is a *composition*, the
unit that training and evaluation never share. Values that no query names (where the user is, what the time is, which
money they pay in) come from the hidden context, through calls.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.language.program import Call, Program, Reference
from callwright_plugins.toolworld import world
from callwright_plugins.toolworld.world import pick, shuffled

Values = Mapping[str, Any]
Kind = Literal["answer", "unfit", "value_missing", "tool_missing"]

SLOTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "city": world.CITIES,
    "hour": world.HOURS,
    "cuisine": world.CUISINES,
    "rating": world.RATINGS,
    "price": world.PRICES,
    "make": world.MAKES,
    "colour": world.COLOURS,
    "year": world.YEARS,
    "item": world.ITEMS,
    "currency": world.CURRENCIES,
    "amount": world.AMOUNTS,
}
_FIELD: Final = re.compile(r"{([a-z]+)[23]?}")


@frozen(eq=False, slots=False)
class Family:
    """One composition of tools with its wording.

    ``name`` starts with the domain. ``templates`` are phrasings with a field for each slot; ``{city}`` and ``{city2}``
    are two different values of one slot, and stand for an unordered pair. ``build`` writes the program for values by
    slot, in the order of the query. ``kind`` is ``answer``, or why there is nothing to call: no tool of this world fits
    (``unfit``), the query leaves out a value that a tool needs (``value_missing``), or the tool that would fit is not
    offered (``tool_missing``). ``needed`` tools are offered beside the program's own; ``withheld`` ones never are.
    ``conjunctive`` says that the program narrows a table by two or more conditions, which commute.
    """

    name: str
    build: Callable[[Values], Program] = field(repr=False)
    templates: tuple[str, ...] = field(repr=False)
    kind: Kind = "answer"
    conjunctive: bool = False
    needed: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        """What the family is about."""
        return self.name.partition("/")[0]

    @cached_property
    def slots(self) -> tuple[tuple[str, int], ...]:
        """The slots, and how many different values each takes."""
        fields = _FIELD.findall(self.templates[0])
        return tuple((slot, fields.count(slot)) for slot in dict.fromkeys(fields))

    @cached_property
    def depth(self) -> int:
        """The number of calls."""
        return self.build(self.compositions()[0]).depth

    def compositions(self) -> list[dict[str, Any]]:
        """Every way to fill the slots, in a fixed order. A slot with several values holds them as a tuple."""
        choices = [
            SLOTS[slot] if count == 1 else tuple(itertools.combinations(SLOTS[slot], count))
            for slot, count in self.slots
        ]
        names = [slot for slot, _ in self.slots]
        return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*choices)]

    def key(self, values: Values) -> str:
        """The composition as text: the same for all phrasings of a question, and for both orders of a pair."""
        parts = (f"{slot}={'+'.join(sorted(map(str, each(values[slot]))))}" for slot, _ in sorted(self.slots))
        return "|".join((self.name, *parts))

    def ask(self, values: Values, rng: random.Random) -> tuple[dict[str, Any], str]:
        """A query, and the values in the order in which it names them."""
        filled: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for slot, count in self.slots:
            ordered = shuffled(rng, each(values[slot]))
            filled[slot] = ordered[0] if count == 1 else tuple(ordered)
            fields |= {f"{slot}{number}": value for number, value in zip(("", "2", "3"), ordered, strict=False)}
        return filled, pick(rng, self.templates).format(**fields)


def each(value: Any) -> tuple[Any, ...]:
    """The values of a slot, which holds one value or several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


class Draft:
    """A program while it is being written: each call gives back the reference to its result."""

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def add(self, tool: str, **arguments: Any) -> Reference:
        """Append a call."""
        self._calls.append(Call(len(self._calls), tool, arguments))
        return Reference(len(self._calls) - 1)

    def one(self) -> Program:
        """The program whose answer is the last result."""
        return Program(tuple(self._calls))

    def all(self) -> Program:
        """The program whose answer is every result."""
        return Program(tuple(self._calls), "all")
