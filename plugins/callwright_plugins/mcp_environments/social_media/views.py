"""What tools of the social network return."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.social_media.rows import Comment, Follow, Like, Post, User
from callwright_plugins.mcp_environments.social_media.visibility import Reader, closed, follows, my_id, reader_of
from callwright_plugins.mcp_environments.times import iso


class UserSummary(TypedDict):
    """Somebody in a list."""

    user_id: str
    handle: str
    name: str
    private: Annotated[bool, Field(description="Only followers whom they took see posts.")]
    verified: bool


class ProfileView(UserSummary):
    """A profile; ``you_follow`` is following, requested or no. Of a closed one, posts are ``None``."""

    bio: str
    followers: int
    following: int
    posts: int | None
    you_follow: str
    follows_you: bool


class SharedView(TypedDict):
    """The original of a share; not available if it was deleted or is not for you."""

    post_id: str
    available: Annotated[bool, Field(description="false: deleted, or not for you.")]
    author_handle: str
    text: str


class PostView(TypedDict):
    """A post with its counts."""

    post_id: str
    author_id: str
    author_handle: str
    text: str
    created_at: str
    likes: int
    comments: int
    shares: Annotated[int, Field(description="How often others shared it.")]
    liked_by_you: bool
    comments_from: Annotated[str, Field(description="Who may comment: everyone, followers or nobody.")]
    shared: SharedView | None


class CommentView(TypedDict):
    """A comment."""

    comment_id: str
    post_id: str
    author_id: str
    author_handle: str
    text: str
    created_at: str


class FollowView(TypedDict):
    """How you and somebody stand: following, requested, or no."""

    user_id: str
    handle: str
    you_follow: Annotated[str, Field(description="following, requested or no.")]


def user_summary(user: User) -> UserSummary:
    """Somebody in a list."""
    return {
        "user_id": user.id,
        "handle": user.handle,
        "name": user.name,
        "private": user.private,
        "verified": user.verified,
    }


def standing(world: World, user_id: str) -> str:
    """Whether the signed-in person follows somebody: ``following``, ``requested`` or ``no``."""
    follow = world.get(Follow, (my_id(world), user_id))
    return "no" if follow is None else "following" if follow.accepted else "requested"


def profile_view(world: World, user: User) -> ProfileView:
    """A profile."""
    posts = None
    if not closed(world, user):
        posts = sum(not one.deleted for one in world.find(Post, author_id=user.id))
    return {
        **user_summary(user),
        "bio": user.bio,
        "followers": world.count(Follow, followed_id=user.id, accepted=True),
        "following": world.count(Follow, follower_id=user.id, accepted=True),
        "posts": posts,
        "you_follow": standing(world, user.id),
        "follows_you": follows(world, user.id, my_id(world)),
    }


def post_view(world: World, post: Post, reader: Reader | None = None) -> PostView:
    """A post. Comments of people behind a block are not counted, because they are not shown."""
    reader = reader or reader_of(world)
    comments = world.find(Comment, post_id=post.id)
    return {
        "post_id": post.id,
        "author_id": post.author_id,
        "author_handle": world.need(User, post.author_id).handle,
        "text": post.text,
        "created_at": iso(post.created_at),
        "likes": world.count(Like, post_id=post.id),
        "comments": sum(one.author_id not in reader.without for one in comments) if reader.without else len(comments),
        "shares": world.count(Post, shared_post_id=post.id, deleted=False),
        "liked_by_you": world.get(Like, (post.id, reader.own)) is not None,
        "comments_from": post.comments,
        "shared": _shared(world, post, reader) if post.shared_post_id else None,
    }


def _shared(world: World, post: Post, reader: Reader) -> SharedView:
    original = world.need(Post, post.shared_post_id)
    if original.deleted or original.author_id in reader.hidden:
        return {"post_id": original.id, "available": False, "author_handle": "", "text": ""}
    handle = world.need(User, original.author_id).handle
    return {"post_id": original.id, "available": True, "author_handle": handle, "text": original.text}


def comment_view(world: World, comment: Comment) -> CommentView:
    """A comment."""
    return {
        "comment_id": comment.id,
        "post_id": comment.post_id,
        "author_id": comment.author_id,
        "author_handle": world.need(User, comment.author_id).handle,
        "text": comment.text,
        "created_at": iso(comment.created_at),
    }
