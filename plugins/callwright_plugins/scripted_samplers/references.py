"""References that are stated turn by turn: a conversation of which each turn says something or calls something.

Where a form cannot write that a call takes a part of an earlier result, that call comes in a turn of its own, with what
the result turned out to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from callwright.errors import CannotExpress, DataError
from callwright.language.parser import Parser
from callwright.language.program import Call, Program, Reference, plain, revive
from callwright.walk.calls.references import resolved_arguments
from callwright.walk.tasks import Task
from callwright.walk.turn import Turn

#: The fact of a task that holds its reference turn by turn.
GOLD: Final = "gold"
#: What is written once everything was said and done.
SETTLED: Final = Program((), "one", "The request is settled.", "Everything is settled.")
_PROBE: Final = Program((Call(0, "first", {}), Call(1, "second", {"of": Reference(0, ("id",))})))


def writes_references(parser: Parser) -> bool:
    """Whether a form can write a call that takes a part of an earlier result of the same program."""
    try:
        parser.render(_PROBE)
    except CannotExpress:
        return False
    return True


def stated_turns(task: Task) -> list[Program]:
    """The turns of the fact :data:`GOLD`.

    Raises :class:`callwright.errors.DataError` for anything but a list of objects with ``say`` or with ``calls``.
    """
    stated = task.facts[GOLD]
    if not isinstance(stated, list | tuple):
        raise DataError(f"task {task.id!r}: its fact {GOLD!r} is a list of turns, not {stated!r:.80}")
    return [_turn(task, one) for one in stated]


def next_turn(task: Task, had: Sequence[Turn], *, whole: bool) -> Program:
    """What comes after the turns that an episode had; :data:`SETTLED` when nothing is left.

    With ``whole`` a stated turn is one turn, else as many as its calls need results of one another.

    Raises as :func:`stated_turns`.
    """
    stated = stated_turns(task)
    if whole:
        return stated[len(had)] if len(had) < len(stated) else SETTLED
    steps = [(number, calls) for number, turn in enumerate(stated) for calls in _steps(turn)]
    if len(had) >= len(steps):
        return SETTLED
    number, calls = steps[len(had)]
    results = {
        call.id: record.outcome
        for (earlier, made), turn in zip(steps, had, strict=False)
        if earlier == number and turn.trace is not None
        for call, record in zip(made, turn.trace.records, strict=False)
    }
    turn = stated[number]
    specs = {call.id: task.tools[call.tool] for call in turn.calls if call.tool in task.tools}
    given = [resolved_arguments(call, results, specs) or plain(call.arguments) for call in calls]
    named = (Call(at, call.tool, given[at]) for at, call in enumerate(calls))
    return Program(tuple(named), "all" if len(calls) > 1 else "one", turn.thought, turn.text)


def _turn(task: Task, stated: Any) -> Program:
    try:
        if "say" in stated:
            return Program((), thought="The user is to hear this.", text=str(stated["say"]))
        calls = (Call(at, call["tool"], revive(call["arguments"])) for at, call in enumerate(stated["calls"]))
        return Program(tuple(calls), thought="These calls are next.")
    except (KeyError, TypeError) as error:
        raise DataError(
            f"task {task.id!r}: a turn of its fact {GOLD!r} is an object with 'say' or with 'calls', not {stated!r:.80}"
        ) from error


def _steps(turn: Program) -> list[list[Call]]:
    """The calls in groups, in which none takes a result of another one. One without calls is one group of none."""
    steps: list[list[Call]] = [[]]
    for call in turn.calls:
        needed = {reference.call for _, reference in call.located}
        if needed & {one.id for one in steps[-1]}:
            steps.append([])
        steps[-1].append(call)
    return steps
