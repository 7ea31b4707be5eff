"""What the person knows whose calendar it is: when they like to meet, and what is not in any calendar yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.calendar.rows import Person, Profile
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the person is, which lengths and hours suit them, and plans that nobody has entered."""
    profile = world.get(Profile, ME)
    person = None if profile is None else world.get(Person, profile.person_id)
    if entity != ME or person is None:
        return None
    rng = wishes(world, "calendar")
    out, topic = rng.randrange(8, 20), rng.choice(("Budget round", "Roof repairs", "Summer fair", "Book club"))
    return {
        "name": person.name,
        "email": person.email,
        "meeting_minutes": rng.choice((25, 30, 45, 60)),
        "earliest_hour": rng.choice(("09:30", "10:00", "11:00")),
        "quiet_weekday": rng.choice(("tuesday", "wednesday", "friday")),
        "travel_from": day_ahead(world, out),
        "travel_until": day_ahead(world, out + rng.randrange(2, 6)),
        "new_topic": topic,
        "lunch_place": rng.choice(("Blue Door", "Harbour Kitchen", "Old Mill", "Corner Table")),
    }
