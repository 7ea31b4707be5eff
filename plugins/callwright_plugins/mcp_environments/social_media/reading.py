"""Tools that read the social network."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.social_media.rows import Comment, Follow, Post, User
from callwright_plugins.mcp_environments.social_media.views import (
    CommentView,
    PostView,
    ProfileView,
    UserSummary,
    comment_view,
    post_view,
    profile_view,
    user_summary,
)
from callwright_plugins.mcp_environments.social_media.visibility import (
    Reader,
    barred,
    my_id,
    open_profile,
    reachable_user,
    readable_post,
    reader_of,
)

UserId = Annotated[str, Field(description="Id or handle of somebody.", min_length=1, max_length=60)]
PostId = Annotated[str, Field(description="Id of a post, such as P00012.", min_length=1, max_length=40)]


def newest_first(post: Post) -> tuple[int, str]:
    """Sorts posts with the newest in front."""
    return -post.created_at, post.id


@tool(read_only=True, discovery=True)
def search_users(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of a handle, name or bio; empty: everybody.", max_length=80)] = "",
    verified_only: Annotated[bool, Field(description="Only verified profiles.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[UserSummary]:
    """Find people. Between whom and you there is a block do not show."""
    text, without = query.strip().lower().lstrip("@"), barred(world)
    found = [
        one
        for one in world.rows(User)
        if (one.verified or not verified_only)
        and (text in one.handle or text in one.name.lower() or text in one.bio.lower())
        and one.id not in without
    ]
    return page(found, user_summary, limit, cursor)


@tool(read_only=True)
def get_profile(
    world: World, /, user: Annotated[str, Field(description="Id or handle; empty: yourself.", max_length=60)] = ""
) -> ProfileView:
    """A profile with its counts, and how you and this person follow each other. BLOCKED behind a block."""
    return profile_view(world, reachable_user(world, user or my_id(world)))


@tool(read_only=True)
def get_feed(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[PostView]:
    """The posts of those whom you follow and your own, newest first."""
    reader = reader_of(world)
    people = {one.followed_id for one in world.find(Follow, follower_id=reader.own) if one.accepted}
    people = (people | {reader.own}) - reader.hidden
    found = [
        one.post
        for one in world.prepared(Post, readable_text, newest_first)
        if one.post.author_id in people and not one.post.deleted and _worth_showing(world, one.post, reader)
    ]
    return page(found, lambda one: post_view(world, one, reader), limit, cursor)


def _worth_showing(world: World, post: Post, reader: Reader) -> bool:
    """A share without words of its own shows only while its original does."""
    if not post.shared_post_id or post.text:
        return True
    original = world.need(Post, post.shared_post_id)
    return not original.deleted and original.author_id not in reader.hidden


@tool(read_only=True, discovery=True)
def search_posts(
    world: World,
    /,
    query: Annotated[
        str, Field(description="Words or #hashtags that all must occur; empty: any.", max_length=120)
    ] = "",
    author: Annotated[
        str, Field(description="Only by this person (id or handle); empty: anybody.", max_length=60)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[PostView]:
    """Search the posts that you may read, newest first.

    With an author it fails with BLOCKED or PRIVATE_PROFILE where their posts are not for you.
    """
    words, reader = query.lower().split(), reader_of(world)
    posts = world.prepared(Post, readable_text, newest_first)
    if author:
        user = reachable_user(world, author)
        open_profile(world, user)
        posts = [one for one in posts if one.post.author_id == user.id]
    for word in words:
        if word.startswith("#"):
            posts = [one for one in posts if word in one.tags and word in one.text]
        else:
            posts = [one for one in posts if word in one.text]
    found = [one.post for one in posts if not one.post.deleted and one.post.author_id not in reader.hidden]
    return page(found, lambda one: post_view(world, one, reader), limit, cursor)


class PostText(NamedTuple):
    """A post with its text in lower case and the hashtags in it, as searches read them."""

    post: Post
    text: str
    tags: frozenset[str]


def readable_text(post: Post) -> PostText:
    """The post as searches read it."""
    text = post.text.lower()
    return PostText(post, text, frozenset(part.rstrip(".,!?") for part in text.split() if part.startswith("#")))


@tool(read_only=True)
def get_post(world: World, /, post_id: PostId) -> PostView:
    """A post with its counts and, of a share, its original. Fails with BLOCKED, PRIVATE_PROFILE or POST_DELETED."""
    return post_view(world, readable_post(world, post_id))


@tool(read_only=True)
def list_comments(world: World, /, post_id: PostId, limit: Limit = 20, cursor: Cursor = "") -> Page[CommentView]:
    """The comments on a post that you may read, oldest first, without those of people behind a block."""
    post, without = readable_post(world, post_id), barred(world)
    found = [one for one in world.find(Comment, post_id=post.id) if one.author_id not in without]
    found.sort(key=lambda one: (one.created_at, one.id))
    return page(found, lambda one: comment_view(world, one), limit, cursor)


@tool(read_only=True, discovery=True)
def list_followers(
    world: World,
    /,
    user: Annotated[str, Field(description="Id or handle; empty: yourself.", max_length=60)] = "",
    direction: Annotated[
        Literal["followers", "following", "requests"],
        Field(
            description="Who follows them, whom they follow, or (of yourself only) whom you have asked in vain so far."
        ),
    ] = "followers",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[UserSummary]:
    """List who follows somebody or whom they follow. PRIVATE_PROFILE for closed profiles, BLOCKED behind a block."""
    person = reachable_user(world, user or my_id(world))
    open_profile(world, person)
    without = barred(world)
    if direction == "followers":
        ids = [one.follower_id for one in world.find(Follow, followed_id=person.id) if one.accepted]
    else:
        accepted = direction == "following"
        held = world.find(Follow, follower_id=person.id) if accepted or person.id == my_id(world) else []
        ids = [one.followed_id for one in held if one.accepted == accepted]
    found = [world.need(User, one) for one in ids if one not in without]
    return page(found, user_summary, limit, cursor)


READING = [search_users, get_profile, get_feed, search_posts, get_post, list_comments, list_followers]
