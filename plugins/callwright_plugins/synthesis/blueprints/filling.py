"""Filling: values of a world for the variables and made-up leaves of a shape, one try at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import TYPE_CHECKING, Any, Final

from callwright.environments.knowledge.suggestions import Source
from callwright.language.program import Path
from callwright.tools.reading import schema_at
from callwright_plugins.synthesis.blueprints.shapes import (
    Below,
    Entity,
    Free,
    FromResult,
    Shape,
    Template,
    Variable,
)
from callwright_plugins.synthesis.blueprints.texts import Blank, Written
from callwright_plugins.synthesis.exploration.values import Key, key_of, value_of
from callwright_plugins.synthesis.graph.references import located, place_name, value_at
from callwright_plugins.synthesis.language.inventing import invented_number, invented_text, is_worded, moved_moment

if TYPE_CHECKING:
    from callwright_plugins.synthesis.blueprints.binding import Binder, Made

#: Whether made-up values are others, the witness's own, or all values are the witness's own.
VARIED, PLAINLY, LITERALLY = range(3)
#: Values that are looked at for one that is in the state that the witness's was in.
_LOOKED_AT: Final = 8
_LATER_DAYS: Final = 9
_NOTHING: Final = object()


class Filling:
    """One try at the values of a shape: ``way`` says how far from those of the witness.

    ``within``: a thing that stood in one object with others is taken from one that holds them all, where there is one,
    and is like the things before it where the witness's were alike. It costs more and is for backtracking.
    """

    def __init__(self, binder: Binder, shape: Shape, way: int, rng: Random, *, within: bool = False) -> None:
        self.binder, self.shape, self.literally = binder, shape, way == LITERALLY
        self.plainly, self.rng, self.within = way != VARIED, rng, within
        self.results: list[Any] = []
        self.told: dict[Path, tuple[int, Path]] = {}
        self.entities: dict[int, Key] = {}
        self.free: dict[int, Any] = {}
        self.chosen: dict[tuple[int, Path], int] = {}
        self.days = rng.choice((0, 0, 0, *range(1, _LATER_DAYS)))
        self.blanks: dict[int, str] = {}
        self.made: list[Made] = []

    def copy(self) -> Filling:
        """What is filled so far, to go on with in another way."""
        made = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict):
                setattr(made, name, value.copy())
        return made

    def onto(self, shape: Shape) -> Filling:
        """The same values in a shape that begins with the steps, variables and blanks of this one."""
        made = self.copy()
        made.shape = shape
        return made

    def filled(self, template: Template, tool: str, path: Path) -> Any:
        """A template with values; ``None`` where there is none for one of its leaves."""
        kind = type(template)
        if kind is dict:
            return self._all_of(template, tool, path)
        if kind is FromResult:
            where = self._where(template)
            if where is None:
                return None
            self.told[path] = (template.step, where)
            return value_at(self.results[template.step], where)
        if kind is Entity:
            return self._entity(template.variable)
        if kind is Free:
            return self._made_up(template, tool, path)
        if kind is Written:
            return self._written(template)
        if kind is Below:
            folder = self._entity(template.folder.variable)
            return f"{folder.rstrip('/')}/{template.name}" if isinstance(folder, str) else None
        if kind is list:
            listed: list[Any] = []
            for number, inner in enumerate(template):
                value = self.filled(inner, tool, (*path, number))
                if value is None:
                    return None
                if value in listed and type(inner) is not Free:
                    return None  # the same thing twice
                listed.append(value)
            return listed
        return self._all_of(template, tool, path) if isinstance(template, Mapping) else template

    def _all_of(self, template: Mapping[str, Template], tool: str, path: Path) -> dict[str, Any] | None:
        made = {}
        for name, inner in template.items():
            value = self.filled(inner, tool, (*path, name))
            if value is None and not (type(inner) is Free and inner.value is None):
                return None
            made[name] = value
        return made

    def _written(self, leaf: Written) -> str | None:
        """A suggested text with its gaps filled: rather with what the conversation has been about."""
        for _, number in leaf.blanks:
            if number not in self.blanks:
                blank = self.shape.blanks[number]
                value = self._written(blank.text) if blank.text is not None else self._in_the_gap(blank)
                if value is None:
                    return None
                self.blanks[number] = value
        return leaf.text.with_values({name: self.blanks[number] for name, number in leaf.blanks})

    def _in_the_gap(self, blank: Blank) -> str | None:
        binder, rng = self.binder, self.rng
        if self.literally or (self.plainly and blank.gap.any_of and rng.random() < 0.3):
            return blank.value
        values = blank.gap.values(self._told)
        again = [one for one in values if ("string", one) in binder.about] if blank.gap.sources else []
        if again and rng.random() < 0.6:
            return rng.choice(again)
        free = [one for one in values if one not in self.blanks.values()] or values
        return rng.choice(free) if free else None

    def _told(self, stated: str) -> list[str]:
        """What a source of a gap has told in this world and conversation, the newest last."""
        source, bank = Source.of(stated), self.binder.context.bank
        found = [
            key[1]
            for place, values in zip(bank.places, bank.values, strict=True)
            if (place.origin, place.owner) == (source.origin, source.tool) and source.path in ("", place.path)
            for key in values
            if key[0] == "string"
        ]
        for made in (*self.binder.heard, *self.made):
            if made.tool == source.tool:
                value = dict(made.arguments) if source.origin == "argument" else made.outcome.value
                found += [
                    key[1]
                    for path, key in located(value)
                    if key[0] == "string" and source.path in ("", place_name(path))
                ]
        return found

    def _where(self, leaf: FromResult) -> Path | None:
        """Where in a result the value stands: in the object of a list that is in the state of the witness's."""
        result = self.results[leaf.step]
        if self.literally:
            return leaf.path if value_at(result, leaf.path) is not None else None
        path: tuple[Any, ...] = ()
        for place, part in enumerate(leaf.path):
            if isinstance(part, int):
                inside = value_at(result, path)
                if not isinstance(inside, list) or not inside:
                    return None
                known = self.chosen.get((leaf.step, path))
                if known is None or known >= len(inside):
                    known = self._member(inside, leaf, leaf.path[place + 1 :])
                    if known is None:
                        return None
                    self.chosen[leaf.step, path] = known
                path = (*path, known)
            else:
                path = (*path, part)
        found = value_at(result, path)
        return path if isinstance(found, str | int | float) and found != "" else None

    def _member(self, inside: list[Any], leaf: FromResult, rest: Path) -> int | None:
        simple = not any(isinstance(part, int) for part in rest)
        fits = [
            number
            for number, one in enumerate(inside)
            if not simple or (value_at(one, rest) if rest else one) not in (None, "")
        ]
        if not fits:
            return None
        few = self.rng.sample(fits, min(_LOOKED_AT, len(fits)))
        if len(rest) != 1 or self.rng.random() < 0.2:
            return few[0]
        return max(few, key=lambda number: _same_state(inside[number], leaf.state))

    def _entity(self, number: int) -> Any:
        if number in self.entities:
            return value_of(self.entities[number])
        if self.literally:
            return self.shape.variables[number].value
        variable, binder, rng = self.shape.variables[number], self.binder, self.rng
        kind = key_of(variable.value)[0]
        taken = set(self.entities.values())
        sources = binder.context.there(variable.sources)
        candidates: list[Key] = []
        if not sources:  # the user makes it up
            return variable.value
        beside = self._beside(number)
        for other in beside:  # what the user knows is given, and the rest goes by it
            if other not in self.entities and self._goes_by(variable, self.shape.variables[other]):
                self._entity(other)
        fixed = [self.entities[other] for other in beside if other in self.entities]
        if self.within and fixed:
            held = binder.context.within(fixed, variable.sources)
            candidates = [one for one in held if one[0] == kind and one not in taken]
        for key in fixed if not candidates else ():
            near = [one for one in binder.context.beside(key, variable.sources) if one[0] == kind and one not in taken]
            candidates = [one for one in candidates if one in near] or near if candidates else near
        if not candidates:
            if fixed and rng.random() < 0.7:
                return None
            place = sources[0] if rng.random() < 0.7 else rng.choice(sources)
            candidates = [one for one in binder.context.values(place) if one[0] == kind and one not in taken]
        if not candidates:
            return None
        again = [one for one in candidates if one in binder.about]
        if again and rng.random() < 0.6:
            candidates = again
        few = rng.sample(candidates, min(_LOOKED_AT, len(candidates)))
        found = few[0]
        if self.within and variable.state and rng.random() < 0.7:
            found = max(few, key=lambda key: self._alike(key, variable))
        elif variable.state and rng.random() < 0.7:
            found = max(few, key=lambda key: binder.context.likeness(key, variable.sources, variable.state))
        self.entities[number] = found
        return value_of(found)

    def _goes_by(self, variable: Variable, other: Variable) -> bool:
        """Whether a thing is drawn after one that is beside it: after what the user knows, which is given; and a number
        after what has it. Never both after one another.
        """
        number = not isinstance(variable.value, str) and isinstance(other.value, str)
        return not variable.of_the_user and (other.of_the_user or (self.within and number))

    def _alike(self, key: Key, variable: Variable) -> int:
        """In how many respects a thing is in the state of the witness's; in what a thing before it had in common with
        that, it is to have in common with the one that stands for it here.
        """
        context, wanted = self.binder.context, dict(variable.state)
        for number, other in self.entities.items():
            one = self.shape.variables[number]
            there = context.states(other, one.sources)
            alike = [place for place, state in one.state if (place, state) in variable.state]
            wanted.update((place, there[place]) for place in alike if place in there)
        states = context.states(key, variable.sources)
        return sum(states.get(place) == state for place, state in wanted.items())

    def _beside(self, number: int) -> list[int]:
        """The variables that stood in one object with this one."""
        variables = self.shape.variables
        later = [other for other, one in enumerate(variables) if number in one.beside]
        return [*variables[number].beside, *later]

    def _made_up(self, leaf: Free, tool: str, path: Path) -> Any:
        known = self.free.get(id(leaf), _NOTHING)
        if known is not _NOTHING:
            return known
        rng, value = self.rng, leaf.value
        if leaf.way == "moment":
            days = 0 if self.plainly else self.days
            value = moved_moment(value, self.shape.now, self.binder.context.now, days)
        elif leaf.way == "text" and not (self.plainly and self.shape.code):
            schema = schema_at(self.binder.tools[tool].parameters, path) or {}
            if not self.plainly or is_worded(leaf.name, schema):  # what is worded may be anything
                value = invented_text(tool, leaf.name, value, schema, rng)
        elif leaf.way == "number" and not self.plainly and rng.random() < 0.8:
            value = invented_number(value, schema_at(self.binder.tools[tool].parameters, path) or {}, rng)
        elif not self.plainly and leaf.way == "fixed" and isinstance(value, str) and rng.random() < 0.3:
            schema = schema_at(self.binder.tools[tool].parameters, path) or {}
            options = schema.get("enum")
            if isinstance(options, list) and options:
                value = rng.choice(options)
        self.free[id(leaf)] = value
        return value


def _same_state(member: Any, state: Sequence[tuple[str, Key]]) -> int:
    if not isinstance(member, Mapping):
        return 0
    return sum(name in member and key_of(member[name]) == key for name, key in state)
