"""Tools that copy, move and remove, by the rules of GNU cp, mv and rm."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.changing import LINK_MODE, named, named_existing, resolved
from callwright_plugins.mcp_environments.filesystem.paths import (
    PASS,
    READ,
    WRITE,
    Path,
    check,
    children,
    existing,
    inode,
    is_within,
    may,
    me,
    path_of,
    place,
)
from callwright_plugins.mcp_environments.filesystem.rows import ROOT, UMASK, Inode, User
from callwright_plugins.mcp_environments.filesystem.tree import (
    check_removable,
    check_unlinkable,
    content,
    create,
    remove,
    rename,
    taken,
    write,
)
from callwright_plugins.mcp_environments.filesystem.views import CopiedView, PathView, RemovedView

Destination = Annotated[
    str, Field(min_length=1, max_length=5000, description="Path; a directory gets it under its own name.")
]
Overwrite = Annotated[bool, Field(description="Replace what is there; else EEXIST.")]
_SHOWN: Final = 100


def landing(world: World, source: str, destination: str, *, move: bool = False) -> str:
    """The path that a copy gets: inside ``destination`` under its own name if that is a directory, else that path.

    A copy of ``.`` or ``..`` is merged into the directory; a move asks for those names and fails.
    """
    there = resolved(world, destination)
    if there is None or there.kind != "dir":
        return destination
    source = me(world).home if source == "~" else source
    base = source.rstrip("/").rpartition("/")[2]
    return destination if base in ("", ".", "..") and not move else f"{destination.rstrip('/')}/{base}"


def _same(world: World, node: Inode, other: Inode) -> ToolError:
    return ToolError("SAME_FILE", f"{path_of(world, node)} and {path_of(world, other)} are the same file")


def _is_aim(world: World, node: Inode, other: Inode) -> bool:
    """Whether ``node`` is a link that leads to ``other``: to put it there would lose the content."""
    aim = resolved(world, path_of(world, node)) if node.kind == "link" else None
    return aim is not None and aim.id == other.id


def _copied_file(world: World, node: Inode, path: str, overwrite: bool) -> Inode:
    user = me(world)
    try:
        itself = named(world, path)
    except ToolError as error:
        if error.code == "ENOENT":  # cp opens the source before it makes the copy
            check(world, user, node, READ)
        raise
    try:
        where = place(world, path)
    except ToolError as error:
        if error.code != "ENOENT":
            raise
        where = itself
    if itself.inode is not None and itself.inode.kind == "link" and (where is itself or where.inode is None):
        raise ToolError("EEXIST", f"{taken(world, itself)} is a link to nothing; remove it or name its target")
    if where.inode is not None and where.inode.id == node.id:
        raise _same(world, node, where.inode)
    if where.inode is not None and where.inode.kind == "dir":
        raise ToolError("EISDIR", f"{path_of(world, where.inode)} is a directory; a file cannot replace it")
    check(world, user, node, READ)
    if where.inode is None:
        if where.slash:
            raise ToolError("ENOTDIR", f"{taken(world, where)} is not a directory")
        return create(world, where, "file", node.mode & 0o777, data=content(world, node))
    _check_overwrite(world, where.inode, overwrite)
    check(world, user, where.inode, WRITE)
    return write(world, where.inode, content(world, node))


def _copied_link(world: World, node: Inode, path: str, overwrite: bool) -> Inode:
    where = named(world, path)
    if where.inode is not None:
        if where.inode.id == node.id or _is_aim(world, node, where.inode):
            raise _same(world, node, where.inode)
        if where.inode.kind == "dir":
            raise ToolError("EISDIR", f"{path_of(world, where.inode)} is a directory; a link cannot replace it")
        _check_overwrite(world, where.inode, overwrite)
        check_removable(world, me(world), where.inode)
        remove(world, where.inode)
        where = named(world, path)
    return create(world, where, "link", LINK_MODE, target=node.target)


def _check_overwrite(world: World, node: Inode, overwrite: bool) -> None:
    if not overwrite:
        raise ToolError("EEXIST", f"{path_of(world, node)} exists and overwrite is false")


def _copied_tree(world: World, node: Inode, path: str, overwrite: bool, problems: list[ToolError]) -> int:
    """Copy whatever ``node`` is to ``path``; problems below it are collected. Returns how many inodes were copied."""
    if node.kind == "file":
        _copied_file(world, node, path, overwrite)
        return 1
    if node.kind == "link":
        _copied_link(world, node, path, overwrite)
        return 1
    user = me(world)
    check(world, user, node, READ | PASS)
    where = named(world, path)
    made: Inode | None = None
    if where.inode is None:
        if is_within(world, where.parent, node):
            raise ToolError("EINVAL", f"{path_of(world, node)} cannot be copied into itself, {taken(world, where)}")
        made = create(world, where, "dir", node.mode & 0o1777 | 0o700)
    elif where.inode.kind != "dir":
        raise ToolError("ENOTDIR", f"{path_of(world, where.inode)} is there and not a directory")
    elif where.inode.id == node.id:
        raise _same(world, node, where.inode)
    elif is_within(world, where.inode, node):
        raise ToolError("EINVAL", f"{path_of(world, node)} cannot be copied into itself, {taken(world, where)}")
    count = 1
    for inner in children(world, node):
        try:
            count += _copied_tree(world, inner, f"{path.rstrip('/')}/{inner.name}", overwrite, problems)
        except ToolError as error:
            if error.code in ("EDQUOT", "EINVAL"):
                raise
            problems.append(error)
    if made is not None:
        final = node.mode & 0o1777 & ~UMASK
        now = inode(world, made.id)
        if now.mode != final:
            world.update(now, mode=final)
    return count


@tool
def cp(world: World, /, source: Path, destination: Destination, overwrite: Overwrite = True) -> CopiedView:
    """Copy one file, or what a link points to. Fails with ENOENT, EISDIR (use cp_tree for directories), EACCES,
    SAME_FILE, EEXIST, EDQUOT."""
    node = existing(world, source)
    if node.kind == "dir":
        raise ToolError("EISDIR", f"{path_of(world, node)} is a directory; cp_tree copies directories")
    path = landing(world, source, destination)
    made = _copied_file(world, node, path, overwrite)
    return {"source": path_of(world, node), "path": path_of(world, made), "copied": 1}


@tool(latency=2)
def cp_tree(world: World, /, source: Path, destination: Destination, overwrite: Overwrite = True) -> CopiedView:
    """Copy a directory, file or link; directories that are there are merged. Leaves out what may not be read or
    replaced (partial). Fails with EINVAL for a copy into itself, ENOENT, ENOTDIR, EISDIR, EDQUOT."""
    node = existing(world, source) if source.endswith("/") else named_existing(world, source)
    path = landing(world, source, destination)
    problems: list[ToolError] = []
    count = _copied_tree(world, node, path, overwrite, problems)
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        world.warn(problems[0].code, f"left out: {problems[0].message}{more}")
    return {"source": path_of(world, node), "path": path_of(world, existing_name(world, path)), "copied": count}


def existing_name(world: World, path: str) -> Inode:
    """What has this name: through links if the path ends in a slash or dot, else the name itself."""
    return existing(world, path) if path.rstrip("/") in ("", ".", "..") else named_existing(world, path)


@tool
def mv(world: World, /, source: Path, destination: Destination, overwrite: Overwrite = True) -> CopiedView:
    """Move or rename a file, link or directory. Fails with ENOENT, ENOTEMPTY, ENOTDIR, EISDIR, EINVAL (into itself),
    EBUSY, EACCES, EPERM, SAME_FILE, EEXIST."""
    node = named_existing(world, source)
    path = landing(world, source, destination, move=True)
    where = named(world, path)
    if where.inode is None and path.endswith("/") and node.kind != "dir":
        raise ToolError("ENOTDIR", f"{taken(world, where)} is not a directory")
    if where.inode is not None and (where.inode.id == node.id or _is_aim(world, node, where.inode)):
        raise _same(world, node, where.inode)
    if where.inode is not None:
        _check_replaceable(world, node, where.inode, overwrite)
    if node.id == ROOT or source.rstrip("/").rpartition("/")[2] in (".", ".."):
        raise ToolError("EBUSY", f"{path_of(world, node)} cannot be moved by that name")
    if node.kind == "dir" and is_within(world, where.parent, node):
        raise ToolError("EINVAL", f"{path_of(world, node)} cannot be moved into itself, {taken(world, where)}")
    user = me(world)
    check_unlinkable(world, user, node)
    check(world, user, where.parent, WRITE | PASS)
    if node.kind == "dir" and where.parent.id != node.parent:
        check(world, user, node, WRITE)
    before = path_of(world, node)
    if where.inode is not None:
        check_removable(world, user, where.inode)
        if where.inode.kind == "dir" and children(world, where.inode):
            raise ToolError("ENOTEMPTY", f"{taken(world, where)} is a directory and not empty")
        remove(world, where.inode)
    moved = rename(world, inode(world, node.id), where.parent, where.name)
    return {"source": before, "path": path_of(world, moved), "copied": 1}


def _check_replaceable(world: World, node: Inode, there: Inode, overwrite: bool) -> None:
    at = path_of(world, there)
    if node.kind == "dir" and there.kind != "dir":
        raise ToolError("ENOTDIR", f"{at} is there and not a directory")
    if node.kind != "dir" and there.kind == "dir":
        raise ToolError("EISDIR", f"{at} is a directory; a file cannot replace it")
    _check_overwrite(world, there, overwrite)


@tool(destructive=True, irreversible=True)
def rm(world: World, /, path: Path) -> PathView:
    """Remove a file or a link. Fails with EACCES without the bits w and x of its directory, EISDIR for a directory
    (rmdir or rm_tree), EBUSY for the working directory, ENOENT, EPERM (sticky)."""
    node = named_existing(world, path)
    check_unlinkable(world, me(world), node)
    if node.kind == "dir":
        if is_within(world, existing(world, "."), node):
            raise ToolError("EBUSY", f"{path_of(world, node)} is the working directory or holds it")
        raise ToolError("EISDIR", f"{path_of(world, node)} is a directory; rm_tree removes it with all it holds")
    check_removable(world, me(world), node)
    gone = path_of(world, node)
    remove(world, node)
    return {"path": gone}


@tool(destructive=True, latency=2, irreversible=True)
def rm_tree(world: World, /, path: Path) -> RemovedView:
    """Remove a directory with all it holds, or a file or link. What may not be removed stays, as do directories around
    it (partial). Fails with EBUSY for the working directory or one around it, ENOENT, EACCES, EPERM."""
    node = named_existing(world, path)
    if path.rstrip("/").rpartition("/")[2] in ("", ".", ".."):
        raise ToolError("EINVAL", f"{path!r}: name the directory itself")
    user = me(world)
    if node.kind == "dir" and is_within(world, existing(world, "."), node):
        raise ToolError("EBUSY", f"{path_of(world, node)} is the working directory or holds it; cd elsewhere first")
    removed: list[str] = []
    denied: list[ToolError] = []
    _removed_tree(world, user, node, removed, denied)
    if denied and not removed:
        raise denied[0]
    if denied:
        world.warn(denied[0].code, f"{len(denied)} could not be removed, the first because: {denied[0].message}")
    return {"removed": removed[:_SHOWN], "count": len(removed)}


def _removed_tree(world: World, user: User, node: Inode, removed: list[str], denied: list[ToolError]) -> None:
    failures = len(denied)
    inside = children(world, node) if node.kind == "dir" else []
    if inside and not may(user, node, READ | WRITE | PASS):
        denied.append(ToolError("EACCES", f"{path_of(world, node)}: permission denied"))
        return
    for inner in inside:
        _removed_tree(world, user, inner, removed, denied)
    if len(denied) > failures:
        return
    try:
        check_removable(world, user, node)
    except ToolError as error:
        denied.append(error)
        return
    removed.append(path_of(world, node))
    remove(world, inode(world, node.id))


TOOLS: Final[list[FunctionTool]] = [cp, cp_tree, mv, rm, rm_tree]
