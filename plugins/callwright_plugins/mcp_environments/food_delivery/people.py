"""Whom the rows name: the customer, with the address called home."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.food_delivery.rows import Address, Profile


def named(world: World) -> People:
    """The customer."""
    profile = world.need(Profile, "me")
    home = next((one.street for one in world.rows(Address) if one.label == "home"), "")
    return People(Person(profile.name, phone=profile.phone, street=home))
