"""Whom the rows name: the customer of the first reservation, who collects it."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.retail_chain.rows import Reservation


def named(world: World) -> People:
    """Whose the first reservation is."""
    customers = [one.customer for one in world.rows(Reservation) if " " in one.customer]
    return People(Person(customers[0])) if customers else People()
