"""Tasks as chats: what supervised training shows of one, in the messages of OpenAI's wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from callwright.errors import DataError
from callwright.language.long_numbers import json_text
from callwright.language.messages import Message, ToolCall
from callwright.language.program import Call, Program, plain
from callwright.walk.execution import execute
from callwright.walk.openings.opening import begins_with_user
from callwright.walk.prompt import asked
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord

#: What the assistant says where nothing is to be called and the reference has no words of its own.
_NOTHING: Final = "None of the available tools can do this."


def chat_row(task: Task, reference: Program | Sequence[Message] | None = None) -> dict[str, Any]:
    """A chat: what was said before the query, the query, what the assistant does, and the offered tools as function
    definitions.

    ``reference`` is what is shown, by default the task's program. Calls that need one another's results are made one
    after the other: those that need nothing in the assistant's first message, what they returned in messages of the
    role ``tool``, and so on; arguments are the values that the tools get. The last message is the assistant's. Messages
    are shown as they are. Raises :class:`callwright.errors.DataError` for a task without either, for a program with
    references that does not execute, and for a task that its user begins.
    """
    shown = task.program if reference is None else reference
    if shown is None:
        raise DataError(f"task {task.id!r} has no reference program or conversation, so there is nothing to show")
    if begins_with_user(task):
        raise DataError(
            f"task {task.id!r} begins with its user, whose first words are said in the episode: there is no chat of it"
        )
    before = task.opening.shown if task.opening is not None else ()
    waves = shown.waves if isinstance(shown, Program) else ()
    messages = _messages(task, shown, waves) if isinstance(shown, Program) else list(shown)
    return {
        "id": task.id,
        "split": task.split,
        "messages": [message.to_openai() for message in (*before, *asked(task), *messages)],
        "tools": [spec.to_openai() for spec in task.offered.values()],
        "parallel_tool_calls": any(len(wave) > 1 for wave in waves)
        or any(len(message.tool_calls) > 1 for message in messages),
    }


def _messages(task: Task, program: Program, waves: Sequence[tuple[Call, ...]]) -> list[Message]:
    if not waves:
        return [Message.assistant(program.text or _NOTHING)]
    said: list[Message] = []
    made = _executed(task, program) if len(waves) > 1 else {}
    before: tuple[Call, ...] = ()
    for wave in waves:
        said += [Message.tool(json_of(made[call.id].outcome.value), f"call_{call.id}") for call in before]
        arguments = [plain(made[call.id].arguments if made else call.arguments) for call in wave]
        named = zip(wave, arguments, strict=True)
        said.append(
            Message.assistant("", [ToolCall(f"call_{call.id}", call.tool, json_of(given)) for call, given in named])
        )
        before = wave
    return said


def json_of(value: Any) -> str:
    """A value as the text of a message."""
    return json_text(value, ensure_ascii=False)


def _executed(task: Task, program: Program) -> dict[int, CallRecord]:
    """What came of each call of the program, by its id."""
    trace = execute(
        program,
        task.environment,
        task.tools,
        scenario=task.scenario,
        seed=task.seed,
        clock=task.clock,
        hazards=task.hazards,
        opening=task.opening,
    )
    if not trace.executed:
        failed = trace.failures[0]
        raise DataError(
            f"the reference program of task {task.id!r} does not execute: call {failed.call} {failed.tool}: "
            f"{failed.outcome.code}: {failed.outcome.message}"
        )
    return {record.call: record for record in trace.records}
