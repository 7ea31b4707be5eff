"""The only functions that change the tree: they keep names, inodes, content and the usage of quotas in step."""

from __future__ import annotations

from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.filesystem.paths import (
    PASS,
    WRITE,
    Place,
    check,
    children,
    inode,
    is_within,
    joined,
    me,
    path_of,
    shell,
)
from callwright_plugins.mcp_environments.filesystem.rows import ROOT, UMASK, Blob, Entry, Inode, Usage, User, blob_of

#: Largest file, in bytes.
LARGEST: Final = 1_000_000
#: Most directories in one another: walks over the tree may recurse.
DEEPEST: Final = 128


def content(world: World, node: Inode) -> bytes:
    """The bytes of a regular file."""
    return world.need(Blob, node.blob).data


def text(world: World, node: Inode) -> str:
    """The text of a regular file; one that is not UTF-8 text, or holds NUL, fails with BINARY_FILE."""
    blob = world.need(Blob, node.blob)
    if blob.binary or "\0" in blob.text:
        raise ToolError("BINARY_FILE", f"{path_of(world, node)} is not text; see file_type")
    return blob.text


def create(
    world: World,
    where: Place,
    kind: str,
    mode: int,
    *,
    data: bytes = b"",
    target: str = "",
    mtime: int | None = None,
    umask: int = UMASK,
) -> Inode:
    """A new inode of the user at a free place. Fails with EEXIST, EACCES, EDQUOT, EFBIG."""
    user = me(world)
    if where.inode is not None:
        raise ToolError("EEXIST", f"{path_of(world, where.inode)} exists")
    check(world, user, where.parent, WRITE | PASS)
    _check_depth(world, where.parent, 1)
    _charge(world, user.name, len(data), 1)
    made = Inode(
        world.new_id(Inode),
        where.parent.id,
        where.name,
        kind,
        mode if kind == "link" else mode & ~umask,
        user.name,
        user.groups[0],
        world.now if mtime is None else mtime,
        len(target.encode("utf-8", "surrogatepass")) if kind == "link" else len(data),
        _keep(world, data) if kind == "file" else "",
        target,
    )
    world.put(made)
    world.put(Entry(made.parent, made.name, made.id))
    _touched(world, made.parent)
    return made


def write(world: World, node: Inode, data: bytes) -> Inode:
    """Give a file other content, at the cost of its owner. Fails with EDQUOT, EFBIG."""
    _charge(world, node.owner, len(data) - node.size, 0, len(data))
    blob = _keep(world, data)
    _release(world, node.blob)
    return world.update(node, blob=blob, size=len(data), mtime=world.now)


def remove(world: World, node: Inode) -> None:
    """Take away one inode that holds nothing; whether that is allowed is the caller's question."""
    entry = world.need(Entry, (node.parent, node.name))
    world.drop(entry)
    world.drop(node)
    if node.kind == "file":
        _release(world, node.blob)
    _charge(world, node.owner, -node.size if node.kind == "file" else 0, -1)
    _touched(world, node.parent)


def rename(world: World, node: Inode, parent: Inode, name: str) -> Inode:
    """Hang an inode elsewhere, at a free name. Fails with ENAMETOOLONG where the tree would be too deep."""
    if node.kind == "dir":
        _check_depth(world, parent, 1 + max(level for level, _ in walk(world, node)))
    world.drop(world.need(Entry, (node.parent, node.name)))
    _touched(world, node.parent)
    moved = world.update(node, parent=parent.id, name=name)
    world.put(Entry(parent.id, name, node.id))
    _touched(world, parent.id)
    return moved


def give(world: World, node: Inode, owner: str, group: str) -> Inode:
    """Another owner and group; the content counts against the new owner. Fails with EDQUOT."""
    if owner != node.owner:
        size = node.size if node.kind == "file" else 0
        _charge(world, owner, size, 1)
        _charge(world, node.owner, -size, -1)
    return world.update(node, owner=owner, group=group)


def check_unlinkable(world: World, user: User, node: Inode) -> None:
    """Whether ``user`` may take this name out of its directory: EACCES, or EPERM for the sticky bit."""
    parent = inode(world, node.parent)
    check(world, user, parent, WRITE | PASS)
    if parent.mode & 0o1000 and user.uid and user.name not in (node.owner, parent.owner):
        raise ToolError(
            "EPERM", f"{path_of(world, node)}: {path_of(world, parent)} is sticky, and {node.owner} owns it"
        )


def check_removable(world: World, user: User, node: Inode) -> None:
    """As :func:`check_unlinkable`, and EBUSY for the working directory and those that hold it."""
    check_unlinkable(world, user, node)
    if node.kind == "dir" and is_within(world, inode(world, shell(world).cwd), node):
        raise ToolError("EBUSY", f"{path_of(world, node)} is the working directory or holds it; cd elsewhere first")


def walk(world: World, top: Inode, depth: int = 1000) -> list[tuple[int, Inode]]:
    """An inode and all below it with their depths, parents first, names in order, whatever the permission bits."""
    found: list[tuple[int, Inode]] = []
    todo = [(0, top)]
    while todo:
        level, node = todo.pop()
        found.append((level, node))
        if node.kind == "dir" and level < depth:
            todo += [(level + 1, inner) for inner in reversed(children(world, node))]
    return found


def taken(world: World, where: Place) -> str:
    """The path of a place, for messages."""
    return path_of(world, where.inode) if where.inode else joined(world, where.parent, where.name)


def _check_depth(world: World, parent: Inode, height: int) -> None:
    depth, node = height, parent
    while node.id != ROOT:
        depth, node = depth + 1, inode(world, node.parent)
    if depth > DEEPEST:
        raise ToolError("ENAMETOOLONG", f"that would be {depth} directories in one another; at most {DEEPEST} may be")


def _keep(world: World, data: bytes) -> str:
    blob = blob_of(data)
    known = world.get(Blob, blob.id)
    world.put(blob if known is None else world.update(known, links=known.links + 1))
    return blob.id


def _release(world: World, key: str) -> None:
    blob = world.need(Blob, key)
    if blob.links == 1:
        world.drop(blob)
    else:
        world.update(blob, links=blob.links - 1)


def _charge(world: World, name: str, size: int, inodes: int, largest: int = 0) -> None:
    """Count bytes and inodes of a user. Fails with EFBIG or EDQUOT where that would be too much."""
    if max(size, largest) > LARGEST:
        raise ToolError("EFBIG", f"a file has at most {LARGEST} bytes, this one would have {max(size, largest)}")
    user, usage = world.need(User, name), world.get(Usage, name) or Usage(name, 0, 0)
    for what, used, more, quota in (
        ("bytes", usage.bytes, size, user.quota_bytes),
        ("inodes", usage.inodes, inodes, user.quota_inodes),
    ):
        if more > 0 and quota and used + more > quota:
            raise ToolError(
                "EDQUOT", f"disk quota of {name} exceeded: {used} of {quota} {what} are used and {more} more are needed"
            )
    if size or inodes:
        world.put(Usage(name, usage.bytes + size, usage.inodes + inodes))


def _touched(world: World, key: str) -> None:
    parent = inode(world, key)
    if parent.mtime != world.now:
        world.update(parent, mtime=world.now)
