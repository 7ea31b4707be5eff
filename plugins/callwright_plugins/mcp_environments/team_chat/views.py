"""What tools of the team chat return."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.team_chat.rows import (
    Channel,
    Membership,
    Message,
    Pin,
    Reaction,
    ThreadLock,
    User,
)
from callwright_plugins.mcp_environments.times import iso


class ChannelView(TypedDict):
    """A channel; ``my_role`` is admin, member or none."""

    channel_id: str
    name: str
    topic: str
    private: bool
    archived: Annotated[bool, Field(description="Nothing can be written.")]
    posting: Annotated[str, Field(description="Who may begin messages: everyone or admins.")]
    my_role: Annotated[str, Field(description="admin, member or none.")]
    member_count: int
    pin_count: int


class MemberView(TypedDict):
    """Somebody of a channel or, with the role none, of the workspace."""

    user_id: str
    handle: str
    name: str
    kind: str
    role: Annotated[str, Field(description="In the channel; none: of the workspace only.")]


class ReactionCount(TypedDict):
    """How many reacted with an emoji."""

    emoji: str
    count: int


class MessageView(TypedDict):
    """A message; ``thread_id`` is empty where it begins a thread."""

    message_id: str
    channel_id: str
    thread_id: Annotated[str, Field(description="Message that began the thread; empty: it begins one.")]
    author_id: str
    author_handle: str
    text: str
    mentions: Annotated[list[str], Field(description="Handles.")]
    sent_at: str
    reply_count: int
    thread_locked: Annotated[bool, Field(description="Nobody can reply.")]
    pinned: bool
    reactions: list[ReactionCount]


class PostedView(TypedDict):
    """A message that was posted: who hears of it through a mention, and who is named but does not."""

    message_id: str
    channel_id: str
    thread_id: Annotated[str, Field(description="Message that began the thread; empty: it begins one.")]
    sent_at: str
    notified: Annotated[list[str], Field(description="Handles that it mentions.")]
    not_notified: Annotated[list[str], Field(description="Handles that it mentions and that do not hear of it.")]


def channel_view(world: World, channel: Channel, me: str) -> ChannelView:
    """A channel."""
    mine = world.get(Membership, (channel.id, me))
    return {
        "channel_id": channel.id,
        "name": channel.name,
        "topic": channel.topic,
        "private": channel.private,
        "archived": channel.archived,
        "posting": channel.posting,
        "my_role": "none" if mine is None else mine.role,
        "member_count": world.count(Membership, channel_id=channel.id),
        "pin_count": world.count(Pin, channel_id=channel.id),
    }


def member_view(user: User, role: str) -> MemberView:
    """Somebody with their role."""
    return {"user_id": user.id, "handle": user.handle, "name": user.name, "kind": user.kind, "role": role}


def message_view(world: World, message: Message) -> MessageView:
    """A message."""
    counts: dict[str, int] = {}
    for reaction in world.find(Reaction, message_id=message.id):
        counts[reaction.emoji] = counts.get(reaction.emoji, 0) + 1
    return {
        "message_id": message.id,
        "channel_id": message.channel_id,
        "thread_id": message.thread_id,
        "author_id": message.author_id,
        "author_handle": world.need(User, message.author_id).handle,
        "text": message.text,
        "mentions": [world.need(User, one).handle for one in message.mentions],
        "sent_at": iso(message.sent_at),
        "reply_count": world.count(Message, thread_id=message.id),
        "thread_locked": world.get(ThreadLock, message.thread_id or message.id) is not None,
        "pinned": world.get(Pin, message.id) is not None,
        "reactions": [{"emoji": emoji, "count": counts[emoji]} for emoji in sorted(counts)],
    }
