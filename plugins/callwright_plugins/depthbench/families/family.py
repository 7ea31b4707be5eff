"""A family: a program with slots, and the ways of asking for it."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import frozen

from callwright.language.program import Call, Program, Reference, Returns
from callwright_plugins.depthbench.families.phrasing import BACKGROUND, FRAMES, GREETINGS, Form, sentence, surfaces
from callwright_plugins.depthbench.families.slots import KINDS, Values, kind_of
from callwright_plugins.depthbench.tools import SPLIT, TOOLS
from callwright_plugins.depthbench.world import Context, pick

#: Tools that keep some rows of a table -> their table parameter. Filters of one chain commute.
FILTERS: Final[Mapping[str, str]] = {
    name: described.function.__code__.co_varnames[0]
    for name, described in TOOLS.items()
    if name.startswith(("filter_", "keep_"))
}
Absence = Literal["", "no tool", "missing tool", "missing value"]


@frozen
class Step:
    """A call with slots (``$city``) and references (``@0.name``) in its arguments."""

    tool: str
    arguments: Mapping[str, Any]


def steps(*texts: str | tuple[str, Mapping[str, Any]]) -> tuple[Step, ...]:
    """Steps from short texts: ``"search_flights origin=@0 destination=city date"``.

    A parameter alone takes a slot of its own name; ``name=slot`` another one; ``name=@0`` a result; ``name='USD`` a
    constant; ``name=[…]`` JSON. Nested arguments may also come as a mapping beside the text.
    """
    made = []
    for entry in texts:
        text, nested = (entry, {}) if isinstance(entry, str) else entry
        tool, *tokens = text.split()
        arguments: dict[str, Any] = {}
        for token in tokens:
            name, _, value = token.partition("=")
            value = value or name
            if value[0] in "[{":
                arguments[name] = json.loads(value)
            elif value[0] == "'":
                arguments[name] = value[1:]
            else:
                arguments[name] = value if value[0] == "@" else f"${value}"
        made.append(Step(tool, {**arguments, **nested}))
    return tuple(made)


@frozen
class Family:
    """A program with slots and its forms.

    ``kind`` says why nothing is to be called; it is empty where something is. ``withheld`` are tools that must not be
    offered. A family without steps names its split and slots itself (``home``, ``spoken``).
    """

    name: str
    domain: str
    steps: tuple[Step, ...]
    forms: tuple[Form, ...]
    returns: Returns = "one"
    conjunctive: bool = False
    compound: str = ""
    kind: Absence = ""
    withheld: tuple[str, ...] = ()
    home: str = ""
    spoken: tuple[str, ...] = ()

    @property
    def split(self) -> str:
        """The split of the family's tools."""
        return self.home or SPLIT[self.steps[0].tool]

    @property
    def depth(self) -> int:
        """The number of calls of the right program."""
        return 0 if self.kind else len(self.steps)

    def slots(self) -> Iterator[str]:
        """The names of the slots, in the order of the program."""
        seen = set(self.spoken)
        yield from self.spoken
        for step in self.steps:
            for leaf in leaves(step.arguments):
                if isinstance(leaf, str) and leaf.startswith("$") and leaf not in seen:
                    seen.add(leaf)
                    yield leaf[1:]

    def draw(self, rng: random.Random, context: Context) -> Values:
        """A value for every slot; slots of one kind differ."""
        values: Values = {}
        for slot in self.slots():
            kind = kind_of(slot)
            taken = [value for other, value in values.items() if kind_of(other) == kind]
            for _ in range(50):
                value = KINDS[kind](rng, values, context)
                if value not in taken:
                    break
            values[slot] = value
        return values

    def program(self, values: Values) -> Program:
        """The reference program with these values."""
        calls = tuple(Call(number, step.tool, _fill(step.arguments, values)) for number, step in enumerate(self.steps))
        return Program(calls, self.returns)

    def program_shape(self) -> Program:
        """The program with the slots unfilled: good for its graph only."""
        return self.program(dict.fromkeys(self.slots(), ""))

    def phrase(self, values: Values, rng: random.Random) -> tuple[str, str]:
        """A query and the phrasing that it is an instance of."""
        form = pick(rng, self.forms)
        frame = pick(rng, FRAMES[form.mood])
        spoken = {slot: surface(value, rng) for slot, value in values.items()}
        text = sentence(fill(form.text, spoken), frame)
        phrasing = sentence(form.text, frame)
        chance = rng.random()
        if chance < 0.3:
            said = pick(rng, BACKGROUND[self.domain])
            text = f"{said} {text}" if chance < 0.2 and not frame.startswith(GREETINGS) else f"{text} {said}"
        return text, phrasing


def surface(value: Any, rng: random.Random) -> str:
    """One of the ways to say a value."""
    return pick(rng, surfaces(value))


def fill(text: str, spoken: Mapping[str, str]) -> str:
    """A form with its slots said."""
    return string.Formatter().vformat(text, (), spoken)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a JSON value."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def _fill(value: Any, values: Values) -> Any:
    if isinstance(value, Mapping):
        return {name: _fill(inner, values) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(inner, values) for inner in value]
    if isinstance(value, str) and value.startswith("$"):
        return values[value[1:]]
    if isinstance(value, str) and value.startswith("@"):
        reference = Reference.parse(f"API_RESPONSE_{value[1:]}")
        assert reference is not None
        return reference
    return value


def joined(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
