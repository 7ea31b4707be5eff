from __future__ import annotations

from typing import Any

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.social_media import environment
from callwright_plugins.mcp_environments.social_media.rows import Block, Comment, Follow, Like, Post, Profile, User

ENV = environment()
ME = "U00001"
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "search_users": "RD", "get_profile": "R", "get_feed": "R", "search_posts": "RD", "get_post": "R",
    "list_comments": "R", "list_followers": "RD", "create_post": "", "delete_post": "X", "like_post": "",
    "comment_on_post": "", "share_post": "", "follow_user": "", "unfollow_user": "X", "block_user": "",
}  # fmt: skip


def every(session: StatefulSession, tool: str, **arguments: Any) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        got = executed(session, tool, limit=100, cursor=cursor, **arguments)
        found += got["items"]
        cursor = got["next_cursor"] or ""
        if not cursor:
            return found


def post(session: StatefulSession, handle: str, place: int) -> str:
    """A post of somebody: 0 is deleted, 1 open, 2 for followers' comments, 3 takes no comments."""
    author = session.world.find(User, handle=handle)[0].id
    return session.world.find(Post, author_id=author)[place].id


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 15


def test_conformance() -> None:
    check_component("environment", ENV)


LONG = "x" * 281
FAILURES: list[tuple[str, Any]] = [
    ("BLOCKED", lambda s: ("get_profile", {"user": "blocked.me"})),
    ("BLOCKED", lambda s: ("get_profile", {"user": "@i.blocked"})),
    ("BLOCKED", lambda s: ("follow_user", {"user": "blocked.me"})),
    ("BLOCKED", lambda s: ("like_post", {"post_id": post(s, "i.blocked", 1)})),
    ("BLOCKED", lambda s: ("get_post", {"post_id": post(s, "blocked.me", 0)})),
    ("BLOCKED", lambda s: ("block_user", {"user": "i.blocked"})),
    ("PRIVATE_PROFILE", lambda s: ("get_post", {"post_id": post(s, "closed", 1)})),
    ("PRIVATE_PROFILE", lambda s: ("get_post", {"post_id": post(s, "closed", 0)})),
    ("PRIVATE_PROFILE", lambda s: ("comment_on_post", {"post_id": post(s, "asked", 1), "text": "x"})),
    ("PRIVATE_PROFILE", lambda s: ("list_followers", {"user": "closed"})),
    ("PRIVATE_PROFILE", lambda s: ("search_posts", {"author": "asked"})),
    ("PRIVATE_PROFILE", lambda s: ("share_post", {"post_id": post(s, "trusted", 1)})),
    ("ALREADY_LIKED", lambda s: ("like_post", {"post_id": post(s, "lena.vogel", 1)})),
    ("ALREADY_FOLLOWING", lambda s: ("follow_user", {"user": "lena.vogel"})),
    ("ALREADY_FOLLOWING", lambda s: ("follow_user", {"user": "asked"})),
    ("ALREADY_SHARED", lambda s: ("share_post", {"post_id": s.world.find(Post, text="Shared before.")[0].id})),
    ("ALREADY_SHARED", lambda s: ("share_post", {"post_id": s.world.find(Post, text="Theirs.")[0].id})),
    ("NOT_FOLLOWING", lambda s: ("unfollow_user", {"user": "lena_vogel"})),
    ("NOT_AUTHOR", lambda s: ("delete_post", {"post_id": post(s, "lena.vogel", 1)})),
    ("TOO_LONG", lambda s: ("create_post", {"text": LONG})),
    ("TOO_LONG", lambda s: ("comment_on_post", {"post_id": post(s, "lena.vogel", 1), "text": LONG})),
    ("TOO_LONG", lambda s: ("share_post", {"post_id": post(s, "lena.vogel", 1), "text": LONG})),
    ("EMPTY_TEXT", lambda s: ("create_post", {"text": "  "})),
    ("POST_DELETED", lambda s: ("get_post", {"post_id": post(s, "lena.vogel", 0)})),
    ("POST_DELETED", lambda s: ("like_post", {"post_id": post(s, "lena.vogel", 0)})),
    ("POST_DELETED", lambda s: ("delete_post", {"post_id": post(s, "noor.haddad", 0)})),
    ("POST_DELETED", lambda s: ("share_post", {"post_id": s.world.find(Post, text="Look at this.")[0].id})),
    ("COMMENTS_CLOSED", lambda s: ("comment_on_post", {"post_id": post(s, "lena_vogel", 2), "text": "x"})),
    ("COMMENTS_CLOSED", lambda s: ("comment_on_post", {"post_id": post(s, "lena.vogel", 3), "text": "x"})),
    ("INVALID_STATE", lambda s: ("follow_user", {"user": ME})),
    ("INVALID_STATE", lambda s: ("block_user", {"user": ME})),
    ("NOT_FOUND", lambda s: ("get_profile", {"user": "lena"})),
    ("NOT_FOUND", lambda s: ("get_post", {"post_id": "P99999"})),
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


# Golden edges --------------------


def test_search_follow_feed() -> None:
    session = ENV.open("sparse")
    assert session.call("get_feed", {}).kind == "empty"
    author = session.world.need(Post, "P00001").author_id
    handle = session.world.need(User, author).handle
    found = executed(session, "search_users", query=handle)["items"][0]["user_id"]
    assert executed(session, "follow_user", user=found)["you_follow"] == "following"
    assert [one["post_id"] for one in executed(session, "get_feed")["items"]] == ["P00001"]
    executed(session, "unfollow_user", user=found)
    assert session.call("get_feed", {}).kind == "empty"


def test_create_comment_delete() -> None:
    session = ENV.open("sparse")
    assert session.call("comment_on_post", {"post_id": "P00002", "text": "x"}).code == "NOT_FOUND"
    made = executed(session, "create_post", text="Hello. #new", comments_from="nobody")["post_id"]
    executed(session, "comment_on_post", post_id=made, text="One's own post can always be answered.")
    assert executed(session, "get_post", post_id=made)["comments"] == 1
    assert [one["post_id"] for one in executed(session, "search_posts", query="#NEW")["items"]] == [made]
    executed(session, "delete_post", post_id=made)
    assert session.call("list_comments", {"post_id": made}).code == "POST_DELETED"
    assert session.call("search_posts", {"query": "#new"}).kind == "empty"


def test_search_then_share() -> None:
    session = ENV.open("sparse")
    found = executed(session, "search_posts")["items"][0]
    share = executed(session, "share_post", post_id=found["post_id"], text="Read this.")
    assert share["shared"] == {
        "post_id": found["post_id"], "available": True, "author_handle": found["author_handle"], "text": found["text"]
    }  # fmt: skip
    assert executed(session, "get_post", post_id=found["post_id"])["shares"] == 1
    executed(session, "delete_post", post_id=share["post_id"])
    executed(session, "share_post", post_id=found["post_id"])  # after deleting the share it can be shared again
    assert executed(session, "get_post", post_id=found["post_id"])["shares"] == 1


# The rules of the domain --------------------


def test_a_share_of_a_share_is_one_of_the_original() -> None:
    session = ENV.open("adversarial")
    share = session.world.find(Post, text="Theirs.")[0]
    mine = session.world.find(Post, text="Mine.")[0].id
    executed(session, "delete_post", post_id=mine)
    again = executed(session, "share_post", post_id=share.id)
    assert again["shared"]["post_id"] == share.shared_post_id


def test_shares_of_what_cannot_be_read_say_so() -> None:
    session = ENV.open("adversarial")
    for text in ("Look at this.", "And at this."):
        shown = executed(session, "get_post", post_id=session.world.find(Post, text=text)[0].id)
        assert shown["shared"]["available"] is False
        assert shown["shared"]["text"] == shown["shared"]["author_handle"] == ""
    feed = every(session, "get_feed")
    assert not [one for one in feed if not one["text"] and not one["shared"]["available"]]


def test_following_a_private_profile_is_a_request() -> None:
    session = ENV.open("adversarial")
    assert executed(session, "follow_user", user="closed")["you_follow"] == "requested"
    assert session.call("search_posts", {"author": "closed"}).code == "PRIVATE_PROFILE"
    asked = {one["handle"] for one in executed(session, "list_followers", direction="requests")["items"]}
    assert asked == {"closed", "asked"}
    assert executed(session, "get_profile", user="closed")["posts"] is None
    executed(session, "unfollow_user", user="closed")
    assert executed(session, "get_profile", user="closed")["you_follow"] == "no"


def test_a_block_ends_following_both_ways_and_hides_both() -> None:
    session = ENV.open("adversarial")
    lena = session.world.find(User, handle="lena.vogel")[0].id
    session.world.put(Follow(lena, ME, True))
    seen = executed(session, "list_comments", post_id=post(session, "noor.haddad", 1))["total"]
    executed(session, "block_user", user=lena)
    assert session.world.get(Follow, (lena, ME)) is None
    assert session.world.get(Follow, (ME, lena)) is None
    assert session.call("get_post", {"post_id": post(session, "lena.vogel", 1)}).code == "BLOCKED"
    assert lena not in {one["author_id"] for one in every(session, "get_feed")}
    assert lena not in {one["user_id"] for one in every(session, "search_users")}
    assert executed(session, "list_comments", post_id=post(session, "noor.haddad", 1))["total"] == seen - 1
    # The other side of the wall sees none of it either.
    session.world.update(session.world.need(Profile, "me"), user_id=lena)
    assert session.call("get_profile", {"user": ME}).code == "BLOCKED"


def test_exactly_280_characters_fit() -> None:
    session = ENV.open("sparse")
    executed(session, "create_post", text="ä" * 280)
    assert session.call("create_post", {"text": "ä" * 281}).code == "TOO_LONG"


def test_a_hashtag_is_a_whole_word() -> None:
    session = ENV.open("sparse")
    executed(session, "create_post", text="At last #musical, yes.")
    assert session.call("search_posts", {"query": "#music"}).kind == "empty"
    assert executed(session, "search_posts", query="#musical yes")["total"] == 1


# Against a plain reading of the tables --------------------


def naive_visible(session: StatefulSession, one: Post) -> bool:
    world = session.world
    rows = [(block.blocker_id, block.blocked_id) for block in world.rows(Block)]
    accepted = [(follow.follower_id, follow.followed_id) for follow in world.rows(Follow) if follow.accepted]
    author = world.need(User, one.author_id)
    return not (
        one.deleted
        or (ME, author.id) in rows
        or (author.id, ME) in rows
        or (author.private and author.id != ME and (ME, author.id) not in accepted)
    )


def naive_feed(session: StatefulSession) -> list[str]:
    world = session.world
    accepted = [follow.followed_id for follow in world.rows(Follow) if follow.accepted and follow.follower_id == ME]
    found = []
    for one in world.rows(Post):
        if (one.author_id == ME or one.author_id in accepted) and naive_visible(session, one):
            original = world.get(Post, one.shared_post_id)
            if one.text or original is None or naive_visible(session, original):
                found.append(one)
    return [one.id for one in sorted(found, key=lambda one: (-one.created_at, one.id))]


calls = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "like", "comment", "share", "follow", "unfollow", "block"]),
        st.integers(0, 300),
    ),
    max_size=15,
)


