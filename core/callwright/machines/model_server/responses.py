"""OpenAI's Responses API in the terms of chat completions, so that whoever reads one reads both.

:func:`request_of` makes the body of ``POST /responses`` of chat messages and of the fields of a chat request,
:func:`as_chat` an answer of ``/chat/completions`` of what comes back: reasoning items become ``reasoning_content``,
function calls ``tool_calls`` with their arguments as they were sampled. All is plain JSON. The items themselves are
kept under ``response_items`` of the message: a message that comes back with them is sent as those items, encrypted
reasoning included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

#: The key of a chat message that holds the items it was made of.
ITEMS: Final = "response_items"
#: Fields of a chat request under the names of this API; ``None`` where it has no such thing.
_RENAMED: Final[Mapping[str, str | None]] = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "seed": None,
    "n": None,
    "logprobs": None,
}
_FINISHED: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


def request_of(messages: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request: ``input``, and the fields of ``body`` as this API names them.

    ``store`` is false unless ``body`` says otherwise, and encrypted reasoning is asked for, so that a server keeps
    nothing and later turns still have it. With ``reasoning_effort`` a summary of the reasoning is asked for, too, which
    is all that OpenAI shows of it.
    """
    made: dict[str, Any] = {"input": [item for message in messages for item in _items(message)], "store": False}
    include = ["reasoning.encrypted_content"]
    for name, value in body.items():
        if name == "tools":
            made["tools"] = [_tool(tool) for tool in value]
        elif name == "tool_choice" and isinstance(value, Mapping):
            made["tool_choice"] = {"type": "function", "name": (value.get("function") or {}).get("name", "")}
        elif name == "reasoning_effort":
            made["reasoning"] = {"effort": value, "summary": "auto", **made.get("reasoning", {})}
        elif name == "reasoning":
            made["reasoning"] = {**made.get("reasoning", {}), **value}
        elif name == "include":
            include += [one for one in value if one not in include]
        elif name in _RENAMED:
            other = _RENAMED[name]
            if other is not None:
                made[other] = value
            elif name == "logprobs" and value:
                include.append("message.output_text.logprobs")
        else:
            made[name] = value
    return {**made, "include": include}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A function definition, flat. Without ``strict`` the API would make a schema strict by itself."""
    return {"type": "function", "strict": False, **tool["function"]} if "function" in tool else dict(tool)


def _items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The input items of a chat message."""
    role, content = message.get("role"), message.get("content")
    if message.get(ITEMS):
        yield from message[ITEMS]
    elif role == "tool":
        yield {"type": "function_call_output", "call_id": message.get("tool_call_id") or "", "output": _text(content)}
    elif role == "assistant":
        if content:
            yield {"role": "assistant", "content": _text(content)}
        for call in message.get("tool_calls") or ():
            function = call["function"]
            called = {"call_id": call.get("id") or "", "name": function["name"], "arguments": function["arguments"]}
            yield {"type": "function_call", **called}
    else:
        yield {
            "role": role,
            "content": content if isinstance(content, str) else [_part(part) for part in content or ()],
        }


def _text(content: Any) -> str:
    if isinstance(content, list | tuple):
        return "".join(str(part.get("text") or part.get("refusal") or "") for part in content)
    return content or ""


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a user's content."""
    if part.get("type") == "text":
        return {"type": "input_text", "text": part["text"]}
    if part.get("type") == "image_url":
        image: Any = part["image_url"]
        given = {"image_url": image} if isinstance(image, str) else {"image_url": image.get("url"), **image}
        return {"detail": "auto", **{key: value for key, value in given.items() if key != "url"}, "type": "input_image"}
    return dict(part)


def as_chat(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of ``/chat/completions`` that says the same, with ``usage`` under the names of that.

    A failed response has no choice, and its ``error``. What is no response at all has no choice either.
    """
    output = answer.get("output")
    made: dict[str, Any] = {"choices": [], "usage": _usage(answer.get("usage")), "error": answer.get("error")}
    if not isinstance(output, list) or answer.get("status") in ("failed", "cancelled"):
        return made
    items = [item for item in output if isinstance(item, Mapping)]
    reason = (answer.get("incomplete_details") or {}).get("reason")
    calls = [_call(item) for item in items if str(item.get("type")).endswith("_call")]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_said(items, "output_text", "text")) or None}
    thought = "\n\n".join(filter(None, (_thought(item) for item in items if item.get("type") == "reasoning")))
    if thought:
        message["reasoning_content"] = thought
    refusal = "".join(_said(items, "refusal", "refusal"))
    if refusal:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = calls
    message[ITEMS] = [dict(item) for item in items]
    usual = "tool_calls" if calls else "stop"
    finished = _FINISHED.get(str(reason), usual) if answer.get("status") == "incomplete" else usual
    tokens = [one for part in _parts(items, "output_text") for one in part.get("logprobs") or ()]
    choice = {"index": 0, "finish_reason": finished, "message": message}
    made["choices"] = [{**choice, "logprobs": {"content": tokens}} if tokens else choice]
    return made


def _parts(items: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    for item in items:
        for part in item.get("content") or () if item.get("type") == "message" else ():
            if isinstance(part, Mapping) and part.get("type") == kind:
                yield part


def _said(items: Sequence[Mapping[str, Any]], kind: str, key: str) -> Iterator[str]:
    return (str(part.get(key) or "") for part in _parts(items, kind))


def _thought(item: Mapping[str, Any]) -> str:
    """The reasoning itself where a server shows it, else the summary."""
    for key in ("content", "summary"):
        found = "\n\n".join(str(part.get("text") or "") for part in item.get(key) or () if isinstance(part, Mapping))
        if found:
            return found
    return ""


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a function; of another tool one of a type that nobody offered."""
    if item.get("type") != "function_call":
        return {"id": item.get("id"), "type": item.get("type")}
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _usage(usage: Any) -> dict[str, Any]:
    if not isinstance(usage, Mapping):
        return {}
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
