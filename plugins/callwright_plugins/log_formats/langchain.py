"""Messages of LangChain as JSON: ``dumpd`` (``lc``, ``kwargs``), ``messages_to_dict`` (``type``, ``data``), or flat.

A row is a list of messages or an object with ``messages``, such as a state of LangGraph. Calls that LangChain could not
parse are under ``invalid_tool_calls``, with the text that was sampled. A message of a tool has a ``status``, ``error``
or ``success`` (LangChain sets it since 0.2.7); one without says nothing.

Source: reference.langchain.com, ``langchain_core.messages`` 1.7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peek, pieces_of
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Shelf, outcome_of, told_calls, told_log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.strict_json import kind as json_kind
from callwright.tools.spec import ToolSpec

_TYPES: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
}
_FAILED: Final = {"error": True, "success": False}


class LangChainMessages:
    """The log format ``langchain``."""

    @property
    def name(self) -> str:
        """``langchain``."""
        return "langchain"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first value is a conversation of such messages."""
        value = peek(head)
        if is_message(value):
            return head.lstrip()[:1] == b"["
        messages = value.get("messages") if isinstance(value, Mapping) else None
        return isinstance(messages, list) and bool(messages) and is_message(messages[0])

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each conversation. Raises :class:`callwright.errors.DataError` with the line."""
        shelf = Shelf(tools)
        for piece in pieces_of(path):
            value = piece.value
            rows = value if isinstance(value, list) and value and not is_message(value[0]) else [value]
            for number, row in enumerate(rows, piece.number):
                yield self._log(row, piece.where, f"{path.name.partition('.')[0]}-{number}", shelf)

    def _log(self, row: Any, where: str, usual: str, shelf: Shelf) -> Log:
        about = row if isinstance(row, Mapping) else {}
        given = about.get("messages") if about else row
        if not isinstance(given, list) or not given or not all(is_message(one) for one in given):
            raise DataError(f"{where}: no conversation: expected a list of LangChain's messages, or one as 'messages'")
        statuses: dict[str, bool | None] = {}
        messages = [read_message(one, where, statuses) for one in given]
        findings: list[str] = []
        calls = told_calls(messages, lambda one: told(one, statuses), findings)
        origin = {"format": self.name, **({"task": about["task"]} if isinstance(about.get("task"), str | int) else {})}
        world = shelf.world(about.get("tools"), where)
        return told_log(str(about.get("id") or usual), messages, calls, world, origin=origin, findings=findings)


def is_message(value: Any) -> bool:
    """Whether a value is a message of LangChain, in any of its forms."""
    if not isinstance(value, Mapping):
        return False
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), Mapping):
        return "content" in value["kwargs"]
    return str(value.get("type")) in _TYPES and ("content" in value or isinstance(value.get("data"), Mapping))


def told(message: Message, statuses: Mapping[str, bool | None]) -> Outcome:
    """What a message of a tool says of its call."""
    return outcome_of(message.text, statuses.get(message.tool_call_id), "error")


def read_message(given: Any, where: str, statuses: dict[str, bool | None]) -> Message:
    """A message. ``statuses`` gets, by the id of the call, whether it failed; ``None`` where that is not said.

    Raises :class:`callwright.errors.DataError`.
    """
    try:
        return _read(given, where, statuses)
    except (TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: not as LangChain writes a message: {error!r}") from error


def _read(given: Any, where: str, statuses: dict[str, bool | None]) -> Message:
    kind, held = _held(given)
    role = _TYPES.get(kind)
    if role is None:
        raise DataError(f"{where}: {kind!r:.40} is no type of LangChain's messages that is read: {', '.join(_TYPES)}")
    content = held.get("content")
    if content is not None and not isinstance(content, str | list):
        raise DataError(f"{where}: a content is {json_kind(content)}, expected text or a list of parts")
    parts: Any = content or ""
    if isinstance(parts, list):  # calls stand beside the content, and are not read twice
        parts = tuple(one for one in parts if not isinstance(one, Mapping) or str(one.get("type")) not in _CALLS)
        if not all(isinstance(one, str | Mapping) for one in parts):
            raise DataError(f"{where}: a part of a content is neither text nor an object")
    if role == "tool":
        call_id = str(held.get("tool_call_id") or "")
        statuses[call_id] = _FAILED.get(str(held.get("status")))
        return Message.tool(parts, call_id, name=str(held.get("name") or ""))
    if role != "assistant":
        return Message(role, parts)  # type: ignore[arg-type]
    extra = held.get("additional_kwargs")
    thought = extra.get("reasoning_content") if isinstance(extra, Mapping) else None
    return Message.assistant(parts, _calls(held), reasoning=thought if isinstance(thought, str) else "")


_CALLS: Final = ("tool_use", "tool_call", "function_call", "input_json_delta")


def _held(given: Any) -> tuple[str, Mapping[str, Any]]:
    """The type of a message and its fields."""
    if given.get("lc") == 1:
        kwargs = given["kwargs"]
        path = given.get("id") or [""]
        usual = str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        return str(kwargs.get("type") or usual).removesuffix("MessageChunk").lower(), kwargs
    if isinstance(given.get("data"), Mapping):
        return str(given["type"]), given["data"]
    return str(given.get("type") or given.get("role")), given


def _calls(held: Mapping[str, Any]) -> list[ToolCall]:
    made = []
    for one in held.get("tool_calls") or ():
        if isinstance(one, Mapping):
            arguments = json.dumps(one.get("args") or {}, ensure_ascii=False)
            made.append(ToolCall(str(one.get("id") or ""), str(one.get("name") or ""), arguments))
    for one in held.get("invalid_tool_calls") or ():  # as they were sampled
        if isinstance(one, Mapping):
            made.append(ToolCall(str(one.get("id") or ""), str(one.get("name") or ""), str(one.get("args") or "{")))
    return made
