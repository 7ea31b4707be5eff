"""Messages of Anthropic's API as messages: blocks of text, thoughts, uses of tools and their results.

Results of tools stand in the user's message there; here each is a message of its own, before the user's words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from callwright.errors import DataError
from callwright.language.messages import Message, Part, ToolCall
from callwright.language.strict_json import kind as json_kind


def messages_of_anthropic(messages: Iterable[Any], system: Any = None) -> Iterator[Message]:
    """The messages that a request says, after its system prompt.

    Raises :class:`callwright.errors.DataError` for what is no message, and for blocks of other kinds than text,
    thoughts, and tools of the client.
    """
    if system:
        yield Message.system("\n".join(map(str, _texts(_blocks(system, "'system'"), "'system'"))))
    for place, message in enumerate(messages):
        where = f"message {place}"
        if not isinstance(message, Mapping):
            raise DataError(f"{where} is {json_kind(message)}, expected an object")
        role, blocks = message.get("role"), _blocks(message.get("content"), where)
        if role == "assistant":
            yield _said(blocks, where)
        elif role == "user":
            yield from _heard(blocks, where)
        elif role == "system":
            yield Message.system("\n".join(map(str, _texts(blocks, where))))
        else:
            raise DataError(f"{where} has the role {role!r:.40}, expected user or assistant")


def _blocks(content: Any, where: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple) or not all(isinstance(one, Mapping) for one in content):
        raise DataError(f"{where}: its content is no text and no list of blocks")
    return content


def _said(blocks: Sequence[Mapping[str, Any]], where: str) -> Message:
    thoughts, texts, calls = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "thinking":
            thoughts.append(str(block.get("thinking") or ""))
        elif kind == "tool_use":
            given = block.get("input")
            arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
            calls.append(ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), arguments))
        elif kind == "text":
            texts.append(str(block.get("text") or ""))
        elif kind != "redacted_thinking":
            raise DataError(f"{where} has a block of the type {kind!r:.40}, which is the server's own")
    return Message.assistant("".join(texts), calls, reasoning="\n".join(filter(None, thoughts)))


def _heard(blocks: Sequence[Mapping[str, Any]], where: str) -> Iterator[Message]:
    rest = []
    for block in blocks:
        if block.get("type") != "tool_result":
            rest.append(block)
            continue
        content = _blocks(block.get("content") or "", where)
        yield Message.tool("".join(map(str, _texts(content, where))), str(block.get("tool_use_id") or ""))
    if rest:
        yield Message.user("\n".join(map(str, _texts(rest, where))))


def _texts(blocks: Sequence[Mapping[str, Any]], where: str) -> Iterator[Part]:
    for block in blocks:
        if block.get("type") != "text":
            raise DataError(f"{where} has a block of the type {block.get('type')!r:.40}; only text is read")
        yield str(block.get("text") or "")
