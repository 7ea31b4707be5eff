"""Anthropic's messages in front of the same sessions: its requests as chat requests, answers as its blocks and events.

Its clients take ``session.anthropic_url`` for their base URL, and ask ``/v1/messages`` below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.episodes.gateway.chat_answer import ChatAnswer
from callwright.episodes.gateway.chat_request import ChatRequest, Refusal, checked_request, listed_tools
from callwright.errors import DataError
from callwright.language.others.anthropic import messages_of_anthropic

#: What is called otherwise in chat completions; other names are the same.
_RENAMED: Final[Mapping[str, str]] = {"stop_sequences": "stop"}
#: Options that change nothing of what is sampled: how much a model thinks is in its template.
_HARMLESS: Final = frozenset("messages system tools tool_choice thinking output_config context_management".split())
_KINDS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    404: "not_found_error",
    410: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
}
_STOPS: Final[Mapping[str, str]] = {"length": "max_tokens", "tool_calls": "tool_use"}
_PIECE: Final = 48


def read_messages_request(body: Any) -> ChatRequest:
    """Read the JSON of a request. Raises :class:`.chat_request.Refusal` with status 400 and the reason."""
    if not isinstance(body, Mapping):
        raise Refusal(400, "the body is not a JSON object")
    listed = body.get("messages")
    if not isinstance(listed, list):
        raise Refusal(400, "'messages' must be a list of messages, and hold one at least")
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type", "auto") != "auto":
        raise Refusal(
            400,
            f"the option 'tool_choice' = {choice!r:.60} changes what is sampled, so that recorded log-probabilities "
            "would be untrue; leave it out",
            code="changes_sampling",
        )
    try:
        messages = list(messages_of_anthropic(listed, body.get("system")))
    except DataError as error:
        raise Refusal(400, str(error)) from error
    chat: dict[str, Any] = {
        _RENAMED.get(str(name), str(name)): value for name, value in body.items() if name not in _HARMLESS
    }
    chat["tools"] = [_function(one) for one in listed_tools(body)]
    return checked_request(messages, chat)


def _function(tool: Any) -> dict[str, Any]:
    kind = tool.get("type") or "custom" if isinstance(tool, Mapping) else type(tool).__name__
    if kind != "custom":
        raise Refusal(
            400, f"a tool of the type {kind!r:.40} is the server's own, which this one has not; only tools of yours"
        )
    function = {"name": tool.get("name"), "description": tool.get("description") or ""}
    return {"type": "function", "function": {**function, "parameters": tool.get("input_schema") or {}}}


def message_body(answer: ChatAnswer) -> dict[str, Any]:
    """The body of a whole answer."""
    return {
        **_head(answer),
        "content": _blocks(answer),
        "stop_reason": _STOPS.get(answer.finish, "end_turn"),
        "usage": _usage(answer),
    }


def message_events(answer: ChatAnswer) -> Iterator[dict[str, Any]]:
    """The same as events, in the order in which a server that samples piece by piece would send them."""
    usage = _usage(answer)
    begun = {**_head(answer), "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    calls = {call.id: call.arguments for call in answer.message.tool_calls}
    for place, block in enumerate(_blocks(answer)):
        kind = block["type"]
        empty: dict[str, Any]
        if kind == "thinking":
            empty, deltas = {"thinking": ""}, [("thinking_delta", "thinking", block["thinking"])]
        elif kind == "text":
            empty, deltas = {"text": ""}, [("text_delta", "text", block["text"])]
        else:  # the arguments as they were sampled, which a whole answer can only say as an object
            empty, deltas = {"input": {}}, [("input_json_delta", "partial_json", calls[block["id"]])]
        yield {"type": "content_block_start", "index": place, "content_block": {**block, **empty}}
        for name, member, text in deltas:
            for start in range(0, len(text), _PIECE):
                delta = {"type": name, member: text[start : start + _PIECE]}
                yield {"type": "content_block_delta", "index": place, "delta": delta}
        yield {"type": "content_block_stop", "index": place}
    ended = {"stop_reason": _STOPS.get(answer.finish, "end_turn"), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def refusal_body(refused: Refusal) -> dict[str, Any]:
    """A refusal, as Anthropic's servers write errors."""
    kind = _KINDS.get(refused.status, "invalid_request_error" if refused.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": str(refused)}}


def _head(answer: ChatAnswer) -> dict[str, Any]:
    about = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": answer.model}
    return {**about, "stop_sequence": None}


def _usage(answer: ChatAnswer) -> dict[str, int]:
    used, made = answer.usage.get("prompt_tokens", 0), answer.usage.get("completion_tokens", 0)
    return {"input_tokens": used, "output_tokens": made}


def _blocks(answer: ChatAnswer) -> list[dict[str, Any]]:
    message, blocks = answer.message, list[dict[str, Any]]()
    if message.thought:
        blocks.append({"type": "thinking", "thinking": message.thought, "signature": ""})
    if message.text or not message.tool_calls:
        blocks.append({"type": "text", "text": message.text})
    for call in message.tool_calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)})
    return blocks


def _object(arguments: str) -> dict[str, Any]:
    """Arguments as the object that a whole answer must hold; of other JSON, and of none, the text under a name."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": arguments}
