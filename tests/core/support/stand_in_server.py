"""A model server for tests: real HTTP on loopback, in a thread, that answers as it is told and remembers every request.

    with StandIn() as server:                                    # echoes what it is asked
    with StandIn(lambda asked: chat("hello")) as server:         # one answer for all
    with StandIn(lambda asked: refusal("vllm", "overflow")):     # an error in the words of a dialect
    with StandIn(faults=Faults(0.3), latency=(0.0, 0.01)):       # 30% of requests fail, each kind in turn
    server.url, server.asked, server.most                        # base_url; requests as they came; most at a time

It speaks ``/chat/completions``, ``/completions`` and ``/responses``; what a script answers to a request with
``"stream": true`` is cut into chunks. Errors in the words of each dialect are those of ``dialects.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import define, evolve, field, frozen

Drop = Literal["at once", "half"]


@frozen
class Asked:
    """A request. ``attempt``: the how-manieth with this body; ``at``: seconds of the monotonic clock."""

    number: int
    attempt: int
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: float

    @property
    def last(self) -> str:
        """The last text that was said, whatever the dialect."""
        said = self.body.get("messages") or self.body.get("input") or self.body.get("prompt") or ""
        if isinstance(said, list) and said and isinstance(said[-1], dict):
            said = said[-1].get("content") or ""
        return said if isinstance(said, str) else json.dumps(said)


@frozen
class Reply:
    """What comes back. ``content``: JSON, or text that is sent as it is. ``after``: seconds before it is sent.

    ``until``: it is held back until this is true. ``drop``: the connection is closed without an answer, or after half
    of it (of a stream: after half of the chunks). ``pause``: seconds between the chunks of a stream.
    """

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    after: float = 0.0
    until: Callable[[], bool] | None = None
    drop: Drop | None = None
    pause: float = 0.0


Script = Callable[[Asked], "Reply | Mapping[str, Any]"]
Fault = Literal["429", "429 date", "500", "503", "529", "dropped", "half"]
FAULTS: Final[tuple[Fault, ...]] = ("429", "500", "503", "529", "dropped", "half")


@frozen
class Faults:
    """A share of requests that fail, by a seeded draw for each; ``most`` bounds how often the same body fails."""

    share: float
    kinds: Sequence[Fault] = FAULTS
    seed: int = 0
    most: int | None = None
    retry_after: float = 0.0

    def of(self, asked: Asked) -> Reply | None:
        """The failure of this request, or None if it is answered."""
        draw = random.Random(f"{self.seed}/{asked.number}")
        if draw.random() >= self.share or (self.most is not None and asked.attempt > self.most):
            return None
        return fault(draw.choice(self.kinds), self.retry_after)


def fault(kind: Fault, retry_after: float = 0.0) -> Reply:
    """A failure of the machinery, not of the request."""
    if kind == "dropped":
        return Reply(drop="at once")
    if kind == "half":
        return Reply(chat("half of this is lost"), drop="half")
    if kind in ("429", "429 date"):
        after = f"{retry_after:g}"
        if kind == "429 date":
            after = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + retry_after))
        error = {"message": "Rate limit reached for requests", "type": "requests", "code": "rate_limit_exceeded"}
        return Reply({"error": error}, 429, {"Retry-After": after})
    return Reply({"error": {"message": "the server is overloaded", "type": "overloaded_error"}}, int(kind))


# Answers --------------------------------------------------------------------------------------------------------------


def usage(prompt: int = 10, completion: int = 5, *, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """The usage of a chat completion."""
    details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    if reasoning:
        details["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **details,
    }  # fmt: skip


def chat(
    *texts: str | None,
    finish: str = "stop",
    thought: str | None = None,
    thought_field: str = "reasoning_content",
    calls: Sequence[tuple[str, str]] = (),
    counted: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A chat completion with a choice for each text. ``calls``: names and arguments, these as the model wrote them.

    ``more``: further fields of each message.
    """
    extra: dict[str, Any] = dict(more)
    if thought is not None:
        extra[thought_field] = thought
    if calls:
        extra["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ]
        finish = "tool_calls" if finish == "stop" else finish
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [
            {"index": n, "finish_reason": finish, "message": {"role": "assistant", "content": text, **extra}}
            for n, text in enumerate(texts or (None,))
        ],
        "usage": usage(10, 5 * max(1, len(texts))) if counted is None else dict(counted),
    }  # fmt: skip


