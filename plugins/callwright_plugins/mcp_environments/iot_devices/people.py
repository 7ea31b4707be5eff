"""Whom the rows name: the person at home."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.iot_devices.rows import Profile


def named(world: World) -> People:
    """The person at home."""
    return People(Person(world.need(Profile, "me").name))
