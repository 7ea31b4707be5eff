"""A social network: posts, likes, comments, shares, follows and blocks.

The rules of this world:

- A block works in both directions: neither finds, reads, follows or answers the other, and following ends both ways.
- Posts of a private profile are for its accepted followers. To follow one is a request until its owner accepts.
- The feed is computed from whom one follows, newest first, and holds one's own posts too.
- Deleted posts stay as empty shells: they cannot be read, liked, answered or shared, and what shared them says so.
- A share of a share is a share of the original. Posts of private profiles cannot be shared by anybody else.
- The author of a post decides who comments: everyone, followers, or nobody.
- Texts have at most 280 characters, comments too.
- Nobody likes or shares a post twice, or follows somebody twice.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
