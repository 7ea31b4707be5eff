"""Whom the rows name: the customer, with the address called home."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import Address, Profile


def named(world: World) -> People:
    """The customer."""
    profile = world.need(Profile, "me")
    home = next((one for one in world.rows(Address) if one.label == "home"), None)
    street, city = ("", "") if home is None else (home.street, home.city)
    return People(Person(profile.name, profile.email, street=street, city=city))
