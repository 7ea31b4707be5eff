"""What a conversation has come to, and the task that it is: query, user, goal, answer, reference turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from callwright.digests import digest_of
from callwright.environments.goals import compare
from callwright.environments.protocol import Environment, Outcome
from callwright.language.program import Call, Program, Reference
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task
from callwright.walk.users.said import UserSpec
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.dialogue.words import Asked
from callwright_plugins.synthesis.language.replies import user_options

#: How often a user says the same again before it gives up.
_PATIENCE: Final = 2


@frozen
class Due:
    """A call that is due, with the places of those that it has to follow, and what it came to.

    ``stage`` is its stage, ``call`` the call of the blueprint, ``arguments`` what it was given. ``fails``: its failure
    is the end of the stage.
    """

    stage: int
    tool: str
    arguments: Mapping[str, Any]
    after: tuple[int, ...]
    outcome: Outcome
    fails: bool
    call: Call


@define
class Recorded:
    """What was said and done: a query for each stage, the assistant's turns, the calls that were due, the failures."""

    queries: list[Asked] = field(factory=list)
    gold: list[dict[str, Any]] = field(factory=list)
    due: list[Due] = field(factory=list)
    failures: list[dict[str, Any]] = field(factory=list)
    path: tuple[str, ...] = ()
    teacher: str = ""


def task_of(
    id: str,
    blueprint: Blueprint,
    environment: Environment,
    tools: Mapping[str, ToolSpec],
    recorded: Recorded,
    first: Any,
    state: Any,
) -> Task:
    """The task of a conversation that has come to its end. ``first`` and ``state`` are the states before and after.

    The goal shows the end state where something changes, and where nothing is to change; a task that only asks is held
    to its answer. ``steps`` are Prove's G: what is due in all turns. A call that fails on purpose and is made up for is
    part of the reference, and no step.
    """
    done = [one for one in recorded.due if not one.fails]
    changes = state is not None and not compare(None, first, state).equal
    program = _program(done)
    answers = not changes and bool(done) and blueprint.kind not in ("failing", "abstention")
    goal = None if answers or state is None else {"state": state}
    facts: dict[str, Any] = {
        "kind": blueprint.kind,
        "gold": recorded.gold,
        "steps": [
            {"calls": [{"name": one.tool, "arguments": dict(one.arguments)}], "after": list(one.after)}
            for one in recorded.due
        ],
        "changes_nothing": not changes,
        "information": "/".join(one.information for one in blueprint.stages),
        "persona": blueprint.persona,
        "turns": len(blueprint.stages),
        "teacher": recorded.teacher,
        "chain_tools": list(blueprint.chain),
        "failures": recorded.failures,
        "states": list(recorded.path),
        "frames": [frame for asked in recorded.queries for frame in asked.frames],
        "family": _family(blueprint),
        "blueprint": blueprint.to_json(),
    }
    if goal is not None:
        facts["goal"] = goal
    return Task(
        id=id,
        query=recorded.queries[0].text,
        tools=tools,
        answer=Answer((done[-1].outcome.value,)) if done else Answer(),
        environment=environment,
        scenario=blueprint.scenario,
        seed=blueprint.seed,
        depth=len(done),
        chain=program.chain,
        structure=blueprint.structure,
        program=program,
        facts=facts,
        user=_user(recorded.queries, goal),
        appear={tool: turn for tool, turn in blueprint.hidden.items() if turn > 0 and tool in tools},
    )


def _program(done: Sequence[Due]) -> Program:
    """The calls that are due and succeed as one program; what an earlier one told is referred to where it is there."""
    places = {(one.stage, one.call.id): place for place, one in enumerate(done)}
    made = []
    for place, one in enumerate(done):
        named = {reference.call for _, reference in one.call.located}
        known = all((one.stage, call) in places for call in named)
        arguments = _renumbered(one.call.arguments, one.stage, places) if known else dict(one.arguments)
        made.append(Call(place, one.tool, arguments))
    return Program(tuple(made))


def _renumbered(value: Any, stage: int, places: Mapping[tuple[int, int], int]) -> Any:
    if isinstance(value, Reference):
        return Reference(places[stage, value.call], value.path)
    if isinstance(value, Mapping):
        return {key: _renumbered(inner, stage, places) for key, inner in value.items()}
    return [_renumbered(one, stage, places) for one in value] if isinstance(value, list | tuple) else value


def _user(queries: Sequence[Asked], goal: Mapping[str, Any] | None) -> UserSpec:
    """A user that says one query after the other, and tells what it left out when it is asked for it."""
    knows: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    tells: dict[str, Any] = {}
    for number, query in enumerate(queries):
        options = user_options(query.withheld)
        for name, one, told in zip(options["knows"], query.withheld, query.told, strict=True):
            own = name if name not in knows else f"{name}_in_{number}"
            knows[own], asked[own], tells[own] = one.value, [one.title], told
    options = {"knows": knows, "asked": asked, "tells": tells} if knows else {}
    if len(queries) > 1:
        options["then"] = [query.text for query in queries[1:]]
    if goal is not None:
        options["satisfied"] = goal
    return UserSpec("scripted", {**options, "patience": _PATIENCE})


def _family(blueprint: Blueprint) -> str:
    """What tasks share that differ in their values alone."""
    shape = [[call.tool for call in stage.calls or stage.asked.calls] for stage in blueprint.stages]
    return digest_of([blueprint.environment, blueprint.kind, shape])[:12]
