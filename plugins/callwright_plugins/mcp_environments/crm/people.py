"""Whom the rows name: the colleagues who sell, one of whom is signed in. Customers are strangers."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.crm.rows import Owner, Profile


def named(world: World) -> People:
    """Colleagues."""
    me = world.need(Profile, "me").owner_id
    people = {one.id: Person(one.name, one.email) for one in world.rows(Owner)}
    return People(people.pop(me), people.values())
