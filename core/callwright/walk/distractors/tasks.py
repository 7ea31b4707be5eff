"""Tasks among distractors: what is asked and what is right stay; more tools are offered, and all of them run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import evolve

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.goals.states import PARTS, UNTOUCHED, is_of_parts, is_of_rows
from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.language.program import Program
from callwright.walk.openings.opening import Opening
from callwright.walk.tasks import Instance, Task
from callwright.walk.users.said import UserSpec

#: How many tools of other environments a task is offered beside its own.
USUAL: Final = 8
#: The fact that holds a task's goal, and the parts of a goal, by which one is known among a user's options.
_GOAL: Final = "goal"
_OF_A_GOAL: Final = frozenset({"holds", "changed", "nothing_else"})
#: Facts that hold reference calls: Prove's steps, and references that are stated turn by turn.
_OF_CALLS: Final = ("steps", "gold")
#: What the name of a call's tool stands under in them.
_CALLED: Final = ("tool", "name")


def composed_with(environment: Environment, others: Sequence[Environment]) -> ComposedEnvironment:
    """The environment of a task and others as one. Each has the people of its scenario, and money of its own.

    So what the task asks for is as it was. Raises as :class:`callwright.environments.composed` says.
    """
    return ComposedEnvironment([environment, *others], people="own", money="own")


def distracted(task: Task, whole: ComposedEnvironment, *, tools: int = USUAL, seed: int = 0) -> Task:
    """The task among ``tools`` tools of the other parts of ``whole``, of which its environment is one.

    Which, and in what order all stand, is drawn from ``seed`` and the task's id. Where prompts list fewer tools than
    the task has, they list the distractors besides. Tools of the task whose name another part has, too, are qualified:
    in its program and its facts as well. A goal names its tables by the part. Its further worlds are of its own part.
    """
    if isinstance(tools, bool) or not isinstance(tools, int) or tools < 0:
        raise UsageError(f"distractors are a number of tools, not {tools!r:.80}")
    own = task.environment.name
    names = {original: public for public, (number, original) in whole.routes.items() if _part(whole, number) == own}
    mine = {name: names.get(name, name) for name in task.tools}
    others = sorted(public for public, (number, _) in whole.routes.items() if _part(whole, number) != own)
    rng = Random(f"distractors/{seed}/{task.id}")
    offered = {mine[name]: evolve(spec, name=mine[name]) for name, spec in task.tools.items()}
    drawn = rng.sample(others, min(tools, len(others)))
    offered |= {name: whole.tools[name] for name in drawn}
    order = sorted(offered)
    rng.shuffle(order)
    listed = None if task.shown is None else {*(mine[name] for name in task.shown), *drawn}
    return evolve(
        task,
        tools={name: offered[name] for name in order},
        environment=whole,
        scenario=_world(own, task),
        program=None if task.program is None else _renamed(task.program, mine),
        facts=_placed_facts(task.facts, own, mine),
        user=None if task.user is None else UserSpec(task.user.name, _placed(task.user.options, own)),
        opening=None if task.opening is None else _placed_opening(task.opening, names),
        appear={mine[name]: turn for name, turn in task.appear.items()},
        shown=None if listed is None else tuple(name for name in order if name in listed),
        instances=tuple(evolve(one, scenario=_world(own, one)) for one in task.instances),
    )


def _world(part: str, of: Task | Instance) -> str:
    """The scenario of the whole in which the part has the world of a task, or of an instance of one."""
    return json.dumps({part: [of.scenario, of.seed]})


def _part(whole: ComposedEnvironment, number: int) -> str:
    return whole.parts[number].name


def _renamed(program: Program, names: Mapping[str, str]) -> Program:
    calls = tuple(evolve(call, tool=names.get(call.tool, call.tool)) for call in program.calls)
    return evolve(program, calls=calls)


def _placed_opening(opening: Opening, names: Mapping[str, str]) -> Opening:
    """The opening with the names that its calls have in the whole."""

    def renamed(one: Any, name: str) -> Any:
        return evolve(one, **{name: names.get(getattr(one, name), getattr(one, name))})

    history = [
        evolve(one, tool_calls=[renamed(call, "name") if one.role == "assistant" else call for call in one.tool_calls])
        for one in opening.history
    ]
    actions = [renamed(action, "tool") if action.by == "agent" else action for action in opening.actions]
    return Opening(actions, history)


def _placed_facts(facts: Mapping[str, Any], part: str, names: Mapping[str, str]) -> Mapping[str, Any]:
    goal = {_GOAL: _placed(facts[_GOAL], part)} if _GOAL in facts else {}
    calls = {name: _calls_renamed(facts[name], names) for name in _OF_CALLS if name in facts}
    return {**facts, **goal, **calls} if goal or calls else facts


def _calls_renamed(stated: Any, names: Mapping[str, str]) -> Any:
    """Steps or turns with the names that their calls have in the whole; what is neither stays as it is."""
    if isinstance(stated, list | tuple):
        return [_calls_renamed(one, names) for one in stated]
    if not isinstance(stated, Mapping):
        return stated
    if isinstance(stated.get("calls"), list | tuple):
        return {**stated, "calls": _calls_renamed(stated["calls"], names)}
    called = {key: names.get(stated[key], stated[key]) for key in _CALLED if isinstance(stated.get(key), str)}
    return {**stated, **called}


def _placed(value: Any, part: str) -> Any:
    """The value with every goal in it naming its tables and paths by the part."""
    if isinstance(value, Mapping):
        if value.keys() == {"state"} and (is_of_rows(value["state"]) or is_of_parts(value["state"])):
            state = value["state"]
            return {"state": {"form": PARTS, "parts": {} if state == UNTOUCHED else {part: state}}}
        if value and value.keys() <= _OF_A_GOAL:
            return {
                key: [_assertion(one, part) for one in inner] if isinstance(inner, list | tuple) else inner
                for key, inner in value.items()
            }
        return {key: _placed(inner, part) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_placed(inner, part) for inner in value]
    return value


def _assertion(stated: Any, part: str) -> Any:
    if not isinstance(stated, Mapping):
        return stated
    return {
        key: f"{part}.{inner}" if key in ("table", "path") and isinstance(inner, str) and inner else inner
        for key, inner in stated.items()
    }
