"""Tools of the shell: working directory and the stack of directories."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.paths import PASS, Path, check, directory, inode, me, path_of, shell
from callwright_plugins.mcp_environments.filesystem.rows import Inode
from callwright_plugins.mcp_environments.filesystem.views import PathView


class StackView(TypedDict):
    """The working directory and the directories that ``popd`` goes back to, the next one first."""

    path: str
    stack: Annotated[list[str], Field(description="Where popd goes back to, the next one first.")]


@tool(read_only=True)
def pwd(world: World, /) -> PathView:
    """The working directory."""
    return {"path": path_of(world, inode(world, shell(world).cwd))}


@tool(idempotent=True)
def cd(world: World, /, path: Path = "~") -> PathView:
    """Change the working directory. Without a path: home. Fails with ENOENT, ENOTDIR, or EACCES without execute
    permission."""
    node = directory(world, path, PASS)
    world.update(shell(world), cwd=node.id)
    return {"path": path_of(world, node)}


@tool
def pushd(world: World, /, path: Path) -> StackView:
    """As cd, but popd goes back. Fails as cd does."""
    node = directory(world, path, PASS)
    now = shell(world)
    if len(now.stack) >= 32:
        raise ToolError("DIRSTACK_FULL", "the stack holds 32 directories; popd some of them first")
    world.update(now, cwd=node.id, stack=(*now.stack, now.cwd))
    return _stack(world)


@tool
def popd(world: World, /) -> StackView:
    """Go back to where pushd was. Fails with DIRSTACK_EMPTY if there is none, and with ENOENT if that directory was
    removed."""
    now = shell(world)
    if not now.stack:
        raise ToolError("DIRSTACK_EMPTY", "the stack of directories is empty; pushd puts one on it")
    back = world.get(Inode, now.stack[-1])
    if back is None:
        raise ToolError("ENOENT", "the directory on top of the stack was removed; cd to another one")
    check(world, me(world), back, PASS)
    world.update(now, cwd=back.id, stack=now.stack[:-1])
    return _stack(world)


def _stack(world: World) -> StackView:
    now = shell(world)
    kept = [world.get(Inode, key) for key in reversed(now.stack)]
    return {
        "path": path_of(world, inode(world, now.cwd)),
        "stack": ["(removed)" if node is None else path_of(world, node) for node in kept],
    }


TOOLS: Final[list[FunctionTool]] = [pwd, cd, pushd, popd]
