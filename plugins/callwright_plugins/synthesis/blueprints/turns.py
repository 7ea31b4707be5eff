"""Turns: executed calls as a stage of a blueprint, with what the user says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from attrs import evolve, frozen

from callwright.environments.protocol import Environment
from callwright.language.program import Call, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.binding import Made, called, literals, with_references
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Failing, Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.order import same_state
from callwright_plugins.synthesis.exploration.values import Key
from callwright_plugins.synthesis.graph.references import value_at
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.values.hints import SENSITIVE


@frozen
class Wish:
    """Executed calls that serve one goal.

    ``wanted`` are the places of those that the user asks for at any rate; of the others it asks for those that nobody
    could make from what is said. ``failing`` are calls that fail, ``follows`` pairs (earlier, later) that are known to
    be needed. ``ended`` is the code that the last call failed with, where nothing makes up for it.
    """

    made: tuple[Made, ...]
    wanted: frozenset[int]
    failing: tuple[Failing, ...] = ()
    follows: tuple[tuple[int, int], ...] = ()
    ended: str = ""
    chain: tuple[str, ...] = ()


def stage_of(wishes: Sequence[Wish], tools: Mapping[str, ToolSpec]) -> Stage:
    """The stage of some wishes, whose calls were made in this order.

    It says that a call has to follow another one where the wish knows so; :func:`.order.ordered` proves the others.
    """
    made: list[Made] = []
    wanted: set[int] = set()
    failing: list[Failing] = []
    follows: list[set[int]] = []
    for wish in wishes:
        start = len(made)
        made += [
            evolve(one, told={path: (step + start, where) for path, (step, where) in one.told.items()})
            for one in wish.made
        ]
        wanted |= {start + place for place in wish.wanted}
        failing += [evolve(one, call=one.call + start) for one in wish.failing]
        follows += [set() for _ in wish.made]
        for earlier, later in wish.follows:
            follows[start + later].add(start + earlier)
    calls = tuple(called(made))
    after = tuple(tuple(sorted(one)) for one in follows)
    ended = wishes[-1].ended
    return Stage(
        _asked(made, wanted, {one.call for one in failing}, tools),
        calls,
        after,
        tuple(failing),
        "failure" if ended else "answer",
        ended,
    )


# What is said ---------------------------------------------------------------------------------------------------------


def _asked(made: Sequence[Made], wanted: set[int], failing: set[int], tools: Mapping[str, ToolSpec]) -> Plan:
    """What the user asks for: wanted calls, and others that cannot be made from what is said of these."""
    said: set[Key] = {key for place in wanted for _, key in literals(made[place].arguments, made[place].told)}
    asked = [
        place
        for place, one in enumerate(made)
        if place in wanted
        or (place not in failing and any(key not in said for _, key in literals(one.arguments, one.told)))
    ]
    numbers = {place: number for number, place in enumerate(asked)}
    calls = []
    for number, place in enumerate(asked):
        one = made[place]
        references: dict[Any, Any] = {}
        unsaid: set[Any] = set()
        for path, (step, where) in one.told.items():
            if SENSITIVE.search(str(path[0])) and step not in failing:
                unsaid.add(path[0])  # a token, say: nobody says it, whoever makes the call has it
            elif step in numbers:
                references[path] = Reference(numbers[step], where)
            elif not (tools[made[step].tool].read_only and isinstance(value_at(dict(one.arguments), path), str)):
                unsaid.add(path[0])
        unsaid |= {name for name in one.heard if SENSITIVE.search(name)}
        given = with_references(one.arguments, references)
        calls.append(Call(number, one.tool, {name: value for name, value in given.items() if name not in unsaid}))
    return Plan(tuple(calls))


# Several turns ------------------------------------------------------------------------------------------------------


def assistant_turns(stage: Stage) -> int:
    """How many turns of the assistant a stage takes in a form of calls that has no references, made in its order: a
    call that needs a result of the turn begins another one, and so does what follows a failure. With the answer, and
    without a question.
    """
    failing = {one.call for one in stage.failing}
    turns, begun = 0, len(stage.calls)  # where the turn began; none has
    for place, call in enumerate(stage.calls):
        if place < begun or any(told.call >= begun for _, told in call.located):
            turns, begun = turns + 1, place
        if place in failing:
            begun = len(stage.calls)
    return turns + 1


def in_vain(stages: Sequence[Stage], tools: Mapping[str, ToolSpec], before: Any, after: Any) -> bool:
    """Whether what is done comes to nothing in the end, so that whoever does nothing would have done as well."""
    writes = any(not tools[call.tool].read_only for stage in stages for call in stage.calls)
    return writes and same_state(before, after)


def repeats(wishes: Sequence[Wish], other: Wish) -> bool:
    """Whether the calls of a wish are among those of others."""
    known = [(one.tool, one.arguments) for wish in wishes for one in wish.made]
    return all((one.tool, one.arguments) in known for one in other.made)


def told_already(wishes: Sequence[Wish], earlier: Sequence[Made], tools: Mapping[str, ToolSpec]) -> bool:
    """Whether nothing is asked for but what an earlier turn told, word for word: nobody asks for what they know."""
    known = [(one.tool, one.arguments, one.outcome) for one in earlier]
    return all(
        tools[one.tool].read_only and (one.tool, one.arguments, one.outcome) in known
        for wish in wishes
        for place, one in enumerate(wish.made)
        if place in wish.wanted
    )


def session_after(session: Any, wish: Wish) -> Any:
    """The session after the calls of a wish, in a fork."""
    fork = session.fork()
    for one in wish.made:
        fork.call(one.tool, dict(one.arguments))
    return fork


# How much is told ---------------------------------------------------------------------------------------------------


def informed(
    blueprints: Sequence[Blueprint], knobs: Knobs, rng: Random, environments: Mapping[str, Environment]
) -> list[Blueprint]:
    """Levels of information in exact shares, dealt to the turns that have something to leave out. Each of them is a
    question and its answer, for which there has to be a turn left.
    """
    turns = [
        (place, number)
        for place, one in enumerate(blueprints)
        if one.kind in ("task", "failing")
        for number, stage in enumerate(one.stages)
        if stage.calls
    ]
    told = {at: _tellable(environments[blueprints[at[0]].environment], _stage_at(blueprints, at)) for at in turns}
    order = rng.sample(turns, len(turns))
    left = [_questions(one, knobs) for one in blueprints]
    level: dict[tuple[int, int], Any] = {}
    for name, least in (("minimal", 2), ("missing", 1)):
        wanted = round(getattr(knobs, name) * len(turns))
        for at in order:
            if wanted and at not in level and told[at] >= least and left[at[0]] > 0:
                level[at] = name
                wanted -= 1
                left[at[0]] -= 1
    return [
        evolve(
            one,
            stages=tuple(
                evolve(stage, information=level.get((place, number), "complete"))
                for number, stage in enumerate(one.stages)
            ),
        )
        for place, one in enumerate(blueprints)
    ]


def _stage_at(blueprints: Sequence[Blueprint], at: tuple[int, int]) -> Stage:
    return blueprints[at[0]].stages[at[1]]


def _questions(blueprint: Blueprint, knobs: Knobs) -> int:
    """How often the user may be asked for something in as many turns as there are at most."""
    taken = sum(map(assistant_turns, blueprint.stages))
    return min(knobs.assistant_turns - taken, knobs.user_turns - len(blueprint.stages))


def _tellable(environment: Environment, stage: Stage) -> int:
    """How many required arguments are said as they are: none, one, or more."""
    found = 0
    for call in stage.asked.calls:
        referring = {path[0] for path, _ in call.located}
        spec = environment.tools.get(call.tool)
        required = spec.parameters.get("required", ()) if spec is not None else ()
        found += sum(name in required and name not in referring for name in call.arguments)
    return found
