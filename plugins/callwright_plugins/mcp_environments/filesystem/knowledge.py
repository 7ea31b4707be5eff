"""What users of the machine know: their passwords, and names for what is to come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.filesystem.rows import SHELL, Shell, User
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """What a user knows, by name; ``me`` is who was signed in at the start, whoever the shell has become since."""
    shell = world.base.rows(Shell).get(SHELL)
    name = (shell.user if shell is not None else "") if entity == ME else entity
    user = world.get(User, name)
    if user is None:
        return None
    rng = wishes(world, "filesystem", user.name)
    return {
        "user": user.name,
        "password": user.password,
        "project_name": rng.choice(("aster", "basalt", "cirrus", "drift")) + f"-{rng.randrange(10, 100)}",
        "release": f"{rng.randrange(1, 9)}.{rng.randrange(20)}.{rng.randrange(10)}",
        "contact_line": f"Questions: desk {rng.randrange(100, 1000)}",
    }
