"""Whom the rows name: those with a handle, one of whom is signed in."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.social_media.rows import Profile, User


def named(world: World) -> People:
    """Everybody with a handle."""
    me = world.need(Profile, "me").user_id
    people = {one.id: Person(one.name, login=one.handle) for one in world.rows(User) if " " in one.name}
    return People(people.pop(me), people.values())
