"""A tokenizer of bytes with a chat template like Qwen3's, and an engine that says what it was given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.episodes import ChatCodec, EngineOutput

jinja2 = pytest.importorskip("jinja2", reason="templates of chats need the extra 'train'")

#: Thoughts of earlier answers are left out, and calls are written anew: what a server would render is not what was
#: sampled.
TEMPLATE = (
    "{% if tools %}<|im_start|>system\n# Tools\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n"
    "{% if m.role == 'tool' %}<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% elif m.role == 'assistant' %}{{ (m.content or '').split('</think>')[-1].lstrip('\\n') }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = {"<|im_start|>": 256, "<|im_end|>": 257}
NAMES = {number: text for text, number in SPECIALS.items()}


class ByteTokenizer:
    """Every byte is a token; so are the two marks of a turn."""

    chat_template = TEMPLATE
    eos_token_id = SPECIALS["<|im_end|>"]
    bos_token_id = None
    all_special_tokens = tuple(SPECIALS)

    def __init__(self, template: str = TEMPLATE) -> None:
        self._template = jinja2.Environment().from_string(template)

    def apply_chat_template(self, messages: Any, *, tokenize: bool, add_generation_prompt: bool, **options: Any) -> str:
        return self._template.render(messages=messages, add_generation_prompt=add_generation_prompt, **options)

    def encode(self, text: str, *, add_special_tokens: bool = True, split_special_tokens: bool = False) -> list[int]:
        ids: list[int] = []
        while text:
            found = [(text.find(mark), mark) for mark in SPECIALS if mark in text and not split_special_tokens]
            at, mark = min(found, default=(len(text), ""))
            ids += text[:at].encode()
            if mark:
                ids.append(SPECIALS[mark])
            text = text[at + len(mark) :]
        return ids

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        text, waiting = "", bytearray()
        for one in [*ids, None]:
            if one is not None and one < 256:
                waiting.append(one)
                continue
            text += waiting.decode(errors="replace")
            waiting.clear()
            text += NAMES.get(one, "") if one is not None else ""
        return text


def codec() -> ChatCodec:
    return ChatCodec(ByteTokenizer(), tools_in_template=True)


class ScriptedEngine:
    """Answers by the number of the turn, or by what a function makes of the context's text."""

    def __init__(self, answers: Sequence[str] | Callable[[str, int], str], wait: float = 0.0) -> None:
        self.codec = codec()
        self._answers, self._wait = answers, wait
        self.asked: list[str] = []

    async def continue_one(self, episode: Any, *, temperature: float = 1.0) -> EngineOutput:
        context = self.codec.text(episode.context)
        self.asked.append(context)
        await asyncio.sleep(self._wait)
        answers, number = self._answers, len(episode.history)
        text = answers(context, number) if callable(answers) else answers[number]
        ids = (*self.codec.tokenizer.encode(text), SPECIALS["<|im_end|>"])
        room = len(ids) if episode.room is None else min(episode.room, len(ids))
        return EngineOutput(ids[:room], (-0.5,) * room, room == len(ids))


class Till:
    """A state in which the order of entries shows."""

    def __init__(self, scenario: str, seed: int) -> None:
        self.entries: list[str] = []


@cw.tool
def enter(till: Till, /, text: str) -> int:
    """Add an entry; returns how many there are."""
    if text == "bad":
        raise cw.ToolError("BAD", "no such text")
    till.entries.append(text)
    return len(till.entries)


TILL = FunctionEnvironment("till", [enter], state=Till)
TASK = cw.Task("t", "enter a and b", TILL.tools, cw.Answer((2,)), TILL)
TOOLS = [spec.to_openai() for spec in TILL.tools.values()]


def block(*texts: str) -> str:
    """Calls of the tool as a model writes them; two spaces show whether the sampled text was kept."""
    return "\n".join(
        f'<tool_call>\n{{"name": "enter", "arguments": {{"text":  {json.dumps(text)}}}}}\n</tool_call>'
        for text in texts
    )


#: Two calls at once, one that fails, one that mends it, the answer: with a thought each.
SCRIPT = [
    f"<think>\nBoth.\n</think>\n\n{block('a', 'b')}",
    f"<think>\nOnce more.\n</think>\n\n{block('bad')}",
    f"<think>\nAgain.\n</think>\n\n{block('c')}",
    "<think>\nDone.\n</think>\n\nAll is entered.",
]


async def agent(session: Any, client: Any, *, stream: bool = False, drop: Callable[[Any], Any] = lambda m: m) -> str:
    """A loop as anybody writes it: ask, call the tools, say the whole conversation again; ``drop`` rewrites echoes."""
    messages: list[Any] = [{"role": "user", "content": session.task.query}]
    while True:
        said = await ask(client, messages, stream=stream)
        messages.append(drop(said))
        if not said.get("tool_calls"):
            return str(said["content"])
        for call in said["tool_calls"]:
            outcome = await session.log.acall(
                call["function"]["name"], json.loads(call["function"]["arguments"]), call_id=call["id"]
            )
            told = cw.environments.tell(outcome)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})


async def ask(client: Any, messages: Any, *, stream: bool = False, **options: Any) -> dict[str, Any]:
    """One request by OpenAI's own client; a streamed answer is put together as clients do."""
    options = {"model": "m", "messages": messages, "tools": TOOLS, **options}
    if not stream:
        made = await client.chat.completions.create(**options)
        return dict(made.choices[0].message.model_dump(exclude_none=True))
    said: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    async for chunk in await client.chat.completions.create(stream=True, **options):
        for choice in chunk.choices:
            said["content"] += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    piece.index, {"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
    if calls:
        said["tool_calls"] = [calls[place] for place in sorted(calls)]
    return said
