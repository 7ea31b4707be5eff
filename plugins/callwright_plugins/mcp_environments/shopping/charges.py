"""What the customer pays by card: orders, less what comes back."""

from __future__ import annotations

from typing import Final

from callwright.environments.money.charges import Charge, Charges
from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import Order, OrderItem, PaymentMethod


def paid(world: World, order: Order) -> int:
    """What a gift card paid costs nothing any more; what comes back counts when it arrives."""
    card = world.need(PaymentMethod, order.payment_method_id).kind == "card"
    return order.total_cents - order.arrived_cents if card else 0


def told(world: World, order: Order) -> str:
    """On the statement: the first thing that was bought."""
    bought = world.find(OrderItem, order_id=order.id)
    return f"Order: {bought[0].product_name}" if bought else "Order"


CHARGES: Final = Charges((Charge(Order, paid, told),), declined="CARD_DECLINED")
