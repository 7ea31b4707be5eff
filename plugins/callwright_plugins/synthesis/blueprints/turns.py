"""Turns: executed calls as a stage of a blueprint, with what the user says of them and what has to come before what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from attrs import evolve, frozen

from callwright.capability import has
from callwright.environments.goals.comparing import equal_states
from callwright.environments.protocol import Environment, TellsGoalState
from callwright.language.program import Call, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.binding import Made, leaves_of_values, literals, with_references
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Failing, Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.exploration.values import Key, key_of
from callwright_plugins.synthesis.exploration.witness import copied
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


def stage_of(wishes: Sequence[Wish], tools: Mapping[str, ToolSpec], before: Any, needs: Mapping[str, Any]) -> Stage:
    """The stage of some wishes, whose calls were made in this order in a fork of the session ``before``.

    ``needs`` are the tools that a tool needs to have been called, as the graph proves them. Beside those, a call has to
    follow the one before it where making it sooner comes to something else.
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
    for later, call in enumerate(made):
        for earlier in range(later):
            if made[earlier].tool in needs.get(call.tool, ()) and made[earlier].outcome.executed:
                follows[later].add(earlier)
    _prove_order(made, follows, tools, before)
    calls = tuple(Call(number, one.tool, _referring(one)) for number, one in enumerate(made))
    told = [{step for step, _ in one.told.values()} for one in made]
    after = tuple(tuple(sorted(follows[place] - told[place])) for place in range(len(made)))
    ended = wishes[-1].ended
    return Stage(
        _asked(made, wanted, {one.call for one in failing}, tools),
        calls,
        after,
        tuple(failing),
        "failure" if ended else "answer",
        ended,
    )


def _referring(made: Made) -> dict[str, Any]:
    return with_references(made.arguments, {path: Reference(*told) for path, told in made.told.items()})


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


# What comes before what -----------------------------------------------------------------------------------------------


def _prove_order(made: Sequence[Made], follows: list[set[int]], tools: Mapping[str, ToolSpec], before: Any) -> None:
    """Let a call follow the one before it where making it as soon as is allowed comes to something else."""
    expected: Any = None
    for place in range(1, len(made)):
        held = follows[place] | {step for step, _ in made[place].told.values()}
        soonest = max(held, default=-1) + 1
        over = range(soonest, place)
        if not over or all(tools[made[one].tool].read_only for one in (*over, place)):
            continue
        if expected is None:
            expected = _run(made, list(range(len(made))), before)
        order = [*range(soonest), place, *over, *range(place + 1, len(made))]
        found = _run(made, order, before)
        if found is None or expected is None or not same_state(expected, found):
            follows[place].add(place - 1)


def _run(made: Sequence[Made], order: Sequence[int], before: Any) -> Any:
    """The session after the calls in another order; ``None`` where one of them comes to something else."""
    session = before.fork()
    results: dict[int, Any] = {}
    for place in order:
        one = made[place]
        arguments = copied(one.arguments)
        if one.told:
            told = {path: value_at(results.get(step), where) for path, (step, where) in one.told.items()}
            arguments = with_references(arguments, told)
        outcome = session.call(one.tool, arguments)
        if (outcome.kind, outcome.code) != (one.outcome.kind, one.outcome.code):
            return None
        results[place] = outcome.value
    if any(
        results[place] is not made[place].outcome.value and _differs(made[place], results[place]) for place in order
    ):
        return None
    return session


def _differs(made: Made, value: Any) -> bool:
    """Whether a result has another form or other numbers: what a thing is called may hang on the order."""
    return [(path, key if key[0] != "string" else None) for path, key in _keyed(made.outcome.value)] != [
        (path, key if key[0] != "string" else None) for path, key in _keyed(value)
    ]


def _keyed(value: Any) -> list[tuple[Any, Key]]:
    return [(path, key_of(leaf)) for path, leaf in leaves_of_values(value)]


def same_state(one: Any, other: Any) -> bool:
    """Whether two sessions of one world have come to the same."""
    if one.digest() == other.digest():
        return True
    if not (has(one, TellsGoalState) and has(other, TellsGoalState)):
        return False
    return equal_states(one.goal_state(), other.goal_state())


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
