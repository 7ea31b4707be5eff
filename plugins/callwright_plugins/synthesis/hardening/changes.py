"""Changes that make a conversation harder: each takes a blueprint, and gives another one or nothing.

step            the user asks for something further, bound and executed in the world that is left
withheld        a required argument is not said at first, so that the assistant has to ask for it
distractors     tools of other environments that are alike in name or parameters are offered, too
constraint      a call is asked for with one optional argument more, which makes a difference in this world
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import define, evolve, field

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.protocol import Environment, Outcome
from callwright.language.program import Call, Reference
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.binding import with_references
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.blueprints.offering import Offering, alike
from callwright_plugins.synthesis.blueprints.order import ordered, same_state
from callwright_plugins.synthesis.blueprints.repertoire import Repertoire
from callwright_plugins.synthesis.blueprints.turns import in_vain, stage_of
from callwright_plugins.synthesis.blueprints.wishes import Coverage, Venue, Wisher
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.exploration.free import is_arbitrary
from callwright_plugins.synthesis.graph.references import value_at
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.sayable import Sayable
from callwright_plugins.synthesis.language.styles import Information
from callwright_plugins.synthesis.language.values.hints import SENSITIVE

#: The changes by their names, in the order in which they are told.
CHANGES: Final = ("step", "withheld", "distractors", "constraint")
#: The longest conversation that a step is added to, in turns of the user: four with a question each are all that
#: :data:`..grounded.LIMITS` has room for.
_MOST_STAGES: Final = 3
#: How alike a tool of another environment is to one that is called, by the words of name or parameters.
_ALIKE: Final = 0.25
_TRIES: Final = 6
#: Values that are tried of an optional parameter.
_VALUES: Final = 6


@define(eq=False)
class Changing:
    """Changes blueprints of one environment.

    ``knowledge`` is asked for when a change needs it: exploring an environment takes a while. Environments that are
    several as one are not explored, so that their conversations get no step and no constraint.
    """

    environment: Environment
    registry: Registry
    knowledge: Callable[[Environment], Knowledge]
    _known: Repertoire | None = field(init=False, default=None)
    _values: dict[tuple[str, str], list[Any]] = field(init=False, factory=dict)
    _offering: Offering | None = field(init=False, default=None)

    def __call__(self, change: str, blueprint: Blueprint, rng: Random) -> Blueprint | None:
        """The blueprint with a change of :data:`CHANGES`; ``None`` where there is no room for it."""
        changes: Mapping[str, Callable[[Blueprint, Random], Blueprint | None]] = {
            "step": self._step,
            "withheld": self._withheld,
            "distractors": self._distractors,
            "constraint": self._constraint,
        }
        return changes[change](blueprint, rng)

    # A step -----------------------------------------------------------------------------------------------------------

    def _step(self, blueprint: Blueprint, rng: Random) -> Blueprint | None:
        """A further turn of the user, about what the world holds after the others."""
        if not self._is_open(blueprint) or len(blueprint.stages) > _MOST_STAGES:
            return None
        repertoire = self._repertoire()
        venue = Venue(repertoire, blueprint.scenario, rng, 1, self.registry)
        world = venue.world(blueprint.seed)
        try:
            session = world.session.fork()
            if not all(played(stage, session) is not None for stage in blueprint.stages):
                return None
            wisher = Wisher(venue, world, Coverage(), rng)
            known = [(call.tool, call.arguments) for stage in blueprint.stages for call in stage.asked.calls]
            for _ in range(_TRIES):
                found = wisher.chain(session, 2) if rng.random() < 0.5 else wisher.single(session)
                if found is None:
                    continue
                stage = stage_of([found[0]], repertoire.tools)
                asked = [(call.tool, call.arguments) for call in stage.asked.calls]
                stages = (*blueprint.stages, stage)
                if (
                    asked
                    and not all(one in known for one in asked)
                    and venue.sayable(stage.asked)
                    and not in_vain(stages, repertoire.tools, world.session, found[1])
                ):
                    chain = tuple(dict.fromkeys((*blueprint.chain, *found[0].chain)))
                    stages = ordered(stages, repertoire.tools, world.session)
                    return evolve(blueprint, stages=stages, goals=blueprint.goals + 1, chain=chain)
        finally:
            world.session.close()
        return None

    # A withheld parameter ---------------------------------------------------------------------------------------------

    def _withheld(self, blueprint: Blueprint, rng: Random) -> Blueprint | None:
        """One of the turns that say everything says less; without such a turn one that says less says the least."""
        if blueprint.kind not in ("task", "failing"):
            return None
        levels: tuple[tuple[Information, Information, int], ...] = (
            ("complete", "missing", 1),
            ("missing", "minimal", 2),
        )
        for level, less, least in levels:
            able = [
                number
                for number, stage in enumerate(blueprint.stages)
                if stage.calls and stage.information == level and self._sayable_values(stage) >= least
            ]
            if able:
                number = rng.choice(able)
                return _with_stage(blueprint, number, evolve(blueprint.stages[number], information=less))
        return None

    def _sayable_values(self, stage: Stage) -> int:
        """How many required arguments are said as they are."""
        found = 0
        for call in stage.asked.calls:
            referring = {path[0] for path, _ in call.located}
            spec = self.environment.tools.get(call.tool)
            required = spec.parameters.get("required", ()) if spec is not None else ()
            found += sum(name in required and name not in referring for name in call.arguments)
        return found

    # Distractors ------------------------------------------------------------------------------------------------------

    def _distractors(self, blueprint: Blueprint, rng: Random) -> Blueprint | None:
        """Tools of other environments that can be taken for those that are called."""
        own = self.environment.tools
        called = {call.tool for stage in blueprint.stages for call in stage.calls if call.tool in own}
        if not called:
            return None
        if self._offering is None:
            self._offering = Offering(self.environment, self.registry, Knobs(confusable=1.0), Random(0))
        offering = self._offering
        offering.rng, offering.environments[self.environment.name] = rng, self.environment
        there = {one.tool for one in blueprint.distractors}

        def confusable(spec: ToolSpec) -> bool:
            return max(alike(own[tool], spec) for tool in called) >= _ALIKE

        more = tuple(
            one
            for one in offering.distractors(blueprint)
            if one.tool not in there and confusable(offering.others[one.environment].tools[one.tool])
        )
        return evolve(blueprint, distractors=(*blueprint.distractors, *more)) if more else None

    # A constraint -----------------------------------------------------------------------------------------------------

    def _constraint(self, blueprint: Blueprint, rng: Random) -> Blueprint | None:
        """One optional argument more of a call that no other one refers to, where it makes a difference."""
        if not self._is_open(blueprint):
            return None
        sayable = Sayable(self.environment, self.registry)
        first = opened(self.environment, blueprint.scenario, blueprint.seed)
        try:
            session = first.fork()
            places = []
            for number, stage in enumerate(blueprint.stages):
                before = session.fork()
                if played(stage, session) is None:
                    return None
                places += [(number, before, call) for call in _last_calls(stage)]
            for number, before, call in rng.sample(places, len(places)):
                stage = blueprint.stages[number]
                for name, value in self._optional(call, rng):
                    made = _constrained(stage, call, name, value)
                    if made is not None and self._differs(stage, made, before) and sayable(made.asked):
                        return _with_stage(blueprint, number, made)
        finally:
            first.close()
        return None

    def _optional(self, call: Call, rng: Random) -> Iterator[tuple[str, Any]]:
        """Values for optional parameters of a call: those of a closed set, and such as were taken while exploring."""
        schema = self.environment.tools[call.tool].parameters
        required = schema.get("required", ())
        names = [
            name
            for name in schema.get("properties", {})
            if name not in required and name not in call.arguments and not SENSITIVE.search(name)
        ]
        for name in rng.sample(names, len(names)):
            values = self._known_values(call.tool, name)
            for value in rng.sample(values, min(_VALUES, len(values))):
                yield name, value

    def _known_values(self, tool: str, name: str) -> list[Any]:
        if not self._values:
            explored = self.knowledge(self.environment).explored
            for one in (call for found in explored.witnesses.values() for path in found for call in path.calls):
                for parameter, value in one.arguments.items():
                    known = self._values.setdefault((one.tool, parameter), [])
                    if isinstance(value, str | int | float | bool) and value not in known:
                        known.append(value)
        stated = self.environment.tools[tool].parameters["properties"][name]
        schema = stated if isinstance(stated, Mapping) else {}
        closed = (True, False) if schema.get("type") == "boolean" else schema.get("enum", ())
        known = self._values.get((tool, name), [])
        return list(closed) or [value for value in known if not is_arbitrary(name, value, schema)]

    def _differs(self, stage: Stage, made: Stage, before: Any) -> bool:
        """Whether the calls come to something else with the argument, and none of them to a failure or to nothing."""
        plainly, bound = before.fork(), before.fork()
        was, now = played(stage, plainly), played(made, bound)
        if was is None or now is None:
            return False
        if any(one.kind not in ("ok", other.kind) for one, other in zip(now, was, strict=True)):
            return False
        return [one.value for one in was] != [one.value for one in now] or not same_state(plainly, bound)

    # ------------------------------------------------------------------------------------------------------------------

    def _is_open(self, blueprint: Blueprint) -> bool:
        """Whether there can be more to a conversation: it ends in an answer, in an environment that is explored."""
        last = blueprint.stages[-1]
        return (
            blueprint.kind == "task"
            and last.ending == "answer"
            and bool(last.calls)
            and not isinstance(self.environment, ComposedEnvironment)
        )

    def _repertoire(self) -> Repertoire:
        if self._known is None:
            self._known = Repertoire(self.environment, self.knowledge(self.environment))
        return self._known


def _with_stage(blueprint: Blueprint, number: int, stage: Stage) -> Blueprint:
    stages = [*blueprint.stages]
    stages[number] = stage
    return evolve(blueprint, stages=tuple(stages))


def played(stage: Stage, session: Any) -> list[Outcome] | None:
    """What the calls of a stage come to in a session, which is changed by them; ``None`` where one does not come to
    what the stage says.
    """
    failing = {one.call: one.code for one in stage.failing}
    outcomes: list[Outcome] = []
    for place, call in enumerate(stage.calls):
        told = {path: value_at(outcomes[one.call].value, one.path) for path, one in call.located}
        outcome = session.call(call.tool, with_references(call.arguments, told))
        code = failing.get(place)
        if outcome.executed == (code is not None) or (code is not None and code not in (outcome.code, outcome.kind)):
            return None
        outcomes.append(outcome)
    return outcomes


def _last_calls(stage: Stage) -> Sequence[Call]:
    """The calls of a stage that are asked for, once, and that no other call of it refers to."""
    if stage.ending != "answer":
        return ()
    needed = {reference.call for call in stage.calls for _, reference in call.located}
    failing = {one.call for one in stage.failing}
    tools = [call.tool for call in stage.calls]
    asked = [call.tool for call in stage.asked.calls]
    return [
        call
        for place, call in enumerate(stage.calls)
        if place not in needed and place not in failing and tools.count(call.tool) == asked.count(call.tool) == 1
    ]


def _constrained(stage: Stage, call: Call, name: str, value: Any) -> Stage | None:
    """The stage with one argument more of a call, which the user asks for; ``None`` where it asks of it."""

    def more(one: Call) -> Call:
        return evolve(one, arguments={**one.arguments, name: value}) if one.tool == call.tool else one

    asked = tuple(more(one) for one in stage.asked.calls)
    referred = any(_refers_to(stage.asked.calls, number) for number, one in enumerate(asked) if one.tool == call.tool)
    return None if referred else evolve(stage, asked=Plan(asked), calls=tuple(map(more, stage.calls)))


def _refers_to(calls: Sequence[Call], number: int) -> bool:
    return any(isinstance(one, Reference) and one.call == number for call in calls for _, one in call.located)
