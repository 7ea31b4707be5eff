"""What the driver knows: how warm it should be, how fast, and how much to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.vehicle.rows import Destination
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Where the driver wants to go, what they find comfortable, and how many litres they pay for."""
    if entity != ME:
        return None
    rng = wishes(world, "vehicle")
    facts: dict[str, Any] = {}
    places = list(world.base.rows(Destination).values())
    if places:
        facts["destination_name"] = rng.choice(places).name
    return facts | {
        "comfort_celsius": rng.choice((20.0, 21.0, 21.5, 22.5)),
        "passenger_celsius": rng.choice((19.0, 20.5, 23.0)),
        "fan_level": rng.choice((2, 3, 4)),
        "cruise_kmh": rng.choice((80, 95, 110, 120)),
        "litres": rng.choice((5.0, 7.5, 10.0)),
    }
