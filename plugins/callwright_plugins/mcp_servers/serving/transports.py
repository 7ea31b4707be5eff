"""A served environment over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from attrs import field, frozen

from callwright.errors import UsageError
from callwright_plugins.mcp_servers.serving.service import Service, initialization, make_server
from callwright_plugins.mcp_servers.wire import need_mcp

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PATH: Final = "/mcp"
#: How long calls may go on after the server was told to stop, in seconds.
GRACE: Final = 5

#: For every answer to a page: the headers of the transport that it may read.
_READABLE: Final = (
    (b"access-control-expose-headers", b"Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate"),
    (b"vary", b"Origin"),
)

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


def serve_stdio(service: Service) -> int | None:
    """Serve the client at the other end of stdin and stdout until it leaves, or until SIGTERM or SIGINT.

    Returns the signal that ended it. A thread may then still wait for stdin, so the process should be left with
    ``os._exit``. Whatever tools print goes to stderr, since stdout belongs to the protocol.
    """
    server = make_server(service)
    return asyncio.run(_stdio(service, server))


async def _stdio(service: Service, server: Server[str]) -> int | None:
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            with redirect_stdout(sys.stderr):  # also what is buffered must not reach the wire when it is given back
                await server.run(read, write, initialization(server))

    stopped = asyncio.Event()
    with _signals(stopped) as received:
        task = asyncio.create_task(serve())
        waiting = asyncio.create_task(stopped.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await _calls_end(service)
            task.cancel()
        waiting.cancel()
        try:
            # Cancelled, the SDK waits for its thread that reads stdin, which may never end.
            await asyncio.wait({task}, timeout=0.5)
            if task.done() and not task.cancelled():
                task.result()
        finally:
            service.close()
        return received[0] if received else None


async def _calls_end(service: Service) -> None:
    """Wait until no call is running, for a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            while service.in_calls:
                await asyncio.sleep(0.01)


@contextmanager
def _signals(stopped: asyncio.Event) -> Iterator[list[int]]:
    """SIGTERM and SIGINT set ``stopped``; which came is in the list."""
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        received.append(number)
        stopped.set()

    handled = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or on Windows
            loop.add_signal_handler(number, stop, number)
            handled.append(number)
    try:
        yield received
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


# HTTP -----------------------------------------------------------------------------------------------------------------


