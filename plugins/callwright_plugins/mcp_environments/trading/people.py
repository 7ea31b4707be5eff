"""Whom the rows name: nobody. They are of accounts, which are called what they are for."""

from __future__ import annotations

from callwright.environments.people.person import People
from callwright.environments.world import World


def named(world: World) -> People:
    """Nobody, so that anybody may be signed in."""
    return People()
