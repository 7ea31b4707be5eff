"""The repertoire of an environment: the shapes of everything that its knowledge has witnesses of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any, Final

from attrs import evolve

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.knowledge.suggestions import Suggestions
from callwright.environments.protocol import EXECUTED, Environment, Suggests, declares
from callwright.language.program import Call
from callwright_plugins.synthesis.blueprints.binding import Binder
from callwright_plugins.synthesis.blueprints.context import Context, ask_around, sample, take_up
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.blueprints.shapes import (
    Free,
    FromResult,
    Shape,
    Shaper,
    joined,
    leaves_of,
    renamed,
    taken_up,
)
from callwright_plugins.synthesis.blueprints.texts import Written
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.exploration.witness import Witness, copied
from callwright_plugins.synthesis.graph.edges import Edge
from callwright_plugins.synthesis.graph.references import bindings, place_name, replaced, value_at

Pair = tuple[str, str]
#: Shapes by which a tool that reads is asked while sampling, and how often by each.
_READ_SHAPES: Final = 3
_READS: Final = 4


class Repertoire:
    """Shapes by tool (``single``), by pair of tools (``edges``), and by tool and failure code (``failures``).

    ``repaired`` are, by tool and failure code, shapes of a call that makes the tool execute which failed so: the shape
    of a state edge, whose ``source`` is the step that was missing.
    """

    def __init__(self, environment: Environment, knowledge: Knowledge | None) -> None:
        self.environment = environment
        self.tools = environment.tools
        self.single: dict[str, list[Shape]] = {}
        self.edges: dict[Pair, list[tuple[Edge, Shape]]] = {}
        self.failures: dict[Pair, Shape] = {}
        self.repaired: dict[Pair, list[Shape]] = {}
        self.needs: dict[str, frozenset[str]] = {}
        #: By shape: how often it could be filled, and how often that was tried.
        self.worth: dict[int, tuple[int, int]] = {}
        #: By tool: the same for backtracking.
        self.backtracked: dict[str, tuple[int, int]] = {}
        self._joined: dict[tuple[int, int], Shape | None] = {}
        self._reach: dict[tuple[tuple[str, ...], int], int] = {}
        self._reads: dict[str, list[Shape]] = {}
        if knowledge is not None:
            self._shape_all(knowledge)

    # What a world holds -----------------------------------------------------------------------------------------------

    def context(self, session: Any, rng: Random) -> Context:
        """What a world holds, for conversations in it."""
        return sample(self.environment, session, _Reading(self, rng))

    def joined(self, first: Shape, second: Shape, needed: frozenset[str]) -> Shape | None:
        """The two as one, made once: its last step is that of ``second``, whose source is the last of ``first``."""
        key = id(first), id(second)
        if key not in self._joined:
            self._joined[key] = joined(first, second, len(first.steps) - 1, needed)
        return self._joined[key]

    def reach(self, walk: tuple[str, ...], most: int) -> int:
        """How many tools the longest walk over the edges has that goes on from this one, none of them twice; ``most``
        are enough.
        """
        if len(walk) >= most:
            return most
        found = self._reach.get((walk, most)) if len(walk) == 2 else None
        if found is None:
            found = len(walk)
            for target in self.onward.get(walk[-1], ()):
                if target not in walk and found < most:
                    found = max(found, self.reach((*walk, target), most))
            if len(walk) == 2:
                self._reach[walk, most] = found
        return found

    @cached_property
    def onward(self) -> Mapping[str, Sequence[str]]:
        """By tool: those that an edge leads to from there."""
        found: dict[str, list[str]] = {}
        for source, target in self.edges:
            found.setdefault(source, []).append(target)
        return found

    # Shapes -----------------------------------------------------------------------------------------------------------

    def _shape_all(self, knowledge: Knowledge) -> None:
        explored, graph = knowledge.explored, knowledge.graph
        worlds: dict[tuple[str, int], _World] = {}

        def world(witness: Witness) -> _World:
            key = witness.scenario, witness.seed
            if key not in worlds:
                worlds[key] = _World(self.environment, *key, _witnesses(knowledge, key))
            return worlds[key]

        try:
            for tool, found in sorted(explored.witnesses.items()):
                shapes = [shape for one in found if (shape := world(one).shape(one)) is not None]
                self.single[tool] = _distinct(shapes)
                reading = [one for one in shapes if all(self.tools[step.tool].read_only for step in one.steps)]
                self._reads[tool] = [one for one in _distinct(reading) if len(one.steps) == 1][:_READ_SHAPES]
            for tool, by_code in sorted(explored.failures.items()):
                for code, one in sorted(by_code.items()):
                    shape = world(one).shape(one)
                    if shape is not None:
                        self.failures[tool, code] = shape
            for edge in graph.edges:
                self._shape_edge(edge, world)
        finally:
            for one_world in worlds.values():
                one_world.session.close()
        for source, target in graph.pairs("state"):
            self.needs[target] = self.needs.get(target, frozenset()) | {source}

    def _shape_edge(self, edge: Edge, world: Any) -> None:
        shapes = []
        for proof in edge.proofs:
            told = (proof.step, proof.found, proof.place) if edge.kind == "information" else None
            shape = world(proof.given).shape(proof.given, told, proof.step)
            if shape is None:
                continue
            shapes.append(shape)
            if edge.kind == "state" and proof.without.code:
                self.repaired.setdefault((edge.target, proof.without.code), []).append(shape)
        others = [one for shape in shapes for one in taken_up(shape)]
        found = _distinct([*shapes, *others])
        self.edges.setdefault((edge.source, edge.target), []).extend((edge, one) for one in found)


def together(environment: ComposedEnvironment, parts: Mapping[str, Repertoire]) -> Repertoire:
    """The repertoire of several environments as one, of the repertoires of its parts by their names."""
    made = Repertoire(environment, None)
    for part, own in parts.items():
        names = {original: name for name in environment.tools if (original := environment.names_in(part)(name))}

        def here(shapes: Iterable[Shape], part: str = part, names: Mapping[str, str] = names) -> list[Shape]:
            return [renamed(one, names, part) for one in shapes]

        made.single.update({names[tool]: here(found) for tool, found in own.single.items() if tool in names})
        made._reads.update({names[tool]: here(found) for tool, found in own._reads.items() if tool in names})
        for (source, target), found in own.edges.items():
            if source in names and target in names:
                made.edges[names[source], names[target]] = [
                    (edge, renamed(shape, names, part)) for edge, shape in found
                ]
        for target, sources in own.needs.items():
            if target in names:
                made.needs[names[target]] = frozenset(names[one] for one in sources if one in names)
    return made


def _witnesses(knowledge: Knowledge, key: tuple[str, int]) -> list[Witness]:
    explored, graph = knowledge.explored, knowledge.graph
    paths: Iterable[Witness] = (
        *(one for found in explored.witnesses.values() for one in found),
        *(proof.given for edge in graph.edges for proof in edge.proofs),
    )
    return [one for one in paths if (one.scenario, one.seed) == key]


class _World:
    """A world that witnesses are of, of which as much is known as they tell."""

    def __init__(self, environment: Environment, scenario: str, seed: int, witnesses: Sequence[Witness]) -> None:
        self.environment = environment
        self.session = opened(environment, scenario, seed)
        self.context = sample(environment, self.session, _Nothing(), rounds=0)
        tools = environment.tools
        asked: dict[str, Call] = {}
        for witness in witnesses:
            for call in witness.calls:
                if not tools[call.tool].read_only:
                    break
                asked.setdefault(repr((call.tool, call.arguments)), call)
        for call in asked.values():
            take_up(self.session, self.context, tools[call.tool], dict(call.arguments))
        ask_around(self.session, self.context)
        self.shaper = Shaper(tools, self.context, suggestions_of(environment))
        self._known: dict[str, list[Any] | None] = {}

    def shape(self, witness: Witness, told: Any = None, source: int = -1) -> Shape | None:
        """The shape of a witness; ``None`` where its calls do not come to what they did.

        Paths of exploring and of proofs hold steps that were of no use, or the same step again: they are left out,
        unless one is the ``source`` of an edge.
        """
        results = self._results(witness, witness.calls)
        if results is None:
            return None
        calls = witness.calls
        for place in range(len(calls) - 2, -1, -1):
            found = self._without(witness, calls, results, place, told) if place != source else None
            if found is None:
                continue
            moved = source - (place < source)
            if moved >= 0 and told is None and self._without(witness, *found, moved, None) is not None:
                continue  # the source would be of no use any more
            told = told and (told[0] - (place < source), *told[1:])
            (calls, results), source = found, moved
        # What came about in part has a code, too, and is no failure.
        code = "" if witness.kind in EXECUTED else witness.code or witness.kind
        shape = self.shaper.shape(calls, results, witness.kind, code, told)
        return evolve(shape, source=source, world=(witness.scenario, witness.seed))

    def _without(
        self, witness: Witness, calls: tuple[Call, ...], results: Sequence[Any], left_out: int, told: Any
    ) -> tuple[tuple[Call, ...], list[Any]] | None:
        """The calls without one of them and their results, where they come to what the witness came to.

        What a call told is told anew, since a token may hang on how many there were. What the call that is left out
        told is told by another call that is the same.
        """
        bound = bindings(calls, results)
        if told is not None:
            bound[-1][told[2]] = told[:2]
        gone = calls[left_out]
        twin = next(
            (
                place
                for place, one in enumerate(calls)
                if place != left_out and one.tool == gone.tool and one.arguments == gone.arguments
            ),
            None,
        )
        fork = self.session.fork()
        found: dict[int, Any] = {}
        kept: list[Call] = []
        for place, call in enumerate(calls):
            if place == left_out:
                continue
            arguments: Any = copied(call.arguments)
            for path, (step, where) in bound[place].items():
                value = value_at(found.get(step if step != left_out else twin if twin is not None else -1), where)
                if isinstance(value, str):
                    arguments = replaced(arguments, path, value)
            outcome = fork.call(call.tool, copied(arguments))
            kept.append(Call(len(kept), call.tool, arguments))
            found[place] = outcome.value
            if place < len(calls) - 1:
                if not outcome.executed:
                    return None
            elif outcome.kind != witness.kind or (witness.code and (outcome.code or outcome.kind) != witness.code):
                return None
        return tuple(kept), [found[place] for place in sorted(found)]

    def _results(self, witness: Witness, calls: Sequence[Call]) -> list[Any] | None:
        """The results of calls, where they come to what the witness came to."""
        fork = self.session.fork()
        results = []
        for call in calls[:-1]:
            outcome = fork.call(call.tool, copied(call.arguments))
            if not outcome.executed:
                return None
            results.append(outcome.value)
        outcome = fork.call(calls[-1].tool, copied(calls[-1].arguments))
        if outcome.kind != witness.kind or (witness.code and (outcome.code or outcome.kind) != witness.code):
            return None
        return [*results, outcome.value]


def suggestions_of(environment: Environment) -> Suggestions | None:
    """What to write into free-text arguments there, where the environment says so."""
    return environment.suggestions if declares(environment, Suggests) else None  # type: ignore[attr-defined]


class _Nothing:
    """Asks nothing."""

    def arguments_of(self, tool: str, context: Context) -> Iterable[dict[str, Any]]:
        """Nothing."""
        return ()


class _Reading:
    """Draws arguments for the tools that read, by their shapes."""

    def __init__(self, repertoire: Repertoire, rng: Random) -> None:
        self.repertoire, self.rng = repertoire, rng

    def arguments_of(self, tool: str, context: Context) -> Iterable[dict[str, Any]]:
        """Arguments that what is known so far fills."""
        binder = Binder(self.repertoire.tools, context, self.rng)
        seen: set[str] = set()
        for shape in self.repertoire._reads.get(tool, ()):
            for _ in range(_READS if shape.variables else 1):
                arguments = binder.arguments(shape)
                if arguments is not None and repr(arguments) not in seen:
                    seen.add(repr(arguments))
                    yield arguments


def _ways(shape: Shape, place: int) -> tuple[Any, ...]:
    """Where the arguments of a step come from, without values."""
    found = []
    for path, leaf in leaves_of(dict(shape.steps[place].arguments)):
        way = (
            leaf.texts(shape.blanks)
            if isinstance(leaf, Written)
            else leaf.step
            if isinstance(leaf, FromResult)
            else leaf.value
            if isinstance(leaf, Free) and leaf.way == "fixed"
            else 0
        )
        found.append((place_name(path), type(leaf).__name__, str(way)))
    return tuple(sorted(found))


def _distinct(shapes: Iterable[Shape]) -> list[Shape]:
    """Shapes that differ in tools or in where their values come from; the shortest first."""
    found: dict[Any, Shape] = {}
    for shape in sorted(shapes, key=lambda one: len(one.steps)):
        key = (shape.kind, shape.code, tuple((step.tool, _ways(shape, n)) for n, step in enumerate(shape.steps)))
        found.setdefault(key, shape)
    return list(found.values())
