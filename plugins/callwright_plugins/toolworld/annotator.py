"""A sloppy annotator: right plans in wrong details, to warm up a model that reinforcement learning then corrects.

Its demonstrations of no call and of one call are right. Those of two and more calls follow the right plan, but use
synonyms of parameter names, filter the unfiltered list, mix up references, and so on, each with a probability. A model
that imitates them can compose in principle and fails in practice, which is what a pretrained model looks like too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import attrs
from attrs import field, frozen

from callwright.errors import UnknownName, UsageError
from callwright.language.program import Call, Program, Reference
from callwright.walk.tasks import Task
from callwright_plugins.toolworld.shortcuts import DOMAINS
from callwright_plugins.toolworld.tools import FILTERS, FUNCTIONS
from callwright_plugins.toolworld.world import pick

#: Parameter -> what the annotator calls it.
SYNONYMS: Final[Mapping[str, str]] = {
    "location": "place",
    "hour": "time",
    "restaurants": "venues",
    "cuisine": "food",
    "rating": "score",
    "price": "cost",
    "dealers": "shops",
    "cars": "vehicles",
    "make": "brand",
    "colour": "paint",
    "year": "age",
    "item": "product",
    "amount": "value",
    "currency": "money",
    "first": "left",
    "second": "right",
}


def _probability(instance: Annotator, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(f"option {attribute.name!r} of the annotator is a probability between 0 and 1, not {value!r}")


def _depths(instance: Annotator, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not value or any(isinstance(depth, bool) or depth not in range(7) for depth in value):
        raise UsageError(f"option {attribute.name!r} of the annotator lists depths from 0 to 6, not {list(value)!r}")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _rate(default: float) -> Any:
    return field(default=default, validator=_probability)


@frozen
class Annotator:
    """What goes wrong, and how often.

    ``simple``: share of demonstrations with a depth of ``simple_depths``; the rest have one of ``depths``. The other
    numbers are probabilities, and hold from two calls on. Per argument: ``alias`` (its name becomes a synonym),
    ``reference`` (it points to the wrong call), ``literal`` (the value becomes another of its kind). Per filter after
    the first: ``unfiltered`` (it is applied to the unfiltered list). Per call: ``tool`` (another offered tool),
    ``hallucination`` (a tool that is not offered). ``reorder``: the calls stand in another valid order.
    """

    simple: float = _rate(0.4)
    alias: float = _rate(0.75)
    unfiltered: float = _rate(0.6)
    reference: float = _rate(0.08)
    literal: float = _rate(0.05)
    tool: float = _rate(0.02)
    hallucination: float = _rate(0.02)
    reorder: float = _rate(0.0)
    simple_depths: tuple[int, ...] = field(default=(0, 1), converter=_as_tuple, validator=_depths)
    depths: tuple[int, ...] = field(default=(2, 3, 4, 5, 6), converter=_as_tuple, validator=_depths)

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Annotator:
        """From options by name. Raises :class:`callwright.UsageError` for unknown names and values out of range."""
        known = [attribute.name for attribute in attrs.fields(cls)]
        for name in options:
            if name not in known:
                raise UnknownName("option of the annotator", name, known)
        return cls(**options)

    def depth(self, rng: random.Random) -> int:
        """The depth of the next demonstration."""
        return pick(rng, self.simple_depths if rng.random() < self.simple else self.depths)

    def write(self, task: Task, plan: Program, rng: random.Random) -> Program:
        """The annotator's program for a task. ``plan`` is the reference program in the order of the query."""
        program = task.program if task.program is not None and rng.random() < self.reorder else plan
        if program.depth < 2:
            return program
        calls = tuple(self._call(program, position, task, rng) for position in range(program.depth))
        return Program(calls, program.returns)

    def _call(self, program: Program, position: int, task: Task, rng: random.Random) -> Call:
        call = program.calls[position]
        arguments: dict[str, Any] = {}
        for name, value in call.arguments.items():
            if isinstance(value, Reference):
                if FILTERS.get(call.tool) == name and rng.random() < self.unfiltered:
                    value = _source(program, value)
                if rng.random() < self.reference:
                    others = [other.id for other in program.calls if other.id != value.call]
                    value = Reference(pick(rng, [other for other in others if other < call.id] or others))
            elif rng.random() < self.literal:
                value = pick(rng, [other for other in DOMAINS[name] if other != value])
            arguments[SYNONYMS[name] if rng.random() < self.alias else name] = value
        tool = call.tool
        if rng.random() < self.tool:
            tool = pick(rng, [name for name in task.tools if name != tool])
        elif rng.random() < self.hallucination:
            tool = pick(rng, [name for name in FUNCTIONS if name not in task.tools])
        return Call(call.id, tool, arguments)


def _source(program: Program, table: Reference) -> Reference:
    """The unfiltered list that a chain of filters began with."""
    call = program.calls[table.call]
    while call.tool in FILTERS:
        table = call.arguments[FILTERS[call.tool]]
        call = program.calls[table.call]
    return table
