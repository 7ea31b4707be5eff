"""The tools of a session over MCP, under the name that its model has: ``/s/NAME/mcp``, by the package ``mcp``.

Each request stands alone and says in its URL whose session it is for, so clients of every protocol version do. Calls
come to the session's log, as they do from everywhere else. MCP does not tell a server the id of a call in the model's
message; a log matches such calls by name and arguments.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from callwright.environments.telling import tell

if TYPE_CHECKING:
    from callwright.episodes.gateway.gateway import Gateway
    from callwright.episodes.gateway.session import GatewaySession

_PATH: Final = re.compile(r"/s/([\w-]+)/mcp$")


def has_mcp() -> bool:
    """Whether the package is there in a version that this was written for."""
    return importlib.util.find_spec("mcp") is not None and importlib.util.find_spec("mcp_types") is not None


def mcp_manager(gateway: Gateway) -> Any:
    """What answers requests of MCP for every session of a gateway (``manager.run()``, ``manager.handle_request``)."""
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    import callwright

    def session_of(context: Any) -> GatewaySession | None:
        match = _PATH.search(context.request.url.path)
        return None if match is None else gateway.session(match[1])

    async def list_tools(context: Any, params: Any) -> Any:
        session = session_of(context)
        tools = {} if session is None else session.task.offered
        listed = [
            {"name": spec.name, "description": spec.description, "inputSchema": {"type": "object", **spec.parameters}}
            for spec in tools.values()
        ]
        return {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(context: Any, params: Any) -> Any:
        session = session_of(context)
        if session is None or session.finished is not None:
            text, failed = "the session is finished", True
        else:
            outcome = await session.log.acall(params.name, params.arguments or {})
            text, failed = tell(outcome), outcome.failed or outcome.kind == "infrastructure_error"
        return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": failed}

    server: Server[Any] = Server(
        "callwright-gateway",
        version=callwright.__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    if "opentelemetry.sdk" not in sys.modules:
        server.middleware.clear()  # spans that nobody collects would cost a tenth of every call
    return StreamableHTTPSessionManager(
        app=server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


@asynccontextmanager
async def running(manager: Any) -> AsyncIterator[Any]:
    """The manager while it answers, in a task of its own: what is raised here stays what it is, and no group of it."""
    begun, stop = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with manager.run():
            begun.set()
            await stop.wait()

    task = asyncio.create_task(run())
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    try:
        yield manager
    finally:
        stop.set()
        await task
