"""Tools that look at the tree without opening files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.paths import (
    PASS,
    READ,
    Path,
    check,
    children,
    directory,
    existing,
    may,
    me,
    path_of,
)
from callwright_plugins.mcp_environments.filesystem.patterns import glob
from callwright_plugins.mcp_environments.filesystem.rows import Inode
from callwright_plugins.mcp_environments.filesystem.views import NodeView, node_view
from callwright_plugins.mcp_environments.times import iso, parse_time

Depth = Annotated[int, Field(ge=0, le=32, description="Levels below the directory.")]
Bytes = Annotated[int, Field(ge=0, le=10**9, description="In bytes.")]


class TreeView(TypedDict):
    """A line of a tree: ``depth`` 0 is the directory asked for."""

    path: str
    name: str
    depth: Annotated[int, Field(description="0: the directory asked for.")]
    kind: str
    size: Annotated[int, Field(description="Bytes.")]


class UsageView(TypedDict):
    """What a directory holds, in bytes and in numbers of files and directories."""

    path: str
    bytes: Annotated[int, Field(description="Of regular files.")]
    files: int
    directories: int


class ExistsView(TypedDict):
    """Whether a path leads to something; ``reason`` is the error that says why not."""

    exists: bool
    kind: str | None
    reason: Annotated[str | None, Field(description="Code of the error; null if it exists.")]


class TargetView(TypedDict):
    """Where a link points; ``resolves`` says whether something is there."""

    target: str
    resolves: bool


@tool(read_only=True, discovery=True)
def ls(
    world: World,
    /,
    path: Path = ".",
    all: Annotated[bool, Field(description="Also hidden names.")] = False,
    sort: Annotated[Literal["name", "size", "modified"], Field(description="Largest or newest first.")] = "name",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[NodeView]:
    """List a directory, or a single file. Fails with EACCES without the bits r and x."""
    node = existing(world, path)
    nodes = [node]
    if node.kind == "dir":
        check(world, me(world), node, READ | PASS)
        nodes = [inner for inner in children(world, node) if all or inner.name[0] != "."]
    if sort == "size":
        nodes.sort(key=lambda inner: -inner.size)
    elif sort == "modified":
        nodes.sort(key=lambda inner: -inner.mtime)
    return page(nodes, lambda inner: node_view(world, inner), limit, cursor)


def visible(world: World, top: Inode, path: str, depth: int, closed: list[str]) -> Iterator[tuple[int, Inode, str]]:
    """An inode and what the user may see below it, with depths and paths; paths of closed directories go to a list."""
    user = me(world)
    todo = [(0, top, path)]
    while todo:
        level, node, at = todo.pop()
        yield level, node, at
        if node.kind == "dir" and level < depth:
            if not may(user, node, READ | PASS):
                closed.append(at)
                continue
            prefix = at.rstrip("/") + "/"
            todo += [(level + 1, inner, prefix + inner.name) for inner in reversed(children(world, node))]


def warn_closed(world: World, closed: list[str]) -> None:
    """Make the outcome partial if some directories could not be read."""
    if closed:
        more = f" and {len(closed) - 3} more" if len(closed) > 3 else ""
        world.warn("EACCES", f"permission denied, so left out: {', '.join(closed[:3])}{more}")


@tool(read_only=True, discovery=True)
def tree(
    world: World,
    /,
    path: Path = ".",
    depth: Depth = 3,
    directories_only: Annotated[bool, Field(description="No files and links.")] = False,
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Page[TreeView]:
    """List a directory and all below it, parents first. Follows no links. Leaves out what may not be read (partial)."""
    top = directory(world, path)
    closed: list[str] = []
    found = [
        (level, node, at)
        for level, node, at in visible(world, top, path_of(world, top), depth, closed)
        if node.kind == "dir" or not directories_only
    ]
    warn_closed(world, closed)
    return page(
        found,
        lambda one: {
            "path": one[2],
            "name": one[1].name or "/",
            "depth": one[0],
            "kind": one[1].kind,
            "size": one[1].size,
        },
        limit,
        cursor,
    )


@tool(read_only=True)
def stat(
    world: World,
    /,
    path: Path,
    follow_links: Annotated[bool, Field(description="What a link points to, not the link.")] = False,
) -> NodeView:
    """Kind, size, bits, owner and time of a path. Fails with ENOENT, ENOTDIR, EACCES, ELOOP."""
    return node_view(world, existing(world, path, follow=follow_links))


@tool(read_only=True)
def path_exists(world: World, /, path: Path) -> ExistsView:
    """Whether a path leads to something; never fails."""
    try:
        return {"exists": True, "kind": existing(world, path).kind, "reason": None}
    except ToolError as error:
        return {"exists": False, "kind": None, "reason": error.code}


@tool(read_only=True)
def read_link(world: World, /, path: Path) -> TargetView:
    """Where a symbolic link points, as it is written. Fails with EINVAL for anything else."""
    node = existing(world, path, follow=False)
    if node.kind != "link":
        raise ToolError("EINVAL", f"{path_of(world, node)} is not a symbolic link")
    try:
        existing(world, path)
    except ToolError:
        return {"target": node.target, "resolves": False}
    return {"target": node.target, "resolves": True}


@tool(read_only=True, discovery=True, latency=1)
def find(
    world: World,
    /,
    path: Path = ".",
    name: Annotated[str, Field(max_length=255, description="Glob such as *.txt.")] = "*",
    kind: Annotated[Literal["any", "file", "dir", "link"], Field(description="Only this kind.")] = "any",
    min_size: Bytes = 0,
    max_size: Bytes = 10**9,
    owner: Annotated[str, Field(max_length=64, description="Only this user's; empty for all.")] = "",
    modified_since: Annotated[str, Field(max_length=40, description="ISO 8601 time; empty for any.")] = "",
    depth: Depth = 32,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[NodeView]:
    """Find what fits all conditions below a directory. Follows no links. Leaves out what may not be read (partial).
    Warns with OUTSIDE_RECORDS for a modified_since ahead."""
    top = directory(world, path)
    fits = glob(name or "*")
    since = parse_time(modified_since) if modified_since else 0
    closed: list[str] = []
    found = [
        (node, at)
        for level, node, at in visible(world, top, path_of(world, top), depth, closed)
        if level
        and (kind == "any" or node.kind == kind)
        and min_size <= node.size <= max_size
        and (not owner or node.owner == owner)
        and node.mtime >= since
        and fits(node.name)
    ]
    warn_closed(world, closed)
    if not found and since > world.now:
        world.warn("OUTSIDE_RECORDS", f"{iso(since)} is ahead: nothing was modified since; it is {iso(world.now)} now")
    return page(found, lambda one: node_view(world, one[0], one[1]), limit, cursor)


@tool(read_only=True, latency=1)
def disk_usage(world: World, /, path: Path = ".") -> UsageView:
    """Bytes and number of files below a directory. Leaves out what may not be read (partial)."""
    top = existing(world, path)
    at = path_of(world, top)
    closed: list[str] = []
    nodes = [node for _, node, _ in visible(world, top, at, 1000, closed)]
    warn_closed(world, closed)
    files = [node for node in nodes if node.kind == "file"]
    return {
        "path": at,
        "bytes": sum(node.size for node in files),
        "files": len(files),
        "directories": sum(node.kind == "dir" for node in nodes),
    }


TOOLS: Final[list[FunctionTool]] = [ls, tree, stat, path_exists, read_link, find, disk_usage]
