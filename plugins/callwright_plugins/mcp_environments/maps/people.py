"""Whom the rows name: nobody but the user, with the house that is home."""

from __future__ import annotations

from callwright.environments.people.person import People, Person
from callwright.environments.world import World
from callwright_plugins.mcp_environments.maps.rows import Place, Profile


def named(world: World) -> People:
    """The user."""
    profile = world.need(Profile, "me")
    home = world.get(Place, profile.home)
    if home is None:
        return People(Person(f"{profile.name} {profile.name}", login=profile.name))
    return People(Person("The user", street=f"{home.number} {home.street}", city=home.city))
