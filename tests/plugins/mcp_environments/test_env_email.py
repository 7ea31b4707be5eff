from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.email import environment
from callwright_plugins.mcp_environments.email.delivery import mailbox, prefixed, size_of, total_size
from callwright_plugins.mcp_environments.email.rows import (
    Attachment,
    Contact,
    Draft,
    Folder,
    Label,
    Mailbox,
    Message,
    MessageState,
    Thread,
)

ENV = environment()
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "list_folders": "RD", "list_labels": "RD", "list_contacts": "RD", "list_messages": "RD", "search_messages": "RD",
    "get_message": "R", "get_thread": "R", "create_draft": "", "update_draft": "", "send_draft": "",
    "send_message": "", "reply_to_message": "", "forward_message": "", "mark_read": "", "add_label": "",
    "remove_label": "", "archive_message": "",
}  # fmt: skip


def about(session: StatefulSession, subject: str) -> Message:
    return session.world.find(Message, subject=subject)[0]


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 17


def test_conformance() -> None:
    check_component("environment", ENV)


# Failures --------------------

Case = Callable[[StatefulSession], tuple[str, dict[str, Any]]]
MEI = "K00001"  # active; K00002 has the same name and is not
FAILURES: list[tuple[str, Case]] = [
    ("UNKNOWN_RECIPIENT", lambda s: ("send_message", {"to": ["Mei Chen"], "subject": "x", "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("send_message", {"to": [MEI, "K00002"], "subject": "x", "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("send_message", {"to": ["a@b.example"], "subject": "x", "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("reply_to_message", {"message_id": about(s, "Tickets").id, "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("reply_to_message", {"message_id": s.world.find(Message, subject="Tickets")[1].id,
                                     "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("reply_to_message", {"message_id": about(s, "Gone").id, "body": "y"})),
    ("UNKNOWN_RECIPIENT", lambda s: ("send_draft", {"draft_id": "D00002"})),
    ("DRAFT_ALREADY_SENT", lambda s: ("send_draft", {"draft_id": "D00001"})),
    ("DRAFT_ALREADY_SENT", lambda s: ("update_draft", {"draft_id": "D00001", "body": "z"})),
    ("NO_RECIPIENT", lambda s: ("send_draft", {"draft_id": "D00003"})),
    ("NO_RECIPIENT", lambda s: ("send_message", {"to": [], "subject": "x", "body": "y"})),
    ("EMPTY_BODY", lambda s: ("send_draft", {"draft_id": "D00004"})),
    ("EMPTY_BODY", lambda s: ("reply_to_message", {"message_id": about(s, "Video").id, "body": "  "})),
    ("ATTACHMENT_TOO_LARGE", lambda s: ("forward_message", {"message_id": about(s, "Video").id, "to": [MEI]})),
    ("ATTACHMENT_TOO_LARGE", lambda s: ("forward_message", {"message_id": about(s, "Two files").id, "to": [MEI]})),
    ("ATTACHMENT_TOO_LARGE", lambda s: ("create_draft", {"attachment_ids": ["A00001"]})),
    ("LABEL_NOT_FOUND", lambda s: ("add_label", {"message_id": "M00001", "label": "invoices"})),
    ("LABEL_NOT_FOUND", lambda s: ("remove_label", {"message_id": _unlabelled(s), "label": "work"})),
    ("LABEL_NOT_FOUND", lambda s: ("search_messages", {"query": "label:nothing"})),
    ("QUOTA_EXCEEDED", lambda s: ("forward_message", {"message_id": about(s, "Picture").id, "to": [MEI]})),
    ("INVALID_STATE", lambda s: ("archive_message", {"message_id": about(s, "Sent before").id})),
    ("NOT_FOUND", lambda s: ("get_message", {"message_id": "M99999"})),
    ("NOT_FOUND", lambda s: ("get_thread", {"thread_id": "T99999"})),
    ("NOT_FOUND", lambda s: ("list_messages", {"folder": "outbox"})),
    ("NOT_FOUND", lambda s: ("create_draft", {"attachment_ids": ["A99999"]})),
    ("NOT_FOUND", lambda s: ("mark_read", {"message_ids": ["M99998", "M99999"]})),
    ("NOT_FOUND", lambda s: ("search_messages", {"query": "in:nowhere"})),
    ("BAD_QUERY", lambda s: ("search_messages", {"query": "sender:ada"})),
    ("BAD_QUERY", lambda s: ("search_messages", {"query": "larger:big"})),
    ("BAD_QUERY", lambda s: ("search_messages", {"query": '""'})),
    ("BAD_DATE", lambda s: ("search_messages", {"query": "before:friday"})),
]  # fmt: skip


def _unlabelled(session: StatefulSession) -> str:
    work = session.world.find(Label, name="work")[0].id
    return next(one.message_id for one in session.world.rows(MessageState) if work not in one.label_ids)


@pytest.mark.parametrize(("code", "case"), FAILURES)
def test_failures_leave_the_state(code: str, case: Case) -> None:
    session = ENV.open("adversarial")
    tool, arguments = case(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert outcome.message
    assert session.digest() == before


# Golden edges --------------------


def test_draft_is_written_completed_and_sent_once() -> None:
    session = ENV.open("sparse")
    draft = executed(session, "create_draft", to=["K00001"], subject="Plan")["draft_id"]
    assert session.call("send_draft", {"draft_id": draft}).code == "EMPTY_BODY"
    executed(session, "update_draft", draft_id=draft, body="The plan.", cc=["K00002"])
    sent = executed(session, "send_draft", draft_id=draft)
    view = executed(session, "get_message", message_id=sent["message_id"])
    contacts = [session.world.need(Contact, one).address for one in ("K00001", "K00002")]
    assert (view["to"], view["cc"], view["subject"], view["body"], view["folder"]) == (
        contacts[:1], contacts[1:], "Plan", "The plan.", "Sent"
    )  # fmt: skip
    assert session.call("send_draft", {"draft_id": draft}).code == "DRAFT_ALREADY_SENT"


def test_search_then_reply_within_the_thread() -> None:
    session = ENV.open("sparse")
    assert session.call("reply_to_message", {"message_id": "M00009", "body": "x"}).code == "NOT_FOUND"
    found = executed(session, "search_messages", query="subject:welcome is:unread")["items"][0]
    reply = executed(session, "reply_to_message", message_id=found["message_id"], body="Thank you.")
    again = executed(session, "reply_to_message", message_id=reply["message_id"], body="One more thing.")
    assert (reply["subject"], again["subject"]) == ("Re: Welcome", "Re: Welcome")
    assert again["to"] == reply["to"] == [found["sender"]]  # an answer to one's own message goes to its recipients
    thread = executed(session, "get_thread", thread_id=found["thread_id"])["items"]
    assert [one["in_reply_to"] for one in thread] == ["", found["message_id"], reply["message_id"]]
    assert executed(session, "search_messages", query="is:unread")["items"] == []  # an answered message is a read one


def test_list_labels_then_add_label() -> None:
    session = ENV.open("sparse")
    assert session.call("add_label", {"message_id": "M00001", "label": "Important stuff"}).code == "LABEL_NOT_FOUND"
    state = session.world.need(MessageState, "M00001")
    label = next(
        one for one in executed(session, "list_labels")["items"] if one["label_id"] not in state.label_ids
    )  # fmt: skip
    executed(session, "add_label", message_id="M00001", label=label["label_id"])
    after = session.digest()
    executed(session, "add_label", message_id="M00001", label=label["name"].upper())
    assert session.digest() == after
    assert executed(session, "search_messages", query=f"label:{label['name']}")["total"] == 1
    executed(session, "remove_label", message_id="M00001", label=label["name"])
    assert session.digest() == ENV.open("sparse").digest()


# The rules of the domain --------------------


def test_reply_all_leaves_oneself_out_and_names_nobody_twice() -> None:
    session = ENV.open("adversarial")
    other = session.world.find(Contact, name="Mei Cheng")[0].address
    active = {one.address for one in session.world.rows(Contact) if one.active} - {other}
    message = next(
        one for one in session.world.rows(Message) if other in one.to and one.sender in active and not one.cc
    )
    reply = executed(session, "reply_to_message", message_id=message.id, body="x", reply_all=True)
    assert (reply["to"], reply["cc"]) == ([message.sender], [other])


def test_reply_to_goes_before_the_sender() -> None:
    session = ENV.open("adversarial")
    message = about(session, "List")
    assert executed(session, "reply_to_message", message_id=message.id, body="x")["to"] == [message.reply_to]
    assert message.reply_to != message.sender


def test_forward_is_a_new_thread_with_the_text_and_files() -> None:
    session = ENV.open()
    message = next(one for one in session.world.rows(Message) if one.attachment_ids and one.size_bytes < 2_000_000)
    contact = next(one for one in session.world.rows(Contact) if one.active)
    sent = executed(session, "forward_message", message_id=message.id, to=[contact.id], note="See below.")
    view = executed(session, "get_message", message_id=sent["message_id"])
    assert view["thread_id"] != message.thread_id
    assert view["subject"] == prefixed("Fwd", message.subject)
    assert view["body"].startswith("See below.")
    assert view["body"].endswith(message.body)
    assert [one["attachment_id"] for one in view["attachments"]] == list(message.attachment_ids)


def test_the_limit_and_the_quota_to_the_byte() -> None:
    session = ENV.open("sparse")
    box = mailbox(session.world)
    session.world.put(Attachment("A1", "a", "x", box.attachment_limit_bytes))
    session.world.put(Attachment("A2", "b", "x", 1))
    executed(session, "create_draft", attachment_ids=["A1"])
    assert session.call("create_draft", {"attachment_ids": ["A1", "A2"]}).code == "ATTACHMENT_TOO_LARGE"
    needed = size_of(session.world, "s", "b", ())
    session.world.update(box, quota_bytes=box.used_bytes + needed)
    assert session.call("send_message", {"to": ["K00001"], "subject": "s", "body": "bb"}).code == "QUOTA_EXCEEDED"
    executed(session, "send_message", to=["K00001"], subject="s", body="b")
    assert executed(session, "list_folders")["items"][0]["mailbox_free_bytes"] == 0


def test_who_writes_to_oneself_finds_a_copy_in_the_inbox() -> None:
    session = ENV.open("sparse")
    box = mailbox(session.world)
    sent = executed(session, "send_message", to=[box.address], bcc=["K00001"], subject="Note", body="x")
    copy = executed(session, "list_messages", folder="inbox", unread_only=True)["items"][0]
    assert copy["thread_id"] == sent["thread_id"]
    assert copy["message_id"] != sent["message_id"]
    assert executed(session, "get_message", message_id=copy["message_id"])["bcc"] == []
    assert mailbox(session.world).used_bytes == box.used_bytes + 2 * sent["size_bytes"]


def test_marking_some_that_do_not_exist_is_partial() -> None:
    session = ENV.open("sparse")
    outcome = session.call("mark_read", {"message_ids": ["M00001", "M99999", "M00001"]})
    assert (outcome.kind, outcome.code) == ("partial", "NOT_FOUND")
    assert outcome.value == {"message_ids": ["M00001"], "read": True}


def test_archiving_a_thread_takes_what_lies_in_the_inbox() -> None:
    session = ENV.open()
    inbox = session.world.find(Folder, role="inbox")[0].id
    for thread in session.world.rows(Thread):
        held = session.world.find(Message, thread_id=thread.id)
        inside = [one.id for one in held if session.world.need(MessageState, one.id).folder_id == inbox]
        if len(inside) > 1 and len(held) > len(inside):
            break
    moved = executed(session, "archive_message", message_id=inside[0], whole_thread=True)["message_ids"]
    assert sorted(moved) == sorted(inside)
    assert session.call("archive_message", {"message_id": inside[1]}).code == "INVALID_STATE"
    folders = {one["folder"] for one in executed(session, "get_thread", thread_id=thread.id)["items"]}
    assert folders == {"Archive", "Sent"}


# Search against a plain filter over the dump --------------------

names: dict[str, Callable[[Any, Any, Any], bool]] = {
         "is:unread": lambda m, s, f: not s["read"], "is:read": lambda m, s, f: s["read"],
         "has:attachment": lambda m, s, f: bool(m["attachment_ids"]),
         "in:inbox": lambda m, s, f: f[s["folder_id"]] == "inbox",
         "in:trash": lambda m, s, f: f[s["folder_id"]] == "trash",
         "from:robin.lake": lambda m, s, f: "robin.lake" in m["sender"],
         "subject:invoice": lambda m, s, f: "invoice" in m["subject"].lower(),
         "invoice": lambda m, s, f: "invoice" in m["subject"].lower() or "invoice" in m["body"].lower(),
         '"second option"': lambda m, s, f: "second option" in m["body"].lower(),
         "larger:1m": lambda m, s, f: m["size_bytes"] > 1_000_000, "smaller:900": lambda m, s, f: m["size_bytes"] < 900,
         "before:2026-01-01": lambda m, s, f: m["sent_at"] < 1_767_225_600,
         "after:2026-01-01": lambda m, s, f: m["sent_at"] >= 1_767_225_600}  # fmt: skip
terms = st.lists(st.tuples(st.sampled_from(sorted(names)), st.booleans()), min_size=1, max_size=3)
DUMP = ENV.open().helper("_dump_state").value["tables"]


@given(terms)
@settings(max_examples=40)
def test_search_finds_what_a_plain_filter_finds(chosen: list[tuple[str, bool]]) -> None:
    session = ENV.open()
    query = " ".join(("-" if minus else "") + term for term, minus in chosen)
    names_one = any(term.startswith("in:") and not minus for term, minus in chosen)
    roles = {one["id"]: one["role"] for one in DUMP["folders"]}
    states = {one["message_id"]: one for one in DUMP["message_states"]}
    wanted = {
        one["id"]
        for one in DUMP["messages"]
        for state in (states[one["id"]],)
        if all(names[term](one, state, roles) != minus for term, minus in chosen)
        and (names_one or roles[state["folder_id"]] not in ("spam", "trash"))
    }
    found, cursor = [], ""
    while True:
        got = executed(session, "search_messages", query=query, limit=100, cursor=cursor)
        found += [one["message_id"] for one in got["items"]]
        cursor = got["next_cursor"] or ""
        if not cursor:
            break
    assert set(found) == wanted
    assert len(found) == len(wanted) == got["total"]
    times = {one["id"]: one["sent_at"] for one in DUMP["messages"]}
    assert [times[one] for one in found] == sorted((times[one] for one in found), reverse=True)


@pytest.mark.parametrize("query", ["-in:archive", 'subject:"we begin: now"', '-in:inbox -"plan: b"'])
def test_spam_and_trash_are_searched_only_where_a_term_names_a_folder(query: str) -> None:
    session = ENV.open()
    world = session.world
    hidden = {one.id for one in world.rows(Folder) if one.role in ("spam", "trash")}
    state = next(one for one in world.rows(MessageState) if one.folder_id in hidden)
    world.update(world.need(Message, state.message_id), subject="We begin: now")
    found = executed(session, "search_messages", query=f"{query} now", limit=100)["items"]
    assert state.message_id not in {one["message_id"] for one in found}


# Invariants --------------------

calls = st.lists(
    st.tuples(
        st.sampled_from(["send", "draft", "send_draft", "reply", "forward", "read", "label", "unlabel", "archive"]),
        st.integers(0, 60),
        st.booleans(),
    ),
    max_size=20,
)


@given(calls, st.sampled_from(["sparse", "adversarial"]))
@settings(max_examples=50)
def test_messages_are_only_ever_added_and_the_quota_holds(script: list[tuple[str, int, bool]], scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    for kind, number, flag in script:
        existing = list(world.rows(Message))
        message = existing[number % len(existing)].id
        contacts = list(world.rows(Contact))
        to = [contacts[number % len(contacts)].id, *([mailbox(world).address] if flag else [])]
        drafts = [one.id for one in world.rows(Draft)] or ["D00001"]
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "send": ("send_message", {"to": to, "subject": "s", "body": "b" * number * 300}),
            "draft": ("create_draft", {"to": to, "subject": "s", "body": "b" * number}),
            "send_draft": ("send_draft", {"draft_id": drafts[number % len(drafts)]}),
            "reply": ("reply_to_message", {"message_id": message, "body": "b", "reply_all": flag}),
            "forward": ("forward_message", {"message_id": message, "to": to, "include_attachments": flag}),
            "read": ("mark_read", {"message_ids": [message, "M99999"], "read": flag}),
            "label": ("add_label", {"message_id": message, "label": "work"}),
            "unlabel": ("remove_label", {"message_id": message, "label": "work"}),
            "archive": ("archive_message", {"message_id": message, "whole_thread": flag}),
        }
        before = session.digest()
        outcome = session.call(*call[kind])
        if outcome.kind == "execution_error":
            assert session.digest() == before
        box = mailbox(world)
        now = list(world.rows(Message))
        assert now[: len(existing)] == existing
        assert box.used_bytes == sum(one.size_bytes for one in now) <= box.quota_bytes
        assert {one.id for one in now} == {one.message_id for one in world.rows(MessageState)}
        for one in now[len(existing) :]:
            assert total_size(world, one.attachment_ids) <= box.attachment_limit_bytes
            assert one.body.strip()
            assert one.to or one.cc or one.bcc


# Scenarios --------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    world = environment(scale=2).open(scenario, seed).world
    assert world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    messages = list(world.rows(Message))
    assert world.need(Mailbox, "me").used_bytes == sum(one.size_bytes for one in messages)
    for message in messages:
        state = world.need(MessageState, message.id)
        assert world.get(Folder, state.folder_id) is not None
        assert all(world.get(Label, one) is not None for one in state.label_ids)
        assert world.get(Thread, message.thread_id) is not None
        assert message.size_bytes == size_of(world, message.subject, message.body, message.attachment_ids)
        assert not message.in_reply_to or world.need(Message, message.in_reply_to).thread_id == message.thread_id
        assert message.sent_at < world.now
    for draft in world.rows(Draft):
        assert not draft.message_id or world.get(Message, draft.message_id) is not None
    assert len(list(world.rows(MessageState))) == len(messages)


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 1000
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    contact = next(one for one in session.world.rows(Contact) if one.active)
    message = next(one for one in session.world.rows(Message) if one.sender == contact.address)
    inbox = executed(session, "list_messages")["items"][0]["message_id"]
    draft = executed(session, "create_draft", to=[contact.id], body="x")["draft_id"]
    table: dict[str, dict[str, Any]] = {
        "list_folders": {}, "list_labels": {}, "list_contacts": {"query": contact.name}, "list_messages": {},
        "search_messages": {"query": "from:example is:read"}, "get_message": {"message_id": message.id},
        "get_thread": {"thread_id": message.thread_id}, "update_draft": {"draft_id": draft, "subject": "y"},
        "send_draft": {"draft_id": draft}, "send_message": {"to": [contact.id], "subject": "x", "body": "y"},
        "reply_to_message": {"message_id": message.id, "body": "x"},
        "forward_message": {"message_id": message.id, "to": [contact.id]}, "mark_read": {"message_ids": [inbox]},
        "add_label": {"message_id": inbox, "label": "finance"},
        "remove_label": {"message_id": inbox, "label": "finance"}, "archive_message": {"message_id": inbox},
    }  # fmt: skip
    assert {*table, "create_draft"} == set(SURFACE)
    for tool, arguments in table.items():
        executed(session, tool, **arguments)


def test_sparse_answers_with_empty_pages() -> None:
    session = ENV.open("sparse")
    assert session.call("list_messages", {"folder": "archive"}).kind == "empty"
    assert session.call("search_messages", {"query": "zebra"}).kind == "empty"
    assert session.call("list_contacts", {"query": "nobody here"}).kind == "empty"
