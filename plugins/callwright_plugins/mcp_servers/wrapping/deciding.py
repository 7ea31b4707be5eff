"""What ``auto`` means for a server: how its sessions are kept apart, and what their digests are made of.

Both follow from what the server says of itself. What cannot be right is refused, with what to say instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from callwright.errors import UsageError
from callwright_plugins.mcp_servers.connecting.connection import Description
from callwright_plugins.mcp_servers.connecting.foreign import ForeignTool
from callwright_plugins.mcp_servers.wrapping.options import MCPOptions
from callwright_plugins.mcp_servers.wrapping.pool import Isolation

DigestSource = Literal["server", "workspace", "discovery", "history"]


def choose_isolation(options: MCPOptions, description: Description, tools: Mapping[str, ForeignTool]) -> Isolation:
    """The isolation that sessions get. Raises :class:`callwright.UsageError` where sessions would see one another."""
    label, scenarios = options.target().label, len(options.templates())
    offered = [tool.spec for tool in tools.values() if not tool.spec.hidden]
    changing = [spec.name for spec in offered if not spec.read_only]
    match options.isolation:
        case "auto":
            if description.declares is not None:
                return "meta"
            if not changing and scenarios == 1:
                return "shared"
            if options.url is not None:
                raise UsageError(
                    f"{label}: its tools may change something ({', '.join(changing[:5])} …), and nothing says that its "
                    "sessions are apart. Say isolation='connection' if it keeps state for each connection, "
                    "isolation='shared' if sharing does no harm, or start it with command=[…]"
                )
            return "process"
        case "shared" if scenarios > 1:
            raise UsageError(
                "isolation 'shared' has one process, which cannot have the workspaces of several scenarios"
            )
        case "meta" if description.declares is None:
            raise UsageError(
                f"{label}: it does not declare that it knows Callwright's session key, so isolation 'meta' would let "
                "sessions see one another. Leave isolation out"
            )
    return cast(Isolation, options.isolation)


def choose_digest(options: MCPOptions, *, served: bool) -> DigestSource:
    """What digests are made of. Raises :class:`callwright.UsageError` for the digest of a server that gives none."""
    if not isinstance(options.digest, str):
        return "discovery"
    if options.digest == "auto":
        return "server" if served else "workspace" if options.has_workspace else "history"
    if options.digest == "server" and not served:
        raise UsageError(f"{options.target().label}: it gives no digests; digest='server' is for served environments")
    return cast(DigestSource, options.digest)
