"""What the customer pays by card: orders and tips, less what comes back."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Charge, Charges
from callwright.environments.world import World
from callwright_plugins.mcp_environments.food_delivery.rows import Order, Restaurant


def paid(world: World, order: Order) -> int:
    """Cash is paid at the door; tips always go to the card."""
    return (order.total_cents if order.payment == "card" else 0) + order.tip_cents - order.refunded_cents


def told(world: World, order: Order) -> str:
    """On the statement."""
    return f"Order from {world.need(Restaurant, order.restaurant_id).name}"


CHARGES: Final = Charges((Charge(Order, paid, told),), declined="CARD_DECLINED")
