from __future__ import annotations

from typing import Any

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.team_chat import environment
from callwright_plugins.mcp_environments.team_chat.access import is_member, may_read
from callwright_plugins.mcp_environments.team_chat.rows import (
    Channel,
    Membership,
    Message,
    Pin,
    Profile,
    Reaction,
    ThreadLock,
    User,
)
from callwright_plugins.mcp_environments.team_chat.tools import PIN_LIMIT

ENV = environment()
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "list_channels": "RD", "list_members": "RD", "list_messages": "RD", "search_messages": "RD", "get_thread": "R",
    "post_message": "", "reply_in_thread": "", "add_reaction": "", "create_channel": "", "invite_member": "",
    "pin_message": "",
}  # fmt: skip


def channel(session: StatefulSession, name: str) -> str:
    return session.world.find(Channel, name=name)[0].id


def first(session: StatefulSession, name: str) -> str:
    """The first message of a channel."""
    return session.world.find(Message, channel_id=channel(session, name))[0].id


def last(session: StatefulSession, name: str) -> str:
    """The last message of a channel that begins a thread."""
    return session.world.find(Message, channel_id=channel(session, name), thread_id="")[-1].id


def user(session: StatefulSession, handle: str) -> str:
    return session.world.find(User, handle=handle)[0].id


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 11


def test_conformance() -> None:
    check_component("environment", ENV)


FAILURES: list[tuple[str, Any]] = [
    ("NOT_IN_CHANNEL", lambda s: ("post_message", {"channel_id": channel(s, "launch-public"), "text": "x"})),
    ("NOT_IN_CHANNEL", lambda s: ("list_messages", {"channel_id": channel(s, "launch2")})),
    ("NOT_IN_CHANNEL", lambda s: ("get_thread", {"message_id": first(s, "launch2")})),
    ("NOT_IN_CHANNEL", lambda s: ("invite_member", {"channel_id": channel(s, "launch2"), "user_id": "U00001"})),
    ("NOT_IN_CHANNEL", lambda s: ("add_reaction", {"message_id": first(s, "launch-public"), "emoji": "x"})),
    ("CHANNEL_ARCHIVED", lambda s: ("post_message", {"channel_id": channel(s, "launch"), "text": "x"})),
    ("CHANNEL_ARCHIVED", lambda s: ("reply_in_thread", {"message_id": first(s, "old-launch"), "text": "x"})),
    ("CHANNEL_ARCHIVED", lambda s: ("pin_message", {"message_id": first(s, "old-launch")})),
    ("CHANNEL_ARCHIVED", lambda s: ("invite_member", {"channel_id": channel(s, "launch"), "user_id": "U00002"})),
    ("NAME_TAKEN", lambda s: ("create_channel", {"name": "launch"})),
    ("NAME_TAKEN", lambda s: ("create_channel", {"name": "launch2"})),
    ("ALREADY_MEMBER", lambda s: ("invite_member", {"channel_id": channel(s, "launch-2"), "user_id": "U00002"})),
    ("PIN_LIMIT", lambda s: ("pin_message", {"message_id": last(s, "launches")})),
    ("ALREADY_PINNED", lambda s: ("pin_message", {"message_id": first(s, "nearly-full")})),
    ("THREAD_LOCKED", lambda s: ("reply_in_thread", {"message_id": first(s, "launches"), "text": "x"})),
    ("THREAD_LOCKED", lambda s: ("reply_in_thread", {"message_id": first(s, "launch-news"), "text": "x"})),
    ("PERMISSION_DENIED", lambda s: ("post_message", {"channel_id": channel(s, "launch-news"), "text": "x"})),
    ("PERMISSION_DENIED", lambda s: ("post_message", {"channel_id": channel(s, "launches"), "text": "hi @channel"})),
    ("PERMISSION_DENIED", lambda s: ("reply_in_thread", {"message_id": last(s, "launch-news"), "text": "x",
                                     "also_in_channel": True})),
    ("INVALID_STATE", lambda s: ("invite_member", {"channel_id": channel(s, "launch-2"), "user_id": user(s, "gone")})),
    ("GUEST_LIMIT", lambda s: ("invite_member", {"channel_id": channel(s, "launch-2"),
                               "user_id": user(s, "guest.busy")})),
    ("EMPTY_MESSAGE", lambda s: ("post_message", {"channel_id": channel(s, "launch-2"), "text": "  "})),
    ("NOT_FOUND", lambda s: ("post_message", {"channel_id": "C99999", "text": "x"})),
    ("NOT_FOUND", lambda s: ("get_thread", {"message_id": "M99999"})),
    ("NOT_FOUND", lambda s: ("invite_member", {"channel_id": channel(s, "launch-2"), "user_id": "sam.novak1"})),
    ("NOT_FOUND", lambda s: ("search_messages", {"author_id": "U99999"})),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), FAILURES)
