"""Tools that pack into and unpack from tar archives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.archives import Member, pack, unpack
from callwright_plugins.mcp_environments.filesystem.changing import LINK_MODE
from callwright_plugins.mcp_environments.filesystem.copying import Overwrite, existing_name
from callwright_plugins.mcp_environments.filesystem.looking import visible
from callwright_plugins.mcp_environments.filesystem.paths import (
    READ,
    WRITE,
    Path,
    Place,
    check,
    checked_name,
    child,
    directory,
    inode,
    may,
    me,
    path_of,
    place,
    regular,
)
from callwright_plugins.mcp_environments.filesystem.rows import UMASK, Inode
from callwright_plugins.mcp_environments.filesystem.tree import (
    check_removable,
    content,
    create,
    remove,
    taken,
    write,
)


class ArchiveView(TypedDict):
    """An archive that was made: how many members, and how many bytes in all."""

    path: str
    members: Annotated[int, Field(description="Files, directories and links in it.")]
    size: Annotated[int, Field(description="Bytes.")]


class ExtractView(TypedDict):
    """What was unpacked: the first hundred names, and how many in all."""

    path: str
    extracted: Annotated[int, Field(description="In all.")]
    names: Annotated[list[str], Field(description="The first hundred.")]


@tool(latency=5)
def make_archive(
    world: World,
    /,
    sources: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=5000)]],
        Field(min_length=1, max_length=50, description="Each is packed under its last name."),
    ],
    archive: Path,
    overwrite: Annotated[bool, Field(description="Replace a file of that name.")] = False,
) -> ArchiveView:
    """Pack files and directories into a tar archive. Leaves out what may not be read (partial). Fails with ENOENT,
    EEXIST, EACCES, EDQUOT, EFBIG, ENAMETOOLONG."""
    where = place(world, archive)
    if where.inode is not None and where.inode.kind == "dir":
        raise ToolError("EISDIR", f"{path_of(world, where.inode)} is a directory; name a file in it")
    if where.inode is None and where.slash:
        raise ToolError("EISDIR", f"{taken(world, where)} ends in a slash: it cannot be a file")
    if where.inode is not None and not overwrite:
        raise ToolError("EEXIST", f"{path_of(world, where.inode)} exists and overwrite is false")
    itself = where.inode.id if where.inode else ""
    tops = [existing_name(world, source) for source in sources]
    names = [top.name or "root" for top in tops]
    for name in names:
        if names.count(name) > 1:
            raise ToolError("EINVAL", f"two sources are named {name!r}; pack the directory of one of them")
    closed: list[str] = []
    members = [member for top in tops for member in _members(world, top, itself, closed)]
    if closed and not any(member.kind == "file" for member in members):
        raise ToolError("EACCES", f"{closed[0]}: permission denied, and nothing else is there to pack")
    data = pack(members)
    if where.inode is not None:
        check(world, me(world), where.inode, WRITE)
        made = write(world, where.inode, data)
    else:
        made = create(world, where, "file", 0o666, data=data)
    if closed:
        world.warn("EACCES", f"{len(closed)} may not be read and were left out, {closed[0]} first")
    return {"path": path_of(world, made), "members": len(members), "size": made.size}


def _members(world: World, top: Inode, itself: str, closed: list[str]) -> Iterator[Member]:
    user, above = me(world), len(path_of(world, inode(world, top.parent)).rstrip("/")) + 1
    for _, node, at in visible(world, top, path_of(world, top), 1000, closed):
        if node.id == itself:
            continue
        if node.kind == "file" and not may(user, node, READ):
            closed.append(at)
            continue
        yield Member(
            at[above:] or "root",
            node.kind,
            node.mode,
            node.mtime,
            node.owner,
            node.group,
            content(world, node) if node.kind == "file" else b"",
            node.target,
        )


@tool(latency=5)
def extract_archive(
    world: World, /, archive: Path, destination: Path = ".", overwrite: Overwrite = False
) -> ExtractView:
    """Unpack a tar archive into a directory; what comes out is the user's own. Leaves out names that lead out of the
    directory (partial, UNSAFE_PATH). Fails with BAD_ARCHIVE, ENOENT, ENOTDIR, EEXIST (something is there and overwrite
    is false), EACCES, EDQUOT."""
    node = regular(world, archive)
    into = directory(world, destination)
    members = list(unpack(content(world, node), path_of(world, node)))
    unsafe: list[str] = []
    names: list[str] = []
    modes: list[tuple[str, int]] = []
    for member in members:
        try:
            made = _unpacked(world, into, member, overwrite)
        except _Unsafe:
            unsafe.append(member.name)
            continue
        names.append(member.name)
        if member.kind == "dir" and made is not None:
            modes.append((made.id, member.mode & ~UMASK))
    for key, mode in modes:  # only now: a directory without write permission could not have been filled
        world.update(inode(world, key), mode=mode)
    if unsafe:
        world.warn("UNSAFE_PATH", f"{len(unsafe)} members lead out of the directory: {unsafe[0][:100]!r} first")
    return {"path": path_of(world, into), "extracted": len(names), "names": names[:100]}


class _Unsafe(Exception):
    """The name of a member leads out of the directory, or through a link."""


def _unpacked(world: World, into: Inode, member: Member, overwrite: bool) -> Inode | None:
    """Unpack one member; ``None`` for a directory that is there."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise _Unsafe
    if not parts:
        return None
    here = into
    for part in parts[:-1]:
        found = child(world, here, checked_name(part, member.name))
        if found is None:
            found = create(world, Place(here, part, None, False), "dir", 0o755)
        elif found.kind != "dir":
            raise _Unsafe
        here = found
    there = child(world, here, checked_name(parts[-1], member.name))
    if there is not None:
        if member.kind == "dir" and there.kind == "dir":
            return None
        at = path_of(world, there)
        if there.kind == "dir":
            raise ToolError("EISDIR", f"{at} is a directory, and the archive holds a {member.kind} of that name")
        if not overwrite:
            raise ToolError("EEXIST", f"{at} exists and overwrite is false")
        check_removable(world, me(world), there)
        remove(world, there)
    where = Place(inode(world, here.id), parts[-1], None, False)
    if member.kind == "dir":
        return create(world, where, "dir", 0o700, umask=0)
    if member.kind == "link":
        if not member.target:
            raise ToolError("BAD_ARCHIVE", f"the link {member.name[:80]!r} in the archive has no target")
        return create(world, where, "link", LINK_MODE, target=member.target, mtime=member.mtime)
    return create(world, where, "file", member.mode & 0o777, data=member.data, mtime=member.mtime)


TOOLS: Final[list[FunctionTool]] = [make_archive, extract_archive]
