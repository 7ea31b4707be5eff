"""Tools that read the social network."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from callwright.paging import Cursor, Limit, Page, page
from callwright.tool import tool
from callwright.world import World
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
    barred,
    may_read,
    my_id,
    open_profile,
    reachable_user,
    readable_post,
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
    own, without = my_id(world), barred(world)
    people = [own, *(one.followed_id for one in world.find(Follow, follower_id=own) if one.accepted)]
    found = [
        post
        for author in people
        for post in world.find(Post, author_id=author)
        if may_read(world, post, without) and _worth_showing(world, post, without)
    ]
    return page(sorted(found, key=newest_first), lambda one: post_view(world, one), limit, cursor)


def _worth_showing(world: World, post: Post, without: set[str]) -> bool:
    """A share without words of its own shows only while its original does."""
    return not post.shared_post_id or bool(post.text) or may_read(world, world.need(Post, post.shared_post_id), without)


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
    words, without = query.lower().split(), barred(world)
    if author:
        user = reachable_user(world, author)
        open_profile(world, user)
        posts = world.find(Post, author_id=user.id)
    else:
        posts = list(world.rows(Post))
    found = [post for post in posts if _mentions(post, words) and may_read(world, post, without)]
    return page(sorted(found, key=newest_first), lambda one: post_view(world, one), limit, cursor)


def _mentions(post: Post, words: list[str]) -> bool:
    text = post.text.lower()
    if not all(word in text for word in words):
        return False
    tags = {part.rstrip(".,!?") for part in text.split() if part.startswith("#")}
    return all(word in tags for word in words if word.startswith("#"))


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
