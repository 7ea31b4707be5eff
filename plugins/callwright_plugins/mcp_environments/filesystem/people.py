"""Whom the rows name: who is signed in to the shell, by login."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.filesystem.rows import SHELL, Shell, User


def named(world: World) -> People:
    """The user of the shell. What is in files stays as it is, because their sizes are known."""
    user = world.need(User, world.need(Shell, SHELL).user)
    return People(Person(f"{user.name} {user.name}", login=user.name), untouched=("blobs",))
