"""OpenEnv's pages and sockets in front of a service, over uvicorn."""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

from attrs import field, frozen

from callwright.errors import MissingExtra, UsageError
from callwright.machines.event_loop import in_thread
from callwright_plugins.openenv_bridge.schemas import PAGES, SCHEMAS, openapi
from callwright_plugins.openenv_bridge.service import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    SERVER_ERROR,
    Refusal,
    Seat,
    Service,
    described,
    rpc_error,
    rpc_result,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_LARGEST: Final = 16_000_000
_GRACE: Final = 5
#: A WebSocket that was refused is closed with this code: a policy was broken.
_POLICY: Final = 1008


@frozen
class Where:
    """Where to listen and whom to answer.

    Without a ``token`` only this machine may be listened to. Web pages of other origins are never answered; where only
    this machine is listened to, the ``Host`` must be it. Raises :class:`callwright.UsageError`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.token == "":
            raise UsageError("the token is empty")
        if self.host not in _LOOPBACK and self.token is None:
            raise UsageError(
                f"to listen on {self.host} anybody on the network may call; give a token (--token, or "
                'CALLWRIGHT_TOKEN), which OpenEnv\'s clients bear as headers={"Authorization": "Bearer …"}'
            )

    def refusal(self, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """Why a request with these headers is not answered, and the status that says so."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and _host(origin) not in _LOOPBACK:
            return 403, f"requests from {origin} are not answered here"
        if self.host in _LOOPBACK and _host("//" + headers.get(b"host", b"").decode("latin-1")) not in _LOOPBACK:
            return 421, "this server answers for this machine only"
        if self.token is not None:
            borne = headers.get(b"authorization", b"")
            if not hmac.compare_digest(borne, f"Bearer {self.token}".encode()):
                return 401, "a bearer token is needed"
        return None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def application(service: Service, where: Where) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """The ASGI application."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return
        refused = where.refusal({key.lower(): value for key, value in scope["headers"]})
        if scope["type"] == "websocket":
            await receive()  # websocket.connect
            if refused is not None or scope["path"] not in ("/ws", "/mcp"):
                await send({"type": "websocket.close", "code": _POLICY, "reason": refused[1] if refused else ""})
                return
            await send({"type": "websocket.accept"})
            await _Socket(service, scope, receive, send).serve()
        elif refused is not None:
            await _json(send, refused[0], {"detail": refused[1]})
        else:
            await _page(service, scope, receive, send)

    return app


async def _done(service: Service, work: Callable[..., Any], *given: Any) -> Any:
    """Answer where it is done at once, in a thread where it may take long."""
    return await in_thread(work, *given) if service.slow else work(*given)


async def _taken(service: Service) -> Seat:
    """A place for a session; closing those that were given up may take long. Raises :class:`.service.Refusal`."""
    return cast("Seat", await _done(service, service.take))


# Sockets --------------------------------------------------------------------------------------------------------------


class _Socket:
    """A connection: by default a session of its own, which ends with it."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self._service, self._receive, self._send = service, receive, send
        self._is_rpc = scope["path"] == "/mcp"
        named = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("session_id", [])
        self._named = named[0] if named else None

    async def serve(self) -> None:
        """Answer until the client leaves."""
        try:
            seat, own = await self._seat()
        except Refusal as refusal:
            answer = rpc_error(SERVER_ERROR, str(refusal), None, refusal.data) if self._is_rpc else None
            await self._say(answer or {"type": "error", "data": refusal.data})
            await self._hang_up()
            return
        try:
            while (text := await self._heard()) is not None:
                answer = await self._answer(seat, text)
                if answer is None:
                    await self._hang_up()
                    break
                await self._say(answer)
        finally:
            seat.held = False
            if own:
                await _done(self._service, self._service.leave, seat)

    async def _seat(self) -> tuple[Seat, bool]:
        if self._named is None:
            seat = await _taken(self._service)
            seat.held = True
            return seat, True
        found = self._service.seat(self._named)
        if found is None:
            raise Refusal("SESSION_ERROR", f"Unknown session_id: {self._named}")
        if found.held:
            raise Refusal("SESSION_ERROR", f"Session {self._named} already has an attached WebSocket")
        found.held = True
        return found, False

    async def _answer(self, seat: Seat, text: str) -> dict[str, Any] | None:
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as error:
            if self._is_rpc:
                return rpc_error(PARSE_ERROR, f"Parse error: {error}")
            return {"type": "error", "data": {"message": f"Invalid JSON: {error}", "code": "INVALID_JSON"}}
        if self._is_rpc:
            if not isinstance(message, Mapping) or not isinstance(message.get("method"), str):
                return rpc_error(INVALID_REQUEST, "Invalid request: a method is needed")
            return cast("dict[str, Any]", await _done(self._service, seat.rpc, message))
        if isinstance(message, Mapping) and message.get("type") == "close":
            return None
        return cast("dict[str, Any]", await _done(self._service, seat.answer, message))

    async def _heard(self) -> str | None:
        """The next message; ``None`` when the client has gone."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            if text is None:
                text = bytes(message.get("bytes") or b"").decode("utf-8", "replace")
            return str(text)

    async def _say(self, answer: Mapping[str, Any]) -> None:
        with suppress(Exception):  # the client has gone; the next message says so
            await self._send({"type": "websocket.send", "text": _text(answer)})

    async def _hang_up(self) -> None:
        with suppress(Exception):
            await self._send({"type": "websocket.close", "code": 1000})


# Pages ----------------------------------------------------------------------------------------------------------------


async def _page(service: Service, scope: Scope, receive: Receive, send: Send) -> None:
    path, method = scope["path"], scope["method"].lower()
    name = service.environment.name
    if path not in PAGES and path != "/openapi.json":
        await _json(send, 404, {"detail": "Not Found"})
        return
    if method != PAGES.get(path, "get"):
        await _json(send, 405, {"detail": "Method Not Allowed"})
        return
    match path:
        case "/health":
            await _json(send, 200, {"status": "healthy"})
        case "/metadata":
            await _json(send, 200, described(service.environment))
        case "/schema":
            await _json(send, 200, SCHEMAS)
        case "/openapi.json":
            await _json(send, 200, openapi(name))
        case "/state":
            await _once(service, {"type": "state"}, send)
        case _:
            body = await _body(receive)
            if path == "/mcp":
                await _json(send, 200, await _rpc(service, body))
            elif path == "/reset":
                await _once(service, {"type": "reset", "data": {} if body is None else body}, send)
            else:
                action = body.get("action") if isinstance(body, Mapping) else None
                await _once(service, {"type": "step", "data": action}, send)


async def _once(service: Service, message: Mapping[str, Any], send: Send) -> None:
    """A message to a session that is there for it alone, as OpenEnv's pages without a session are answered."""
    try:
        seat = await _taken(service)
    except Refusal as refusal:
        await _json(send, 503, {"detail": refusal.data["message"]})
        return
    try:
        answer = await _done(service, seat.answer, message)
    finally:
        await _done(service, service.leave, seat)
    if answer["type"] == "error":
        await _json(send, 422, {"detail": answer["data"]["message"]})
    else:
        await _json(send, 200, answer["data"])


