"""Truths: what would have been right, as whoever has a log of somebody else states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from attrs import evolve

from callwright.episodes.logs.told import arguments_of
from callwright.errors import DataError, UnknownName
from callwright.language.program import Call, Program
from callwright.walk.task_rows.rows import read_answer
from callwright.walk.tasks import Answer, Task

#: The calls that were due, the answer, both, or a text in ToolRL's form.
Truth: TypeAlias = Answer | Program | Sequence[Any] | Mapping[str, Any] | str
_KEYS: Final = ("answer", "calls")
#: What the object of a call may hold, its arguments left out.
_OF_CALL: Final = ("name", "tool", "id", "type", "index", "call_id", "status")


def with_truth(task: Task, truth: Truth | None) -> Task:
    """The task with a truth: what rewards hold an attempt against.

    A list has the calls that were due, each ``{"name", "arguments"}`` or as OpenAI writes it; an empty one says that
    nothing was to be called. An object has ``calls``, or as ``answer`` the list of values that the last calls return,
    or both. An :class:`callwright.Answer` and a :class:`callwright.Program` are as they are, and a text is a ground
    truth in ToolRL's form. What is not stated stays so, and rewards that need it abstain.

    Raises :class:`callwright.errors.DataError` for anything else.
    """
    if truth is None:
        return task
    if isinstance(truth, Answer):
        return evolve(task, answer=truth)
    if isinstance(truth, Program):
        return _due(task, truth)
    if isinstance(truth, str):
        return evolve(task, facts={**task.facts, "ground_truth": truth})
    if isinstance(truth, Mapping):
        unknown = next((key for key in truth if key not in _KEYS), None)
        if unknown is not None or not truth:
            raise DataError(f"a truth states {' or '.join(_KEYS)}. {UnknownName('key of one', str(unknown), _KEYS)}")
        made = _due(task, _program(truth["calls"])) if "calls" in truth else task
        return evolve(made, answer=read_answer(truth["answer"], "answer")) if "answer" in truth else made
    return _due(task, _program(truth))


def _due(task: Task, program: Program) -> Task:
    made = evolve(task, program=program)
    return made if program.calls else evolve(made, answer=Answer())


def _program(calls: Any) -> Program:
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise DataError(f"the calls of a truth are a list, not {calls!r:.80}")
    return Program(tuple(_call(number, one) for number, one in enumerate(calls)))


def _call(number: int, given: Any) -> Call:
    if isinstance(given, Call):
        return given
    held = given.get("function", given) if isinstance(given, Mapping) else given
    name = held.get("name", held.get("tool")) if isinstance(held, Mapping) else None
    arguments = held.get("arguments", {}) if isinstance(held, Mapping) else None
    if isinstance(arguments, str):
        arguments = arguments_of(arguments)
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise DataError(f"call {number} of a truth is no object with a 'name' and 'arguments': {given!r:.80}")
    other = next((key for key in held if key not in _OF_CALL), None)
    if other is not None and "arguments" not in held:  # else a call without arguments would be what was due
        raise DataError(f"call {number} of a truth has its arguments under 'arguments', not under {other!r:.40}")
    return Call(number, name, dict(arguments))
