"""Replaying: the reference of a task, made again turn by turn, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.language.program import Call, Program, revive
from callwright.walk.execution import Execution
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord

#: The fact of a task that holds its reference turn by turn.
_GOLD: Final = "gold"


@frozen
class Turn:
    """A turn of the reference: what the agent says, or what its calls came to."""

    says: str = ""
    records: tuple[CallRecord, ...] = ()


@frozen
class Replayed:
    """The turns of the reference, and what the session then was (JSON, as ``goal_state()`` tells it).

    ``wrong`` says why it could not be replayed; the turns up to there are kept. ``state`` is ``None`` where nothing was
    called, or where sessions of the environment do not tell it.
    """

    turns: tuple[Turn, ...]
    state: Any = None
    wrong: str = ""


def replayed(task: Task) -> Replayed:
    """Make the reference of a task again in a fresh session. Never raises: what goes wrong is said."""
    turns: list[Turn] = []
    try:
        execution = Execution(
            task.environment,
            task.tools,
            scenario=task.scenario,
            seed=task.seed,
            clock=task.clock,
            hazards=task.hazards,
            opening=task.opening,
            appear=task.appear,
            task=task.id,
        )
        try:
            for program in _programs(task):
                trace = execution.run(program)
                turns.append(Turn(program.text or "", trace.records))
            state = execution.look("goal_state") if any(turn.records for turn in turns) else None
        finally:
            execution.close()
    except (CallwrightError, KeyError, TypeError, AttributeError) as error:
        return Replayed(tuple(turns), wrong=f"the reference cannot be made again: {error}")
    return Replayed(tuple(turns), state)


def _programs(task: Task) -> Iterator[Program]:
    stated = task.facts.get(_GOLD)
    if not isinstance(stated, list | tuple):
        if task.program is not None:
            yield task.program
        return
    for turn in stated:
        if "say" in turn:
            yield Program((), text=str(turn["say"]))
        else:
            calls = (Call(at, call["tool"], revive(call["arguments"])) for at, call in enumerate(turn["calls"]))
            yield Program(tuple(calls))


def outcome_text(record: CallRecord, longest: int = 300) -> str:
    """What a call came to, in a line."""
    outcome = record.outcome
    if outcome.executed:
        told = json.dumps(outcome.value, ensure_ascii=False, default=str)
        return f"{outcome.kind}: {_cut(told, longest)}" if outcome.kind != "ok" else _cut(told, longest)
    return f"{outcome.kind} {outcome.code}: {_cut(outcome.message, longest)}".replace(" :", ":")


def call_text(tool: str, arguments: Mapping[str, Any], longest: int = 400) -> str:
    """A call in a line."""
    told = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()
    )
    return _cut(f"{tool}({told})", longest)


def state_lines(state: Any, path: str = "") -> Iterator[str]:
    """What a goal state says changed, a line for each value: path and value."""
    if isinstance(state, Mapping) and state:
        for name, inner in state.items():
            yield from state_lines(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(state, list) and state and any(isinstance(one, Mapping | list) for one in state):
        for number, inner in enumerate(state):
            yield from state_lines(inner, f"{path}[{number}]")
    elif state not in ({}, [], None):
        yield f"{path}: {_cut(json.dumps(state, ensure_ascii=False, default=str), 200)}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more)"
