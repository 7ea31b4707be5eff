"""Who may see and do what in which channel, and whom a text mentions."""

from __future__ import annotations

import re
from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.team_chat.rows import Channel, Membership, Message, Profile, User

_MENTION: Final = re.compile(r"(?<![\w@.])@([a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?)")


def me(world: World) -> User:
    """The signed-in person."""
    return world.need(User, world.need(Profile, "me").user_id)


def is_member(world: World, channel: Channel, user_id: str) -> bool:
    """Whether somebody is in a channel."""
    return world.get(Membership, (channel.id, user_id)) is not None


def may_read(world: World, channel: Channel) -> bool:
    """Whether the signed-in person may read a channel."""
    own = me(world)
    return is_member(world, channel, own.id) or not (channel.private or own.kind == "guest")


def readable_ids(world: World) -> set[str]:
    """The ids of all channels that the signed-in person may read."""
    own, memberships = me(world), world.table(Membership)
    guest = own.kind == "guest"
    return {one.id for one in world.rows(Channel) if not (one.private or guest) or (one.id, own.id) in memberships}


def readable_channel(world: World, channel_id: str) -> Channel:
    """A channel that may be read. Fails with ``NOT_FOUND`` or ``NOT_IN_CHANNEL``."""
    channel = world.need(
        Channel, channel_id, message=f"there is no channel {channel_id[:40]!r}; list_channels gives ids"
    )
    if not may_read(world, channel):
        raise ToolError("NOT_IN_CHANNEL", f"{channel.id} is for its members only, and you are none")
    return channel


def writable_channel(world: World, channel_id: str) -> Channel:
    """A channel in which the signed-in person may act. Fails with ``NOT_IN_CHANNEL`` or ``CHANNEL_ARCHIVED``."""
    channel = readable_channel(world, channel_id)
    if channel.archived:
        raise ToolError("CHANNEL_ARCHIVED", f"#{channel.name} ({channel.id}) is archived and can only be read")
    if not is_member(world, channel, me(world).id):
        raise ToolError(
            "NOT_IN_CHANNEL", f"you are not in #{channel.name}; invite_member can add you to public channels"
        )
    return channel


def readable_message(world: World, message_id: str) -> Message:
    """A message in a channel that may be read."""
    message = world.need(Message, message_id, message=f"there is no message {message_id[:40]!r}; see search_messages")
    readable_channel(world, message.channel_id)
    return message


def is_admin(world: World, channel: Channel, user_id: str) -> bool:
    """Whether somebody is an admin of a channel."""
    membership = world.get(Membership, (channel.id, user_id))
    return membership is not None and membership.role == "admin"


def mentioned(world: World, channel: Channel, text: str) -> tuple[list[User], list[str]]:
    """Who hears of a text, and the handles in it that reach nobody here: outside the channel, deactivated or unknown.

    Fails with ``PERMISSION_DENIED`` for ``@channel`` by somebody who is no admin of the channel.
    """
    own = me(world)
    reached: dict[str, User] = {}
    missed: dict[str, None] = {}
    for handle in dict.fromkeys(_MENTION.findall(text)):
        if handle == "channel":
            if not is_admin(world, channel, own.id):
                raise ToolError("PERMISSION_DENIED", f"only admins of #{channel.name} may use @channel; name people")
            for membership in world.find(Membership, channel_id=channel.id):
                if membership.user_id != own.id:
                    reached[membership.user_id] = world.need(User, membership.user_id)
            continue
        user = next(iter(world.find(User, handle=handle)), None)
        if user is None or user.kind == "deactivated" or not is_member(world, channel, user.id):
            missed[handle] = None
        elif user.id != own.id:
            reached[user.id] = user
    return list(reached.values()), list(missed)
