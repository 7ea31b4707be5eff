"""What the people in the stores know: what they counted, and who asks for goods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.people import full_name
from callwright_plugins.mcp_environments.retail_chain.rows import Transfer
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who wants something put aside, and what broke (``me``); of a transfer, by id: how many pieces came out of it."""
    if entity == ME:
        rng = wishes(world, "retail_chain")
        return {
            "customer_name": full_name(rng),
            "pieces_wanted": rng.randrange(1, 5),
            "pieces_broken": rng.randrange(1, 4),
            "pieces_found": rng.randrange(1, 4),
            "damage_note": rng.choice(("water damage", "box crushed", "fell from the shelf", "torn wrapping")),
        }
    transfer = world.get(Transfer, entity)
    if transfer is None:
        return None
    rng = wishes(world, "retail_chain", entity)
    missing = rng.choice((0, 0, 0, 1, 2))
    return {"counted_pieces": transfer.received_quantity or max(0, transfer.quantity - missing)}
