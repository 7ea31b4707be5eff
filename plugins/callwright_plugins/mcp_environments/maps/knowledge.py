"""What the person knows who asks for the way: where they live, how they like to travel, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.maps.rows import Category, Place, Profile
from callwright_plugins.mcp_environments.times import HOUR, iso
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """The address at home, the one to go to, means of travel, and a label for a place worth keeping."""
    houses = [place for place in world.base.rows(Place).values() if place.category == "address"]
    houses = houses or list(world.base.rows(Place).values())
    if entity != ME or world.get(Profile, ME) is None or not houses:
        return None
    rng = wishes(world, "maps")
    home = rng.choice(houses)
    kinds = [kind.key for kind in world.base.rows(Category).values() if kind.key != "address"]
    return {
        "home_address": home.address,
        "city": home.city,
        "mode": rng.choice(("drive", "walk", "bicycle", "transit")),
        "avoid": rng.choice(("motorway", "toll", "ferry")),
        "favourite_category": rng.choice(kinds or ["cafe"]),
        "place_label": rng.choice(("Swimming", "Aunt Ida", "Rehearsal", "Good coffee")),
        "depart_at": iso(world.base.now + rng.randrange(2, 30) * HOUR),
    }
