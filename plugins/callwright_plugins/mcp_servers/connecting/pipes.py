"""A server process and its pipes, as a transport of the package ``mcp``: what is no reply fails at once.

The SDK's own transport drops a line that it cannot read, so that whoever asked waits until the time limit, and it
collects a line of any length. Here an answer that cannot be read, or is too long, becomes an error for its request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO, Any, Final

from attrs import define, field

#: Error codes of this side, which stand for an answer that cannot be read and for one that is too long.
UNREADABLE: Final = -32950
TOO_LARGE: Final = -32951
_STOP: Final = 2.0
_FLUSH: Final = 0.5
_POLL: Final = 0.01
#: The id where the usual servers write it: at the beginning of a message or at its end.
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_LAST: Final = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
_EDGE: Final = 300


@asynccontextmanager
async def process_streams(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, log: IO[bytes], limit: int
) -> AsyncIterator[Any]:
    """Start a server and give the two streams of messages that a client reads and writes.

    ``log`` receives its stderr; ``limit`` is the most bytes of a message. Afterwards its stdin is closed; a process
    that goes on for two seconds is ended with all of its children. Raises :class:`OSError` if it cannot be started.
    """
    if sys.platform == "win32":  # the SDK knows how processes are ended there; its limits then hold
        from mcp.client.stdio import StdioServerParameters, stdio_client

        given = StdioServerParameters(
            command=command[0], args=list(command[1:]), env=dict(env), cwd=cwd, encoding_error_handler="replace"
        )
        async with stdio_client(given, errlog=log) as streams:  # type: ignore[arg-type]
            yield streams
        return
    import anyio
    from mcp.client.stdio import get_default_environment
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest

    variables = {**get_default_environment(), **env}
    process = await anyio.open_process(list(command), env=variables, stderr=log, cwd=cwd, start_new_session=True)
    arriving, inbox = anyio.create_memory_object_stream[Any](0)
    outbox, leaving = anyio.create_memory_object_stream[Any](0)
    written = anyio.Event()
    waiting: set[Any] = set()

    async def read() -> None:
        assert process.stdout is not None
        lines = _Lines(limit)
        gone = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)
        try:
            async with arriving:
                with suppress(*gone):
                    while True:
                        for line in lines.feed(await process.stdout.receive()):
                            for message in _messages(line, waiting):
                                await arriving.send(SessionMessage(message))
        finally:
            with anyio.CancelScope(shield=True), suppress(*gone, OSError):
                while True:  # a server that is stuck in writing could not leave
                    await process.stdout.receive()

    async def write() -> None:
        assert process.stdin is not None
        try:
            async with leaving:
                async for sent in leaving:
                    if isinstance(sent.message, JSONRPCRequest):
                        waiting.add(sent.message.id)
                    text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(text.encode() + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await arriving.aclose()  # whoever waits for an answer is told that none comes
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield inbox, outbox
        finally:
            with anyio.CancelScope(shield=True):
                inbox.close()
                outbox.close()
                with anyio.move_on_after(_FLUSH):
                    await written.wait()
                await _end(process)
                for stream in (inbox, outbox, arriving, leaving):
                    await stream.aclose()
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()


async def _end(process: Any) -> None:
    """Close its stdin, wait, then end it with its children."""
    import anyio
    from mcp.os.posix.utilities import terminate_posix_process_tree

    async def left() -> bool:
        with anyio.move_on_after(_STOP):
            while process.returncode is None:  # not wait(), which also waits for children that have the pipes
                await anyio.sleep(_POLL)
        return process.returncode is not None

    broken = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
    with suppress(*broken):
        await process.stdin.aclose()
    if not await left():
        await terminate_posix_process_tree(process, _STOP)
        await left()
    with suppress(*broken):
        await process.stdout.aclose()
    # A child that lives on may hold a pipe; without this the transport of asyncio would wait for it.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


@define
class _TooLong:
    """A message that is over the limit: how it began."""

    head: bytes


@define
class _Lines:
    """Bytes as they come, put together to lines. Each byte is copied twice, however long a line is."""

    limit: int
    _held: list[bytes] = field(factory=list)
    _size: int = 0
    _skipping: bool = False

    def feed(self, chunk: bytes) -> list[bytes | _TooLong]:
        """The lines that end in this chunk; one over the limit as soon as it is."""
        found: list[bytes | _TooLong] = []
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._take(part, found)
            if not self._skipping:
                found.append(b"".join(self._held))
            self._held, self._size, self._skipping = [], 0, False
        self._take(rest, found)
        return found

    def _take(self, part: bytes, found: list[bytes | _TooLong]) -> None:
        if self._skipping:
            return
        self._held.append(part)
        self._size += len(part)
        if self._size > self.limit:
            found.append(_TooLong(b"".join(self._held[:2])[:_EDGE]))
            self._held, self._skipping = [], True


def _messages(line: bytes | _TooLong, waiting: set[Any]) -> list[Any]:
    """What a line says: a message, nothing (servers print to stdout), or the failure of requests that wait."""
    import mcp_types as types

    if isinstance(line, _TooLong):
        return _failures(line.head, b"", waiting, TOO_LARGE, "the answer is too long")
    text = line.decode("utf-8", errors="replace").strip()
    if not text.startswith("{"):
        return []
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        # One that does not say that it is of the protocol is a log line, and no answer.
        ours = b'"jsonrpc"' in line[:_EDGE] or b'"jsonrpc"' in line[-_EDGE:]
        reason = "the answer is not JSON, or no message of the protocol"
        return _failures(line[:_EDGE], line[-_EDGE:], waiting, UNREADABLE, reason) if ours else []
    if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        waiting.discard(message.id)
    return [message]


def _failures(head: bytes, tail: bytes, waiting: set[Any], code: int, reason: str) -> list[Any]:
    """Errors for the request that a message answers; for all that wait where it does not say which."""
    import mcp_types as types

    named = _FIRST.match(head) or _LAST.search(tail)
    if named is not None:
        word = named[1]
        id: Any = word[1:-1].decode("utf-8", "replace") if word.startswith(b'"') else int(word)
        ids = [id] if id in waiting else []
    else:
        ids = sorted(waiting, key=str)
    waiting.difference_update(ids)
    error = types.ErrorData(code=code, message=reason)
    return [types.JSONRPCError(jsonrpc="2.0", id=id, error=error) for id in ids]
