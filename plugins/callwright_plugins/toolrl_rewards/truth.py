"""Ground truths: what a task's right answer is, read once per task and refused where it cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from callwright.episodes.logs.unstated import abstain_without_calls
from callwright.errors import DataError
from callwright.language.program import NO_CALL, PREFIX, Call, Program, Reference, plain
from callwright.language.shortening import shortened
from callwright.walk.tasks import Task

#: The fact of a task that holds its ground truth in ToolRL's form.
FACT: Final = "ground_truth"
_REMEMBERED: Final = 1 << 15


class BadGroundTruth(DataError):
    """A ground truth cannot be read. It is the data's fault, so it is said when the data is loaded."""

    def __init__(self, task: str, reason: str, text: str) -> None:
        self.task, self.reason, self.text = task, reason, text
        super().__init__(f"task {task!r}: the ground truth cannot be read: {reason}. It is {shortened(text, 200)!r}")


T = TypeVar("T")


class Truths(Generic[T]):
    """The ground truth of each task, made by ``read(text or program)`` when it is first asked for.

    ``of`` raises :class:`BadGroundTruth`. Which tasks were seen is remembered by identity, a bounded number of them.
    """

    def __init__(self, read: Callable[[str | Program], T]) -> None:
        self._read = read
        self._known: dict[int, tuple[Task, T]] = {}

    def __reduce__(self) -> Any:
        return Truths, (self._read,)

    def of(self, task: Task) -> T:
        """The ground truth of a task: its fact ``ground_truth``, else its reference program."""
        known = self._known.get(id(task))
        if known is not None and known[0] is task:
            return known[1]
        source = source_of(task)
        try:
            truth = self._read(source)
        except ValueError as error:
            raise BadGroundTruth(task.id, str(error), source if isinstance(source, str) else repr(source)) from error
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[id(task)] = task, truth
        return truth


def source_of(task: Task) -> str | Program:
    """What a task says of its right calls. Raises :class:`BadGroundTruth` if it says nothing, and
    :class:`callwright.errors.Abstention` if it is that of a log.
    """
    text = task.facts.get(FACT)
    if isinstance(text, str):
        return text
    if task.program is not None:
        return task.program
    abstain_without_calls(task)
    if task.answer.is_no_call:
        return Program()
    raise BadGroundTruth(task.id, "the task has neither a reference program nor the fact 'ground_truth'", "")


def written(program: Program) -> str:
    """A program as a ground truth of ToolRL's form."""
    if not program.calls:
        return "<think></think>\n<response></response>"
    lines = "\n".join(
        json.dumps({"name": call.tool, "parameters": plain_arguments(program, call)}) for call in program.calls
    )
    return f"<think></think>\n<tool_call>\n{lines}\n</tool_call>"


def plain_arguments(program: Program, call: Call) -> dict[str, Any]:
    """The arguments as JSON. References are numbered by the position of what they refer to, not by its id.

    One that no call of the program satisfies agrees with nothing.
    """
    if not call.located:
        return dict(call.arguments)
    position = {other.id: index for index, other in enumerate(program.calls)}
    return {key: plain(_by_position(value, position)) for key, value in call.arguments.items()}


def _by_position(value: Any, position: dict[int, int]) -> Any:
    if isinstance(value, Reference):
        if value.call in position:
            return Reference(position[value.call], value.path)
        return Reference(NO_CALL, (f"{str(value).removeprefix(PREFIX)} of no call",))
    if isinstance(value, dict):
        return {key: _by_position(inner, position) for key, inner in value.items()}
    if isinstance(value, list):
        return [_by_position(inner, position) for inner in value]
    return value
