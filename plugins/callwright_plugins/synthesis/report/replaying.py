"""Replaying: the reference of a task, made again turn by turn with its user, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.language.messages import Message
from callwright.language.program import Call, Program, revive
from callwright.walk.execution import Execution
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord

if TYPE_CHECKING:
    from callwright.walk.users.talking import Talk

#: The fact of a task that holds its reference turn by turn.
_GOLD: Final = "gold"
#: The kind of user that answers by itself: any other one may ask a model, which nobody wants who only looks.
ANSWERS: Final = "scripted"


@frozen
class Heard:
    """What the user says: ``asks`` are its next request's own words where this is one, with what it ``knows`` and
    keeps back until it is asked; else it answers. ``done`` says that it is content.
    """

    text: str
    asks: bool = False
    knows: Mapping[str, Any] = {}
    done: bool = False


@frozen
class Turn:
    """A turn of the reference: what the agent says, or what its calls came to; and what its user says after it."""

    says: str = ""
    records: tuple[CallRecord, ...] = ()
    heard: Heard | None = None


@frozen
class Replayed:
    """The turns of the reference, and what the session then was (JSON, as ``goal_state()`` tells it).

    ``wrong`` says why it could not be replayed; the turns up to there are kept. ``state`` is ``None`` where nothing was
    called, or where sessions of the environment do not tell it. ``first`` is the query, with what is kept back.
    """

    turns: tuple[Turn, ...]
    state: Any = None
    wrong: str = ""
    first: Heard = Heard("")


def replayed(task: Task) -> Replayed:
    """Make the reference of a task again in a fresh session. Never raises: what goes wrong is said."""
    turns: list[Turn] = []
    first = Heard(task.query, asks=True)
    try:
        user = _Script(task)
        first = Heard(task.query, asks=True, knows=user.first)
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
            user.join(execution)
            for program in _programs(task):
                trace = execution.run(program)
                heard = None if program.calls else user.hears(program.text or "")
                turns.append(Turn(program.text or "", trace.records, heard))
            state = execution.look("goal_state") if any(turn.records for turn in turns) else None
        finally:
            execution.close()
    except (CallwrightError, KeyError, TypeError, ValueError, AttributeError) as error:
        return Replayed(tuple(turns), wrong=f"the reference cannot be made again: {error}", first=first)
    return Replayed(tuple(turns), state, first=first)


class _Script:
    """The user of a task, where it follows a script: what it says, and which of its requests that is."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.talk: Talk | None = None
        options = task.user.options if task.user is not None and task.user.name == ANSWERS else {}
        told = set(options.get("opening") or ())
        self.first = {name: value for name, value in dict(options.get("knows") or {}).items() if name not in told}
        self.left = [dict(one) if isinstance(one, Mapping) else {"say": one} for one in options.get("then") or ()]

    def join(self, execution: Execution) -> None:
        """Begin the conversation."""
        from callwright.walk.conditions import Conditions
        from callwright.walk.users.talking import Talk

        task = self.task
        if task.user is None or task.user.name != ANSWERS:
            return
        user = Conditions().user(task)
        assert user is not None
        self.talk = Talk(user, ANSWERS, [Message.user(task.query)], execution.look, execution.act)

    def hears(self, text: str) -> Heard | None:
        """What it says to words of the agent; ``None`` where nobody answers (any more)."""
        if self.talk is None:
            return None
        said = self.talk.answer(text).said
        if said.done:
            self.talk = None
            return Heard(said.text or "", done=True)
        for place, request in enumerate(self.left):
            if request["say"] == said.text:
                del self.left[: place + 1]
                return Heard(said.text, asks=True, knows=dict(request.get("knows") or {}))
        return Heard(said.text or "")


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
