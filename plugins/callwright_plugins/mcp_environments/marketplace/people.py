"""Whom the rows name: who is signed in, with the city. The others who buy and sell are strangers."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.rows import Profile, User


def named(world: World) -> People:
    """Who is signed in."""
    user = world.need(User, world.need(Profile, "me").user_id)
    return People(Person(user.name, city=user.city))
