"""What the person knows who chats: the news they bring, and names for what they begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.team_chat.rows import Profile, User
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, an announcement, an answer, and the name and topic of a channel to come."""
    profile = world.get(Profile, ME)
    user = None if profile is None else world.get(User, profile.user_id)
    if entity != ME or user is None:
        return None
    rng = wishes(world, "team_chat")
    name, topic = rng.choice(
        (
            ("office-plants", "Who waters what"),
            ("offsite-planning", "Days, rooms and trains"),
            ("reading-group", "One paper a week"),
            ("night-shift", "Handover at seven"),
        )
    )
    return {
        "name": user.name,
        "handle": user.handle,
        "announcement": f"The freight lift is out of order until {day_ahead(world, rng.randrange(1, 9))}.",
        "answer": rng.choice(("Yes, by noon.", "I take this one.", "Not before Thursday.", "Fine with me.")),
        "channel_name": f"{name}-{rng.randrange(10, 100)}",
        "channel_topic": topic,
    }
