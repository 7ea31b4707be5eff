"""Whom the rows name: the owner of the mailbox, and the contacts."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.email.rows import Contact, Mailbox


def named(world: World) -> People:
    """Who writes and is written to."""
    box = world.need(Mailbox, "me")
    return People(Person(box.name, box.address), (Person(one.name, one.address) for one in world.rows(Contact)))
