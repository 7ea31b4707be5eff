"""The passing of time at the exchange: other traders' orders, and the close of each day.

Tools that write first let happen what the clock has passed; tools that only read look at a copy in which it has
happened.
"""

from __future__ import annotations

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import iso_date
from callwright_plugins.mcp_environments.trading.book import arrive, reserve
from callwright_plugins.mcp_environments.trading.hours import next_close
from callwright_plugins.mcp_environments.trading.rows import (
    CLOCK,
    NEVER,
    Incoming,
    MarketClock,
    Order,
    PriceBar,
    Symbol,
)


def current(world: World) -> World:
    """The world as it is now, for tools that only read."""
    clock = world.need(MarketClock, CLOCK)
    if world.now < clock.incoming_at and world.now < clock.close_at:
        return world
    return world.ahead(settle)


def settle(world: World) -> None:
    """Let everything happen that the clock has passed, in the order of its times."""
    while True:
        clock = world.need(MarketClock, CLOCK)
        if world.now >= clock.close_at and clock.close_at <= clock.incoming_at:
            _close(world, clock.close_at)
        elif world.now >= clock.incoming_at:
            arrive(world, world.need(Incoming, clock.next_incoming))
            clock = world.need(MarketClock, CLOCK)
            following = world.get(Incoming, clock.next_incoming + 1)
            world.update(
                clock,
                next_incoming=clock.next_incoming + 1,
                incoming_at=NEVER if following is None else following.at,
            )
        else:
            return


def end_order(world: World, order: Order, status: str) -> Order:
    """Take an order out of the book and give back what it reserved."""
    reserve(world, order, -order.remaining)
    return world.update(order, status=status)


def _close(world: World, at: int) -> None:
    for order in world.find(Order, status="open"):
        if order.expires_at <= at:
            end_order(world, order, "expired")
    day = iso_date(at)
    for row in list(world.rows(Symbol)):
        world.put(PriceBar(row.symbol, day, row.open_cents, row.high_cents, row.low_cents, row.last_cents, row.volume))
        world.update(
            row,
            prev_close_cents=row.last_cents,
            open_cents=row.last_cents,
            high_cents=row.last_cents,
            low_cents=row.last_cents,
            volume=0,
        )
    world.update(world.need(MarketClock, CLOCK), close_at=next_close(at))
