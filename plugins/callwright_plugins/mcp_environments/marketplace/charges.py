"""What goes in and out of the wallet of whoever is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Charge, Charges
from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.rows import Profile, Wallet


def paid(world: World, wallet: Wallet) -> int:
    """Purchases and won auctions empty the wallet, sales fill it; the account behind it follows."""
    return -wallet.balance_cents if wallet.user_id == world.need(Profile, "me").user_id else 0


def told(world: World, wallet: Wallet) -> str:
    """On the statement."""
    return "Marketplace wallet"


CHARGES: Final = Charges((Charge(Wallet, paid, told),), declined="INSUFFICIENT_FUNDS")
