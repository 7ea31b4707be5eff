"""Tools that post, answer, follow and block."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.social_media.reading import PostId, UserId
from callwright_plugins.mcp_environments.social_media.rows import Block, Comment, Follow, Like, Post, User
from callwright_plugins.mcp_environments.social_media.views import (
    CommentView,
    FollowView,
    PostView,
    comment_view,
    post_view,
    standing,
)
from callwright_plugins.mcp_environments.social_media.visibility import (
    follows,
    my_id,
    reachable_user,
    readable_post,
)

#: Most characters of a post or a comment.
LONGEST: Final = 280

Text = Annotated[str, Field(description="Text of at most 280 characters.", min_length=1, max_length=2000)]
CommentsFrom = Annotated[Literal["everyone", "followers", "nobody"], Field(description="Who may comment.")]


def _checked(text: str) -> str:
    if len(text) > LONGEST:
        raise ToolError("TOO_LONG", f"the text has {len(text)} characters; at most {LONGEST} fit, so shorten it")
    if not text.strip():
        raise ToolError("EMPTY_TEXT", "the text is empty")
    return text


@tool
def create_post(world: World, /, text: Text, comments_from: CommentsFrom = "everyone") -> PostView:
    """Publish a post. TOO_LONG above 280 characters."""
    post = Post(world.new_id(Post), my_id(world), _checked(text), world.now, "", comments_from)
    return post_view(world, world.put(post))


@tool(destructive=True, irreversible=True)
def delete_post(world: World, /, post_id: PostId) -> PostView:
    """Delete a post of your own for good. NOT_AUTHOR for others' posts, POST_DELETED if it is gone already."""
    post = readable_post(world, post_id)
    if post.author_id != my_id(world):
        author = world.need(User, post.author_id)
        raise ToolError("NOT_AUTHOR", f"{post.id} is by @{author.handle}; only they can delete it")
    view = post_view(world, post)
    world.update(post, text="", deleted=True)
    return view


@tool(irreversible=True)
def like_post(world: World, /, post_id: PostId) -> PostView:
    """Like a post that you may read. ALREADY_LIKED the second time."""
    post = readable_post(world, post_id)
    own = my_id(world)
    if world.get(Like, (post.id, own)) is not None:
        raise ToolError("ALREADY_LIKED", f"you like {post.id} already")
    world.put(Like(post.id, own))
    return post_view(world, post)


@tool(irreversible=True)
def comment_on_post(world: World, /, post_id: PostId, text: Text) -> CommentView:
    """Comment on a post that you may read.

    COMMENTS_CLOSED where its author takes comments from nobody or from followers only; TOO_LONG above 280 characters.
    """
    post = readable_post(world, post_id)
    own = my_id(world)
    if post.author_id != own:
        handle = world.need(User, post.author_id).handle
        if post.comments == "nobody":
            raise ToolError("COMMENTS_CLOSED", f"@{handle} takes no comments on {post.id}")
        if post.comments == "followers" and not follows(world, own, post.author_id):
            raise ToolError("COMMENTS_CLOSED", f"@{handle} takes comments on {post.id} from followers only")
    comment = Comment(world.new_id(Comment), post.id, own, _checked(text), world.now)
    return comment_view(world, world.put(comment))


@tool
def share_post(
    world: World,
    /,
    post_id: PostId,
    text: Annotated[str, Field(description="Your own words to it; may be empty.", max_length=2000)] = "",
    comments_from: CommentsFrom = "everyone",
) -> PostView:
    """Share a post with those who follow you; a share of a share is one of the original.

    ALREADY_SHARED the second time, PRIVATE_PROFILE for posts of private profiles, TOO_LONG above 280 characters.
    """
    post = readable_post(world, post_id)
    original = readable_post(world, post.shared_post_id) if post.shared_post_id else post
    own = my_id(world)
    author = world.need(User, original.author_id)
    if author.private and author.id != own:
        raise ToolError("PRIVATE_PROFILE", f"@{author.handle} is private: what they post cannot be shared")
    mine = world.find(Post, shared_post_id=original.id, author_id=own, deleted=False)
    if mine:
        raise ToolError("ALREADY_SHARED", f"you have shared {original.id} as {mine[0].id}")
    words = _checked(text) if text else ""
    share = Post(world.new_id(Post), own, words, world.now, original.id, comments_from)
    return post_view(world, world.put(share))


@tool
def follow_user(world: World, /, user: UserId) -> FollowView:
    """Follow somebody, so that their posts are in your feed; of private profiles you ask for it (requested).

    ALREADY_FOLLOWING if you do or have asked, BLOCKED behind a block, INVALID_STATE for yourself.
    """
    person = reachable_user(world, user)
    own = my_id(world)
    if person.id == own:
        raise ToolError("INVALID_STATE", "nobody follows themselves")
    if world.get(Follow, (own, person.id)) is not None:
        raise ToolError("ALREADY_FOLLOWING", f"you and @{person.handle}: {standing(world, person.id)} already")
    world.put(Follow(own, person.id, not person.private))
    return {"user_id": person.id, "handle": person.handle, "you_follow": standing(world, person.id)}


@tool(destructive=True)
def unfollow_user(world: World, /, user: UserId) -> FollowView:
    """Follow somebody no more, or take back the request. NOT_FOLLOWING if you do not."""
    person = reachable_user(world, user)
    follow = world.get(Follow, (my_id(world), person.id))
    if follow is None:
        raise ToolError("NOT_FOLLOWING", f"you do not follow @{person.handle}, nor have you asked to")
    world.drop(follow)
    return {"user_id": person.id, "handle": person.handle, "you_follow": "no"}


@tool(irreversible=True)
def block_user(world: World, /, user: UserId) -> FollowView:
    """Block somebody: neither of you sees the other any more, and following ends both ways. Nothing undoes it.

    BLOCKED if there is a block between you already, INVALID_STATE for yourself.
    """
    person = reachable_user(world, user)
    own = my_id(world)
    if person.id == own:
        raise ToolError("INVALID_STATE", "nobody can block themselves")
    for pair in ((own, person.id), (person.id, own)):
        follow = world.get(Follow, pair)
        if follow is not None:
            world.drop(follow)
    world.put(Block(own, person.id))
    return {"user_id": person.id, "handle": person.handle, "you_follow": "no"}


ACTING = [
    create_post,
    delete_post,
    like_post,
    comment_on_post,
    share_post,
    follow_user,
    unfollow_user,
    block_user,
]
