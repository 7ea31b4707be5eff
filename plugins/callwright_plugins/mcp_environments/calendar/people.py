"""Whom the rows name: the colleagues in the address book, one of whom is signed in."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.calendar.rows import Person as Colleague
from callwright_plugins.mcp_environments.calendar.rows import Profile


def named(world: World) -> People:
    """Everybody who can be invited."""
    me = world.need(Profile, "me").person_id
    people = {one.id: Person(one.name, one.email) for one in world.rows(Colleague)}
    return People(people.pop(me), people.values())