def test_failures_leave_the_state(code: str, case: Any) -> None:
    session = ENV.open("adversarial")
    tool, arguments = case(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert outcome.message
    assert session.digest() == before


def test_reacting_twice_fails() -> None:
    session = ENV.open("sparse")
    view = executed(session, "add_reaction", message_id="M00001", emoji="heart")
    assert view["reactions"] == [{"emoji": "heart", "count": 1}]
    before = session.digest()
    assert session.call("add_reaction", {"message_id": "M00001", "emoji": "heart"}).code == "ALREADY_REACTED"
    assert session.digest() == before
    assert session.call("add_reaction", {"message_id": "M00001", "emoji": "unknown"}).kind == "schema_error"


# Golden edges --------------------


def test_create_invite_post_reply_pin() -> None:
    session = ENV.open("sparse")
    made = executed(session, "create_channel", name="plans", private=True, topic="Plans")
    assert (made["my_role"], made["member_count"]) == ("admin", 1)
    third = session.world.need(User, "U00003")
    text = f"Hello @{third.handle}."
    outcome = session.call("post_message", {"channel_id": made["channel_id"], "text": text})
    assert (outcome.kind, outcome.code) == ("partial", "MENTION_NOT_DELIVERED")
    assert outcome.value["not_notified"] == [third.handle]
    executed(session, "invite_member", channel_id=made["channel_id"], user_id=third.id)
    outcome = session.call("post_message", {"channel_id": made["channel_id"], "text": text})
    assert (outcome.kind, outcome.value["notified"]) == ("ok", [third.handle])
    message = outcome.value["message_id"]
    reply = executed(session, "reply_in_thread", message_id=message, text="More.")
    again = executed(session, "reply_in_thread", message_id=reply["message_id"], text="Even more.")
    assert again["thread_id"] == reply["thread_id"] == message
    thread = executed(session, "get_thread", message_id=again["message_id"])["items"]
    assert [one["message_id"] for one in thread] == [message, reply["message_id"], again["message_id"]]
    executed(session, "pin_message", message_id=reply["message_id"])
    pinned = executed(session, "list_messages", channel_id=made["channel_id"], pinned_only=True)["items"]
    assert [one["message_id"] for one in pinned] == [reply["message_id"]]


# The rules of the domain --------------------


def test_a_public_channel_is_joined_by_inviting_oneself() -> None:
    session = ENV.open("adversarial")
    where = channel(session, "launch-public")
    assert executed(session, "list_messages", channel_id=where)["items"]  # can be read from outside
    assert session.call("post_message", {"channel_id": where, "text": "x"}).code == "NOT_IN_CHANNEL"
    other = {"channel_id": where, "user_id": user(session, "sam-novak")}
    assert session.call("invite_member", other).code == "NOT_IN_CHANNEL"
    executed(session, "invite_member", channel_id=where, user_id="U00001")
    executed(session, "post_message", channel_id=where, text="x")
    executed(session, "invite_member", **other)


def test_private_channels_of_others_show_nowhere() -> None:
    session = ENV.open("adversarial")
    secret = channel(session, "launch2")
    listed = executed(session, "list_channels", include_archived=True, limit=100)["items"]
    assert secret not in {one["channel_id"] for one in listed}
    found = executed(session, "search_messages", limit=100)
    assert found["total"] == sum(one.channel_id != secret for one in session.world.rows(Message))
    assert secret not in {one["channel_id"] for one in found["items"]}


def test_guests_read_only_their_channel() -> None:
    session = ENV.open("adversarial")
    session.world.update(session.world.need(Profile, "me"), user_id=user(session, "guest.busy"))
    assert [one["name"] for one in executed(session, "list_channels")["items"]] == ["launches"]
    assert session.call("create_channel", {"name": "mine"}).code == "PERMISSION_DENIED"


def test_the_last_pin_fits_and_the_next_does_not() -> None:
    session = ENV.open("adversarial")
    where = channel(session, "nearly-full")
    free = [one.id for one in session.world.find(Message, channel_id=where) if session.world.get(Pin, one.id) is None]
    executed(session, "pin_message", message_id=free[0])
    assert session.call("pin_message", {"message_id": free[1]}).code == "PIN_LIMIT"


def test_channel_mention_reaches_everybody_but_the_author() -> None:
    session = ENV.open("adversarial")
    where = channel(session, "launch-2")
    made = executed(session, "post_message", channel_id=where, text="@channel look, @sam-novak and me@channel.example")
    members = {one.user_id for one in session.world.find(Membership, channel_id=where)} - {"U00001"}
    assert set(session.world.need(Message, made["message_id"]).mentions) == members


def test_only_messages_that_mention_me() -> None:
    session = ENV.open()
    found = executed(session, "search_messages", mentions_me=True, limit=100)["items"]
    handle = session.world.need(User, "U00001").handle
    assert found
    assert all(handle in one["mentions"] for one in found)


# Invariants --------------------

calls = st.lists(
    st.tuples(
        st.sampled_from(["post", "reply", "react", "create", "invite", "pin"]), st.integers(0, 200), st.integers(0, 30)
    ),
    max_size=25,
)


@given(calls, st.sampled_from(["sparse", "adversarial"]))
@settings(max_examples=60)
def test_limits_hold_and_messages_are_only_added(script: list[tuple[str, int, int]], scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    for kind, number, other in script:
        existing, channels, users = list(world.rows(Message)), list(world.rows(Channel)), list(world.rows(User))
        message, where = existing[number % len(existing)], channels[number % len(channels)]
        who = users[other % len(users)]
        text = f"Hello @{who.handle} and @{users[number % len(users)].handle}"
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "post": ("post_message", {"channel_id": where.id, "text": text}),
            "reply": ("reply_in_thread", {"message_id": message.id, "text": text, "also_in_channel": other % 2 == 0}),
            "react": ("add_reaction", {"message_id": message.id, "emoji": "heart"}),
            "create": ("create_channel", {"name": f"launch-{other}", "private": other % 2 == 0}),
            "invite": ("invite_member", {"channel_id": where.id, "user_id": who.id}),
            "pin": ("pin_message", {"message_id": message.id}),
        }
        target = world.need(Channel, message.channel_id) if kind in ("reply", "react", "pin") else where
        before = session.digest()
        outcome = session.call(*call[kind])
        if outcome.kind == "execution_error":
            assert session.digest() == before
        elif kind in ("post", "reply", "react", "pin"):
            assert is_member(world, target, "U00001")
            assert not target.archived
        if outcome.kind in ("ok", "partial") and kind in ("post", "reply"):
            new = world.need(Message, outcome.value["message_id"])
            assert all(is_member(world, target, one) for one in new.mentions)
            if new.thread_id:
                assert world.need(Message, new.thread_id).thread_id == ""
                assert world.get(ThreadLock, new.thread_id) is None
        assert list(world.rows(Message))[: len(existing)] == existing
        names = [one.name for one in world.rows(Channel)]
        assert len(names) == len(set(names))
        assert all(world.count(Pin, channel_id=one.id) <= PIN_LIMIT for one in world.rows(Channel))
        for one in world.rows(User):
            assert one.kind != "guest" or world.count(Membership, user_id=one.id) <= 1


# Scenarios --------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    world = environment(scale=2).open(scenario, seed).world
    assert world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    assert world.get(User, world.need(Profile, "me").user_id) is not None
    handles = [one.handle for one in world.rows(User)]
    assert len(handles) == len(set(handles))
    names = [one.name for one in world.rows(Channel)]
    assert len(names) == len(set(names))
    for membership in world.rows(Membership):
        assert world.get(Channel, membership.channel_id) is not None
        assert world.get(User, membership.user_id) is not None
    for message in world.rows(Message):
        assert is_member(world, world.need(Channel, message.channel_id), message.author_id)
        if message.thread_id:
            root = world.need(Message, message.thread_id)
            assert (root.thread_id, root.channel_id) == ("", message.channel_id)
            assert root.sent_at < message.sent_at
        assert message.sent_at <= world.now
    for pin in world.rows(Pin):
        assert world.need(Message, pin.message_id).channel_id == pin.channel_id
    assert all(world.get(Message, one.message_id) is not None for one in world.rows(Reaction))
    assert all(world.need(Message, one.thread_id).thread_id == "" for one in world.rows(ThreadLock))
    assert all(world.count(Pin, channel_id=one.id) <= PIN_LIMIT for one in world.rows(Channel))


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 1000
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    world = session.world
    mine = next(
        one
        for one in world.rows(Channel)
        if is_member(world, one, "U00001") and one.posting == "everyone" and not one.archived
    )  # fmt: skip
    message = next(
        one.id
        for one in world.find(Message, channel_id=mine.id, thread_id="")
        if world.get(ThreadLock, one.id) is None and world.get(Pin, one.id) is None
    )
    outside = next(one for one in world.rows(User) if one.kind == "member" and not is_member(world, mine, one.id))
    table: dict[str, dict[str, Any]] = {
        "list_channels": {"only_mine": True}, "list_members": {"channel_id": mine.id},
        "list_messages": {"channel_id": mine.id}, "search_messages": {"query": "deploy"},
        "get_thread": {"message_id": message}, "post_message": {"channel_id": mine.id, "text": "Hello."},
        "reply_in_thread": {"message_id": message, "text": "Yes."},
        "add_reaction": {"message_id": message, "emoji": "fire"}, "create_channel": {"name": "brand-new"},
        "invite_member": {"channel_id": mine.id, "user_id": outside.id}, "pin_message": {"message_id": message},
    }  # fmt: skip
    assert set(table) == set(SURFACE)
    for tool, arguments in table.items():
        assert executed(session, tool, **arguments)
    assert any(not may_read(world, one) for one in world.rows(Channel))


def test_sparse_answers_with_empty_pages() -> None:
    session = ENV.open("sparse")
    assert session.call("search_messages", {"query": "zebra"}).kind == "empty"
    assert session.call("list_messages", {"channel_id": "C00001", "pinned_only": True}).kind == "empty"
    assert session.call("list_channels", {"query": "nothing"}).kind == "empty"
