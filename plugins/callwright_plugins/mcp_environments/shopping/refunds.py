"""Refunds: the shop writes them down at once, and the money arrives three days later."""

from __future__ import annotations

from typing import Final

from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import Order, PaymentMethod, Return
from callwright_plugins.mcp_environments.times import DAY

#: Seconds from a refund to the customer's statement.
ON_ITS_WAY: Final = 3 * DAY


def give_back(world: World, order: Order, cents: int) -> None:
    """Give something back for an order, to the method that paid."""
    world.update(order, refunded_cents=order.refunded_cents + cents)


def settle(world: World) -> None:
    """Let all refunds arrive that have been on their way for long enough."""
    for order in world.rows(Order):
        if order.refunded_cents != order.arrived_cents:
            arrive(world, order)


def arrive(world: World, order: Order) -> None:
    """Let what was given back for an order arrive, as far as it has been on its way for long enough."""
    until = world.now - ON_ITS_WAY
    if order.cancelled_at is not None:
        arrived = order.refunded_cents if order.cancelled_at <= until else order.arrived_cents
    else:
        returned = world.find(Return, order_id=order.id)
        arrived = sum(one.refund_cents for one in returned if one.requested_at <= until)
    cents = arrived - order.arrived_cents
    if cents:
        method = world.need(PaymentMethod, order.payment_method_id)
        world.update(method, available_cents=method.available_cents + cents)
        world.update(order, arrived_cents=arrived)
