"""Tools for permission bits, owners, users and quotas."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, Refused, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.modes import changed_mode
from callwright_plugins.mcp_environments.filesystem.paths import Path, existing, inode, me, path_of, shell
from callwright_plugins.mcp_environments.filesystem.rows import Inode, Usage, User
from callwright_plugins.mcp_environments.filesystem.tree import give, walk
from callwright_plugins.mcp_environments.filesystem.views import NodeView, UserView, node_view, user_view

Recursive = Annotated[bool, Field(description="Also what is below, but no links.")]
UserName = Annotated[str, Field(max_length=64, description="Name of a user.")]


class QuotaView(TypedDict):
    """What a user has used, and may use (``None``: as much as there is)."""

    user: str
    used_bytes: int
    quota_bytes: Annotated[int | None, Field(description="null: no bound.")]
    free_bytes: Annotated[int | None, Field(description="null: no bound.")]
    used_inodes: int
    quota_inodes: Annotated[int | None, Field(description="null: no bound.")]


class WhoView(TypedDict):
    """The present user, and where."""

    name: str
    uid: int
    groups: list[str]
    home: str
    cwd: str


class SwitchView(TypedDict):
    """Whether the password was right, and how many more wrong ones the account takes."""

    verified: bool
    user: str
    attempts_left: Annotated[int, Field(description="Wrong passwords that the account still takes.")]


@tool(idempotent=True)
def chmod(
    world: World,
    /,
    path: Path,
    mode: Annotated[str, Field(min_length=1, max_length=40, description="Such as 644 or u+x,go-w.")],
    recursive: Recursive = False,
) -> NodeView:
    """Change permission bits. Only the owner and root may (EPERM). With recursive it leaves out what others own
    (partial). Fails with EINVAL for a mode that is none."""
    top = existing(world, path)
    user, denied = me(world), 0
    nodes = [node for _, node in walk(world, top) if node.kind != "link"] if recursive else [top]
    for node in nodes:
        bits = changed_mode(node.mode, mode, node.kind == "dir")
        if user.uid and node.owner != user.name:
            if node.id == top.id:
                raise ToolError("EPERM", f"{path_of(world, node)} belongs to {node.owner}, who alone may chmod it")
            denied += 1
        elif bits != node.mode:
            world.update(node, mode=bits)
    if denied:
        world.warn("EPERM", f"{denied} of {len(nodes)} have other owners and stay as they are")
    return node_view(world, inode(world, top.id))


@tool(idempotent=True)
def chown(
    world: World,
    /,
    path: Path,
    owner: Annotated[str, Field(max_length=64, description="Empty: as it is.")] = "",
    group: Annotated[str, Field(max_length=64, description="Empty: as it is.")] = "",
    recursive: Recursive = False,
) -> NodeView:
    """Change owner (root only) or group (an owner to one of theirs) (EPERM). Sizes count against the new owner's quota
    (EDQUOT). Fails with NOT_FOUND for an unknown user or group."""
    if not owner and not group:
        raise ToolError("EINVAL", "give an owner, a group, or both")
    top = existing(world, path)
    user = me(world)
    if owner:
        world.need(User, owner, "NOT_FOUND", f"there is no user {owner!r}; see list_users")
    if group and not any(group in one.groups for one in world.rows(User)):
        raise ToolError("NOT_FOUND", f"there is no group {group!r}; list_users shows the groups")
    nodes = [node for _, node in walk(world, top) if node.kind != "link"] if recursive else [top]
    for node in nodes:
        _check_chown(world, user, node, owner, group)
    for node in nodes:
        give(world, node, owner or node.owner, group or node.group)
    return node_view(world, inode(world, top.id))


def _check_chown(world: World, user: User, node: Inode, owner: str, group: str) -> None:
    if not user.uid:
        return
    at = path_of(world, node)
    if owner and owner != node.owner:
        raise ToolError("EPERM", f"{at}: only root may change an owner")
    if node.owner != user.name:
        raise ToolError("EPERM", f"{at} is owned by {node.owner}: {user.name} may not change it")
    if group and group != node.group and group not in user.groups:
        raise ToolError("EPERM", f"{at}: {user.name} does not belong to the group {group}")


@tool(read_only=True, discovery=True)
def list_users(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[UserView]:
    """List the users with their groups and homes."""
    return page(list(world.rows(User)), user_view, limit, cursor)


@tool(read_only=True)
def whoami(world: World, /) -> WhoView:
    """The user whose rights count now."""
    user = me(world)
    return {
        "name": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "home": user.home,
        "cwd": path_of(world, inode(world, shell(world).cwd)),
    }


@tool(read_only=True)
def quota_info(world: World, /, user: UserName = "") -> QuotaView:
    """Used and allowed bytes and inodes. Only root may ask for others (EPERM)."""
    asking = me(world)
    one = world.need(User, user or asking.name, "NOT_FOUND", f"there is no user {user!r}; see list_users")
    if asking.uid and one.name != asking.name:
        raise ToolError("EPERM", f"only root and {one.name} may see the quota of {one.name}")
    used = world.get(Usage, one.name) or Usage(one.name, 0, 0)
    return {
        "user": one.name,
        "used_bytes": used.bytes,
        "quota_bytes": one.quota_bytes or None,
        "free_bytes": max(0, one.quota_bytes - used.bytes) if one.quota_bytes else None,
        "used_inodes": used.inodes,
        "quota_inodes": one.quota_inodes or None,
    }


@tool
def switch_user(
    world: World,
    /,
    user: UserName,
    password: Annotated[
        str, Field(max_length=200, description="The user's password.", json_schema_extra={"x-sensitive": True})
    ] = "",
) -> SwitchView:
    """Become another user, as su does; root needs no password. The third wrong one (BAD_PASSWORD) locks the account.
    Fails with NOT_FOUND, LOCKED."""
    one = world.need(User, user, "NOT_FOUND", f"there is no user {user!r}; see list_users")
    asking = me(world)
    if asking.uid and one.name != asking.name:
        if not one.attempts_left:
            raise ToolError("LOCKED", f"the account {user} is locked after wrong passwords; only root can switch to it")
        if password != one.password:
            one = world.update(one, attempts_left=one.attempts_left - 1)
            raise Refused("BAD_PASSWORD", f"wrong password for {user}; {one.attempts_left} attempts are left")
        one = world.update(one, attempts_left=3)
    world.update(shell(world), user=one.name)
    return {"verified": True, "user": one.name, "attempts_left": one.attempts_left}


TOOLS: Final[list[FunctionTool]] = [chmod, chown, list_users, whoami, quota_info, switch_user]
