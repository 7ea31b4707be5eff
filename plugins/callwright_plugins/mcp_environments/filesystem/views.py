"""What tools of the filesystem show."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.filesystem.modes import shown_mode
from callwright_plugins.mcp_environments.filesystem.paths import path_of
from callwright_plugins.mcp_environments.filesystem.rows import Inode, User
from callwright_plugins.mcp_environments.times import iso


class NodeView(TypedDict):
    """An inode: sizes in bytes, ``mode`` in octal, ``target`` of links only."""

    path: str
    name: str
    kind: str
    size: Annotated[int, Field(description="Bytes.")]
    mode: Annotated[str, Field(description="Octal.")]
    permissions: str
    owner: str
    group: str
    modified: Annotated[str, Field(description="UTC.")]
    target: Annotated[str | None, Field(description="Of links only.")]


class UserView(TypedDict):
    """A user of the system."""

    name: str
    uid: int
    groups: list[str]
    home: str


class PathView(TypedDict):
    """Where something is now."""

    path: str


class FileView(TypedDict):
    """A file that was written."""

    path: str
    size: Annotated[int, Field(description="Bytes.")]
    created: Annotated[bool, Field(description="false: it was there before.")]


class RemovedView(TypedDict):
    """What was taken away."""

    removed: Annotated[list[str], Field(description="The first of the paths.")]
    count: Annotated[int, Field(description="Of all paths.")]


class CopiedView(TypedDict):
    """What was copied, and to where."""

    source: str
    path: str
    copied: Annotated[int, Field(description="How many files, directories and links.")]


def node_view(world: World, node: Inode, path: str = "") -> NodeView:
    """The view of an inode; ``path`` is its path where that is known already."""
    return {
        "path": path or path_of(world, node),
        "name": node.name or "/",
        "kind": node.kind,
        "size": node.size,
        "mode": f"{node.mode:04o}",
        "permissions": shown_mode(node.mode, node.kind),
        "owner": node.owner,
        "group": node.group,
        "modified": iso(node.mtime),
        "target": node.target if node.kind == "link" else None,
    }


def user_view(user: User) -> UserView:
    """The view of a user: no password."""
    return {"name": user.name, "uid": user.uid, "groups": list(user.groups), "home": user.home}
