"""What happens to orders: each step at the time that was fixed when the order was placed, unless it is cancelled."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice, after
from callwright.environments.world import World
from callwright_plugins.mcp_environments.food_delivery.rows import CourierEvent, Order, OrderStatus, Restaurant

_WORDS: Final[dict[OrderStatus, str]] = {
    "confirmed": "{restaurant} has confirmed your order {order}.",
    "preparing": "{restaurant} is preparing your order {order}; it can no longer be cancelled.",
    "picked_up": "{courier} has picked up your order {order} at {restaurant}.",
    "delivered": "{courier} has delivered your order {order} from {restaurant}. You can rate it, and tip the courier.",
}


def _moment(step: CourierEvent) -> Moment:
    return step.at, step.id


def _due(status: OrderStatus, world: World, since: Moment) -> Moment | None:
    for moment in after(world.prepared(CourierEvent, _moment, _moment), since):
        step = world.need(CourierEvent, moment[1])
        if step.status == status and world.need(Order, step.order_id).cancelled_at is None:
            return moment
    return None


def _tells(status: OrderStatus, world: World, step_id: str, _: Any) -> Iterable[Notice]:
    step = world.need(CourierEvent, step_id)
    restaurant = world.need(Restaurant, world.need(Order, step.order_id).restaurant_id)
    yield Notice(_WORDS[status].format(courier=step.courier, order=step.order_id, restaurant=restaurant.name))


EVENTS: Final = tuple(
    EventKind(
        f"order_{status}",
        f"An order is {status.replace('_', ' ')}: the customer is told.",
        partial(_due, status),
        partial(_tells, status),
    )
    for status in _WORDS
)
