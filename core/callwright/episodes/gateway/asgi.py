"""The gateway over HTTP, as a plain ASGI application.

    POST /s/SESSION/v1/chat/completions              answers, whole or streamed
    POST /s/SESSION/v1/responses                     the same in the Responses API
    POST /s/SESSION/v1/messages                      the same in Anthropic's
    POST /s/SESSION/a/ROLE/v1/chat/completions       the same for one of several agents
    GET  /s/SESSION/v1/models
    /s/SESSION/mcp                                   the tools of the session's world over MCP
    GET  /s/SESSION/tools, POST /s/SESSION/tools/NAME     the tools of the session's world

Headers are never kept or logged: they hold keys.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.environments.telling import tell
from callwright.episodes.gateway.anthropic_protocol import (
    message_body,
    message_events,
    read_messages_request,
    refusal_body,
)
from callwright.episodes.gateway.branches import GatewayTurn
from callwright.episodes.gateway.chat_request import ChatRequest, Refusal, read_request
from callwright.episodes.gateway.responses_protocol import as_event, events_of, read_responses_request, response_of
from callwright.episodes.gateway.session import GatewaySession

if TYPE_CHECKING:
    from callwright.episodes.gateway.gateway import Gateway

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]

_PATH: Final = re.compile(
    r"/s/([\w-]+)(?:/a/([\w-]+))?/(v1/chat/completions|v1/responses|v1/messages|v1/models|mcp|tools(?:/([\w.-]+))?)"
)
#: Bytes of a request, beyond which it is refused.
_LARGEST: Final = 64 * 1024 * 1024
#: Seconds after which a client that waits for a streamed answer is told that it is under way.
_HEARTBEAT: Final = 10.0


def application(gateway: Gateway) -> Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]:
    """The ASGI application of a gateway."""

    async def app(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await _answered(gateway, scope, receive, send)
        except Refusal as refused:
            anthropic = str(scope["path"]).endswith("/v1/messages")
            await _json(send, refused.status, refusal_body(refused) if anthropic else refused.to_json())

    return app


async def _answered(gateway: Gateway, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    path = str(scope["path"])[len(str(scope.get("root_path") or "")) :]
    match = _PATH.fullmatch(path)
    if match is None:
        raise Refusal(404, "there is nothing at this path; ask /s/SESSION/v1/chat/completions", code="no_such_path")
    name, role, what, tool = match.groups()
    session = gateway.session(name)
    if session is None:
        if gateway.is_gone(name):
            raise Refusal(410, f"the session {name!r} is finished", code="session_finished")
        raise Refusal(404, f"there is no session named {name!r}", code="no_such_session")
    method = scope["method"]
    if what == "mcp":
        if gateway.mcp is None:
            raise Refusal(501, "the package mcp is not installed: pip install 'callwright[mcp]'", code="no_mcp")
        await gateway.mcp.handle_request(scope, receive, send)
        return
    if what == "v1/models" and method == "GET":
        listed = [{"id": gateway.model, "object": "model", "created": 0, "owned_by": "callwright"}]
        await _json(send, 200, {"object": "list", "data": listed})
    elif what == "v1/chat/completions" and method == "POST":
        await _complete(session, read_request(await _body(receive)), role or "", receive, send, None)
    elif what == "v1/responses" and method == "POST":
        body = await _body(receive)
        request = read_responses_request(body, session.said_up_to)
        listed = body.get("tools") or []
        shape = Shape(
            lambda turn: response_of(turn.answer, listed),
            lambda turn: (as_event(one) for one in events_of(turn.answer, listed)),
        )
        await _complete(session, request, role or "", receive, send, shape)
    elif what == "v1/messages" and method == "POST":
        shape = Shape(
            lambda turn: message_body(turn.answer),
            lambda turn: (as_event(one) for one in message_events(turn.answer)),
            refused=lambda refused: as_event(refusal_body(refused)),
        )
        await _complete(session, read_messages_request(await _body(receive)), role or "", receive, send, shape)
    elif tool is None and what == "tools" and method == "GET":
        await _json(send, 200, {"tools": [spec.to_openai() for spec in session.task.offered.values()]})
    elif tool is not None and method == "POST":
        await _json(send, 200, await _called(session, tool, await _content(receive), scope))
    else:
        raise Refusal(405, f"{method} is not for {path}", code="method")


async def _called(session: GatewaySession, tool: str, content: bytes, scope: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a tool. The id of the call, where the agent knows it, comes as the header ``x-call-id``.

    Agents send what the model wrote, and what is no JSON is the model's mistake: it reads that, and the agent goes on.
    """
    try:
        arguments = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        arguments = content.decode("utf-8", "replace")
    headers = dict(scope.get("headers") or ())
    outcome = await session.log.acall(tool, arguments, call_id=headers.get(b"x-call-id", b"").decode("latin-1"))
    return {"content": tell(outcome), "is_error": outcome.failed or outcome.kind == "infrastructure_error"}


# Completions ----------------------------------------------------------------------------------------------------------


@frozen
class Shape:
    """How a protocol writes an answer: whole, in pieces, what ends the pieces, and a refusal among them."""

    whole: Callable[[GatewayTurn], Any]
    pieces: Callable[[GatewayTurn], Iterator[bytes]]
    end: bytes = b""
    refused: Callable[[Refusal], bytes] = lambda refused: _event(refused.to_json())


async def _complete(
    session: GatewaySession, request: ChatRequest, role: str, receive: Receive, send: Send, shape: Shape | None
) -> None:
    shape = shape or Shape(
        lambda turn: turn.answer.to_json(logprobs=request.logprobs),
        lambda turn: (_event(one) for one in turn.answer.chunks(include_usage=request.include_usage)),
        b"data: [DONE]\n\n",
    )
    answering = asyncio.ensure_future(session.answer(request, role))
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        if request.stream:
            turn, whole = await _stream(shape, answering, gone, send)
        else:
            either: set[asyncio.Future[Any]] = {answering, gone}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            turn, whole = await answering, not gone.done()
            if whole:
                await _json(send, 200, shape.whole(turn))
        if turn is not None and whole and not gone.done():
            turn.delivered = True
    finally:
        gone.cancel()


async def _stream(
    shape: Shape, answering: asyncio.Future[GatewayTurn], gone: asyncio.Future[None], send: Send
) -> tuple[GatewayTurn | None, bool]:
    """Send an answer in pieces; heartbeats until there is one. Returns whether the client took all of it."""
    begun = False
    while not answering.done():
        either: set[asyncio.Future[Any]] = {answering, gone}
        await asyncio.wait(either, timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
        if gone.done():
            return await answering, False
        if not answering.done():
            await _begin(send, begun)
            begun = True
            await send({"type": "http.response.body", "body": b": under way\n\n", "more_body": True})
    try:
        turn = answering.result()
    except Refusal as refused:
        if not begun:
            raise
        await send({"type": "http.response.body", "body": shape.refused(refused), "more_body": False})
        return None, False
    await _begin(send, begun)
    for piece in shape.pieces(turn):
        if gone.done():
            return turn, False
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # so that a client that has gone is heard of
    await send({"type": "http.response.body", "body": shape.end, "more_body": False})
    return turn, True


async def _begin(send: Send, begun: bool) -> None:
    if not begun:
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


def _event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n\n"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> Any:
    try:
        return json.loads(await _content(receive) or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from error


async def _content(receive: Receive) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the client went away", code="disconnected")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _LARGEST:
            raise Refusal(413, f"the request is larger than {_LARGEST:,} bytes", code="too_large")
        if not message.get("more_body"):
            return b"".join(parts)


async def _json(send: Send, status: int, value: Any) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
