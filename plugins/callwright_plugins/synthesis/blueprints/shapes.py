"""Shapes: what calls look like when their values are taken out, so that they can be made with others elsewhere.

A witness holds literal values of one world. Each is traced to where it came from: the result of an earlier call, a
thing of the world (found by live-state sampling), what the user knows, or nowhere (a number, a moment, a text that
somebody makes up). A shape states that, and :mod:`.binding` fills it in another world.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from callwright.environments.knowledge.suggestions import Source, Suggestions
from callwright.language.program import Call, Path
from callwright.tools.reading import schema_at
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.context import Context
from callwright_plugins.synthesis.blueprints.texts import Blank, Pen, Written
from callwright_plugins.synthesis.exploration.free import is_arbitrary, options_of
from callwright_plugins.synthesis.exploration.names import Words, likeness, words_of
from callwright_plugins.synthesis.exploration.values import Key, Place, key_of
from callwright_plugins.synthesis.graph.references import bindings, place_name, value_at
from callwright_plugins.synthesis.language.inventing import is_worded

#: How a made-up value varies: by what it is.
Way = Literal["fixed", "moment", "number", "text"]
#: How alike the names of a parameter and of a field are where the one takes the other's values.
_ALIKE: Final = 0.3
_SOURCES: Final = 4
_PAGING: Final = re.compile(r"(^|_)(cursor|page_token|next_token|continuation)$", re.IGNORECASE)
_REPEATING: Final = re.compile(r"(^|_)idempotency_key$", re.IGNORECASE)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?")


@frozen
class FromResult:
    """A value that an earlier step tells: at this path of its result, or at one alike in another object of a list.

    ``state`` are the members of that object that say what state it is in.
    """

    step: int
    path: Path
    state: tuple[tuple[str, Key], ...] = ()


@frozen
class Entity:
    """A thing of the world, or something that the user knows: the number of a variable."""

    variable: int


@frozen
class Free:
    """A value that somebody makes up. ``name`` is the parameter's, ``value`` what the witness had."""

    name: str
    way: Way
    value: Any


@frozen
class Below:
    """A path that no listing shows, in a folder that one does."""

    folder: Entity
    name: str


#: Arguments with such leaves in them.
Template = Any


#: Places that values may come from, and states that things may be in: one tuple for all variables of the same, by which
#: what a world holds is looked up.
_known: dict[Any, Any] = {}


def _the_same(stated: Any) -> Any:
    return _known.setdefault(stated, stated)


@frozen(slots=False)
class Variable:
    """What an entity may be: the places where one like it stands, and what it should be like.

    ``beside`` are earlier variables that stood in one object with it, ``state`` what state it was in.
    """

    sources: tuple[Place, ...] = field(converter=_the_same)
    value: Any
    state: tuple[tuple[Place, Key], ...] = field(default=(), converter=_the_same)
    beside: tuple[int, ...] = ()

    @cached_property
    def of_the_user(self) -> bool:
        """Whether it is something that the user knows and no tool tells."""
        return all(place.origin == "knowledge" for place in self.sources)


@frozen
class Step:
    """A call with its values taken out."""

    tool: str
    arguments: Mapping[str, Template]


