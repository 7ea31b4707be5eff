"""Binding: a shape filled with the values of a world and executed there, until its outcomes are as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import define, field, frozen

from callwright.environments.knowledge.suggestions import Source
from callwright.environments.protocol import Outcome, Session
from callwright.language.program import Call, Path
from callwright.tools.reading import schema_at
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.context import Context
from callwright_plugins.synthesis.blueprints.inventing import invented_number, invented_text, moved_moment
from callwright_plugins.synthesis.blueprints.shapes import (
    Below,
    Blank,
    Entity,
    Free,
    FromResult,
    Shape,
    Template,
    Variable,
    Written,
    leaves_of,
)
from callwright_plugins.synthesis.exploration.values import Key, key_of, value_of
from callwright_plugins.synthesis.graph.effects import state_of
from callwright_plugins.synthesis.graph.references import located, place_name, replaced, value_at

#: Values that are looked at for one that is in the state that the witness's was in.
_LOOKED_AT: Final = 8
_LATER_DAYS: Final = 9
#: Tries in a row that fail at one step for one reason, after which more of them are thought to do the same.
_ALIKE: Final = 3
#: Whether made-up values are others, the witness's own, or all values are the witness's own.
_VARIED, _PLAINLY, _LITERALLY = range(3)


@frozen
class Made:
    """A call that was executed: its literal arguments, which of them an earlier call of the same bound told (its place
    and the path in its result), which were made up or are things of the world, and what came of it. ``heard`` are the
    arguments that were told in an earlier turn.
    """

    tool: str
    arguments: Mapping[str, Any]
    told: Mapping[Path, tuple[int, Path]]
    outcome: Outcome
    heard: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """The kind of its outcome."""
        return self.outcome.kind


@frozen
class Bound:
    """A shape with values: calls that were made one after the other, and the session after them."""

    shape: Shape
    made: tuple[Made, ...]
    session: Session

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls with literal arguments."""
        return tuple(Call(number, one.tool, one.arguments) for number, one in enumerate(self.made))


