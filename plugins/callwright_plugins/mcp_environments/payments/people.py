"""Whom the rows name: customers who are persons. The merchant has no name."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.payments.rows import Customer


def named(world: World) -> People:
    """Customers whose address begins with their name."""
    customers = (Person(one.name, one.email) for one in world.rows(Customer) if not one.archived)
    return People(None, [one for one in customers if one.email.startswith(".".join(one.name.lower().split()))])