@frozen
class HttpOptions:
    """Where to listen and whom to answer.

    ``token``: every request must bear it. Without one only this machine may be listened to. Requests of web pages carry
    an ``Origin``: only those of this machine and of ``origins`` are answered; where only this machine is listened to,
    also the ``Host`` must be it (or one of ``hosts``), so that no page reaches the server through a name of its own.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)
    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()

    def __attrs_post_init__(self) -> None:
        if self.token == "":
            raise UsageError("the token is empty")
        if self.host not in LOOPBACK and self.token is None:
            raise UsageError(
                f"to listen on {self.host} anybody on the network may call; give a token (--token, or CALLWRIGHT_TOKEN)"
            )


def http_app(service: Service, options: HttpOptions) -> Any:
    """The ASGI application: ``/mcp``, and ``/health`` for whoever watches over the process."""
    need_mcp("serving an environment")
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    server = make_server(service)
    manager = StreamableHTTPSessionManager(
        app=_WithInitialization(server),  # type: ignore[arg-type]
        json_response=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # _Guard does it
        session_idle_timeout=service.sessions.idle,
        max_sessions=service.sessions.capacity,
    )

    class Endpoint:
        async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
            await manager.handle_request(scope, receive, send)

    async def health(_: Any) -> Response:
        return JSONResponse({"environment": service.environment.name, "sessions": len(service.sessions)})

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield
        service.close()

    routes = [Route(PATH, endpoint=Endpoint()), Route("/health", endpoint=health, methods=["GET"])]
    return _Guard(Starlette(routes=routes, lifespan=lifespan), options)


class _WithInitialization:
    """The server, telling clients of older protocol versions of the session key too."""

    def __init__(self, server: Server[str]) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        return initialization(self._server)


class _Guard:
    """Refuses requests from elsewhere before anything reads them, and lets allowed web pages read the answers.

    A browser asks before a request (CORS), without the token, and shows a page only the headers that it is told of.
    """

    def __init__(self, app: _App, options: HttpOptions) -> None:
        self._app, self._options = app, options
        self._token = f"Bearer {options.token}".encode() if options.token is not None else None

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "http":
            given = {key.lower(): value for key, value in scope["headers"]}
            origin = given.get(b"origin", b"")
            if origin and self._answers(origin.decode("latin-1")):
                send = _with_headers(send, [(b"access-control-allow-origin", origin), *_READABLE])
            asks = scope["method"] == "OPTIONS" and b"access-control-request-method" in given
            refused = self._refusal(given, asks)
            if refused is None and asks:
                await send({"type": "http.response.start", "status": 204, "headers": _permission(given)})
                await send({"type": "http.response.body", "body": b""})
                return
            if refused is not None:
                status, reason = refused
                body = json.dumps({"error": reason}).encode()
                headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
                if status == 401:
                    headers.append((b"www-authenticate", b"Bearer"))
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
                return
        await self._app(scope, receive, send)

    def _answers(self, origin: str) -> bool:
        return origin in self._options.origins or _host(origin) in LOOPBACK

    def _refusal(self, headers: dict[bytes, bytes], asks: bool) -> tuple[int, str] | None:
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and not self._answers(origin):
            return 403, f"requests from {origin} are not answered here"
        host = _host("//" + headers.get(b"host", b"").decode("latin-1"))
        if self._options.host in LOOPBACK and host not in LOOPBACK and host not in self._options.hosts:
            return 421, "this server answers for this machine only"
        if (
            self._token is not None
            and not asks
            and not hmac.compare_digest(headers.get(b"authorization", b""), self._token)
        ):
            return 401, "a bearer token is needed"
        return None


def _permission(asked: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """What a page may send: the methods of the transport, and the headers that it asked for."""
    allowed = [(b"access-control-allow-methods", b"GET, POST, DELETE"), (b"access-control-max-age", b"600")]
    headers = asked.get(b"access-control-request-headers")
    if headers is not None:
        allowed.append((b"access-control-allow-headers", headers))
    if b"access-control-request-private-network" in asked:  # of a public page that asks for this machine
        allowed.append((b"access-control-allow-private-network", b"true"))
    return allowed


def _with_headers(send: _Send, headers: Sequence[tuple[bytes, bytes]]) -> _Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def serve_http(
    service: Service, options: HttpOptions, listening: Callable[[str], None] = lambda url: None
) -> int | None:
    """Serve over HTTP until SIGTERM or SIGINT; calls that are running may end first. Returns the signal that ended it.

    ``listening`` is told the URL once connections are taken. Raises :class:`OSError` if the port is not free.
    """
    return asyncio.run(http_server(service, options, listening))


async def http_server(
    service: Service,
    options: HttpOptions,
    listening: Callable[[str], None] = lambda url: None,
    stopped: asyncio.Event | None = None,
) -> int | None:
    """As :func:`serve_http`, in a running event loop; ``stopped`` ends it too."""
    app = http_app(service, options)
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the signals are taken below

    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # Named as TCP, so that asyncio turns off Nagle's algorithm, which would hold every answer back for 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((options.host, options.port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, error.strerror, f"{options.host}:{options.port}") from error
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE, lifespan="on", ws="none"
    )
    server = Quiet(config)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    ended = stopped or asyncio.Event()
    with _signals(ended) as received:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        waiting = asyncio.create_task(ended.wait())
        try:
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            if server.started:
                listening(f"http://{shown}:{sock.getsockname()[1]}{PATH}")
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            waiting.cancel()
            await serving
            service.close()
    return received[0] if received else None


def say(text: str) -> None:
    """A line on stderr."""
    print(text, file=sys.stderr, flush=True)
