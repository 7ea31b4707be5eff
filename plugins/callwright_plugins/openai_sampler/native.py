"""Between a server's own tool calls and the textual form ``hermes``, in which the rest of Callwright reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_CALL: Final = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_THOUGHT: Final = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


def text_of(message: Mapping[str, Any]) -> str:
    """A message of a server as text: thought, content, and a block for each tool call.

    Arguments are the model's own text: what is not JSON stays as it is, so that the parser can say what is wrong.
    """
    parts = []
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str) and thought.strip():
        parts.append(f"<think>\n{thought.strip()}\n</think>")
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        parts.append(content.strip())
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        name, arguments = json.dumps(str(function.get("name") or "")), function.get("arguments") or "{}"
        parts.append(f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>')
    return "\n".join(parts)


def native_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose earlier calls and results are those of the server's protocol again.

    Every call gets an id by its place; the results that follow are matched to the calls in their order. Calls that
    cannot be read stay text, and their results become messages of the user.
    """
    made: list[dict[str, Any]] = []
    open_calls: list[str] = []
    number = 0
    for message in messages:
        role, content = message["role"], str(message["content"])
        if role == "assistant":
            calls, rest = _calls(content)
            made.append({"role": role, "content": rest})
            open_calls = []
            if calls:
                open_calls = [f"call_{number + offset}" for offset in range(len(calls))]
                made[-1]["tool_calls"] = [
                    {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}
                    for identifier, (name, arguments) in zip(open_calls, calls, strict=True)
                ]
                number += len(calls)
        elif role == "tool" and open_calls:
            made.append({"role": "tool", "tool_call_id": open_calls.pop(0), "content": content})
        else:
            made.append({"role": "user" if role == "tool" else role, "content": content})
    return made


def _calls(text: str) -> tuple[list[tuple[str, str]], str]:
    calls = []
    for body in _CALL.findall(text):
        try:
            call = json.loads(body)
        except ValueError:
            return [], text
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return [], text
        calls.append((call["name"], json.dumps(call.get("arguments") or {})))
    return calls, _THOUGHT.sub("", _CALL.sub("", text)).strip()
