"""What the person knows whose meetings they are: passcodes that were agreed on, and plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import HOUR, iso
from callwright_plugins.mcp_environments.video_meeting.rights import role_of
from callwright_plugins.mcp_environments.video_meeting.rows import Meeting, Profile, User
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is and a meeting that they want; of a meeting that they host or are invited to, by id, its
    passcode.
    """
    profile = world.get(Profile, ME)
    user = None if profile is None else world.get(User, profile.user_id)
    if user is None:
        return None
    if entity != ME:
        meeting = world.get(Meeting, entity)
        if meeting is None or role_of(world, meeting, user.id) not in ("host", "cohost", "invited"):
            return None
        return {"passcode": meeting.passcode} if meeting.passcode else None
    rng = wishes(world, "video_meeting")
    return {
        "name": user.name,
        "email": user.email,
        "new_topic": rng.choice(("Contract with the printer", "Choir board", "Handover", "Interview")),
        "new_starts_at": iso(world.base.now + rng.randrange(20, 120) * HOUR),
        "new_minutes": rng.choice((20, 25, 30, 40)),
        "new_passcode": f"{rng.randrange(1000, 10_000)}",
    }
