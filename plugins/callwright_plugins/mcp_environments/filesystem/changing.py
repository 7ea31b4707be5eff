"""Tools that make and remove directories, and write files."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.modes import changed_mode
from callwright_plugins.mcp_environments.filesystem.paths import (
    READ,
    WRITE,
    Path,
    Place,
    check,
    children,
    inode,
    me,
    path_of,
    place,
    regular,
    shell,
)
from callwright_plugins.mcp_environments.filesystem.rows import ROOT, Inode
from callwright_plugins.mcp_environments.filesystem.tree import (
    check_removable,
    check_unlinkable,
    content,
    create,
    remove,
    taken,
    text,
    write,
)
from callwright_plugins.mcp_environments.filesystem.views import FileView, PathView

Content = Annotated[str, Field(max_length=200_000, description="Text with its last line end.")]
#: What a link that a user makes gets for bits; nobody looks at them.
LINK_MODE: Final = 0o777


class ReplacedView(TypedDict):
    """How many places were replaced."""

    path: str
    replaced: Annotated[int, Field(description="How many places.")]
    size: Annotated[int, Field(description="Bytes.")]


class SizeView(TypedDict):
    """Sizes of a file before and after, in bytes."""

    path: str
    before: Annotated[int, Field(description="Its size in bytes before.")]
    size: Annotated[int, Field(description="Bytes now.")]


def named(world: World, path: str) -> Place:
    """Where a name itself is, links not followed; a final slash asks for a directory (else ENOTDIR)."""
    stripped = path.rstrip("/") or "/"
    found = place(world, stripped, follow=False)
    if stripped != path and stripped != "/" and found.inode is not None and found.inode.kind != "dir":
        raise ToolError("ENOTDIR", f"{path_of(world, found.inode)} is not a directory")
    return found


def named_existing(world: World, path: str) -> Inode:
    """What has this name, links not followed; ENOENT if nothing has."""
    found = named(world, path)
    if found.inode is None:
        raise ToolError("ENOENT", f"{taken(world, found)}: no such file or directory")
    return found.inode


def resolved(world: World, path: str) -> Inode | None:
    """What a path leads to through links, ``None`` if for any reason it leads nowhere."""
    try:
        return place(world, path).inode
    except ToolError:
        return None


def _through_links(world: World, path: str, last: bool) -> Inode | None:
    """What a path leads to, ``None`` for a link to nothing."""
    try:
        return place(world, path).inode
    except ToolError as error:
        if error.code == "ENOENT" or (last and error.code == "ENOTDIR"):
            return None
        raise


@tool
def mkdir(
    world: World,
    /,
    path: Path,
    parents: Annotated[bool, Field(description="As mkdir -p.")] = False,
    mode: Annotated[str, Field(max_length=20, description="Permission bits.")] = "755",
) -> PathView:
    """Make a directory. Fails with EEXIST, ENOENT (missing parent), ENOTDIR, EACCES, EDQUOT."""
    bits = changed_mode(0o755, mode, True)
    if parents:
        return {"path": path_of(world, _made(world, path, bits))}
    where = named(world, path)
    return {"path": path_of(world, create(world, where, "dir", bits, umask=0))}


def _made(world: World, path: str, bits: int) -> Inode:
    parts = path.split("/")
    node = inode(world, ROOT if path[0] == "/" else shell(world).cwd)
    for count in range(1, len(parts) + 1):
        if not parts[count - 1]:
            continue
        so_far = "/".join(parts[:count])
        where = place(world, so_far, follow=False)
        if where.inode is None:
            node = create(world, where, "dir", bits if not any(parts[count:]) else 0o755, umask=0)
            continue
        followed = _through_links(world, so_far, last=not any(parts[count:]))
        if followed is None or followed.kind != "dir":
            code = "ENOTDIR" if followed is not None and any(parts[count:]) else "EEXIST"
            raise ToolError(code, f"{path_of(world, where.inode)} is there and not a directory")
        node = followed
    return node


@tool(destructive=True)
def rmdir(world: World, /, path: Path) -> PathView:
    """Remove an empty directory. Fails with ENOTEMPTY, ENOTDIR, ENOENT, EACCES, and EBUSY for the working directory."""
    where = named(world, path)
    node = named_existing(world, path)
    check_unlinkable(world, me(world), node)
    if node.kind != "dir":
        raise ToolError("ENOTDIR", f"{path_of(world, node)} is not a directory")
    if where.name == "." or node.id == ROOT:
        raise ToolError("EBUSY", f"{path_of(world, node)} is in use and cannot be removed")
    if children(world, node):
        raise ToolError("ENOTEMPTY", f"{path_of(world, node)} is not empty; rm_tree removes what it holds, too")
    check_removable(world, me(world), node)
    gone = path_of(world, node)
    remove(world, node)
    return {"path": gone}


@tool(idempotent=True)
def touch(world: World, /, path: Path) -> FileView:
    """Make an empty file, or set the time of a path to now. Fails with ENOENT (missing parent), EACCES, EDQUOT."""
    where = place(world, path)
    if where.inode is None:
        if where.slash:
            raise ToolError("ENOENT", f"{taken(world, where)}: no such directory")
        node = create(world, where, "file", 0o666)
        return {"path": path_of(world, node), "size": 0, "created": True}
    user = me(world)
    if user.name != where.inode.owner:
        check(world, user, where.inode, WRITE)
    node = world.update(where.inode, mtime=world.now)
    return {"path": path_of(world, node), "size": node.size, "created": False}


@tool(idempotent=True)
def write_file(
    world: World,
    /,
    path: Path,
    content: Content,
    mode: Annotated[
        Literal["overwrite", "create"], Field(description="create fails if the file is there.")
    ] = "overwrite",
) -> FileView:
    """Write a text file, in place of what it held. Fails with ENOENT (missing parent), EISDIR, EACCES, EDQUOT, EFBIG,
    EEXIST."""
    where = named(world, path) if mode == "create" else place(world, path)
    if mode == "create" and where.inode is not None:
        raise ToolError("EEXIST", f"{path_of(world, where.inode)} exists; mode overwrite replaces its content")
    return _written(world, where, content.encode("utf-8", "surrogatepass"))


@tool
def append_file(world: World, /, path: Path, content: Content) -> FileView:
    """Add text at the end of a file; a missing one is made. Fails as write_file does."""
    where = place(world, path)
    before = b""
    if where.inode is not None and where.inode.kind == "file":
        before = _content(world, where.inode)
    return _written(world, where, before + content.encode("utf-8", "surrogatepass"))


def _content(world: World, node: Inode) -> bytes:
    return content(world, node)


def _written(world: World, where: Place, data: bytes) -> FileView:
    if where.inode is None:
        if where.slash:
            raise ToolError("EISDIR", f"{taken(world, where)} ends in a slash: it cannot be a file")
        node = create(world, where, "file", 0o666, data=data)
        return {"path": path_of(world, node), "size": node.size, "created": True}
    if where.inode.kind == "dir":
        raise ToolError("EISDIR", f"{path_of(world, where.inode)} is a directory")
    check(world, me(world), where.inode, WRITE)
    node = write(world, where.inode, data)
    return {"path": path_of(world, node), "size": node.size, "created": False}


@tool
def replace_in_file(
    world: World,
    /,
    path: Path,
    old: Annotated[str, Field(min_length=1, max_length=20_000, description="Text to look for.")],
    new: Annotated[str, Field(max_length=20_000, description="Text in its place.")],
    count: Annotated[int, Field(ge=0, le=10_000, description="At most so many; 0: all.")] = 0,
) -> ReplacedView:
    """Replace plain text in a file. Fails with NO_MATCH if the text does not occur, EISDIR, EACCES, EDQUOT, EFBIG,
    BINARY_FILE."""
    node = regular(world, path, READ | WRITE)
    whole = text(world, node)
    hits = whole.count(old)
    if not hits:
        raise ToolError("NO_MATCH", f"{path_of(world, node)} does not hold {old[:60]!r}")
    replaced = min(hits, count) if count else hits
    if len(whole) + replaced * (len(new) - len(old)) > 2_000_000:
        raise ToolError("EFBIG", f"{path_of(world, node)} would become too large")
    changed = whole.replace(old, new, replaced)
    node = write(world, node, changed.encode("utf-8", "surrogatepass"))
    return {"path": path_of(world, node), "replaced": replaced, "size": node.size}


@tool(destructive=True, idempotent=True, irreversible=True)
def truncate_file(
    world: World,
    /,
    path: Path,
    size: Annotated[int, Field(ge=0, le=1_000_000, description="Its new size in bytes.")] = 0,
) -> SizeView:
    """Cut a file to a size, or fill it up with zeros. Fails with ENOENT, EISDIR, EACCES, EDQUOT."""
    node = regular(world, path, WRITE)
    data = _content(world, node)
    after = write(world, node, data[:size] + b"\0" * (size - len(data)))
    return {"path": path_of(world, after), "before": len(data), "size": after.size}


@tool
def symlink(
    world: World,
    /,
    target: Annotated[str, Field(min_length=1, max_length=1000, description="What the link says.")],
    path: Path,
) -> FileView:
    """Make a symbolic link at path. Relative targets begin at the link and need not exist. Fails with EEXIST, ENOENT
    (missing parent), EACCES, EDQUOT."""
    if "\0" in target:
        raise ToolError("EINVAL", "a target holds no NUL character")
    where = named(world, path)
    if where.inode is None and path.endswith("/"):
        raise ToolError("ENOENT", f"{taken(world, where)}/: a link is not a directory; leave out the final slash")
    node = create(world, where, "link", LINK_MODE, target=target)
    return {"path": path_of(world, node), "size": node.size, "created": True}


TOOLS: Final[list[FunctionTool]] = [
    mkdir,
    rmdir,
    touch,
    write_file,
    append_file,
    replace_in_file,
    truncate_file,
    symlink,
]