async def _rpc(service: Service, request: Any) -> dict[str, Any]:
    """A request of MCP by HTTP: in the session that ``openenv/session/create`` gave, or in one of its own."""
    if not isinstance(request, Mapping):
        return rpc_error(PARSE_ERROR, "Parse error")
    id, method, params = request.get("id"), request.get("method"), request.get("params", {})
    if not isinstance(method, str) or not isinstance(params, Mapping):
        return rpc_error(INVALID_REQUEST, "Invalid request: a method, and params that are an object", id)
    named = params.get("session_id")
    seat = service.seat(named)
    if method == "openenv/session/close":
        if seat is None:
            return rpc_error(INVALID_PARAMS, f"Unknown session_id: {named!r:.80}", id)
        await _done(service, service.leave, seat)
        return rpc_result({"session_id": named, "closed": True}, id)
    if named is not None and seat is None:
        return rpc_error(INVALID_PARAMS, f"Unknown session_id: {named!r:.80}", id)
    try:
        used = seat or await _taken(service)
    except Refusal as refusal:
        return rpc_error(SERVER_ERROR, str(refusal), id, refusal.data)
    if method == "openenv/session/create":
        return rpc_result({"session_id": used.id}, id)
    try:
        return cast("dict[str, Any]", await _done(service, used.rpc, request))
    finally:
        if seat is None:
            await _done(service, service.leave, used)


async def _body(receive: Receive) -> Any:
    """The JSON of a request; ``None`` for none, and for what is none or too large."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _LARGEST:
            return None
        if not message.get("more_body"):
            break
    try:
        return json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


async def _json(send: Send, status: int, value: Any) -> None:
    body = _text(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# Running --------------------------------------------------------------------------------------------------------------


def serve(service: Service, where: Where, listening: Callable[[str], None] = lambda url: None) -> int | None:
    """Serve until SIGTERM or SIGINT, and return which it was. ``listening`` is told the URL once connections are taken.

    Raises :class:`callwright.errors.MissingExtra` and :class:`callwright.UsageError` for a port that is taken.
    """
    return asyncio.run(serving(service, where, listening))


async def serving(
    service: Service,
    where: Where,
    listening: Callable[[str], None] = lambda url: None,
    stopped: asyncio.Event | None = None,
) -> int | None:
    """As :func:`serve`, in a running event loop; ``stopped`` ends it too."""
    try:
        import uvicorn
        import websockets  # noqa: F401 - what uvicorn speaks WebSockets with
    except ModuleNotFoundError as error:
        raise MissingExtra("serving for OpenEnv", "openenv", str(error.name)) from error

    class Guest(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # they are taken below

    listener = _listen(where)
    shown = f"[{where.host}]" if ":" in where.host else where.host
    config = uvicorn.Config(
        application(service, where),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=_LARGEST,
        ws_ping_timeout=None,
        timeout_graceful_shutdown=_GRACE,
    )
    server = Guest(config)
    ended = stopped or asyncio.Event()
    with _signals(ended) as received:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        waiting = asyncio.create_task(ended.wait())
        try:
            while not server.started and not task.done():
                await asyncio.sleep(0.005)
            if server.started:
                listening(f"http://{shown}:{listener.getsockname()[1]}")
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            waiting.cancel()
            await task
            listener.close()
            service.close()
    return received[0] if received else None


def _listen(where: Where) -> socket.socket:
    # Named as TCP, so that asyncio turns off Nagle's algorithm, which would hold every answer back for 40 ms.
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {where.host}:{where.port}: {error.strerror}; --port 0 picks one") from error
    return listener


@contextmanager
def _signals(ended: asyncio.Event) -> Iterator[list[int]]:
    """SIGTERM and SIGINT end it, where they can be taken: in the main thread. Which came is in the list."""
    loop = asyncio.get_running_loop()
    taken: list[signal.Signals] = []
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop, number)
            taken.append(number)
    try:
        yield received
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
