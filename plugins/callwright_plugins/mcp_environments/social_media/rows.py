"""The tables of the social network. The feed is no table: it is computed from follows."""

from __future__ import annotations

from typing import Any, Final

from callwright.environments.rows import row


@row("users", prefix="U", index=("handle",))
class User:
    """Somebody with a profile."""

    id: str
    handle: str
    name: str
    bio: str
    private: bool
    verified: bool


@row("profile")
class Profile:
    """The signed-in person: one row, ``me``."""

    id: str
    user_id: str


@row("posts", prefix="P", index=("author_id", "shared_post_id"), stamps=("created_at",))
class Post:
    """A post; ``shared_post_id`` is the original that it shares, or empty. ``comments``: who may."""

    id: str
    author_id: str
    text: str
    created_at: int
    shared_post_id: str
    comments: str
    deleted: bool = False


@row("likes", key=("post_id", "user_id"), index=("post_id", "user_id"))
class Like:
    """Somebody likes a post."""

    post_id: str
    user_id: str


@row("comments", prefix="K", index=("post_id",), stamps=("created_at",))
class Comment:
    """A comment on a post."""

    id: str
    post_id: str
    author_id: str
    text: str
    created_at: int


@row("follows", key=("follower_id", "followed_id"), index=("follower_id", "followed_id"))
class Follow:
    """Somebody follows somebody, or (not ``accepted``) asks to."""

    follower_id: str
    followed_id: str
    accepted: bool


@row("blocks", key=("blocker_id", "blocked_id"), index=("blocker_id", "blocked_id"))
class Block:
    """Somebody has blocked somebody."""

    blocker_id: str
    blocked_id: str


ROWS: Final[tuple[type[Any], ...]] = (User, Profile, Post, Like, Comment, Follow, Block)
