"""What somebody who buys and sells knows: how far they go, and what they have at home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.rows import Profile, User
from callwright_plugins.mcp_environments.wishes import ME, wishes

_THINGS = (
    ("Folding bicycle", "sports", "used"),
    ("Box of jazz records", "music", "used"),
    ("Oak side table", "furniture", "like_new"),
    ("Wrist watch with date", "watches", "used"),
    ("Film camera", "electronics", "for_parts"),
)


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """How much the user would bid and pay, and a thing to sell: its title, category, condition and least price."""
    profile = world.get(Profile, ME)
    user = None if profile is None else world.get(User, profile.user_id)
    if entity != ME or user is None:
        return None
    rng = wishes(world, "marketplace")
    title, category, condition = rng.choice(_THINGS)
    least = rng.randrange(2, 15) * 1000
    return {
        "name": user.name,
        "wanted_category": rng.choice(("art", "books", "electronics", "music", "toys")),
        "most_cents": rng.randrange(3, 20) * 1000,
        "thing_title": title,
        "thing_category": category,
        "thing_condition": condition,
        "thing_start_cents": least // 2,
        "thing_reserve_cents": least,
    }
