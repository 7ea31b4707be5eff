"""Whom the rows name: nobody but the driver, whose home is a saved destination."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.vehicle.rows import Destination


def named(world: World) -> People:
    """The driver, who has no name, and the way home."""
    home = next((one.address for one in world.rows(Destination) if one.category == "home"), "")
    street, comma, city = home.partition(", ")
    return People(Person("The driver", street=street, city=city)) if comma else People()
