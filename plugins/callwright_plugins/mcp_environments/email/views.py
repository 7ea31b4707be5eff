"""What tools of the mailbox return."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.email.rows import Attachment, Draft, Folder, Label, Message, MessageState
from callwright_plugins.mcp_environments.times import iso


class AttachmentView(TypedDict):
    """An attachment."""

    attachment_id: str
    name: str
    content_type: str
    size_bytes: Annotated[int, Field(description="Of the file.")]


class MessageSummary(TypedDict):
    """A message as lists show it."""

    message_id: str
    thread_id: str
    sender: Annotated[str, Field(description="Address.")]
    to: list[str]
    subject: str
    snippet: Annotated[str, Field(description="How the text begins.")]
    sent_at: Annotated[str, Field(description="UTC.")]
    folder: str
    read: bool
    labels: list[str]
    attachment_count: int


class MessageView(TypedDict):
    """A whole message."""

    message_id: str
    thread_id: str
    sender: Annotated[str, Field(description="Address.")]
    reply_to: Annotated[str, Field(description="Where answers go; empty: to the sender.")]
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    body: str
    sent_at: Annotated[str, Field(description="UTC.")]
    in_reply_to: Annotated[str, Field(description="Id of the message that it answers; empty: none.")]
    folder: str
    read: bool
    labels: list[str]
    attachments: list[AttachmentView]
    size_bytes: Annotated[int, Field(description="With attachments.")]


class DraftView(TypedDict):
    """A draft; ``status`` is draft or sent."""

    draft_id: str
    to: list[str]
    cc: list[str]
    bcc: list[str]
    subject: str
    body: str
    attachments: list[AttachmentView]
    attachment_bytes: Annotated[int, Field(description="Of all attachments.")]
    updated_at: str
    status: str


class SentView(TypedDict):
    """A message that was sent."""

    message_id: str
    thread_id: str
    to: list[str]
    cc: list[str]
    subject: str
    sent_at: Annotated[str, Field(description="UTC.")]
    size_bytes: Annotated[int, Field(description="With attachments.")]


class LabelsView(TypedDict):
    """The labels that a message has now."""

    message_id: str
    labels: list[str]


def attachment_view(world: World, attachment_id: str) -> AttachmentView:
    """An attachment."""
    one = world.need(Attachment, attachment_id)
    return {
        "attachment_id": one.id,
        "name": one.name,
        "content_type": one.content_type,
        "size_bytes": one.size_bytes,
    }


def label_names(world: World, state: MessageState) -> list[str]:
    """Names of a message's labels."""
    return [world.need(Label, one).name for one in state.label_ids]


def summary(world: World, message: Message) -> MessageSummary:
    """A message in a list."""
    state = world.need(MessageState, message.id)
    return {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "sender": message.sender,
        "to": list(message.to),
        "subject": message.subject,
        "snippet": message.body[:80],
        "sent_at": iso(message.sent_at),
        "folder": world.need(Folder, state.folder_id).name,
        "read": state.read,
        "labels": label_names(world, state),
        "attachment_count": len(message.attachment_ids),
    }


def message_view(world: World, message: Message) -> MessageView:
    """A whole message."""
    state = world.need(MessageState, message.id)
    return {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "sender": message.sender,
        "reply_to": message.reply_to,
        "to": list(message.to),
        "cc": list(message.cc),
        "bcc": list(message.bcc),
        "subject": message.subject,
        "body": message.body,
        "sent_at": iso(message.sent_at),
        "in_reply_to": message.in_reply_to,
        "folder": world.need(Folder, state.folder_id).name,
        "read": state.read,
        "labels": label_names(world, state),
        "attachments": [attachment_view(world, one) for one in message.attachment_ids],
        "size_bytes": message.size_bytes,
    }


def draft_view(world: World, draft: Draft) -> DraftView:
    """A draft."""
    attachments = [attachment_view(world, one) for one in draft.attachment_ids]
    return {
        "draft_id": draft.id,
        "to": list(draft.to),
        "cc": list(draft.cc),
        "bcc": list(draft.bcc),
        "subject": draft.subject,
        "body": draft.body,
        "attachments": attachments,
        "attachment_bytes": sum(one["size_bytes"] for one in attachments),
        "updated_at": iso(draft.updated_at),
        "status": "sent" if draft.message_id else "draft",
    }


def sent_view(message: Message) -> SentView:
    """A message that was sent."""
    return {
        "message_id": message.id,
        "thread_id": message.thread_id,
        "to": list(message.to),
        "cc": list(message.cc),
        "subject": message.subject,
        "sent_at": iso(message.sent_at),
        "size_bytes": message.size_bytes,
    }
