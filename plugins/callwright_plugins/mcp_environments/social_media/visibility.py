"""Who may see and answer what."""

from __future__ import annotations

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.social_media.rows import Block, Follow, Post, Profile, User


def my_id(world: World) -> str:
    """The id of the signed-in person."""
    return world.need(Profile, "me").user_id


def barred(world: World) -> set[str]:
    """Everybody between whom and the signed-in person there is a block, whoever made it."""
    own = my_id(world)
    mine = {one.blocked_id for one in world.find(Block, blocker_id=own)}
    return mine | {one.blocker_id for one in world.find(Block, blocked_id=own)}


def follows(world: World, follower_id: str, followed_id: str) -> bool:
    """Whether somebody is an accepted follower."""
    follow = world.get(Follow, (follower_id, followed_id))
    return follow is not None and follow.accepted


def closed(world: World, author: User) -> bool:
    """Whether the posts of a profile are private and the signed-in person is not among its followers."""
    own = my_id(world)
    return author.private and author.id != own and not follows(world, own, author.id)


def reachable_user(world: World, user_id: str) -> User:
    """Somebody without a block in between. Fails with ``NOT_FOUND`` or ``BLOCKED``."""
    wanted = user_id.strip()
    user = world.get(User, wanted) or next(iter(world.find(User, handle=wanted.lower().lstrip("@"))), None)
    if user is None:
        raise ToolError(
            "NOT_FOUND", f"there is nobody with the id or handle {wanted[:40]!r}; search_users finds people"
        )
    own = my_id(world)
    if world.get(Block, (own, user.id)) is not None:
        raise ToolError("BLOCKED", f"you have blocked @{user.handle} ({user.id})")
    if world.get(Block, (user.id, own)) is not None:
        raise ToolError("BLOCKED", f"@{user.handle} ({user.id}) has blocked you")
    return user


def readable_post(world: World, post_id: str) -> Post:
    """A post that the signed-in person may read.

    Fails with ``NOT_FOUND``, ``BLOCKED``, ``PRIVATE_PROFILE`` or ``POST_DELETED``, in this order, so that
    nothing is told of posts that are not for everybody.
    """
    post = world.need(Post, post_id, message=f"there is no post {post_id[:40]!r}; search_posts and get_feed give ids")
    author = reachable_user(world, post.author_id)
    open_profile(world, author)
    if post.deleted:
        raise ToolError("POST_DELETED", f"{post.id} was deleted by @{author.handle}")
    return post


def open_profile(world: World, user: User) -> None:
    """Fails with ``PRIVATE_PROFILE`` for a profile that is closed to the signed-in person."""
    if closed(world, user):
        raise ToolError("PRIVATE_PROFILE", f"@{user.handle} shows posts and followers to accepted followers only")


@frozen
class Reader:
    """The signed-in person, whom to leave out for a block, and whose posts not to show for any reason."""

    own: str
    without: set[str]
    hidden: set[str]


def reader_of(world: World) -> Reader:
    """Who reads: worked out once for a page of posts, and not for every post."""
    own, without = my_id(world), barred(world)
    followed = {one.followed_id for one in world.find(Follow, follower_id=own) if one.accepted}
    private = {user.id for user in world.rows(User) if user.private}
    return Reader(own, without, without | (private - followed - {own}))


def may_read(world: World, post: Post, without: set[str]) -> bool:
    """Whether a post belongs in lists; ``without`` are the people to leave out (:func:`barred`)."""
    return not post.deleted and post.author_id not in without and not closed(world, world.need(User, post.author_id))
