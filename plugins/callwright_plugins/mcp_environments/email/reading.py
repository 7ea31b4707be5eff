"""Tools that read the mailbox. Reading a message does not mark it as read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.email.delivery import folder_named, label_named, mailbox, message_and_state
from callwright_plugins.mcp_environments.email.queries import letter_of, names_folder, outside_of_mail, query_tests
from callwright_plugins.mcp_environments.email.rows import Contact, Folder, Label, Message, MessageState, Thread
from callwright_plugins.mcp_environments.email.views import MessageSummary, MessageView, message_view, summary

MessageId = Annotated[str, Field(description="Id of a message, such as M00012.", min_length=1, max_length=40)]


class FolderView(TypedDict):
    """A folder; ``mailbox_free_bytes`` is what is left of the quota of the whole mailbox."""

    folder_id: str
    name: str
    role: Annotated[str, Field(description="What it is for; empty: one of your own.")]
    total: Annotated[int, Field(description="Messages in it.")]
    unread: int
    mailbox_free_bytes: Annotated[int, Field(description="Of the whole mailbox.")]


class LabelView(TypedDict):
    """A label and how many messages have it."""

    label_id: str
    name: str
    messages: Annotated[int, Field(description="How many have it.")]


class ContactView(TypedDict):
    """Somebody in the address book."""

    contact_id: str
    name: str
    address: str
    company: str
    active: Annotated[bool, Field(description="false: mail to them comes back.")]


def newest_first(message: Message) -> tuple[int, str]:
    """Sorts messages with the newest in front."""
    return -message.sent_at, message.id


@tool(read_only=True, discovery=True)
def list_folders(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[FolderView]:
    """List the folders with how many messages they hold and how many are unread, and what is left of the quota."""
    free = mailbox(world).quota_bytes - mailbox(world).used_bytes

    def view(folder: Folder) -> FolderView:
        held = world.find(MessageState, folder_id=folder.id)
        return {
            "folder_id": folder.id,
            "name": folder.name,
            "role": folder.role,
            "total": len(held),
            "unread": len([one for one in held if not one.read]),
            "mailbox_free_bytes": free,
        }

    return page(list(world.rows(Folder)), view, limit, cursor)


@tool(read_only=True, discovery=True)
def list_labels(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[LabelView]:
    """List the labels and how many messages have each. Labels cannot be made with tools."""
    counts: dict[str, int] = {}
    for state in world.rows(MessageState):
        for label_id in state.label_ids:
            counts[label_id] = counts.get(label_id, 0) + 1
    return page(
        list(world.rows(Label)),
        lambda one: {"label_id": one.id, "name": one.name, "messages": counts.get(one.id, 0)},
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True)
def list_contacts(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of a name, address or company; empty: all.", max_length=80)] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ContactView]:
    """List people of the address book; mail to one that is not active would come back."""
    text = query.strip().lower()
    found = [
        one
        for one in world.rows(Contact)
        if not text or text in one.name.lower() or text in one.address or text in one.company.lower()
    ]
    return page(found, _contact, limit, cursor)


def _contact(one: Contact) -> ContactView:
    return {
        "contact_id": one.id,
        "name": one.name,
        "address": one.address,
        "company": one.company,
        "active": one.active,
    }


@tool(read_only=True, discovery=True)
def list_messages(
    world: World,
    /,
    folder: Annotated[str, Field(description="Id or name of a folder.", min_length=1, max_length=40)] = "inbox",
    label: Annotated[str, Field(description="Only with this label (id or name); empty: any.", max_length=40)] = "",
    unread_only: Annotated[bool, Field(description="Only unread messages.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MessageSummary]:
    """List the messages of a folder, newest first. NOT_FOUND or LABEL_NOT_FOUND for names that do not exist."""
    label_id = label_named(world, label).id if label else ""
    held = {
        state.message_id
        for state in world.find(MessageState, folder_id=folder_named(world, folder).id)
        if not (unread_only and state.read) and (not label_id or label_id in state.label_ids)
    }
    found = [one.message for one in world.prepared(Message, letter_of, newest_first) if one.message.id in held]
    return page(found, lambda one: summary(world, one), limit, cursor)


@tool(read_only=True, discovery=True, latency=1)
def search_messages(
    world: World,
    /,
    query: Annotated[
        str,
        Field(
            description='Words or "phrases" of subject or text, and from: to: cc: subject: label: in: is:unread '
            "has:attachment filename: before:2026-03-01 after: larger:2m smaller:; a minus in front excludes.",
            min_length=1,
            max_length=200,
        ),
    ],
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MessageSummary]:
    """Search all folders but spam and trash (unless in: names them), newest first; every term must hold.

    BAD_QUERY for an operator that does not exist. Warns with OUTSIDE_RECORDS if nothing is found because the days are
    before all messages or ahead.
    """
    words, tests = query_tests(world, query)
    left_out = {
        state.message_id
        for role in (() if names_folder(query) else ("spam", "trash"))
        for state in world.find(MessageState, folder_id=folder_named(world, role).id)
    }
    letters = world.prepared(Message, letter_of, newest_first)
    for word in words:
        letters = [letter for letter in letters if word in letter[1]]
    letters = [letter for letter in letters if letter[0].id not in left_out]
    states = world.table(MessageState) if tests else {}
    for test in tests:
        letters = [letter for letter in letters if test(letter, states[letter[0].id])]
    if not letters and tests and (why := outside_of_mail(world, query)):
        world.warn("OUTSIDE_RECORDS", why)
    return page(letters, lambda letter: summary(world, letter.message), limit, cursor)


@tool(read_only=True)
def get_message(world: World, /, message_id: MessageId) -> MessageView:
    """A whole message with text, recipients and attachments. It stays unread until mark_read."""
    return message_view(world, message_and_state(world, message_id)[0])


@tool(read_only=True)
def get_thread(
    world: World,
    /,
    thread_id: Annotated[str, Field(description="Id of a thread, such as T00012.", min_length=1, max_length=40)],
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[MessageView]:
    """The messages of a conversation with their texts, oldest first, whatever folder they lie in."""
    thread = world.need(Thread, thread_id)
    found = sorted(world.find(Message, thread_id=thread.id), key=lambda one: (one.sent_at, one.id))
    return page(found, lambda one: message_view(world, one), limit, cursor)


READING = [list_folders, list_labels, list_contacts, list_messages, search_messages, get_message, get_thread]
