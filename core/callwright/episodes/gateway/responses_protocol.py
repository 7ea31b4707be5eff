"""The Responses API in front of the same sessions: its requests as chat requests, answers as its items and events.

A request may say the whole conversation (``input``), or name the answer that it goes on from
(``previous_response_id``), which the session remembers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.episodes.gateway.chat_answer import ChatAnswer
from callwright.episodes.gateway.chat_request import ChatRequest, Refusal, checked_request, listed_tools
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.others.responses import messages_of_items

#: What is called otherwise in chat completions; other names are the same.
_RENAMED: Final[Mapping[str, str]] = {"max_output_tokens": "max_tokens"}
#: Options that change nothing of what is sampled.
_HARMLESS: Final = frozenset(
    "input instructions include previous_response_id reasoning text truncation background prompt conversation".split()
)
#: Options that would, each with the values that do not.
_NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "truncation": ("disabled",),
    "background": (False,),
    "prompt": (),
    "conversation": (),
    "max_tool_calls": (),
}
_PIECE: Final = 48


def read_responses_request(body: Any, before: Callable[[str], Sequence[Message] | None]) -> ChatRequest:
    """Read the JSON of a request. ``before`` says what was said up to an answer, by its id.

    Raises :class:`.chat_request.Refusal` with status 400 and the reason.
    """
    if not isinstance(body, Mapping):
        raise Refusal(400, "the body is not a JSON object")
    for name, known in _NEUTRAL.items():
        if body.get(name) is not None and body[name] not in known:
            raise Refusal(400, f"the option {name!r} = {body[name]!r:.60} is not served; leave it out")
    form = (body.get("text") or {}).get("format") if isinstance(body.get("text"), Mapping) else None
    if form is not None and not (isinstance(form, Mapping) and form.get("type") == "text"):
        raise Refusal(400, "the option 'text.format' changes what is sampled; leave it out", code="changes_sampling")
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages: list[Message] = []
    said = body.get("instructions")
    if isinstance(said, str) and said:
        messages.append(Message.system(said))
    if body.get("previous_response_id"):
        earlier = before(str(body["previous_response_id"]))
        if earlier is None:
            raise Refusal(400, f"no answer of this session has the id {body['previous_response_id']!r:.80}")
        messages += [one for one in earlier if not (messages and one.role == "system")]
    try:
        messages += messages_of_items(items)
    except (DataError, TypeError) as error:
        raise Refusal(400, f"'input': {error}") from error
    chat: dict[str, Any] = {
        _RENAMED.get(str(name), str(name)): value
        for name, value in body.items()
        if name not in _HARMLESS | _NEUTRAL.keys()
    }
    chat["tools"] = [_function(one) for one in listed_tools(body)]
    return checked_request(messages, chat)


def _function(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        kind = tool.get("type") if isinstance(tool, Mapping) else type(tool).__name__
        raise Refusal(
            400, f"a tool of the type {kind!r:.40} is the server's own, which this one has not; only functions"
        )
    return {"type": "function", "function": {key: one for key, one in tool.items() if key not in ("type", "strict")}}


def response_of(answer: ChatAnswer, tools: Sequence[Any] = (), *, status: str = "") -> dict[str, Any]:
    """The body of a whole answer."""
    cut = answer.finish == "length"
    used, made = answer.usage.get("prompt_tokens", 0), answer.usage.get("completion_tokens", 0)
    return {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created,
        "status": status or ("incomplete" if cut else "completed"),
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": answer.model,
        "output": [] if status == "in_progress" else _items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": list(tools),
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used + made,
        },
    }


def events_of(answer: ChatAnswer, tools: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """The same as events, in the order in which a server that samples piece by piece would send them."""
    number = 0

    def event(kind: str, **about: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number - 1, **about}

    yield event("response.created", response=response_of(answer, tools, status="in_progress"))
    for place, item in enumerate(_items(answer)):
        at = {"output_index": place, "item_id": item["id"]}
        begun = {**item, "status": "in_progress"} if item["type"] != "reasoning" else item
        if item["type"] == "message":
            yield event("response.output_item.added", output_index=place, item={**begun, "content": []})
            part = item["content"][0]
            yield event("response.content_part.added", **at, content_index=0, part={**part, "text": ""})
            for piece in _pieces(part["text"]):
                yield event("response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
            yield event("response.output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **at, content_index=0, part=part)
        elif item["type"] == "function_call":
            yield event("response.output_item.added", output_index=place, item={**begun, "arguments": ""})
            for piece in _pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **at, delta=piece)
            yield event("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        else:
            yield event("response.output_item.added", output_index=place, item=begun)
        yield event("response.output_item.done", output_index=place, item=item)
    whole = response_of(answer, tools)
    yield event(f"response.{whole['status']}", response=whole)


def _items(answer: ChatAnswer) -> list[dict[str, Any]]:
    message, items = answer.message, []
    if message.thought:
        summary = [{"type": "summary_text", "text": message.thought}]
        items.append({"type": "reasoning", "id": f"rs_{answer.id}", "summary": summary})
    if message.text or not message.tool_calls:
        said = {"type": "output_text", "text": message.text, "annotations": [], "logprobs": []}
        about = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "status": "completed"}
        items.append({**about, "content": [said]})
    for place, call in enumerate(message.tool_calls):
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{answer.id}_{place}",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "status": "completed",
            }
        )
    return items


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def as_event(value: Mapping[str, Any]) -> bytes:
    """An event of the stream, with its name."""
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode(
        "utf-8", "backslashreplace"
    )
