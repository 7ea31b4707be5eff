"""The tables of the team chat."""

from __future__ import annotations

from typing import Any, Final

from callwright.environments.rows import row


@row("workspace_users", prefix="U", index=("handle",))
class User:
    """Somebody of the workspace; ``kind`` is member, guest or deactivated."""

    id: str
    handle: str
    name: str
    kind: str


@row("profile")
class Profile:
    """The signed-in person: one row, ``me``."""

    id: str
    user_id: str


@row("channels", prefix="C", index=("name",))
class Channel:
    """A channel; ``posting`` is everyone or admins (who may begin messages)."""

    id: str
    name: str
    topic: str
    private: bool
    archived: bool
    posting: str
    creator_id: str


@row("memberships", key=("channel_id", "user_id"), index=("channel_id", "user_id"))
class Membership:
    """Somebody in a channel, as admin or member."""

    channel_id: str
    user_id: str
    role: str


@row("messages", prefix="M", index=("channel_id", "thread_id"), stamps=("sent_at",), unordered=("mentions",))
class Message:
    """A message; it never changes. ``thread_id`` is the first message of its thread, empty where it begins one.

    ``in_channel``: a reply that the channel shows too.
    """

    id: str
    channel_id: str
    thread_id: str
    author_id: str
    text: str
    mentions: tuple[str, ...]
    sent_at: int
    in_channel: bool = False


@row("thread_locks")
class ThreadLock:
    """A thread that takes no more replies."""

    thread_id: str
    locked_by: str


@row("reactions", key=("message_id", "user_id", "emoji"), index=("message_id",))
class Reaction:
    """Somebody's reaction to a message."""

    message_id: str
    user_id: str
    emoji: str


@row("pins", index=("channel_id",), stamps=("pinned_at",))
class Pin:
    """A pinned message."""

    message_id: str
    channel_id: str
    pinned_by: str
    pinned_at: int


ROWS: Final[tuple[type[Any], ...]] = (User, Profile, Channel, Membership, Message, ThreadLock, Reaction, Pin)
