"""Answers: what was sampled as a message of the chat protocol, whole or in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.language.envelope import split_thought
from callwright.language.messages import Message, ToolCall
from callwright.language.native import native_messages
from callwright.language.parser import ParseFailure, Parser
from callwright.language.strict_json import locate

_BLOCKS: Final = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
#: Characters of a piece of streamed text.
_PIECE: Final = 48


@frozen
class ChatAnswer:
    """An answer of the gateway. ``finish`` is the protocol's reason; ``usage`` counts tokens, where they are known."""

    id: str
    model: str
    created: int
    message: Message
    finish: str
    usage: Mapping[str, int] = field(factory=dict)
    logprobs: tuple[tuple[str, float], ...] = ()

    def to_json(self, *, logprobs: bool = False) -> dict[str, Any]:
        """The body of a whole answer."""
        message = {"content": None, **self.message.to_openai()}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self.finish}
        if logprobs and self.logprobs:
            listed = [{"token": text, "logprob": value, "top_logprobs": []} for text, value in self.logprobs]
            choice["logprobs"] = {"content": listed}
        return {**self._head("chat.completion"), "choices": [choice], "usage": dict(self.usage)}

    def chunks(self, *, include_usage: bool = False) -> Iterator[dict[str, Any]]:
        """The same in pieces: the role, the thought, the text, each call, the reason, and the usage if asked for."""
        message = self.message
        yield self._chunk({"role": "assistant", "content": "" if message.text else None})
        for name, text in (("reasoning_content", message.thought), ("content", message.text)):
            for start in range(0, len(text), _PIECE):
                yield self._chunk({name: text[start : start + _PIECE]})
        for place, call in enumerate(message.tool_calls):
            head = {"index": place, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            yield self._chunk({"tool_calls": [head]})
            for start in range(0, len(call.arguments), _PIECE):
                piece = {"index": place, "function": {"arguments": call.arguments[start : start + _PIECE]}}
                yield self._chunk({"tool_calls": [piece]})
        yield self._chunk({}, self.finish)
        if include_usage:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": dict(self.usage)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}


def message_of(text: str, parser: Parser, new_id: Callable[[], str]) -> Message:
    """The message that a client is given for a sampled text; calls get ids of ``new_id`` and their sampled arguments.

    A text that the form does not read is given as it is: nothing is repaired.
    """
    read = parser.parse(text)
    if isinstance(read, ParseFailure):
        return Message.assistant(text)
    (message,) = native_messages([Message.assistant(text)], parser, thoughts=True)
    if not message.tool_calls:
        return message
    sampled = _sampled_arguments(text, [call.name for call in message.tool_calls])
    calls = [
        evolve(call, id=new_id(), arguments=sampled[place] if sampled else call.arguments)
        for place, call in enumerate(message.tool_calls)
    ]
    return evolve(message, tool_calls=calls)


def _sampled_arguments(text: str, names: list[str]) -> list[str] | None:
    """The arguments of each call as they stand in the text; ``None`` for a form that does not write them as JSON."""
    split = split_thought(text)
    blocks = [match[1] for match in _BLOCKS.finditer(text if split is None else split[1])]
    if len(blocks) != len(names):
        return None
    found = []
    for block, name in zip(blocks, names, strict=True):
        try:
            members = json.loads(block)
            place = list(members).index("arguments")
        except (ValueError, TypeError):
            return None
        if members.get("name") != name:
            return None
        first, last = locate(block, (place,))[1]
        found.append(block[first:last])
    return found


def with_new_ids(message: Message, new_id: Callable[[], str]) -> Message:
    """A server's answer with ids of the gateway's own, by which it is recognised later."""
    return evolve(message, tool_calls=[ToolCall(new_id(), one.name, one.arguments) for one in message.tool_calls])
