"""Whom the rows name: those with an account, one of whom is signed in."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.video_meeting.rows import Profile, User


def named(world: World) -> People:
    """Everybody with an account."""
    me = world.need(Profile, "me").user_id
    people = {one.id: Person(one.name, one.email) for one in world.rows(User)}
    return People(people.pop(me), people.values())
