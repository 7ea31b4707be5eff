"""Drawing what somebody wants and no row of a world holds: the same for the same scenario and seed."""

from __future__ import annotations

from random import Random
from typing import Final

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import DAY, iso_date

#: The one whose session it is.
ME: Final = "me"


def wishes(world: World, environment: str, entity: str = ME) -> Random:
    """Random numbers of their own for what one entity of an environment wants; the world's are left alone."""
    return Random(f"{environment}/{world.base.seed}/{entity} wants")


def day_ahead(world: World, days: int) -> str:
    """The day so many days after the session's first: ``2026-03-05``."""
    return iso_date(world.base.now + days * DAY)
