"""Items of OpenAI's Responses API as messages: what a model said, thought and called, and what the calls came to.

Items that stand next to each other and come from the model are one turn: a thought, a text and the calls after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from callwright.errors import DataError
from callwright.language.messages import Message, Part, ToolCall
from callwright.language.strict_json import kind as json_kind

_TEXTS: Final = ("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal")


def messages_of_items(items: Iterable[Any]) -> Iterator[Message]:
    """The messages that input and output items stand for, in their order.

    Raises :class:`callwright.errors.DataError` for what is no item, and for a call of a tool that is no function.
    """
    turn = _Turn()
    for place, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise DataError(f"item {place} is {json_kind(item)}, expected an object")
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind == "message" and item.get("role") == "assistant":
            if turn.calls:  # a text after calls begins another turn
                yield from turn.ended()
            turn.said.extend(_parts(item.get("content")))
        elif kind == "reasoning":
            if turn.calls or turn.said:
                yield from turn.ended()
            turn.thought.append(_thought(item))
        elif kind == "function_call":
            turn.calls.append(ToolCall(str(item.get("call_id") or item.get("id") or ""), *_called(item, place)))
        elif kind == "function_call_output":
            yield from turn.ended()
            yield Message.tool(_output(item.get("output")), str(item.get("call_id") or ""))
        elif kind == "message":
            yield from turn.ended()
            yield Message(_role(item, place), tuple(_parts(item.get("content"))))
        elif kind == "item_reference":
            continue
        else:
            raise DataError(f"item {place} is of the type {kind!r:.60}; only messages, thoughts and functions are read")
    yield from turn.ended()


class _Turn:
    """What a model has written since the last item of somebody else."""

    def __init__(self) -> None:
        self.thought: list[str] = []
        self.said: list[Part] = []
        self.calls: list[ToolCall] = []

    def ended(self) -> Iterator[Message]:
        """The message, if there is one; what follows begins anew."""
        if self.thought or self.said or self.calls:
            said = tuple(self.said)
            text: Any = "".join(map(str, said)) if all(isinstance(part, str) for part in said) else said
            yield Message.assistant(text, self.calls, reasoning="\n".join(filter(None, self.thought)))
        self.thought, self.said, self.calls = [], [], []


def _parts(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
        return
    if content is not None and not isinstance(content, list | tuple):
        raise DataError(f"a content is {json_kind(content)}, expected text or a list of parts")
    for part in content or ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            text = part.get("refusal" if part.get("type") == "refusal" else "text")
            yield text if part.get("type") in _TEXTS and isinstance(text, str) else part


def _thought(item: Mapping[str, Any]) -> str:
    """The thought itself where it is there, else its summary."""
    for key in ("content", "summary"):
        parts = item.get(key)
        held = parts if isinstance(parts, list | tuple) else ()
        found = [part["text"] for part in held if isinstance(part, Mapping) and "text" in part]
        if found:
            return "\n".join(map(str, found))
    return ""


def _called(item: Mapping[str, Any], place: int) -> tuple[str, str]:
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str):
        raise DataError(f"item {place} calls a function without a name")
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def _output(output: Any) -> str | tuple[Part, ...]:
    return output if isinstance(output, str) else tuple(_parts(output if isinstance(output, list) else [output]))


def _role(item: Mapping[str, Any], place: int) -> Any:
    role = item.get("role")
    if role not in ("system", "developer", "user", "tool"):
        raise DataError(f"item {place} has the role {role!r:.40}")
    return role
