"""MCP in both directions: environments are served to any client, and any server becomes an environment."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.mcp_servers"


@hookimpl
def callwright_environments() -> Iterator[Lazy]:
    """The environment that is somebody's MCP server."""
    yield Lazy(
        "mcp",
        f"{_HERE}.wrapping.environment:MCPEnvironment",
        "any MCP server, isolated and reset (command=[…] or url=…)",
        extra="mcp",
        reaches=f"{_HERE}.wrapping.options:reaches",
        takes=f"{_HERE}.wrapping.options:MCPOptions",
    )


@hookimpl
def callwright_log_formats() -> Iterator[Lazy]:
    """What ``callwright env serve --record`` writes."""
    yield Lazy("mcp-record", f"{_HERE}.serving.recorded_logs:RecordedLogs", "records of callwright env serve --record")


@hookimpl
def callwright_commands() -> Iterator[Lazy]:
    """``callwright env serve`` and ``callwright env probe``."""
    yield Lazy("env serve", f"{_HERE}.serving.command:serve", "serve an environment to MCP clients", extra="mcp")
    yield Lazy(
        "env probe", f"{_HERE}.probing.command:probe", "what an MCP server really isolates and repeats", extra="mcp"
    )
