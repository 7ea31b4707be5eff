"""A server of the SDK, of the newest protocol, whose tools change while it runs: a client must ask to be told."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("changing", version="1")


@server.tool()
async def look() -> str:
    """Look at what is there."""
    return "nothing"


@server.tool()
async def change(ctx: Context) -> str:
    """Put another tool in place of one."""

    async def look() -> str:
        """Look at it, and send it away."""
        return "sent"

    server.remove_tool("look")
    server.add_tool(look)
    await ctx.notify_tools_changed()
    return "changed"


if __name__ == "__main__":
    server.run("stdio")
