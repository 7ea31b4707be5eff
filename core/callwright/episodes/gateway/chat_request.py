"""Requests for chat completions: what is read, what is refused, and what is set by the gateway and not by the client.

An option that changes the distribution that answers are drawn from makes their log-probabilities untrue. Such a one is
refused in words, but for the temperature, which nearly every agent sets: the gateway's own is used, and that is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec

#: Options without which nothing else would be sampled, each with the value that says so.
_NEUTRAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "top_p": (1, 1.0),
    "frequency_penalty": (0, 0.0),
    "presence_penalty": (0, 0.0),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto",),
    "top_k": (-1, 0),
    "min_p": (0, 0.0),
    "repetition_penalty": (1, 1.0),
    "functions": ([],),
    "prediction": (),
    "modalities": (["text"],),
    "audio": (),
}
#: Options that change nothing of what is sampled.
_HARMLESS: Final = frozenset(
    "messages model tools stream stream_options temperature max_tokens max_completion_tokens stop user metadata seed "
    "store parallel_tool_calls logprobs top_logprobs service_tier reasoning_effort verbosity prompt_cache_key "
    "safety_identifier extra_body".split()
)
#: As OpenAI's servers have it.
_HOTTEST: Final = 2


class Refusal(Exception):
    """A request that is not answered: the HTTP status, and why in words."""

    def __init__(self, status: int, message: str, *, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.status, self.code = status, code

    def to_json(self) -> dict[str, Any]:
        """The body, as OpenAI's servers write errors."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


@frozen
class ChatRequest:
    """A request as it is read. ``max_tokens`` and ``stop`` bound the answer; ``tools_key`` tells lists apart."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = field(repr=False)
    tools_key: str = field(repr=False)
    model: str = ""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    logprobs: bool = False
    body: Mapping[str, Any] = field(repr=False, factory=dict)


def read_request(body: Any) -> ChatRequest:
    """Read the JSON of a request. Raises :class:`Refusal` with status 400 and the reason."""
    if not isinstance(body, Mapping):
        raise Refusal(400, "the body is not a JSON object")
    listed = body.get("messages")
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise Refusal(400, "'messages' must be a list of messages, and hold one at least")
    try:
        messages = [Message.from_openai(one) for one in listed]
    except DataError as error:
        raise Refusal(400, str(error)) from error
    return checked_request(messages, body)


def checked_request(messages: Sequence[Message], body: Mapping[str, Any]) -> ChatRequest:
    """A request with these messages; ``body`` holds its options by the names of chat completions.

    Raises :class:`Refusal` with status 400 and the reason.
    """
    _check_options(body)
    if not messages:
        raise Refusal(400, "'messages' must be a list of messages, and hold one at least")
    listed, stop = listed_tools(body), body.get("stop") or ()
    if not isinstance(stop, str) and not (isinstance(stop, list | tuple) and all(isinstance(one, str) for one in stop)):
        raise Refusal(400, f"'stop' must be a text or a list of texts, not {stop!r:.40}")
    try:
        tools = tuple(ToolSpec.from_openai(one) for one in listed)
    except DataError as error:
        raise Refusal(400, str(error)) from error
    if messages[-1].role == "assistant":
        raise Refusal(
            400,
            "the last message is the assistant's: a prefilled answer is not what the model would write, so it cannot "
            "be trained on",
            code="prefill",
        )
    options = body.get("stream_options") or {}
    if not isinstance(options, Mapping):
        raise Refusal(400, f"'stream_options' must be an object, not {options!r:.40}")
    return ChatRequest(
        tuple(messages),
        tools,
        json.dumps(body.get("tools") or [], sort_keys=True),
        str(body.get("model") or ""),
        _flag(body, "stream"),
        _flag(options, "include_usage"),
        _most(body),
        (stop,) if isinstance(stop, str) else tuple(stop),
        _temperature(body),
        _flag(body, "logprobs"),
        body,
    )


def _check_options(body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        if name in _HARMLESS or value is None:
            continue
        if name not in _NEUTRAL:
            raise Refusal(400, f"the option {name!r} is not known to this gateway; leave it out", code="unknown_option")
        if value not in _NEUTRAL[name]:
            raise Refusal(
                400,
                f"the option {name!r} = {value!r:.60} changes what is sampled, so that recorded log-probabilities "
                "would be untrue; leave it out",
                code="changes_sampling",
            )


def listed_tools(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tools of a request, as they came. Raises :class:`Refusal` with status 400 for what is no list of objects."""
    listed = body.get("tools") or ()
    if not isinstance(listed, list | tuple) or not all(isinstance(one, Mapping) for one in listed):
        raise Refusal(400, "'tools' must be a list of objects, each with a 'function'")
    return listed


def _flag(options: Mapping[str, Any], name: str) -> bool:
    value = options.get(name)
    if value is not None and not isinstance(value, bool):
        raise Refusal(400, f"{name!r} must be true or false, not {value!r:.40}")
    return bool(value)


def _temperature(body: Mapping[str, Any]) -> float | None:
    """What the client wishes, which is said beside what it gets: as a server would take it, though it plays no part."""
    value = body.get("temperature")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _HOTTEST:
        raise Refusal(400, f"'temperature' must be a number from 0 to {_HOTTEST}, not {value!r:.40}")
    return value


def _most(body: Mapping[str, Any]) -> int | None:
    stated = [body[key] for key in ("max_tokens", "max_completion_tokens") if body.get(key) is not None]
    for value in stated:
        if type(value) is not int or value < 1:
            raise Refusal(400, f"'max_tokens' is {value!r:.40}, expected a whole number of 1 or more")
    return min(stated, default=None)
