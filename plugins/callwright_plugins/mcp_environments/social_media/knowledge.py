"""What the person knows whose profile it is: what they want to say, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.social_media.rows import Profile, User
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, the words of a post and of a comment, and who may answer."""
    profile = world.get(Profile, ME)
    user = None if profile is None else world.get(User, profile.user_id)
    if entity != ME or user is None:
        return None
    rng = wishes(world, "social_media")
    return {
        "name": user.name,
        "handle": user.handle,
        "news": rng.choice(
            (
                "The kiln is back from repair, first bowls on Friday.",
                "We open the garden gate on Saturday at ten.",
                "Looking for a second viola for our quartet.",
                "Two tickets for the night train to give away.",
            )
        ),
        "comment": rng.choice(("Count me in!", "What a view.", "Congratulations to all of you.", "Where was this?")),
        "comments_from": rng.choice(("everyone", "followers", "nobody")),
    }
