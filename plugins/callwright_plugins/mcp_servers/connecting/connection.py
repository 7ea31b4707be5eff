"""A connection to a server: one client, opened and closed by one task of its own in the portal's loop."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import PurePath
from typing import IO, Any, Final

from attrs import field, frozen
from pydantic import ValidationError

from callwright.errors import InfrastructureFailure
from callwright.machines.redaction import is_secret, redacted, redacted_words
from callwright_plugins.mcp_servers.connecting.bounded import TOO_LONG, bounded
from callwright_plugins.mcp_servers.connecting.listings import BrokenTool, sifted
from callwright_plugins.mcp_servers.connecting.pipes import TOO_LARGE, UNREADABLE, process_streams
from callwright_plugins.mcp_servers.connecting.workspace import Workspace
from callwright_plugins.mcp_servers.wire import SESSION

_CONNECTION_CLOSED: Final = -32000
_PARSE_ERROR: Final = -32700
_LIST_CHANGED: Final = "notifications/tools/list_changed"
#: Seconds in which a server says that it will tell of changes.
_ACKNOWLEDGED: Final = 2.0
_REQUEST_TIMEOUT: Final = -32001
_TAIL: Final = 2000
_SHOWN: Final = 500
#: Programs that say nothing of what they start.
_LAUNCHER: Final = re.compile(r"python[\d.]*|node|npx|bun|bunx|deno|uvx?|pipx|env|bash|sh")
_MOST_PAGES: Final = 200
#: Bytes of an answer: a hundred times what fits into any prompt.
REPLY_LIMIT: Final = 16_000_000

# Where nobody set up logging, Python would print the SDK's tracebacks about lines of a server that are no protocol.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class ServerFailure(InfrastructureFailure):
    """The server is gone or does not answer.

    ``code`` becomes that of the outcome: ``crashed``, ``timeout``, ``protocol``, ``too_large``, ``changed``, ``reset``,
    ``diverged``, ``session``.
    ``sent`` is false where the server cannot have seen the request.
    """

    def __init__(self, code: str, message: str, *, sent: bool = True) -> None:
        self.code, self.sent = code, sent
        super().__init__(message)


class Refused(Exception):
    """The server answered with an error of JSON-RPC: its code and message."""

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


@frozen
class Target:
    """How a server is reached: the command that starts one, or the URL of one that runs.

    ``env`` is added to the few variables that servers inherit (PATH, HOME, USER …). ``legacy`` skips asking for the
    newest protocol version, for servers that cannot bear to be asked. ``reply_limit`` is the most bytes of an answer.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(factory=dict, repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    legacy: bool = False
    reply_limit: int = REPLY_LIMIT

    @property
    def label(self) -> str:
        """The target in short, for messages, which models read too: no argument, folder or query is in it."""
        if self.url:
            return redacted(self.url).partition("?")[0]
        program = PurePath(self.command[0]).name
        if not _LAUNCHER.fullmatch(program):
            return program
        started = next((word for word in self.command[1:] if not word.startswith("-")), "")
        return f"{program} {PurePath(redacted(started)).name}".rstrip()

    @property
    def command_line(self) -> str:
        """The whole target, for those who wrote it, without the secrets in it."""
        return redacted(self.url) if self.url else " ".join(redacted_words(self.command))

    def without_secrets(self, text: str) -> str:
        """What a server said, without what it was told in secret and echoes."""
        told = {**self.env, **self.headers}
        return redacted(text, [value for name, value in told.items() if is_secret(name)])


@frozen
class Description:
    """What a server says of itself. ``tools`` is its listing, verbatim, without those that MCP does not allow."""

    name: str
    version: str
    protocol: str
    #: What it declares under Callwright's key: sessions by id, and whether helper tools may be run.
    declares: Mapping[str, Any] | None
    tools: Sequence[Mapping[str, Any]] = field(repr=False)
    broken: Sequence[BrokenTool] = field(default=(), eq=False, repr=False)


@frozen
class Reply:
    """A result of ``tools/call``."""

    content: Sequence[Mapping[str, Any]]
    structured: Any
    has_structured: bool
    is_error: bool
    meta: Mapping[str, Any]
    #: The server asks back (elicitation, sampling), which nobody is there to answer.
    asks: bool = False


class Connection:
    """One server process or HTTP connection.

    Its methods run in the portal's loop. ``alive`` is false once it broke; it is not repaired but replaced.
    """

    def __init__(self, target: Target, workspace: Workspace | None = None) -> None:
        self.target, self.workspace = target, workspace
        self.alive = False
        self.description: Description | None = None
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._log: IO[bytes] | None = None
        self._listing_changed = False
        #: Tools that were taken out of the listing at hand.
        self._broken: list[BrokenTool] = []
        self._relisting = asyncio.Lock()
        #: How its tools differ from those that it had when it was opened, once it said that they changed.
        self.differences: Sequence[str] = ()

    async def start(self, limit: float) -> Description:
        """Open it and list the tools. Raises :class:`ServerFailure` if that fails or takes over ``limit`` seconds."""
        ready: asyncio.Future[Description] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._own(ready, limit))
        try:
            self.description = await asyncio.shield(ready)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        self.alive = True
        return self.description

    async def _own(self, ready: asyncio.Future[Description], limit: float) -> None:
        """The task that opens, keeps and closes the client."""
        try:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(limit):
                        self._client = await stack.enter_async_context(self._make_client(await self._transport(stack)))
                        found = await self._describe()
                        await self._listen(stack)
                except TimeoutError:
                    raise ServerFailure(
                        "timeout", f"{self.target.label}: not ready after {limit:g} s{self._said()}"
                    ) from None
                if not ready.done():
                    ready.set_result(found)
                await self._leave.wait()
                self.alive = False
        except (Exception, asyncio.CancelledError) as error:
            if not ready.done():
                ready.set_exception(self._start_failure(error))
                ready.exception()  # whoever started it may be gone
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self.alive = False
            self._client = None
            if self._log is not None:
                self._log.close()

    def _start_failure(self, error: BaseException) -> ServerFailure:
        if isinstance(error, ServerFailure):
            return error
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, FileNotFoundError) and self.target.command:
            missing = error.filename or self.target.command[0]
            return ServerFailure("crashed", f"{self.target.label}: there is no {missing!r}")
        if isinstance(error, ValidationError):
            text = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            said = self.target.without_secrets(text)
            return ServerFailure(
                "protocol", f"{self.target.label}: it answers with what MCP does not allow: {said:.500}"
            )
        text = self.target.without_secrets(str(error)) or type(error).__name__
        return ServerFailure("crashed", f"{self.target.label}: it could not be connected to: {text}{self._said()}")

    def _make_client(self, transport: Any) -> Any:
        import mcp_types as types
        from mcp.client import Client

        import callwright

        about = types.Implementation(name="callwright", version=callwright.__version__)
        mode = "legacy" if self.target.legacy else "auto"
        arriving = sifted(transport, self._broken.append)
        return Client(arriving, mode=mode, client_info=about, message_handler=self._hear)

    async def _hear(self, message: Any) -> None:
        """Note that the server says that its tools are others now."""
        self._listing_changed = self._listing_changed or getattr(message, "method", "") == _LIST_CHANGED

    async def _listen(self, stack: AsyncExitStack) -> None:
        """Ask to be told of other tools, where the protocol wants to be asked. One that does not answer is not heard.

        What is said arrives at :meth:`_hear` as it does from servers of the older protocols.
        """
        declared = self._client.server_capabilities.tools
        if declared is not None and declared.list_changed:
            with suppress(Exception):
                async with asyncio.timeout(_ACKNOWLEDGED):
                    await stack.enter_async_context(self._client.listen(tools_list_changed=True))

    async def listing_again(self, limit: float) -> Description | None:
        """What the server says of itself now, if it said that its tools changed. Raises :class:`ServerFailure`."""
        if not self._listing_changed and not self._relisting.locked():
            return None
        try:
            async with asyncio.timeout(limit), self._relisting:  # sessions that share it wait for what is found
                if not self._listing_changed or self._client is None:
                    return None
                self._listing_changed = False
                return await self._describe()
        except TimeoutError:
            raise ServerFailure("timeout", f"{self.target.label}: no listing in {limit:g} s", sent=False) from None
        except Exception as error:  # of the transport, of the protocol, of the listing itself
            raise ServerFailure("protocol", f"{self.target.label}: its new listing cannot be read: {error}") from error

    async def _transport(self, stack: AsyncExitStack) -> Any:
        if self.target.url is not None:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            client = httpx2.AsyncClient(
                headers=dict(self.target.headers),
                timeout=httpx2.Timeout(30.0, read=300.0),
                event_hooks={"response": [bounded(self.target.reply_limit)]},
            )
            await stack.enter_async_context(client)
            return streamable_http_client(self.target.url, http_client=client)
        into = self.workspace.into if self.workspace is not None else str
        self._log = tempfile.TemporaryFile(prefix="callwright-server-")  # noqa: SIM115 (closed by _own)
        return process_streams(
            [into(word) for word in self.target.command],
            {key: into(value) for key, value in self.target.env.items()},
            into(self.target.cwd) if self.target.cwd is not None else None,
            self._log,
            self.target.reply_limit,
        )

    def _said(self) -> str:
        """The end of what the server wrote to stderr."""
        if self._log is None or self._log.closed:
            return ""
        end = self._log.seek(0, 2)
        self._log.seek(max(0, end - _TAIL))
        lines = [" ".join(line.split()) for line in self._log.read().decode(errors="replace").splitlines()]
        text = self.target.without_secrets(" ".join(filter(None, lines)))
        if len(text) > _SHOWN:  # from the beginning of a word
            text = f"… {text[-_SHOWN:].partition(' ')[2] or text[-_SHOWN:]}"
        return f". It said: {text}" if text else ""

    async def _describe(self) -> Description:
        client = self._client
        self._broken.clear()
        tools: list[Mapping[str, Any]] = []
        told: set[str] = set()
        cursor, seen = None, set()
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            for tool in page.tools:
                shown = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                text = json.dumps(shown, sort_keys=True)
                if text not in told:  # said twice, it is one tool all the same
                    told.add(text)
                    tools.append(shown)
            cursor = page.next_cursor
            if cursor is None or cursor in seen:
                break
            seen.add(cursor)
        broken = tuple(one.changed(self.target.without_secrets) for one in dict.fromkeys(self._broken))
        if broken and not tools:
            said = f"{broken[0].named}: {broken[0].fault:.500}"
            raise ServerFailure("protocol", f"{self.target.label}: it answers with what MCP does not allow: {said}")
        capabilities = client.server_capabilities
        extensions = capabilities.extensions or {}
        experimental = capabilities.experimental or {}
        info = client.server_info
        return Description(
            name=info.name if info else "",
            version=info.version if info else "",
            protocol=client.protocol_version,
            declares=extensions.get(SESSION, experimental.get(SESSION)),
            tools=tools,
            broken=broken,
        )

    # Requests

    async def call(self, tool: str, arguments: dict[str, Any], meta: Any, limit: float) -> Reply:
        """Call a tool with ``meta`` (JSON or ``None``). Raises :class:`ServerFailure` and :class:`Refused`."""
        import mcp_types as types

        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments, _meta=meta))
        result = await self._request(request, _call_adapter(), limit, tool)
        if not isinstance(result, types.CallToolResult):
            return Reply((), None, False, True, {}, asks=True)
        if not is_finite(result.structured_content):
            raise ServerFailure("protocol", f"{self.target.label}: the answer to {tool} holds NaN or an infinity")
        return Reply(
            content=[block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content],
            structured=result.structured_content,
            has_structured="structured_content" in result.model_fields_set and result.structured_content is not None,
            is_error=result.is_error,
            meta=dict(result.meta or {}),
        )

    async def manage(self, op: str, meta: dict[str, Any], limit: float, **more: str) -> dict[str, Any]:
        """Ask a served environment to act on a session. Raises :class:`ServerFailure` and :class:`Refused`."""
        request, result_type = _session_request(op, meta, more)
        result = await self._request(request, result_type, limit, f"session {op}")
        found: dict[str, Any] = result.model_dump(exclude={"meta"})
        return found

    async def _request(self, request: Any, result_type: Any, limit: float, what: str) -> Any:
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        if self._client is None or not self.alive:
            raise ServerFailure("crashed", f"{self.target.label}: the connection is closed", sent=False)
        try:
            return await self._client.session.send_request(request, result_type, request_read_timeout_seconds=limit)
        except MCPError as error:
            if error.code == _CONNECTION_CLOSED:
                self.alive = False
                raise ServerFailure(
                    "crashed", f"{self.target.label}: it went away during {what}{self._said()}"
                ) from error
            if error.code == _REQUEST_TIMEOUT:
                raise ServerFailure(
                    "timeout", f"{self.target.label}: {what} was not answered in {limit:g} s"
                ) from error
            if error.code in (UNREADABLE, TOO_LARGE, _PARSE_ERROR):
                unreadable = error.code != TOO_LARGE and TOO_LONG not in error.message
                said = "cannot be read" if unreadable else f"is longer than {self.target.reply_limit:,} bytes"
                code = "protocol" if unreadable else "too_large"
                raise ServerFailure(code, f"{self.target.label}: the answer to {what} {said}") from error
            raise Refused(error.code, error.message) from error
        except ValidationError as error:
            raise ServerFailure("protocol", f"{self.target.label}: the answer to {what} is not one of MCP") from error
        except asyncio.CancelledError:
            raise
        except Exception as error:  # of the transport: closed streams, refused connections, whatever it is made of
            self.alive = False
            text = str(error) or type(error).__name__
            raise ServerFailure(
                "crashed", f"{self.target.label}: it broke during {what}: {text}{self._said()}"
            ) from error

    async def ping(self, limit: float) -> bool:
        """Whether it still answers."""
        if self._client is None or not self.alive:
            return False
        try:
            async with asyncio.timeout(limit):
                await self._client.list_tools(cache_mode="bypass")
        except Exception:  # whatever is wrong, it does not answer
            return False
        return True

    async def stop(self) -> None:
        """Close it and wait until it is: stdin is closed, and a process that goes on after two seconds is ended."""
        self.alive = False
        self._leave.set()
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.exception()


def is_finite(value: Any) -> bool:
    """Whether every number of a value is one that JSON can say."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return all(map(is_finite, value)) if isinstance(value, list) else True


_adapters: dict[str, Any] = {}


def _call_adapter() -> Any:
    if "call" not in _adapters:
        import mcp_types as types
        from pydantic import TypeAdapter

        _adapters["call"] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
    return _adapters["call"]


def _session_request(op: str, meta: dict[str, Any], more: Mapping[str, str]) -> tuple[Any, Any]:
    import mcp_types as types

    if "session" not in _adapters:

        class SessionParams(types.RequestParams):
            op: str
            to: str | None = None

        class SessionRequest(types.Request[SessionParams, str]):
            method: str = SESSION
            params: SessionParams

        class SessionResult(types.Result):
            model_config = {"extra": "allow"}  # noqa: RUF012

        _adapters["session"] = (SessionParams, SessionRequest, SessionResult)
    params, request, result = _adapters["session"]
    return request(params=params(op=op, _meta=meta, **more)), result