@given(calls, st.sampled_from(["sparse", "adversarial"]))
@settings(max_examples=50)
def test_feed_search_and_invariants(script: list[tuple[str, int]], scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    for kind, number in script:
        posts, users = list(world.rows(Post)), list(world.rows(User))
        target, who = posts[number % len(posts)], users[number % len(users)]
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "create": ("create_post", {"text": f"Hello {number}."}), "delete": ("delete_post", {"post_id": target.id}),
            "like": ("like_post", {"post_id": target.id}),
            "comment": ("comment_on_post", {"post_id": target.id, "text": "x"}),
            "share": ("share_post", {"post_id": target.id}), "follow": ("follow_user", {"user": who.handle}),
            "unfollow": ("unfollow_user", {"user": who.id}), "block": ("block_user", {"user": who.id}),
        }  # fmt: skip
        visible = naive_visible(session, target)
        before = session.digest()
        outcome = session.call(*call[kind])
        if outcome.kind == "execution_error":
            assert session.digest() == before
        elif kind in ("like", "comment", "share", "delete"):
            assert visible
        if outcome.kind == "ok" and kind == "share":
            assert world.need(Post, outcome.value["shared"]["post_id"]).shared_post_id == ""
    assert [one["post_id"] for one in every(session, "get_feed")] == naive_feed(session)
    listed = {one["post_id"] for one in every(session, "search_posts")}
    assert listed == {one.id for one in world.rows(Post) if naive_visible(session, one)}
    for block in world.rows(Block):
        assert world.get(Follow, (block.blocker_id, block.blocked_id)) is None
        assert world.get(Follow, (block.blocked_id, block.blocker_id)) is None
    for one in world.rows(Post):
        assert not (one.deleted and one.text)