def completion(*texts: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A completion of ``/completions``; ``more``: further fields of each choice."""
    return {
        "id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
        "choices": [{"index": n, "finish_reason": finish, "text": text, **more} for n, text in enumerate(texts)],
        "usage": usage(10, 5 * len(texts)),
    }  # fmt: skip


def response(
    text: str | None,
    *,
    thought: str | None = None,
    calls: Sequence[tuple[str, str]] = (),
    incomplete: str | None = None,
    cached: int = 0,
    reasoning: int = 0,
) -> dict[str, Any]:
    """An answer of ``/responses``. ``incomplete``: the reason (``max_output_tokens``, ``content_filter``)."""
    output: list[dict[str, Any]] = []
    if thought is not None:
        summary = [{"type": "summary_text", "text": thought}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if text is not None:
        parts = [{"type": "output_text", "text": text, "annotations": []}]
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts})
    output += [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name, "arguments": arguments,
         "status": "completed"}
        for n, (name, arguments) in enumerate(calls)
    ]  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "error": None,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens_details": {"reasoning_tokens": reasoning},
        },
    }  # fmt: skip


def refusal(dialect: str, kind: str) -> Reply:
    """How a server of that dialect refuses: ``overflow`` or ``filter`` (see ``dialects.py``)."""
    from dialects import REFUSALS  # beside this file

    status, body = REFUSALS[dialect, kind]
    return Reply(body, status)


def echo(asked: Asked) -> Mapping[str, Any]:
    """An answer that hangs on nothing but the request."""
    mark = hashlib.sha256(json.dumps(asked.body, sort_keys=True).encode()).hexdigest()[:8]
    texts = [f"{asked.last[:200]} [{mark}/{n}]" for n in range(int(asked.body.get("n") or 1))]
    if asked.path.endswith("/responses"):
        return response(texts[0])
    return chat(*texts) if asked.path.endswith("/chat/completions") else completion(*texts)


def chunks_of(answer: Mapping[str, Any], body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A chat completion (or answer of ``/responses``) as the chunks of its stream."""
    if answer.get("object") == "response":
        begun = {**answer, "output": [], "status": "in_progress", "usage": None}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for place, item in enumerate(answer["output"]):
            at = {"output_index": place, "item_id": item["id"]}
            events.append({"type": "response.output_item.added", "output_index": place, "item": _unfinished(item)})
            if item["type"] == "message":
                part = item["content"][0]
                at["content_index"] = 0
                events.append({"type": "response.content_part.added", **at, "part": {**part, "text": ""}})
                events += [
                    {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
                    for piece in _pieces(part["text"])
                ]
                events.append({"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []})
            elif item["type"] == "function_call":
                events += [
                    {"type": "response.function_call_arguments.delta", **at, "delta": piece}
                    for piece in _pieces(item["arguments"])
                ]
            events.append({"type": "response.output_item.done", "output_index": place, "item": item})
        events.append({"type": f"response.{answer['status']}", "response": dict(answer)})
        return [{**event, "sequence_number": number} for number, event in enumerate(events)]
    top = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    top["object"] = "chat.completion.chunk"
    chunks: list[dict[str, Any]] = []

    def add(index: int, delta: dict[str, Any], finish: str | None = None) -> None:
        chunks.append({**top, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    for choice in answer["choices"]:
        message, index = dict(choice["message"]), choice["index"]
        add(index, {"role": message.pop("role"), "content": ""})
        text, calls = message.pop("content") or "", message.pop("tool_calls", [])
        for name, value in message.items():  # thoughts come before what is said
            for piece in _pieces(value) if isinstance(value, str) else [value]:
                add(index, {name: piece})
        for piece in _pieces(text):
            add(index, {"content": piece})
        for number, call in enumerate(calls):
            for place, piece in enumerate(_pieces(call["function"]["arguments"]) or [""]):
                begins = {"id": call["id"], "type": "function"} if place == 0 else {}
                function = {"arguments": piece, **({"name": call["function"]["name"]} if place == 0 else {})}
                add(index, {"tool_calls": [{"index": number, **begins, "function": function}]})
        add(index, {}, choice["finish_reason"])
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**top, "choices": [], "usage": answer.get("usage")})
    return chunks


def _unfinished(item: Mapping[str, Any]) -> dict[str, Any]:
    empty = {"message": {"content": [], "status": "in_progress"}, "function_call": {"arguments": ""}}
    return {**item, **empty.get(item["type"], {})}


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


# The server -----------------------------------------------------------------------------------------------------------


@define(eq=False)
class StandIn:
    """The server; listens from when it is made until :meth:`close`.

    ``latency``: seconds before each answer, one number or bounds of a seeded draw. ``faults`` come before the script.
    """

    script: Script = echo
    faults: Faults | None = None
    latency: float | tuple[float, float] = 0.0
    seed: int = 0
    #: Every request in the order of its arrival, also those that fail.
    asked: list[Asked] = field(factory=list, init=False)
    #: How many requests were answered with a status below 300.
    answered: int = field(default=0, init=False)
    #: The most requests at a time, and those of now.
    most: int = field(default=0, init=False)
    now: int = field(default=0, init=False)
    url: str = field(default="", init=False)
    _seen: dict[bytes, int] = field(factory=dict, init=False)
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop, init=False)
    _thread: threading.Thread = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="stand-in server", daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        """Stop listening and drop what is open. Closing twice is allowed."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, ready: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        loop.run_forever()
        server.close()
        for task in self._tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        data = await reader.readexactly(int(headers.get("content-length", "0")))
        key = hashlib.sha256(data).digest()
        self._seen[key] = self._seen.get(key, 0) + 1
        body = json.loads(data) if data else {}
        asked = Asked(len(self.asked) + 1, self._seen[key], path, headers, body, time.monotonic())
        self.asked.append(asked)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            reply = (self.faults.of(asked) if self.faults is not None else None) or self.script(asked)
            reply = reply if isinstance(reply, Reply) else Reply(reply)
            if isinstance(self.latency, tuple):
                wait = random.Random(f"{self.seed}/wait/{asked.number}").uniform(*self.latency)
            else:
                wait = self.latency
            if wait + reply.after > 0:
                await asyncio.sleep(wait + reply.after)
            while reply.until is not None and not reply.until():
                await asyncio.sleep(0.005)
        finally:
            self.now -= 1
        if reply.drop == "at once":
            writer.transport.abort()
            return False
        self.answered += reply.status < 300 and reply.drop is None
        if body.get("stream") and reply.status < 300 and isinstance(reply.content, Mapping):
            return await self._stream(writer, reply, asked)
        content = reply.content
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        sent = text.encode() if isinstance(text, str) else text
        lines = {"Content-Type": "application/json", "Content-Length": str(len(sent)), **reply.headers}
        writer.write(_head(reply.status, lines) + (sent[: len(sent) // 2] if reply.drop == "half" else sent))
        await writer.drain()
        return reply.drop is None

    async def _stream(self, writer: asyncio.StreamWriter, reply: Reply, asked: Asked) -> bool:
        chunks = reply.content.get("chunks") or chunks_of(reply.content, asked.body)
        named = asked.path.endswith("/responses")
        writer.write(_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked", **reply.headers}))
        events = [(f"event: {chunk['type']}\n" if named else "") + f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
        events += [] if named else ["data: [DONE]\n\n"]
        for event in events[: len(events) // 2] if reply.drop == "half" else events:
            data = event.encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
            if reply.pause:
                await asyncio.sleep(reply.pause)
        if reply.drop == "half":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    return (f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()


def after(seconds: float, answer: Reply | Mapping[str, Any]) -> Reply:
    """The same answer, later."""
    return evolve(answer if isinstance(answer, Reply) else Reply(answer), after=seconds)


@contextlib.contextmanager
def serving(script: Script = echo, **options: Any) -> Iterator[StandIn]:
    """A server for the length of a ``with``."""
    with StandIn(script, **options) as server:
        yield server