@define(eq=False)
class Binder:
    """Fills shapes with the values of one world."""

    tools: Mapping[str, ToolSpec]
    context: Context
    rng: Random
    #: Calls that were made, for whoever measures.
    calls: int = 0
    #: Values that the conversation has been about so far: they are taken again where they fit.
    about: dict[Key, None] = field(factory=dict)
    #: Calls that were bound so far: suggested texts are about what they were given and told.
    heard: list[Made] = field(factory=list)
    #: Whether a call that takes something away has to change the state: servers say that all went well where nothing
    #: was done.
    in_effect: bool = False
    #: Whether every try is made, also after some that failed alike.
    patient: bool = False
    #: At which step the last try failed, and with what kind and code of outcome.
    failed: tuple[int, str, str] = (0, "", "")

    def bind(self, session: Any, shape: Shape, tries: int, *, literally: bool = False) -> Bound | None:
        """The shape with values in a fork of a session: its calls execute, and the last comes to what it should.

        Made-up values are varied in the first half of the tries. ``literally``: with the values of the witness, in its
        own world. ``None`` where no try came to it.
        """
        if literally:
            return self._try(session.fork(), shape, _LITERALLY, set())
        if any(not self._may_be(one) for one in shape.variables):
            return None
        seen: set[str] = set()
        for way, most in ((_VARIED, (tries + 1) // 2), (_PLAINLY, tries // 2)):
            alike, before = 0, None
            for _ in range(most):
                bound = self._try(session.fork(), shape, way, seen)
                if bound is not None:
                    return bound
                alike = alike + 1 if self.failed == before else 1
                before = self.failed
                if alike == _ALIKE and not self.patient:
                    break
        return None

    def take_up(self, bound: Bound) -> None:
        """The conversation has these calls in it."""
        self.about.update(entities_of(bound))
        self.heard += [one for one in bound.made if one.outcome.executed]

    def arguments(self, shape: Shape) -> dict[str, Any] | None:
        """Arguments for a shape of one call, without making it; ``None`` where nothing fits."""
        if len(shape.steps) != 1 or any(not self._may_be(one) for one in shape.variables):
            return None
        filling = _Filling(self, shape, _VARIED)
        found = filling.filled(shape.steps[0].arguments, shape.steps[0].tool, ())
        return found if isinstance(found, dict) else None

    def _may_be(self, variable: Variable) -> bool:
        return variable.of_the_user or bool(self.context.there(variable.sources))

    def _try(self, session: Any, shape: Shape, way: int, seen: set[str]) -> Bound | None:
        filling = _Filling(self, shape, way)
        made: list[Made] = []
        for place, step in enumerate(shape.steps):
            filling.told = {}
            arguments = filling.filled(step.arguments, step.tool, ())
            self.failed = place, "", ""
            if not isinstance(arguments, dict):
                return None
            spec = self.tools[step.tool]
            if not spec.compiled.literal.validator.is_valid(arguments):
                return None
            if place == 0:
                text = repr(arguments)
                if len(shape.steps) == 1 and text in seen:
                    return None
                seen.add(text)
            self.calls += 1
            before = state_of(session) if self.in_effect and spec.destructive else None
            outcome = session.call(step.tool, arguments)
            self.failed = place, outcome.kind, outcome.code
            last = place == len(shape.steps) - 1
            if not _as_wanted(outcome, shape, last):
                return None
            if before is not None and outcome.executed and state_of(session) == before:
                return None
            made.append(Made(step.tool, arguments, filling.told, outcome))
            filling.results.append(outcome.value)
            filling.made.append(made[-1])
        return Bound(shape, tuple(made), session) if len(made) == len(shape.steps) else None


def _as_wanted(outcome: Outcome, shape: Shape, last: bool) -> bool:
    if not last:
        return outcome.kind in ("ok", "partial")
    if shape.code:
        return outcome.failed and (outcome.code or outcome.kind) == shape.code
    return outcome.kind in ("ok", "partial") or outcome.kind == shape.kind == "empty"


class _Filling:
    """One try at the values of a shape: ``way`` says how far from those of the witness."""

    def __init__(self, binder: Binder, shape: Shape, way: int) -> None:
        self.binder, self.shape, self.literally = binder, shape, way == _LITERALLY
        self.plainly = way != _VARIED
        self.results: list[Any] = []
        self.told: dict[Path, tuple[int, Path]] = {}
        self.entities: dict[int, Key] = {}
        self.free: dict[int, Any] = {}
        self.chosen: dict[tuple[int, Path], int] = {}
        self.days = binder.rng.choice((0, 0, 0, *range(1, _LATER_DAYS)))
        self.blanks: dict[int, str] = {}
        self.made: list[Made] = []

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
                value = self._in_the_gap(self.shape.blanks[number])
                if value is None:
                    return None
                self.blanks[number] = value
        return leaf.text.with_values({name: self.blanks[number] for name, number in leaf.blanks})

    def _in_the_gap(self, blank: Blank) -> str | None:
        binder, rng = self.binder, self.binder.rng
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
        few = self.binder.rng.sample(fits, min(_LOOKED_AT, len(fits)))
        if len(rest) != 1 or self.binder.rng.random() < 0.2:
            return few[0]
        return max(few, key=lambda number: _same_state(inside[number], leaf.state))

    def _entity(self, number: int) -> Any:
        if number in self.entities:
            return value_of(self.entities[number])
        if self.literally:
            return self.shape.variables[number].value
        variable, binder, rng = self.shape.variables[number], self.binder, self.binder.rng
        kind = key_of(variable.value)[0]
        taken = set(self.entities.values())
        sources = binder.context.there(variable.sources)
        candidates: list[Key] = []
        if not sources:  # the user makes it up
            return variable.value
        beside = self._beside(number)
        for other in beside:  # what the user knows is given, and the rest goes by it
            if other not in self.entities and self.shape.variables[other].of_the_user and not variable.of_the_user:
                self._entity(other)
        fixed = [self.entities[other] for other in beside if other in self.entities]
        for key in fixed:
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
        if variable.state and rng.random() < 0.7:
            found = max(few, key=lambda key: binder.context.likeness(key, variable.sources, variable.state))
        self.entities[number] = found
        return value_of(found)

    def _beside(self, number: int) -> list[int]:
        """The variables that stood in one object with this one."""
        variables = self.shape.variables
        later = [other for other, one in enumerate(variables) if number in one.beside]
        return [*variables[number].beside, *later]

    def _made_up(self, leaf: Free, tool: str, path: Path) -> Any:
        known = self.free.get(id(leaf), _NOTHING)
        if known is not _NOTHING:
            return known
        rng, value = self.binder.rng, leaf.value
        if leaf.way == "moment":
            days = 0 if self.plainly else self.days
            value = moved_moment(value, self.shape.now, self.binder.context.now, days)
        elif not self.plainly and leaf.way != "fixed" and (leaf.way == "text" or rng.random() < 0.8):
            schema = schema_at(self.binder.tools[tool].parameters, path) or {}
            if leaf.way == "number":
                value = invented_number(value, schema, rng)
            else:
                value = invented_text(leaf.name, value, schema, rng)
        elif not self.plainly and leaf.way == "fixed" and isinstance(value, str) and rng.random() < 0.3:
            schema = schema_at(self.binder.tools[tool].parameters, path) or {}
            options = schema.get("enum")
            if isinstance(options, list) and options:
                value = rng.choice(options)
        self.free[id(leaf)] = value
        return value


_NOTHING: Final = object()


def _same_state(member: Any, state: Sequence[tuple[str, Key]]) -> int:
    if not isinstance(member, Mapping):
        return 0
    return sum(name in member and key_of(member[name]) == key for name, key in state)


def with_references(arguments: Mapping[str, Any], told: Mapping[Path, Any]) -> dict[str, Any]:
    """Arguments in which references stand at these paths."""
    made: Any = dict(arguments)
    for path, reference in told.items():
        made = replaced(made, path, reference)
    return dict(made)


def literals(arguments: Mapping[str, Any], told: Mapping[Path, Any]) -> list[tuple[Path, Key]]:
    """The texts and numbers of arguments that no reference stands for."""
    return [(path, key_of(leaf)) for path, leaf in leaves_of_values(arguments) if path not in told]


def leaves_of_values(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """The leaves of JSON with their paths."""
    found: list[tuple[Path, Any]] = []
    _collect(value, path, found)
    return found


def _collect(value: Any, path: Path, found: list[tuple[Path, Any]]) -> None:
    kind = type(value)
    if kind is str or kind is int:
        found.append((path, value))
    elif kind is dict or isinstance(value, Mapping):
        for name, inner in value.items():
            _collect(inner, (*path, name), found)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _collect(inner, (*path, number), found)
    else:
        found.append((path, value))


def entities_of(bound: Bound) -> dict[Key, None]:
    """The things of the world that the calls are about."""
    found: dict[Key, None] = {}
    for made, step in zip(bound.made, bound.shape.steps, strict=True):
        for path, leaf in leaves_of(dict(step.arguments)):
            if isinstance(leaf, Written):
                text = value_at(dict(made.arguments), path)
                gaps = {name: bound.shape.blanks[number].gap for name, number in leaf.blanks}
                values = leaf.text.read(text, gaps) if isinstance(text, str) else None
                found.update({("string", one): None for one in (values or {}).values()})
            if not isinstance(leaf, Free):
                value = value_at(dict(made.arguments), path)
                if isinstance(value, str):
                    found[key_of(value)] = None
    return found