# Scenarios --------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    world = environment(scale=2).open(scenario, seed).world
    assert world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    handles = [one.handle for one in world.rows(User)]
    assert len(handles) == len(set(handles))
    posts = {one.id: one for one in world.rows(Post)}
    for one in posts.values():
        assert world.get(User, one.author_id) is not None
        assert len(one.text) <= 280
        assert one.created_at <= world.now
        if one.shared_post_id:
            original = posts[one.shared_post_id]
            assert original.shared_post_id == ""
            assert not world.need(User, original.author_id).private or original.author_id == one.author_id
    for like in world.rows(Like):
        assert like.post_id in posts
        assert world.get(User, like.user_id) is not None
    for comment in world.rows(Comment):
        assert comment.post_id in posts
        assert comment.created_at <= world.now
    for follow in world.rows(Follow):
        assert follow.follower_id != follow.followed_id
        assert follow.accepted or world.need(User, follow.followed_id).private
        for pair in ((follow.follower_id, follow.followed_id), (follow.followed_id, follow.follower_id)):
            assert world.get(Block, pair) is None


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 1000
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    listed = every(session, "search_posts")
    target = next(
        one["post_id"] for one in listed if one["author_id"] != ME and not one["liked_by_you"]
        and one["comments_from"] == "everyone" and not one["shared"]
        and not session.world.need(User, one["author_id"]).private
    )  # fmt: skip
    stranger = next(one["user_id"] for one in every(session, "search_users") if one["user_id"] != ME
                    and session.world.get(Follow, (ME, one["user_id"])) is None)  # fmt: skip
    mine = executed(session, "create_post", text="Hello.")["post_id"]
    table: dict[str, dict[str, Any]] = {
        "search_users": {"query": "a"}, "get_profile": {}, "get_feed": {}, "search_posts": {"query": "#music"},
        "get_post": {"post_id": target}, "list_comments": {"post_id": target}, "list_followers": {},
        "like_post": {"post_id": target}, "comment_on_post": {"post_id": target, "text": "Yes."},
        "share_post": {"post_id": target}, "delete_post": {"post_id": mine}, "follow_user": {"user": stranger},
        "unfollow_user": {"user": stranger}, "block_user": {"user": stranger},
    }  # fmt: skip
    assert {*table, "create_post"} == set(SURFACE)
    for tool, arguments in table.items():
        executed(session, tool, **arguments)
