"""grep: lines of files that hold a match."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.looking import visible, warn_closed
from callwright_plugins.mcp_environments.filesystem.paths import READ, Path, check, existing, may, me, path_of
from callwright_plugins.mcp_environments.filesystem.patterns import BUDGET, expression, glob, weight
from callwright_plugins.mcp_environments.filesystem.rows import Blob


class MatchView(TypedDict):
    """A line with a match; ``line`` is its number from 1, ``text`` at most 400 characters of it."""

    path: str
    line: Annotated[int, Field(description="Its number, from 1.")]
    text: Annotated[str, Field(description="At most 400 characters.")]


@tool(read_only=True, latency=1)
def grep(
    world: World,
    /,
    pattern: Annotated[
        str, Field(min_length=1, max_length=200, description="Regular expression, no look-around or back-references.")
    ],
    path: Path = ".",
    recursive: Annotated[bool, Field(description="All files below a directory.")] = False,
    ignore_case: Annotated[bool, Field(description="Upper and lower case are equal.")] = False,
    fixed: Annotated[bool, Field(description="The pattern is plain text.")] = False,
    invert: Annotated[bool, Field(description="Lines without a match.")] = False,
    name: Annotated[str, Field(max_length=255, description="Glob such as *.txt.")] = "*",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MatchView]:
    """Search lines of a text file, or of all below a directory. Fails with EISDIR for a directory without recursive,
    BAD_PATTERN, EACCES; files that may not be read are left out of a recursive search (partial), as is what goes beyond
    the limit on work (SEARCH_LIMIT)."""
    matches = expression(pattern, ignore_case, fixed)
    top = existing(world, path)
    at = path_of(world, top)
    user, closed = me(world), list[str]()
    if top.kind == "dir":
        if not recursive:
            raise ToolError("EISDIR", f"{at} is a directory; set recursive to search the files below it")
        fits = glob(name or "*")
        nodes = [
            (node, inner)
            for _, node, inner in visible(world, top, at, 1000, closed)
            if node.kind == "file" and fits(node.name)
        ]
    else:
        check(world, user, top, READ)
        nodes = [(top, at)]
    left = BUDGET // weight(pattern)
    found: list[tuple[str, int, str]] = []
    for node, inner in nodes:
        if not may(user, node, READ):
            closed.append(inner)
            continue
        blob = world.need(Blob, node.blob)
        if blob.binary or "\0" in blob.text:
            continue
        left -= len(blob.text) + 8 * blob.text.count("\n")
        if left < 0:
            world.warn("SEARCH_LIMIT", f"the search stopped before {inner}; use a simpler pattern or search less")
            break
        lines = blob.text.removesuffix("\n").split("\n") if blob.text else []
        found += [(inner, number, line) for number, line in enumerate(lines, 1) if matches(line) != invert]
    else:
        warn_closed(world, closed)
    return page(found, lambda one: {"path": one[0], "line": one[1], "text": one[2][:400]}, limit, cursor)


TOOLS: Final[list[FunctionTool]] = [grep]
