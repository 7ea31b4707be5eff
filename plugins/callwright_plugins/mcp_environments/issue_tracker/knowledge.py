"""What somebody in the team knows: what they saw, did and promised, before any of it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.issue_tracker.rows import Profile, User
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, a defect that they saw, time that they spent, and what they promised for a sprint."""
    profile = world.get(Profile, ME)
    user = None if profile is None else world.get(User, profile.user)
    if entity != ME or user is None:
        return None
    rng = wishes(world, "issue_tracker")
    summary, details = rng.choice(
        (
            ("Export stops at 4 096 rows", "Seen twice on Friday; the file ends in the middle of a line."),
            ("Invitations arrive twice", "Every second guest of the spring round got two."),
            ("Clock is an hour ahead after midnight", "Only in the archive view, on two machines."),
            ("Search forgets the filter", "Going back from a result shows everything again."),
        )
    )
    return {
        "name": user.name,
        "email": user.email,
        "seen_summary": summary,
        "seen_details": details,
        "seen_priority": rng.choice(("high", "highest", "low")),
        "estimate_minutes": rng.choice((45, 90, 150, 240)),
        "points": rng.choice((1, 2, 3, 5)),
        "worked_minutes": rng.choice((25, 50, 80, 110)),
        "worked_note": rng.choice(("Read the logs", "Paired on it", "Wrote a test first")),
        "sprint_days": rng.choice((7, 10, 14)),
        "sprint_goal": rng.choice(("Fewer open bugs", "Ship the import", "Answer every customer")),
    }
