"""Sending: who can be written to, what may be attached, what fits, and what a sent message leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.email.rows import (
    Attachment,
    Contact,
    Folder,
    Label,
    Mailbox,
    Message,
    MessageState,
    Thread,
)

#: What a message takes beside its text and attachments, in bytes.
OVERHEAD: Final = 500


def mailbox(world: World) -> Mailbox:
    """The mailbox."""
    return world.need(Mailbox, "me")


def folder_named(world: World, text: str) -> Folder:
    """The folder with this id, role or name. Fails with ``NOT_FOUND``."""
    wanted = text.strip().lower()
    for folder in world.rows(Folder):
        if wanted in (folder.id.lower(), folder.role, folder.name.lower()):
            return folder
    raise ToolError("NOT_FOUND", f"there is no folder {text[:40]!r}; see list_folders")


def label_named(world: World, text: str) -> Label:
    """The label with this id or name. Fails with ``LABEL_NOT_FOUND``."""
    wanted = text.strip()
    label = world.get(Label, wanted) or next(iter(world.find(Label, name=wanted.lower())), None)
    if label is None:
        raise ToolError("LABEL_NOT_FOUND", f"there is no label {wanted[:40]!r}; list_labels gives them")
    return label


def message_and_state(world: World, message_id: str) -> tuple[Message, MessageState]:
    """A message and where it lies. Fails with ``NOT_FOUND``."""
    message = world.need(Message, message_id, message=f"there is no message {message_id[:40]!r}; see search_messages")
    return message, world.need(MessageState, message_id)


def written(recipients: Iterable[str] | None) -> tuple[str, ...]:
    """Recipients as a draft keeps them: as written, once each."""
    return tuple(dict.fromkeys(one.strip() for one in recipients or () if one.strip()))


def addresses(world: World, recipients: Iterable[str]) -> tuple[str, ...]:
    """The addresses of contacts' ids and of addresses, once each. Fails with ``UNKNOWN_RECIPIENT``."""
    return tuple(dict.fromkeys(_address(world, one) for one in recipients))


def _address(world: World, recipient: str) -> str:
    wanted = recipient.strip()
    contact = world.get(Contact, wanted) or next(iter(world.find(Contact, address=wanted.lower())), None)
    address = wanted.lower() if contact is None else contact.address
    if contact is not None and not contact.active:
        raise ToolError(
            "UNKNOWN_RECIPIENT", f"{address} does not exist any more; look for another one in list_contacts"
        )
    if address.startswith(("no-reply@", "noreply@")):
        raise ToolError("UNKNOWN_RECIPIENT", f"{address} takes no mail")
    if contact is None and address != mailbox(world).address and not world.find(Message, sender=address):
        raise ToolError(
            "UNKNOWN_RECIPIENT", f"{wanted[:80]!r} is neither a contact nor a known sender; see list_contacts"
        )
    return address


def attached(world: World, attachment_ids: Sequence[str] | None) -> tuple[str, ...]:
    """The attachments, once each. Fails with ``NOT_FOUND`` or, together too large, ``ATTACHMENT_TOO_LARGE``."""
    found = tuple(dict.fromkeys(attachment_ids or ()))
    total, limit = total_size(world, found), mailbox(world).attachment_limit_bytes
    if total > limit:
        raise ToolError("ATTACHMENT_TOO_LARGE", f"the attachments have {total} bytes; one message may carry {limit}")
    return found


def total_size(world: World, attachment_ids: Iterable[str]) -> int:
    """Bytes of attachments together. Fails with ``NOT_FOUND``."""
    return sum(world.need(Attachment, one).size_bytes for one in attachment_ids)


def size_of(world: World, subject: str, body: str, attachment_ids: Iterable[str]) -> int:
    """Bytes that a message takes up."""
    return OVERHEAD + len(subject.encode()) + len(body.encode()) + total_size(world, attachment_ids)


def send(
    world: World,
    *,
    to: Iterable[str],
    cc: Iterable[str] = (),
    bcc: Iterable[str] = (),
    subject: str,
    body: str,
    attachment_ids: Sequence[str] = (),
    thread_id: str = "",
    in_reply_to: str = "",
) -> Message:
    """Check a message and send it; it stays in the folder of sent ones.

    Fails with ``EMPTY_BODY``, ``NO_RECIPIENT``, ``UNKNOWN_RECIPIENT``, ``ATTACHMENT_TOO_LARGE`` or ``QUOTA_EXCEEDED``.
    """
    if not body.strip():
        raise ToolError("EMPTY_BODY", "the message has no text; write what it should say")
    box = mailbox(world)
    first = addresses(world, to)
    second = tuple(one for one in addresses(world, cc) if one not in first)
    third = tuple(one for one in addresses(world, bcc) if one not in first and one not in second)
    if not (first or second or third):
        raise ToolError("NO_RECIPIENT", "the message goes to nobody; name at least one recipient")
    files = attached(world, attachment_ids)
    size = size_of(world, subject, body, files)
    to_self = box.address in first + second + third
    needed = size * (2 if to_self else 1)
    if box.used_bytes + needed > box.quota_bytes:
        left = box.quota_bytes - box.used_bytes
        raise ToolError("QUOTA_EXCEEDED", f"the message takes {needed} bytes, and only {left} are left in the mailbox")
    if not thread_id:
        thread_id = world.put(Thread(world.new_id(Thread), subject)).id
    message = Message(
        world.new_id(Message), thread_id, box.address, box.address, first, second, third, subject, body, files,
        in_reply_to, world.now, size,
    )  # fmt: skip
    world.put(message)
    world.put(MessageState(message.id, folder_named(world, "sent").id, True, ()))
    if to_self:
        copy = Message(
            world.new_id(Message), thread_id, box.address, box.address, first, second, (), subject, body, files,
            in_reply_to, world.now, size,
        )  # fmt: skip
        world.put(copy)
        world.put(MessageState(copy.id, folder_named(world, "inbox").id, False, ()))
    world.update(box, used_bytes=box.used_bytes + needed)
    return message


def prefixed(prefix: str, subject: str) -> str:
    """The subject with ``Re:`` or ``Fwd:`` once in front."""
    return subject if subject.lower().startswith(f"{prefix.lower()}:") else f"{prefix}: {subject}"
