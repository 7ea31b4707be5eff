"""What the trader knows: how much money there is for what, and at which prices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.trading.rows import Symbol
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """What the trader wants: a share, how many, the prices that are still good, and what may be paid in for it."""
    symbols = list(world.base.rows(Symbol).values())
    if entity != ME or not symbols:
        return None
    rng = wishes(world, "trading")
    wanted = rng.choice([symbol for symbol in symbols if not symbol.halted] or symbols)
    tick, shares = wanted.tick_cents, rng.randrange(2, 11)
    most = wanted.last_cents - wanted.last_cents * rng.randrange(5, 25) // 1000
    return {
        "wanted_symbol": wanted.symbol,
        "favourite_sector": wanted.sector,
        "shares": shares,
        "most_price_cents": most // tick * tick,
        "alert_price_cents": (wanted.last_cents + wanted.last_cents * rng.randrange(10, 30) // 1000) // tick * tick,
        "patience": rng.choice(("day", "gtc")),
        "deposit_cents": rng.randrange(1, 9) * 50_000,
    }
