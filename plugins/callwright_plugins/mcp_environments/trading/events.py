"""What the exchange does by itself: orders of others come in and meet those of the trader, and days close."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.environments.living.events import EventKind, Moment, Notice
from callwright.environments.world import World
from callwright_plugins.mcp_environments.trading.rows import CLOCK, Alert, MarketClock, Order, Symbol
from callwright_plugins.mcp_environments.trading.session import settle


def _due(world: World, since: Moment) -> Moment | None:
    clock = world.need(MarketClock, CLOCK)
    return min(clock.incoming_at, clock.close_at), CLOCK


def _run(world: World, key: str) -> tuple[list[Order], list[Alert]]:
    """The trader's open orders, and alerts, as they were before."""
    orders, alerts = world.find(Order, status="open"), world.find(Alert, triggered_at=0)
    settle(world)
    return orders, alerts


def _tells(world: World, key: str, before: tuple[list[Order], list[Alert]]) -> Iterable[Notice]:
    for was in before[0]:
        order = world.need(Order, was.id)
        what = f"Your order {order.id} to {order.side} {order.symbol}"
        if order.filled > was.filled:
            now = "is filled" if order.status == "filled" else f"is filled in part: {order.filled} of {order.shares}"
            yield Notice(f"{what} {now}; {order.filled - was.filled} shares traded just now.")
        if order.status == "expired":
            yield Notice(f"{what} has expired with {order.remaining} of {order.shares} shares not traded.")
    for alert in before[1]:
        if world.need(Alert, alert.id).triggered_at:
            last = world.need(Symbol, alert.symbol).last_cents
            yield Notice(
                f"Alert {alert.id}: {alert.symbol} traded at {alert.price_cents} cents or {alert.direction}; the last "
                f"price is {last}."
            )


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind(
        "market",
        "Somebody else's order comes in, or the day closes: the trader is told of own orders that are filled or "
        "expire, and of alerts.",
        _due,
        _tells,
        _run,
    ),
)
