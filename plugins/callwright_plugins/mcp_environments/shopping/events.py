"""What happens to orders: each step at the time that was fixed at checkout, unless the order is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import Order, Shipment
from callwright_plugins.mcp_environments.times import iso


def _packed(shipment: Shipment) -> Moment:
    return shipment.packed_at, shipment.id


def _shipped(shipment: Shipment) -> Moment:
    return shipment.shipped_at, shipment.id


def _delivered(shipment: Shipment) -> Moment:
    return shipment.delivered_at, shipment.id


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
)
