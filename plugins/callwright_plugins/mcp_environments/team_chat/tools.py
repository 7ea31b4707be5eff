"""The eleven tools of the team chat."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.team_chat.access import (
    is_admin,
    me,
    mentioned,
    readable_channel,
    readable_ids,
    readable_message,
    writable_channel,
)
from callwright_plugins.mcp_environments.team_chat.rows import (
    Channel,
    Membership,
    Message,
    Pin,
    Reaction,
    ThreadLock,
    User,
)
from callwright_plugins.mcp_environments.team_chat.views import (
    ChannelView,
    MemberView,
    MessageView,
    PostedView,
    channel_view,
    member_view,
    message_view,
)
from callwright_plugins.mcp_environments.times import iso

#: Most pinned messages of a channel.
PIN_LIMIT: Final = 10

ChannelId = Annotated[str, Field(description="Id of a channel, such as C00003.", min_length=1, max_length=40)]
MessageId = Annotated[str, Field(description="Id of a message, such as M00012.", min_length=1, max_length=40)]
UserId = Annotated[str, Field(description="Id of somebody, such as U00012 (list_members).", max_length=40)]
Text = Annotated[
    str, Field(description="Text; @handle mentions somebody, @channel everybody.", min_length=1, max_length=4000)
]
Emoji = Literal[
    "thumbsup",
    "thumbsdown",
    "heart",
    "tada",
    "eyes",
    "white_check_mark",
    "x",
    "rocket",
    "joy",
    "cry",
    "fire",
    "thinking",
]


def _newest_first(message: Message) -> tuple[int, str]:
    return -message.sent_at, message.id


@tool(read_only=True, discovery=True)
def list_channels(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of a name or topic; empty: all.", max_length=80)] = "",
    only_mine: Annotated[bool, Field(description="Only channels of which you are a member.")] = False,
    include_archived: Annotated[bool, Field(description="Also archived ones.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ChannelView]:
    """List the channels that you can read, with your role, topic and number of members."""
    own, text = me(world).id, query.strip().lower().lstrip("#")
    if only_mine:
        shown = {one.channel_id for one in world.find(Membership, user_id=own)}
    else:
        shown = readable_ids(world)
    found = [
        one
        for one in world.rows(Channel)
        if (include_archived or not one.archived)
        and (text in one.name or text in one.topic.lower())
        and one.id in shown
    ]
    return page(found, lambda one: channel_view(world, one, own), limit, cursor)


@tool(read_only=True, discovery=True)
def list_members(
    world: World,
    /,
    channel_id: Annotated[str, Field(description="Id of a channel; empty: the whole workspace.", max_length=40)] = "",
    query: Annotated[str, Field(description="Part of a name or handle; empty: all.", max_length=80)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MemberView]:
    """List who is in a channel, or everybody of the workspace: the way to the ids of people.

    NOT_IN_CHANNEL for private channels of others.
    """
    text = query.strip().lower().lstrip("@")
    if channel_id:
        held = world.find(Membership, channel_id=readable_channel(world, channel_id).id)
        people = [(world.need(User, one.user_id), one.role) for one in held]
    else:
        people = [(user, "none") for user in world.rows(User)]
    found = [pair for pair in people if text in pair[0].name.lower() or text in pair[0].handle]
    return page(found, lambda pair: member_view(*pair), limit, cursor)


@tool(read_only=True, discovery=True)
def list_messages(
    world: World,
    /,
    channel_id: ChannelId,
    pinned_only: Annotated[bool, Field(description="Only pinned messages.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MessageView]:
    """List the messages of a channel, newest first; of threads only the first message (get_thread gives the replies).

    With pinned_only also replies that are pinned. NOT_IN_CHANNEL for private channels of others.
    """
    channel = readable_channel(world, channel_id)
    if pinned_only:
        found = [world.need(Message, one.message_id) for one in world.find(Pin, channel_id=channel.id)]
    else:
        every = world.find(Message, channel_id=channel.id)
        found = [one for one in every if not one.thread_id or one.in_channel]
    return page(sorted(found, key=_newest_first), lambda one: message_view(world, one), limit, cursor)


@tool(read_only=True, discovery=True)
def search_messages(
    world: World,
    /,
    query: Annotated[str, Field(description="Words that all must occur; empty: any text.", max_length=120)] = "",
    channel_id: Annotated[
        str, Field(description="Only this channel; empty: all that you can read.", max_length=40)
    ] = "",
    author_id: Annotated[str, Field(description="Only messages of this person; empty: anybody's.", max_length=40)] = "",
    mentions_me: Annotated[bool, Field(description="Only messages that mention you.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MessageView]:
    """Search messages and replies in the channels that you can read, newest first."""
    words, own = query.lower().split(), me(world).id
    if author_id:
        world.need(User, author_id)
    if channel_id:
        channels = {readable_channel(world, channel_id).id}
    else:
        channels = readable_ids(world)
    every = world.prepared(Message, _with_text, _newest_first)
    for word in words:
        every = [pair for pair in every if word in pair[1]]
    found = [
        one
        for one, _ in every
        if one.channel_id in channels
        and (not author_id or one.author_id == author_id)
        and (not mentions_me or own in one.mentions)
    ]
    return page(found, lambda one: message_view(world, one), limit, cursor)


def _with_text(message: Message) -> tuple[Message, str]:
    return message, message.text.lower()


@tool(read_only=True)
def get_thread(world: World, /, message_id: MessageId, limit: Limit = 20, cursor: Cursor = "") -> Page[MessageView]:
    """A thread, oldest first: its first message and all replies. Any message of it names it."""
    message = readable_message(world, message_id)
    first = message if not message.thread_id else world.need(Message, message.thread_id)
    replies = sorted(world.find(Message, thread_id=first.id), key=lambda one: (one.sent_at, one.id))
    return page([first, *replies], lambda one: message_view(world, one), limit, cursor)


def _post(world: World, channel: Channel, text: str, thread_id: str = "", in_channel: bool = False) -> PostedView:
    if not text.strip():
        raise ToolError("EMPTY_MESSAGE", "the message has no text")
    reached, missed = mentioned(world, channel, text)
    message = Message(
        world.new_id(Message),
        channel.id,
        thread_id,
        me(world).id,
        text,
        tuple(one.id for one in reached),
        world.now,
        in_channel,
    )
    world.put(message)
    if missed:
        world.warn(
            "MENTION_NOT_DELIVERED",
            f"posted, but these are not in #{channel.name} and hear nothing of it: {', '.join(missed)[:160]}",
        )
    return {
        "message_id": message.id,
        "channel_id": channel.id,
        "thread_id": thread_id,
        "sent_at": iso(message.sent_at),
        "notified": [one.handle for one in reached],
        "not_notified": missed,
    }


@tool(irreversible=True)
def post_message(world: World, /, channel_id: ChannelId, text: Text) -> PostedView:
    """Begin a message in a channel of which you are a member (NOT_IN_CHANNEL, CHANNEL_ARCHIVED).

    PERMISSION_DENIED in announcement channels and for @channel unless you are an admin of the channel. Mentions of
    people outside the channel reach nobody (a partial result).
    """
    channel = writable_channel(world, channel_id)
    if channel.posting == "admins" and not is_admin(world, channel, me(world).id):
        raise ToolError("PERMISSION_DENIED", f"only admins post in #{channel.name}; answer in its threads instead")
    return _post(world, channel, text)


@tool(irreversible=True)
def reply_in_thread(
    world: World,
    /,
    message_id: MessageId,
    text: Text,
    also_in_channel: Annotated[bool, Field(description="Show the reply in the channel too.")] = False,
) -> PostedView:
    """Answer a message in its thread; an answer to a reply goes to the same thread.

    THREAD_LOCKED if it takes no more, NOT_IN_CHANNEL and CHANNEL_ARCHIVED as for post_message.
    """
    message = readable_message(world, message_id)
    channel = writable_channel(world, message.channel_id)
    first = message.thread_id or message.id
    lock = world.get(ThreadLock, first)
    if lock is not None:
        by = world.need(User, lock.locked_by).handle
        raise ToolError(
            "THREAD_LOCKED", f"the thread of {first} was locked by @{by}; begin a message with post_message"
        )
    if also_in_channel and channel.posting == "admins" and not is_admin(world, channel, me(world).id):
        raise ToolError("PERMISSION_DENIED", f"only admins post in #{channel.name}; leave also_in_channel out")
    return _post(world, channel, text, first, also_in_channel)


@tool(irreversible=True)
def add_reaction(
    world: World, /, message_id: MessageId, emoji: Annotated[Emoji, Field(description="Name of the emoji.")]
) -> MessageView:
    """React to a message in a channel of which you are a member. ALREADY_REACTED if you did so before."""
    message = readable_message(world, message_id)
    writable_channel(world, message.channel_id)
    own = me(world).id
    if world.get(Reaction, (message.id, own, emoji)) is not None:
        raise ToolError("ALREADY_REACTED", f"you have reacted to {message.id} with {emoji} before")
    world.put(Reaction(message.id, own, emoji))
    return message_view(world, message)


@tool(irreversible=True)
def create_channel(
    world: World,
    /,
    name: Annotated[
        str,
        Field(
            description="Lower-case letters, digits and hyphens.", pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", max_length=40
        ),
    ],
    topic: Annotated[str, Field(description="What it is about.", max_length=200)] = "",
    private: Annotated[bool, Field(description="Only for people who are invited.")] = False,
    posting: Annotated[Literal["everyone", "admins"], Field(description="Who may begin messages.")] = "everyone",
) -> ChannelView:
    """Create a channel with you as its admin; invite_member brings in others.

    NAME_TAKEN if any channel, also an archived or private one, has this name; PERMISSION_DENIED for guests.
    """
    own = me(world)
    if own.kind == "guest":
        raise ToolError("PERMISSION_DENIED", "guests cannot create channels")
    if world.find(Channel, name=name):
        raise ToolError(
            "NAME_TAKEN", f"a channel named #{name} exists, perhaps archived or private; choose another name"
        )
    channel = world.put(Channel(world.new_id(Channel), name, topic, private, False, posting, own.id))
    world.put(Membership(channel.id, own.id, "admin"))
    return channel_view(world, channel, own.id)


@tool(irreversible=True)
def invite_member(world: World, /, channel_id: ChannelId, user_id: UserId) -> MemberView:
    """Bring somebody into a channel of which you are a member, or join a public one by inviting yourself.

    ALREADY_MEMBER, NOT_IN_CHANNEL, CHANNEL_ARCHIVED; INVALID_STATE for deactivated people, GUEST_LIMIT for guests who
    have a channel already.
    """
    user = world.need(User, user_id, message=f"there is nobody with the id {user_id[:40]!r}; list_members gives ids")
    own = me(world)
    channel = readable_channel(world, channel_id)
    if user.id != own.id or channel.archived:
        writable_channel(world, channel.id)
    if world.get(Membership, (channel.id, user.id)) is not None:
        raise ToolError("ALREADY_MEMBER", f"@{user.handle} is in #{channel.name} already")
    if user.kind == "deactivated":
        raise ToolError("INVALID_STATE", f"the account of {user.name} (@{user.handle}) is deactivated")
    if user.kind == "guest" and world.find(Membership, user_id=user.id):
        raise ToolError("GUEST_LIMIT", f"@{user.handle} is a guest and belongs to another channel already")
    world.put(Membership(channel.id, user.id, "member"))
    return member_view(user, "member")


@tool(irreversible=True)
def pin_message(world: World, /, message_id: MessageId) -> MessageView:
    """Pin a message to its channel, of which you are a member. There is no way to unpin one.

    PIN_LIMIT if ten are pinned, ALREADY_PINNED if it is.
    """
    message = readable_message(world, message_id)
    channel = writable_channel(world, message.channel_id)
    if world.get(Pin, message.id) is not None:
        raise ToolError("ALREADY_PINNED", f"{message.id} is pinned in #{channel.name} already")
    if world.count(Pin, channel_id=channel.id) >= PIN_LIMIT:
        raise ToolError("PIN_LIMIT", f"#{channel.name} has {PIN_LIMIT} pinned messages, which is the most")
    world.put(Pin(message.id, channel.id, me(world).id, world.now))
    return message_view(world, message)


TOOLS: Final[list[FunctionTool]] = [
    list_channels,
    list_members,
    list_messages,
    search_messages,
    get_thread,
    post_message,
    reply_in_thread,
    add_reaction,
    create_channel,
    invite_member,
    pin_message,
]
