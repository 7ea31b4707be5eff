"""Whom the rows name: the customer. Those who come along have passports, and so names of their own."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.travel_booking.rows import Profile


def named(world: World) -> People:
    """The customer, who is one of the travellers."""
    profile = world.need(Profile, "me")
    return People(Person(profile.name, profile.email))
