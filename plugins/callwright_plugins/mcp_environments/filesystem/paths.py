"""How a path is resolved: components, links, permission bits, and the errors of Linux for each."""

from __future__ import annotations

from typing import Annotated, Final

from attrs import frozen
from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.filesystem.rows import ROOT, SHELL, Entry, Inode, Shell, User

READ, WRITE, PASS = 4, 2, 1
_LINKS: Final = 40
_NAME: Final = 255
_PATH: Final = 4096
_WANTED: Final = {READ: "read", WRITE: "write", PASS: "search"}

#: A path parameter; the shell's working directory is where a relative one begins.
Path = Annotated[
    str,
    Field(min_length=1, max_length=5000, description="Absolute, relative to the working directory, or from ~."),
]


@frozen
class Place:
    """Where a path leads: the directory of its last name, that name, and what is there (``None``: nothing).

    ``name`` is ``.``, ``..`` or ``/`` if the path ends so. ``slash`` says that it ends in a slash.
    """

    parent: Inode
    name: str
    inode: Inode | None
    slash: bool


def shell(world: World) -> Shell:
    """The shell of the session."""
    return world.need(Shell, SHELL)


def me(world: World) -> User:
    """The user whose rights count."""
    return world.need(User, shell(world).user)


def inode(world: World, key: str) -> Inode:
    """The inode with this id."""
    return world.need(Inode, key)


def child(world: World, directory: Inode, name: str) -> Inode | None:
    """What a directory has under a name."""
    entry = world.get(Entry, (directory.id, name))
    return None if entry is None else inode(world, entry.inode)


def children(world: World, directory: Inode) -> list[Inode]:
    """What a directory holds, by name."""
    entries = sorted(world.find(Entry, parent=directory.id), key=lambda entry: entry.name)
    return [inode(world, entry.inode) for entry in entries]


def may(user: User, node: Inode, wanted: int) -> bool:
    """Whether the bits of an inode give ``user`` all of ``wanted`` (READ, WRITE, PASS)."""
    if user.uid == 0:
        return True
    shift = 6 if node.owner == user.name else 3 if node.group in user.groups else 0
    return node.mode >> shift & wanted == wanted


def check(world: World, user: User, node: Inode, wanted: int) -> None:
    """Fails with EACCES if the bits do not allow it."""
    if not may(user, node, wanted):
        what = " and ".join(word for bit, word in _WANTED.items() if wanted & bit)
        raise ToolError(
            "EACCES",
            f"{path_of(world, node)}: permission denied: {user.name} may not {what} it "
            f"(mode {node.mode:04o}, owner {node.owner}, group {node.group})",
        )


def path_of(world: World, node: Inode) -> str:
    """The absolute path of an inode, without links."""
    names: list[str] = []
    while node.id != ROOT:
        names.append(node.name)
        node = inode(world, node.parent)
    return "/" + "/".join(reversed(names))


def is_within(world: World, node: Inode, directory: Inode) -> bool:
    """Whether an inode is this directory or lies below it."""
    while node.id != directory.id:
        if node.id == ROOT:
            return False
        node = inode(world, node.parent)
    return True


def checked_name(name: str, path: str) -> str:
    """The name itself. Fails with ENAMETOOLONG or, if it is no Unicode text, EINVAL."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ToolError("EINVAL", f"{path[:80]!r}: names must be valid Unicode text") from None
    if size > _NAME:
        raise ToolError("ENAMETOOLONG", f"{name[:40]}…: a name has at most {_NAME} bytes, this one {size}")
    return name


def place(world: World, path: str, *, follow: bool = True) -> Place:
    """Where ``path`` leads. ``follow``: through a link that is its last name, too (a final slash does it anyway).

    A link that leads nowhere gives the place where a file written through it would be. Fails with ENOENT, ENOTDIR,
    EACCES, ELOOP, ENAMETOOLONG, or EINVAL for a path that cannot be one.
    """
    user = me(world)
    if path == "~" or path.startswith("~/"):
        path = user.home + path[1:]
    if "\0" in path:
        raise ToolError("EINVAL", "a path holds no NUL character")
    if len(path) >= _PATH:
        raise ToolError("ENAMETOOLONG", f"a path has fewer than {_PATH} characters, this one {len(path)}")
    if not path:
        raise ToolError("ENOENT", "the empty path names nothing")
    here = inode(world, ROOT if path[0] == "/" else shell(world).cwd)
    todo = [part for part in reversed(path.split("/")) if part]
    slash = path[-1] == "/"
    links = 0
    if not todo:
        return Place(here, "/", here, True)
    while True:
        name = todo.pop()
        if here.kind != "dir":
            raise ToolError("ENOTDIR", f"{path_of(world, here)} is not a directory, in {path[:200]!r}")
        check(world, user, here, PASS)
        last = not todo
        if name in (".", ".."):
            found: Inode | None = here if name == "." else inode(world, here.parent)
        else:
            found = child(world, here, checked_name(name, path))
        if found is not None and found.kind == "link" and (follow or slash or not last):
            links += 1
            if links > _LINKS:
                raise ToolError("ELOOP", f"{path[:200]!r}: too many levels of symbolic links")
            slash = slash or (last and found.target[-1] == "/")
            if found.target[0] == "/":
                here = inode(world, ROOT)
            todo += [part for part in reversed(found.target.split("/")) if part]
            if not todo:
                return Place(here, "/", here, True)
            continue
        if last:
            if slash and found is not None and found.kind != "dir":
                raise ToolError("ENOTDIR", f"{path_of(world, found)} is not a directory, in {path[:200]!r}")
            return Place(here, name, found, slash)
        if found is None:
            raise ToolError("ENOENT", f"{joined(world, here, name)}: no such file or directory, in {path[:200]!r}")
        here = found


def joined(world: World, directory: Inode, name: str) -> str:
    """The path of a name in a directory."""
    return f"{path_of(world, directory).rstrip('/')}/{name}"


def existing(world: World, path: str, *, follow: bool = True) -> Inode:
    """What a path leads to; ENOENT if nothing is there."""
    found = place(world, path, follow=follow)
    if found.inode is None:
        raise ToolError("ENOENT", f"{joined(world, found.parent, found.name)}: no such file or directory")
    return found.inode


def directory(world: World, path: str, wanted: int = 0) -> Inode:
    """The directory that a path leads to, with these rights; else ENOENT, ENOTDIR or EACCES."""
    node = existing(world, path)
    if node.kind != "dir":
        raise ToolError("ENOTDIR", f"{path_of(world, node)} is not a directory")
    if wanted:
        check(world, me(world), node, wanted)
    return node


def regular(world: World, path: str, wanted: int = READ) -> Inode:
    """The regular file that a path leads to, with these rights; else ENOENT, EISDIR or EACCES."""
    node = existing(world, path)
    if node.kind == "dir" and not wanted & WRITE:  # Linux opens a directory, if it may, and then cannot read it
        check(world, me(world), node, wanted)
    if node.kind == "dir":
        raise ToolError("EISDIR", f"{path_of(world, node)} is a directory")
    check(world, me(world), node, wanted)
    return node
