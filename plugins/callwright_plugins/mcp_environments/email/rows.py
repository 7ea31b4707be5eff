"""The tables of the mailbox."""

from __future__ import annotations

from typing import Any, Final

from callwright.environments.rows import row


# The sum of what messages take.
@row("mailboxes", bookkeeping=("used_bytes",))
class Mailbox:
    """The mailbox, one row ``me``; sizes in bytes. ``used_bytes`` is the sum of the sizes of its messages."""

    id: str
    name: str
    address: str
    quota_bytes: int
    used_bytes: int
    attachment_limit_bytes: int


@row("folders", prefix="F", index=("role",))
class Folder:
    """A folder; ``role`` is inbox, sent, archive, spam, trash, or empty for one of the user's own."""

    id: str
    name: str
    role: str


@row("threads", prefix="T")
class Thread:
    """A conversation."""

    id: str
    subject: str


@row(
    "messages",
    prefix="M",
    index=("thread_id", "sender"),
    stamps=("sent_at",),
    unordered=("to", "cc", "bcc", "attachment_ids"),
)
class Message:
    """A message; it never changes. ``sent_at`` in seconds (UTC), addresses in lower case."""

    id: str
    thread_id: str
    sender: str
    reply_to: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    subject: str
    body: str
    attachment_ids: tuple[str, ...]
    in_reply_to: str
    sent_at: int
    size_bytes: int


@row("message_states", index=("folder_id",), unordered=("label_ids",))
class MessageState:
    """What may change about a message."""

    message_id: str
    folder_id: str
    read: bool
    label_ids: tuple[str, ...]


@row("drafts", prefix="D", stamps=("updated_at",), unordered=("to", "cc", "bcc", "attachment_ids"))
class Draft:
    """A message in the making; once it is sent, ``message_id`` is the message."""

    id: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    subject: str
    body: str
    attachment_ids: tuple[str, ...]
    updated_at: int
    message_id: str = ""


@row("labels", prefix="L", index=("name",))
class Label:
    """A label; its name is in lower case."""

    id: str
    name: str


@row("contacts", prefix="K", index=("address",))
class Contact:
    """Somebody in the address book; mail to one that is not active comes back."""

    id: str
    name: str
    address: str
    company: str
    active: bool


@row("attachments", prefix="A")
class Attachment:
    """A file that messages and drafts may carry."""

    id: str
    name: str
    content_type: str
    size_bytes: int


ROWS: Final[tuple[type[Any], ...]] = (
    Mailbox,
    Folder,
    Thread,
    Message,
    MessageState,
    Draft,
    Label,
    Contact,
    Attachment,
)
