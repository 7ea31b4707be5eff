"""References stated turn by turn (the fact ``gold``), as the conversation that they make with the task's user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.environments.protocol import Outcome
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.messages import Message, ToolCall
from callwright.language.program import Call, Program, plain, revive
from callwright.walk.conditions import Conditions
from callwright.walk.openings.opening import begins_with_user, heard_before
from callwright.walk.task_rows.chats import json_of
from callwright.walk.tasks import Task

#: The key of an assistant's message, as OpenAI's fine-tuning has it: 0 where it is read and not learnt from.
WEIGHT: Final = "weight"
#: The fact of a task that holds its reference turn by turn: objects with ``say`` or with ``calls``.
GOLD: Final = "gold"


def speaks(task: Task) -> bool:
    """Whether a task has a reference turn by turn, and somebody who answers."""
    return task.user is not None and task.facts.get(GOLD) is not None


def conversation_of(task: Task, conditions: Conditions | None = None) -> tuple[Message, ...]:
    """What follows the query when the reference is spoken: calls with the values that they get, results, both voices.

    It is made in a fresh session under ``conditions``, with the task's user, and ends with the assistant's last words:
    what its user says to these is left out, as is whatever the reference would do after that user is content. A message
    with a call that fails and that the assistant makes up for by other calls has the weight 0
    (:data:`callwright.training.demonstrations.WEIGHT`): how it is made up for is to be learnt, and not the mistake. One
    that a hazard befell is none. Raises
    :class:`callwright.errors.DataError` for a reference that cannot be read and for a task that its user begins, and
    :class:`callwright.InfrastructureFailure` where the session is lost.
    """
    from callwright.walk.users.talking import Talk

    if begins_with_user(task):
        raise DataError(
            f"task {task.id!r} begins with its user, whose first words are said in the episode, so that nothing can "
            "follow a query here: state the query, or train such tasks by reinforcement learning"
        )
    conditions = conditions or Conditions()
    user = conditions.user(task)
    assert user is not None
    assert task.user is not None
    execution = conditions.execution(task)
    talk = Talk(user, task.user.name, heard_before(task), execution.look, execution.act)
    said: list[Message] = []
    failed: set[int] = set()
    number = 0
    try:
        for turn in _turns(task):
            if said and said[-1].role == "assistant" and not said[-1].tool_calls:
                answered = talk.answer(said[-1].text or "").said
                if answered.done:
                    break
                said.append(Message.user(answered.text or ""))
            trace = execution.run(turn)
            if trace.masked is not None:
                raise InfrastructureFailure(trace.masked)
            if not turn.calls:
                said.append(Message.assistant(turn.text or ""))
                continue
            made = {record.call: record for record in trace.records}
            for wave in _waves(turn):
                named = [(f"call_{number + place}", call) for place, call in enumerate(wave)]
                number += len(wave)
                calls = [ToolCall(key, call.tool, json_of(plain(made[call.id].arguments))) for key, call in named]
                if any(made[call.id].outcome.failed and not made[call.id].outcome.injected for call in wave):
                    failed.add(len(said))
                said.append(Message.assistant("", calls))
                said += [Message.tool(_result(made[call.id].outcome), key) for key, call in named]
    finally:
        execution.close()
    if not said or said[-1].role != "assistant":
        raise DataError(f"task {task.id!r}: its reference ends with no words of the assistant")
    return tuple(
        evolve(message, extra={WEIGHT: 0}) if place in failed and _goes_on(said[place + 1 :]) else message
        for place, message in enumerate(said)
    )


def _goes_on(following: Sequence[Message]) -> bool:
    """Whether the assistant calls again before it says anything."""
    return bool(next(message for message in following if message.role != "tool").tool_calls)


def _turns(task: Task) -> list[Program]:
    try:
        return [_turn(one) for one in task.facts[GOLD]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"task {task.id!r}: its fact {GOLD!r} is a list of objects with 'say' or with 'calls' ({error})"
        ) from error


def _turn(stated: Mapping[str, Any]) -> Program:
    if "say" in stated:
        return Program((), text=str(stated["say"]))
    return Program(
        tuple(Call(at, str(one["tool"]), revive(dict(one["arguments"]))) for at, one in enumerate(stated["calls"]))
    )


def _waves(turn: Program) -> list[list[Call]]:
    """The calls of a turn in their order, in groups of which none takes a result of another one."""
    found: list[list[Call]] = [[]]
    for call in turn.calls:
        if {reference.call for _, reference in call.located} & {one.id for one in found[-1]}:
            found.append([])
        found[-1].append(call)
    return found


def _result(outcome: Outcome) -> str:
    if outcome.executed:
        return json_of(outcome.value)
    return json_of({"error": outcome.code or outcome.kind, "message": outcome.message})
