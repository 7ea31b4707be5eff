"""Tasks as BFCL's files of questions have them: the user's turns, the bare functions, and those that come later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from callwright.errors import UsageError
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Task
from callwright.walk.users.kinds import UserKinds
from callwright.walk.users.user import KnowsLines

_JSONL: Final = "export it with --format jsonl, or leave it out with --category"


def bfcl_row(task: Task, kinds: UserKinds) -> dict[str, Any]:
    """``{"id", "question", "function"}``: a list of messages for each turn of the user, empty where it says nothing.

    Where tools appear, ``missed_function`` has them, as BFCL's loader leaves them there: lists of functions by the
    number of the turn. Raises :class:`callwright.UsageError` for a task that this form cannot say: one whose user
    answers what the agent says, or calls tools of its own, and one that begins in the middle.
    """
    if task.opening is not None:
        raise UsageError(f"task {task.id!r} has an opening, for which BFCL's form has no place: {_JSONL}")
    question = [[{"role": "user", "content": task.query}]]
    for text in _later(task, kinds):
        question.append([{"role": "user", "content": text}] if text else [])
    row: dict[str, Any] = {"id": task.id, "question": question, "function": _functions(task.offered.values())}
    late = {turn: task.appearing(turn) for turn in sorted(set(task.appear.values())) if 0 < turn < len(question)}
    missed = {str(turn): _functions(tools.values()) for turn, tools in late.items() if tools}
    return {**row, "missed_function": missed} if missed else row


def _later(task: Task, kinds: UserKinds) -> list[str]:
    """What the user says after the query, turn by turn, up to where it is done."""
    if task.user is None:
        return []
    kind = kinds.kind(task.user)
    if not isinstance(kind, KnowsLines):
        raise UsageError(
            f"task {task.id!r} has the user {task.user.name!r}, whose words hang on what the agent says; BFCL's form "
            f"holds them beforehand: {_JSONL}"
        )
    texts = []
    for line in kind.lines:
        if line.calls:
            raise UsageError(f"task {task.id!r} has a user who calls {line.calls[0].tool!r}: BFCL's users only speak")
        if line.done:
            break
        texts.append(line.text)
    return texts


def _functions(tools: Iterable[ToolSpec]) -> list[Mapping[str, Any]]:
    return [
        {"name": spec.name, "description": spec.description, "parameters": {**spec.parameters, "type": "dict"}}
        for spec in tools
    ]