@frozen
class Shape:
    """Calls with their values taken out. ``kind`` and ``code`` are what the last one comes to.

    ``source`` is the step whose result or effect the last one needs, for the shape of an edge; -1 for others. ``now``
    is the time of the witness, which moments are relative to, and ``world`` its scenario and seed.
    """

    steps: tuple[Step, ...]
    variables: tuple[Variable, ...]
    kind: str
    code: str
    now: datetime
    source: int = -1
    world: tuple[str, int] = ("", 0)
    blanks: tuple[Blank, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools in order."""
        return tuple(step.tool for step in self.steps)


def leaves_of(
    template: Template, path: Path = ()
) -> Iterator[tuple[Path, FromResult | Entity | Free | Below | Written]]:
    """The leaves of a template with their paths."""
    if isinstance(template, FromResult | Entity | Free | Below | Written):
        yield path, template
    elif isinstance(template, Mapping):
        for name, inner in template.items():
            yield from leaves_of(inner, (*path, name))
    elif isinstance(template, list):
        for number, inner in enumerate(template):
            yield from leaves_of(inner, (*path, number))


class Shaper:
    """Takes the values out of witnesses of one world, of which ``context`` is known, and ``suggestions`` say what free
    texts are like.
    """

    def __init__(self, tools: Mapping[str, ToolSpec], context: Context, suggestions: Suggestions | None = None) -> None:
        self.tools, self.context, self.suggestions = tools, context, suggestions
        self._places: dict[Key, list[Place]] = {}

    def shape(
        self,
        calls: Sequence[Call],
        results: Sequence[Any],
        kind: str = "ok",
        code: str = "",
        told: tuple[int, Path, Path] | None = None,
    ) -> Shape:
        """The shape of calls that had these results; ``told``: the step, the path in its result, the path of the last
        call's argument that are an information edge.
        """
        bound = bindings(calls, results)
        variables: list[Variable] = []
        numbers: dict[Key, int] = {}
        pen = Pen(self.suggestions)
        steps = []
        for number, call in enumerate(calls):
            spec = self.tools[call.tool]

            def leaf(path: Path, value: Any, number: int = number, spec: ToolSpec = spec) -> Template:
                if told is not None and number == len(calls) - 1 and path == told[2]:
                    return self._from_result(results, told[0], told[1])
                written = pen.written(spec.name, path, value)
                if written is not None:
                    return written
                made = self._leaf(spec, path, value, bound[number].get(path), calls, results, variables, numbers)
                # What nothing tells and an earlier call was given is the same as there.
                return pen.again.get(value, made) if isinstance(made, Free) and isinstance(value, str) else made

            mapped = {name: _mapped(value, (name,), leaf) for name, value in call.arguments.items()}
            if not code:  # a failure may be about just that
                mapped = _spoken(mapped, spec)
            steps.append(Step(call.tool, mapped))
        source = told[0] if told is not None else -1
        return Shape(tuple(steps), tuple(variables), kind, code, self.context.now, source, blanks=tuple(pen.blanks))

    def _leaf(
        self,
        spec: ToolSpec,
        path: Path,
        value: Any,
        told: tuple[int, Path] | None,
        calls: Sequence[Call],
        results: Sequence[Any],
        variables: list[Variable],
        numbers: dict[Key, int],
    ) -> Template:
        name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
        schema = schema_at(spec.parameters, path) or {}
        if value is None or isinstance(value, bool):
            return Free(name, "fixed", value)
        key, wanted = key_of(value), words_of(name)
        if options_of(schema) is not None:  # of one of the things that are asked about, or of nothing
            known = [place for place in self._known(key) if self._alike(wanted, place) >= 0.9]
            if not isinstance(value, str) or not known or known[0].origin == "knowledge":
                return Free(name, "fixed", value)
            variables.append(self._variable(key, value, known[:_SOURCES], variables))
            return Entity(len(variables) - 1)
        textual = isinstance(value, str)
        worded = textual and is_worded(name, schema)
        known = self._known(key)
        if worded:  # a note that happens to be the id of an address is about nothing
            known = [place for place in known if self._alike(wanted, place) >= _ALIKE]
        if textual and key in numbers and (known or not worded):
            return Entity(numbers[key])
        of_user = [place for place in known if place.origin == "knowledge"]
        if told is not None and not of_user:
            step, where = told
            field = words_of(place_name(where).replace("[]", "").rpartition(".")[2])
            if likeness(wanted, field, (*words_of(calls[step].tool), *words_of(place_name(where)))) >= _ALIKE:
                return self._from_result(results, step, where)
        least = _ALIKE if textual and not _MOMENT.fullmatch(value) else 0.6
        alike = [(self._alike(wanted, place), place) for place in known]
        sources = [place for worth, place in sorted(alike, key=lambda one: -one[0]) if worth >= least][:_SOURCES]
        if textual and "/" in value and not sources and not worded:  # paths are paths, whatever they are for
            sources = [place for place in known if place.origin == "result"][:_SOURCES]
        if of_user and (textual or any(place.origin == "knowledge" for place in sources)):
            sources = list(dict.fromkeys(Place("knowledge", "me", place.path) for place in of_user))
        if sources and isinstance(value, str | int | float):
            numbers[key] = len(variables)
            variables.append(self._variable(key, value, sources, variables))
            return Entity(numbers[key])
        if textual and "/" in value and not worded:
            folder = key_of(value.rpartition("/")[0])
            sources = [place for place in self._known(folder) if place.origin == "result"][:_SOURCES]
            if sources:
                if folder not in numbers:
                    numbers[folder] = len(variables)
                    variables.append(self._variable(folder, folder[1], sources, variables))
                return Below(Entity(numbers[folder]), value.rpartition("/")[2])
        if textual:
            return Free(name, "moment" if _MOMENT.fullmatch(value) and not worded else "text", value)
        return Free(name, "number" if isinstance(value, int | float) else "fixed", value)

    def _variable(self, key: Key, value: Any, places: list[Place], variables: list[Variable]) -> Variable:
        sources = tuple(places)
        beside = tuple(
            number
            for number, other in enumerate(variables)
            if key in self.context.beside(key_of(other.value), sources)
            or key_of(other.value) in self.context.beside(key, other.sources)
        )
        state = self.context.states(key, sources)
        return Variable(sources, value, tuple(state.items()), beside)

    def _known(self, key: Key) -> list[Place]:
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = [
                place for place in self.context.places_of(key) if place.origin in ("result", "knowledge")
            ]
        return found

    def _alike(self, wanted: Words, place: Place) -> float:
        return likeness(wanted, place.words, place.around)

    def _from_result(self, results: Sequence[Any], step: int, path: Path) -> FromResult:
        holder = value_at(results[step], path[:-1]) if path else None
        state: list[tuple[str, Key]] = []
        if isinstance(holder, Mapping):
            for name, value in holder.items():
                if isinstance(value, bool) or (isinstance(value, str) and value.isidentifier() and value.islower()):
                    state.append((name, key_of(value)))
        return FromResult(step, path, tuple(state))


def _is_unspoken(name: str, template: Template, spec: ToolSpec) -> bool:
    """Whether nobody would ask for this argument: where to go on in a list, unless an earlier call told it; a key that
    tells repeated requests apart.
    """
    if name in spec.parameters.get("required", ()):
        return False
    return _REPEATING.search(name) is not None or (
        _PAGING.search(name) is not None and not isinstance(template, FromResult)
    )


def _spoken(arguments: dict[str, Template], spec: ToolSpec) -> dict[str, Template]:
    """Arguments without those that nobody would ask for, unless nothing else were left."""
    spoken = {name: _sensible(name, one, spec) for name, one in arguments.items() if not _is_unspoken(name, one, spec)}
    required = spec.parameters.get("required", ())
    sensible = {name: one for name, one in spoken.items() if name in required or not _is_arbitrary(name, one, spec)}
    return sensible or spoken


def _sensible(name: str, template: Template, spec: ToolSpec) -> Template:
    """A list without those of its members that nobody would ask for, as long as others are left."""
    if not isinstance(template, list):
        return template
    return [one for one in template if not _is_arbitrary(name, one, spec)] or template


def _is_arbitrary(name: str, template: Template, spec: ToolSpec) -> bool:
    """Whether an argument holds what exploring tried for want of anything better."""
    return any(
        isinstance(leaf, Free)
        and is_arbitrary(leaf.name, leaf.value, schema := schema_at(spec.parameters, path) or {})
        and not is_worded(leaf.name, schema)
        for path, leaf in leaves_of(template, (name,))
    )


def _mapped(value: Any, path: Path, leaf: Any) -> Template:
    if isinstance(value, Mapping):
        return {name: _mapped(inner, (*path, name), leaf) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, (*path, number), leaf) for number, inner in enumerate(value)]
    return leaf(path, value)


def joined(first: Shape, second: Shape, at: int, needed: frozenset[str] = frozenset()) -> Shape | None:
    """One shape of two edges: the last step of ``first`` (or any, ``at``) is the source of ``second``.

    Steps of ``second`` whose tool ``first`` has already are taken to be the same calls; others are left out unless the
    target refers to them or their tool is among those that it ``needed``. ``None`` where the two do not fit.
    """
    if second.source < 0 or second.steps[second.source].tool != first.steps[at].tool:
        return None
    places = {second.source: at}
    own = {step.tool: place for place, step in enumerate(first.steps)}
    wanted = {len(second.steps) - 1}
    for place in range(len(second.steps) - 1, -1, -1):
        step = second.steps[place]
        if place in places:
            continue
        if place not in wanted and step.tool not in needed:
            continue
        wanted.add(place)
        wanted |= {leaf.step for _, leaf in leaves_of(dict(step.arguments)) if isinstance(leaf, FromResult)}
    steps, variables, blanks = list(first.steps), list(first.variables), list(first.blanks)
    entities: dict[int, Template] = {}
    written: dict[int, int] = {}
    for place, step in enumerate(second.steps):
        same = places.get(place)
        if same is None and place < len(second.steps) - 1:
            if place not in wanted:
                continue
            same = own.get(step.tool)
        if same is not None:
            places[place] = same
            given = dict(leaves_of(dict(first.steps[same].arguments)))
            for path, leaf in leaves_of(dict(step.arguments)):
                if isinstance(leaf, Entity) and path in given:
                    entities.setdefault(leaf.variable, given[path])
                same_text = given.get(path)
                if isinstance(leaf, Written) and isinstance(same_text, Written):
                    theirs, ours = dict(leaf.blanks), dict(same_text.blanks)
                    if leaf.whole is not None and leaf.text != same_text.text:
                        taken = _taken(second.blanks[leaf.whole], same_text, first.blanks)
                        if taken is not None and leaf.whole not in written:
                            written[leaf.whole] = len(blanks)
                            blanks.append(taken)
                        continue
                    for name in theirs.keys() & ours.keys():
                        written.setdefault(theirs[name], ours[name])
            continue
        # Texts first: what an entity of theirs is in our shape may be a text whose blanks are ours already.
        texts = _rewritten(dict(step.arguments), written, second.blanks, blanks)
        moved = _moved(texts, places, entities, second.variables, variables)
        if moved is None:
            return None
        places[place] = len(steps)
        steps.append(Step(step.tool, moved))
    world = first.world if first.world == second.world else ("", -1)
    return Shape(tuple(steps), tuple(variables), second.kind, second.code, first.now, at, world, tuple(blanks))


def taken_up(shape: Shape) -> list[Shape]:
    """The shape of an edge otherwise: what its source was given, and what may fill a gap of its target, does so.

    A folder was made and the one around it listed: the one that was made may be listed as well. No witness has them.
    """
    source, target = shape.steps[shape.source], shape.steps[-1]
    given = {place_name(path): leaf for path, leaf in leaves_of(dict(source.arguments)) if isinstance(leaf, Written)}
    written = [leaf for _, leaf in leaves_of(dict(target.arguments)) if isinstance(leaf, Written)]
    found = []
    for number in sorted({number for leaf in written for _, number in leaf.blanks}):
        blank = shape.blanks[number]
        for stated in map(Source.of, blank.gap.sources):
            text = given.get(stated.path) if (stated.origin, stated.tool) == ("argument", source.tool) else None
            if text is None or text == blank.text:
                continue
            taken = _taken(blank, text, shape.blanks)
            if taken is not None:
                last = evolve(target, arguments=_with_blank(target.arguments, number, len(shape.blanks)))
                blanks = (*shape.blanks, taken)
                found.append(evolve(shape, steps=(*shape.steps[:-1], last), blanks=blanks, world=("", -1)))
    return found


def _taken(blank: Blank, text: Written, blanks: Sequence[Blank]) -> Blank | None:
    """A blank that such a text, whose blanks these are, fills as a whole; ``None`` where its gap does not take it."""
    value = text.value(blanks)
    return Blank(blank.gap, value, text) if blank.gap.values(lambda _: [value]) == [value] else None


def _with_blank(template: Template, number: int, other: int) -> Template:
    """A template with another blank in place of one."""
    if isinstance(template, Written):
        return evolve(template, blanks=tuple((name, other if one == number else one) for name, one in template.blanks))
    if isinstance(template, Mapping):
        return {name: _with_blank(inner, number, other) for name, inner in template.items()}
    return [_with_blank(inner, number, other) for inner in template] if isinstance(template, list) else template


def _rewritten(template: Template, written: dict[int, int], theirs: Sequence[Blank], blanks: list[Blank]) -> Template:
    """A template of another shape whose suggested texts have their blanks among ours."""
    if isinstance(template, Written):
        for _, number in template.blanks:
            if number not in written:
                text = theirs[number].text
                ours = _rewritten(text, written, theirs, blanks) if text is not None else None
                written[number] = len(blanks)
                blanks.append(evolve(theirs[number], text=ours))
        return Written(template.text, tuple((name, written[number]) for name, number in template.blanks))
    if isinstance(template, Mapping):
        return {name: _rewritten(inner, written, theirs, blanks) for name, inner in template.items()}
    if isinstance(template, list):
        return [_rewritten(inner, written, theirs, blanks) for inner in template]
    return template


def _moved(
    template: Template,
    places: Mapping[int, int],
    entities: dict[int, Template],
    theirs: Sequence[Variable],
    variables: list[Variable],
) -> Template:
    """A template of another shape in this one; ``None`` where it refers to a step that is left out."""
    if isinstance(template, FromResult):
        return FromResult(places[template.step], template.path, template.state) if template.step in places else None
    if isinstance(template, Entity):
        if template.variable not in entities:
            one = theirs[template.variable]
            beside = tuple(known.variable for other in one.beside if isinstance(known := entities.get(other), Entity))
            entities[template.variable] = Entity(len(variables))
            variables.append(evolve(one, beside=beside))
        return entities[template.variable]
    if isinstance(template, Below):
        folder = _moved(template.folder, places, entities, theirs, variables)
        return Below(folder, template.name) if isinstance(folder, Entity) else None
    if isinstance(template, Mapping | list):
        keys = list(template) if isinstance(template, Mapping) else list(range(len(template)))
        made = {}
        for key in keys:
            made[key] = _moved(template[key], places, entities, theirs, variables)
            if made[key] is None:
                return None
        return made if isinstance(template, Mapping) else list(made.values())
    return template


def renamed(shape: Shape, names: Mapping[str, str], part: str) -> Shape:
    """A shape of one environment in another that it is a ``part`` of, where its tools have other ``names``."""

    def here(place: Place) -> list[Place]:
        if place.origin == "knowledge":  # what parts do not agree on is known by the part
            return [evolve(place, path=f"{part}.{place.path}"), place]
        return [evolve(place, owner=names.get(place.owner, place.owner))]

    return evolve(
        shape,
        steps=tuple(evolve(step, tool=names.get(step.tool, step.tool)) for step in shape.steps),
        variables=tuple(
            evolve(
                one,
                sources=tuple(there for place in one.sources for there in here(place)),
                state=tuple((here(place)[-1], key) for place, key in one.state),
            )
            for one in shape.variables
        ),
        world=("", -1),
    )
