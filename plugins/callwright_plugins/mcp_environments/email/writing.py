"""Tools that write, send and file messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.email.delivery import (
    attached,
    folder_named,
    label_named,
    mailbox,
    message_and_state,
    prefixed,
    send,
    written,
)
from callwright_plugins.mcp_environments.email.reading import MessageId
from callwright_plugins.mcp_environments.email.rows import Draft, Folder, Message, MessageState
from callwright_plugins.mcp_environments.email.views import (
    DraftView,
    LabelsView,
    SentView,
    draft_view,
    label_names,
    sent_view,
)
from callwright_plugins.mcp_environments.times import iso

Recipient = Annotated[str, Field(description="Address, or id of a contact.", min_length=1, max_length=120)]
Recipients = Annotated[list[Recipient], Field(description="Addresses, or ids of contacts.", max_length=50)]
AttachmentIds = Annotated[
    list[str], Field(description="Ids of attachments of messages in this mailbox.", max_length=20)
]
Subject = Annotated[str, Field(description="Subject.", max_length=200)]
Body = Annotated[str, Field(description="Plain text.", max_length=20_000)]
DraftId = Annotated[str, Field(description="Id of a draft, such as D00003.", min_length=1, max_length=40)]
LabelName = Annotated[str, Field(description="Id or name of a label.", min_length=1, max_length=40)]


class ReadView(TypedDict):
    """Which messages are now read, or unread."""

    message_ids: list[str]
    read: bool


class ArchivedView(TypedDict):
    """Which messages lie in the archive now."""

    message_ids: list[str]
    folder: str


def _open_draft(world: World, draft_id: str) -> Draft:
    draft = world.need(Draft, draft_id)
    if draft.message_id:
        raise ToolError("DRAFT_ALREADY_SENT", f"{draft.id} was sent as {draft.message_id}; write a new one")
    return draft


@tool
def create_draft(
    world: World,
    /,
    to: Recipients | None = None,
    subject: Subject = "",
    body: Body = "",
    cc: Recipients | None = None,
    bcc: Recipients | None = None,
    attachment_ids: AttachmentIds | None = None,
) -> DraftView:
    """Write a draft; it may be incomplete, and recipients are checked when it is sent.

    Attachments must exist (NOT_FOUND) and fit (ATTACHMENT_TOO_LARGE).
    """
    files = attached(world, attachment_ids)
    draft = Draft(world.new_id(Draft), written(to), written(cc), written(bcc), subject, body, files, world.now)
    return draft_view(world, world.put(draft))


@tool(idempotent=True)
def update_draft(
    world: World,
    /,
    draft_id: DraftId,
    to: Recipients | None = None,
    subject: Subject | None = None,
    body: Body | None = None,
    cc: Recipients | None = None,
    bcc: Recipients | None = None,
    attachment_ids: AttachmentIds | None = None,
) -> DraftView:
    """Replace parts of a draft; what is left out stays, an empty list empties. DRAFT_ALREADY_SENT after it was sent."""
    draft = _open_draft(world, draft_id)
    people = {"to": to, "cc": cc, "bcc": bcc}
    changes: dict[str, object] = {name: written(new) for name, new in people.items() if new is not None}
    changes |= {name: new for name, new in {"subject": subject, "body": body}.items() if new is not None}
    if attachment_ids is not None:
        changes["attachment_ids"] = attached(world, attachment_ids)
    return draft_view(world, world.update(draft, **changes, updated_at=world.now))


@tool(latency=1, irreversible=True)
def send_draft(world: World, /, draft_id: DraftId) -> SentView:
    """Send a draft, once (DRAFT_ALREADY_SENT).

    It needs a recipient that is known (NO_RECIPIENT, UNKNOWN_RECIPIENT), a text (EMPTY_BODY) and room in the mailbox
    (QUOTA_EXCEEDED).
    """
    draft = _open_draft(world, draft_id)
    message = send(
        world,
        to=draft.to,
        cc=draft.cc,
        bcc=draft.bcc,
        subject=draft.subject,
        body=draft.body,
        attachment_ids=draft.attachment_ids,
    )
    world.update(draft, message_id=message.id)
    return sent_view(message)


@tool(latency=1, irreversible=True)
def send_message(
    world: World,
    /,
    to: Recipients,
    subject: Subject,
    body: Body,
    cc: Recipients | None = None,
    bcc: Recipients | None = None,
    attachment_ids: AttachmentIds | None = None,
) -> SentView:
    """Send a new message in a thread of its own.

    Fails with UNKNOWN_RECIPIENT, NO_RECIPIENT, EMPTY_BODY, ATTACHMENT_TOO_LARGE or QUOTA_EXCEEDED.
    """
    message = send(
        world, to=to, cc=cc or (), bcc=bcc or (), subject=subject, body=body, attachment_ids=attachment_ids or ()
    )
    return sent_view(message)


@tool(latency=1, irreversible=True)
def reply_to_message(
    world: World,
    /,
    message_id: MessageId,
    body: Body,
    reply_all: Annotated[bool, Field(description="Also to everybody else who got the message.")] = False,
    attachment_ids: AttachmentIds | None = None,
) -> SentView:
    """Answer a message within its thread: to its reply-to address, or to its recipients if it is one's own.

    UNKNOWN_RECIPIENT for senders that take no mail; otherwise it fails as send_message does.
    """
    message, state = message_and_state(world, message_id)
    own = mailbox(world).address
    mine = message.sender == own
    to = message.to if mine else (message.reply_to,)
    cc: tuple[str, ...] = ()
    if reply_all:
        cc = tuple(one for one in (*(() if mine else message.to), *message.cc) if one not in (own, *to))
    reply = send(
        world,
        to=to,
        cc=cc,
        subject=prefixed("Re", message.subject),
        body=body,
        attachment_ids=attachment_ids or (),
        thread_id=message.thread_id,
        in_reply_to=message.id,
    )
    world.update(state, read=True)
    return sent_view(reply)


@tool(latency=1, irreversible=True)
def forward_message(
    world: World,
    /,
    message_id: MessageId,
    to: Recipients,
    note: Annotated[str, Field(description="Text above the forwarded message.", max_length=20_000)] = "",
    include_attachments: Annotated[bool, Field(description="Forward its attachments too.")] = True,
) -> SentView:
    """Send a message on, quoted below a note, as a new thread; its attachments count again against limit and quota.

    Fails as send_message does: what came in can be larger than what may go out (ATTACHMENT_TOO_LARGE).
    """
    message, _ = message_and_state(world, message_id)
    quoted = "\n".join(
        (
            "---------- Forwarded message ----------",
            f"From: {message.sender}",
            f"Date: {iso(message.sent_at)}",
            f"Subject: {message.subject}",
            f"To: {', '.join(message.to)}",
            "",
            message.body,
        )
    )
    forwarded = send(
        world,
        to=to,
        subject=prefixed("Fwd", message.subject),
        body=f"{note}\n\n{quoted}" if note else quoted,
        attachment_ids=message.attachment_ids if include_attachments else (),
    )
    return sent_view(forwarded)


@tool(idempotent=True)
def mark_read(
    world: World,
    /,
    message_ids: Annotated[list[MessageId], Field(description="Ids of messages.", min_length=1, max_length=50)],
    read: Annotated[bool, Field(description="False marks them as unread.")] = True,
) -> ReadView:
    """Mark messages as read or unread. Ids that do not exist are left out (partial); NOT_FOUND if all are."""
    wanted = list(dict.fromkeys(message_ids))
    known = [one for one in wanted if world.get(MessageState, one) is not None]
    if not known:
        raise ToolError("NOT_FOUND", f"there is none of the messages {', '.join(wanted)[:120]}; see search_messages")
    for message_id in known:
        world.update(world.need(MessageState, message_id), read=read)
    if len(known) < len(wanted):
        missing = [one for one in wanted if one not in known]
        world.warn("NOT_FOUND", f"left out, because they do not exist: {', '.join(missing)[:120]}")
    return {"message_ids": known, "read": read}


@tool(idempotent=True)
def add_label(world: World, /, message_id: MessageId, label: LabelName) -> LabelsView:
    """Give a message a label that exists (LABEL_NOT_FOUND; list_labels gives them)."""
    _, state = message_and_state(world, message_id)
    label_id = label_named(world, label).id
    if label_id not in state.label_ids:
        state = world.update(state, label_ids=(*state.label_ids, label_id))
    return {"message_id": message_id, "labels": label_names(world, state)}


@tool
def remove_label(world: World, /, message_id: MessageId, label: LabelName) -> LabelsView:
    """Take a label off a message. LABEL_NOT_FOUND if the label does not exist or the message does not have it."""
    _, state = message_and_state(world, message_id)
    found = label_named(world, label)
    if found.id not in state.label_ids:
        held = ", ".join(label_names(world, state)) or "none"
        raise ToolError("LABEL_NOT_FOUND", f"{message_id} does not have the label {found.name!r}; it has {held}")
    state = world.update(state, label_ids=tuple(one for one in state.label_ids if one != found.id))
    return {"message_id": message_id, "labels": label_names(world, state)}


@tool
def archive_message(
    world: World,
    /,
    message_id: MessageId,
    whole_thread: Annotated[bool, Field(description="All messages of its thread that lie in the inbox.")] = False,
) -> ArchivedView:
    """Move a message from the inbox to the archive, with its whole thread if asked for. INVALID_STATE elsewhere."""
    message, state = message_and_state(world, message_id)
    inbox, archive = folder_named(world, "inbox"), folder_named(world, "archive")
    if state.folder_id != inbox.id:
        held = world.need(Folder, state.folder_id).name
        raise ToolError("INVALID_STATE", f"{message_id} lies in {held}, not in the inbox, and cannot be archived")
    moved = [message.id]
    if whole_thread:
        moved = [
            one.id
            for one in world.find(Message, thread_id=message.thread_id)
            if world.need(MessageState, one.id).folder_id == inbox.id
        ]
    for one in moved:
        world.update(world.need(MessageState, one), folder_id=archive.id)
    return {"message_ids": moved, "folder": archive.name}


WRITING = [
    create_draft,
    update_draft,
    send_draft,
    send_message,
    reply_to_message,
    forward_message,
    mark_read,
    add_label,
    remove_label,
    archive_message,
]
