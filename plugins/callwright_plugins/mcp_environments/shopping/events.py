"""What happens to orders: each step at the time that was fixed at checkout, unless the order is cancelled.

What the shop gives back arrives three days later: the shop's books know of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.refunds import ON_ITS_WAY, arrive
from callwright_plugins.mcp_environments.shopping.rows import Order, PaymentMethod, Return, Shipment
from callwright_plugins.mcp_environments.times import iso


def _packed(shipment: Shipment) -> Moment:
    return shipment.packed_at, shipment.id


def _shipped(shipment: Shipment) -> Moment:
    return shipment.shipped_at, shipment.id


def _delivered(shipment: Shipment) -> Moment:
    return shipment.delivered_at, shipment.id


#: Later than any time.
NEVER: Final = 1 << 60


def _of_return(one: Return) -> Moment:
    return one.requested_at + ON_ITS_WAY, one.id


def _of_cancellation(order: Order) -> Moment:
    return (NEVER if order.cancelled_at is None else order.cancelled_at + ON_ITS_WAY), order.id


def _return_paid(world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(Return, _of_return, _of_return), since):
        if world.need(Return, moment[1]).refund_cents:
            return moment
    return None


def _cancellation_paid(world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(Order, _of_cancellation, _of_cancellation), since):
        if moment[0] == NEVER:
            return None
        if world.need(Order, moment[1]).refunded_cents:
            return moment
    return None


def _pays_return(world: World, key: str) -> None:
    arrive(world, world.need(Order, world.need(Return, key).order_id))


def _pays_cancellation(world: World, key: str) -> None:
    arrive(world, world.need(Order, key))


def _tells_return(world: World, key: str, _: Any) -> Iterable[Notice]:
    one = world.need(Return, key)
    yield _arrived(world, world.need(Order, one.order_id), one.refund_cents, f"return {one.id}")


def _tells_cancellation(world: World, key: str, _: Any) -> Iterable[Notice]:
    order = world.need(Order, key)
    yield _arrived(world, order, order.refunded_cents, f"cancelled order {order.id}")


def _arrived(world: World, order: Order, cents: int, what: str) -> Notice:
    method = world.need(PaymentMethod, order.payment_method_id)
    return Notice(f"The refund of {cents} cents for {what} has arrived on {method.brand} {method.last4}.")


_Step = Callable[[Shipment], Moment]


def _due(step: _Step, world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(Shipment, step, step), since):
        order = world.need(Order, world.need(Shipment, moment[1]).order_id)
        if order.cancelled_at is None:
            return moment
    return None


def _tells(words: str, world: World, shipment_id: str, _: Any) -> Iterable[Notice]:
    shipment = world.need(Shipment, shipment_id)
    yield Notice(
        words.format(
            order=shipment.order_id,
            carrier=shipment.carrier,
            number=shipment.tracking_number,
            expected=iso(shipment.delivered_at),
        )
    )


def _kind(status: str, step: _Step, words: str) -> EventKind:
    return EventKind(
        f"order_{status}",
        f"An order is {status}: the customer is told.",
        partial(_due, step),
        partial(_tells, words),
    )


EVENTS: Final = (
    _kind("packed", _packed, "Your order {order} is packed; if it is cancelled now, its postage is kept."),
    _kind(
        "shipped",
        _shipped,
        "Your order {order} is shipped with {carrier} ({number}), expected at {expected}; it cannot be cancelled now.",
    ),
    _kind("delivered", _delivered, "Your order {order} is delivered. What is wrong with it can be returned."),
    EventKind(
        "return_refunded",
        "The refund of a return arrives: the customer is told.",
        _return_paid,
        _tells_return,
        _pays_return,
    ),
    EventKind(
        "cancellation_refunded",
        "The refund of a cancelled order arrives: the customer is told.",
        _cancellation_paid,
        _tells_cancellation,
        _pays_cancellation,
    ),
)
