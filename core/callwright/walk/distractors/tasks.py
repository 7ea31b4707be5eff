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
from callwright.walk.tasks import Task
from callwright.walk.users.said import UserSpec

#: How many tools of other environments a task is offered beside its own.
USUAL: Final = 8
#: The fact that holds a task's goal, and the parts of a goal, by which one is known among a user's options.
_GOAL: Final = "goal"
_OF_A_GOAL: Final = frozenset({"holds", "changed", "nothing_else"})


def composed_with(environment: Environment, others: Sequence[Environment]) -> ComposedEnvironment:
    """The environment of a task and others as one. Each has the people of its scenario, and money of its own.

    So what the task asks for is as it was. Raises as :class:`callwright.environments.composed` says.
    """
    return ComposedEnvironment([environment, *others], people="own", money="own")


def distracted(task: Task, whole: ComposedEnvironment, *, tools: int = USUAL, seed: int = 0) -> Task:
    """The task among ``tools`` tools of the other parts of ``whole``, of which its environment is one.

    Which, and in what order all stand, is drawn from ``seed`` and the task's id. Tools of the task whose name another
    part has, too, are qualified: in its program as well. A goal names its tables by the part.
    """
    if isinstance(tools, bool) or not isinstance(tools, int) or tools < 0:
        raise UsageError(f"distractors are a number of tools, not {tools!r:.80}")
    own = task.environment.name
    names = {original: public for public, (number, original) in whole.routes.items() if _part(whole, number) == own}
    mine = {name: names.get(name, name) for name in task.tools}
    others = sorted(public for public, (number, _) in whole.routes.items() if _part(whole, number) != own)
    rng = Random(f"distractors/{seed}/{task.id}")
    offered = {mine[name]: evolve(spec, name=mine[name]) for name, spec in task.tools.items()}
    offered |= {name: whole.tools[name] for name in rng.sample(others, min(tools, len(others)))}
    order = sorted(offered)
    rng.shuffle(order)
    return evolve(
        task,
        tools={name: offered[name] for name in order},
        environment=whole,
        scenario=json.dumps({own: [task.scenario, task.seed]}),
        program=None if task.program is None else _renamed(task.program, mine),
        facts=_placed_facts(task.facts, own),
        user=None if task.user is None else UserSpec(task.user.name, _placed(task.user.options, own)),
        opening=None if task.opening is None else _placed_opening(task.opening, names),
        appear={mine[name]: turn for name, turn in task.appear.items()},
    )


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


def _placed_facts(facts: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    return {**facts, _GOAL: _placed(facts[_GOAL], part)} if _GOAL in facts else facts


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
