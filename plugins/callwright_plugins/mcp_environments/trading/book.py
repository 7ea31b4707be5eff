"""The order book: who waits, who meets whom, and what a trade changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.trading.rows import (
    CLOCK,
    Account,
    Alert,
    BookOrder,
    Fill,
    Incoming,
    MarketClock,
    Order,
    Position,
    Symbol,
)

Waiting: TypeAlias = BookOrder | Order
#: A waiting order and how many of its shares are traded.
Match: TypeAlias = tuple[Waiting, int]


def opposite(side: str) -> str:
    """The other side."""
    return "sell" if side == "buy" else "buy"


def waiting(world: World, symbol: str, side: str) -> list[Waiting]:
    """The orders of one side of the book, the first to be met first."""
    found: list[Waiting] = [*world.find(BookOrder, symbol=symbol, side=side)]
    found += world.find(Order, symbol=symbol, side=side, status="open")
    sign = 1 if side == "sell" else -1
    found.sort(key=lambda one: (sign * one.price_cents, one.seq))
    return found


def matches(world: World, symbol: str, side: str, shares: int, limit_cents: int | None) -> list[Match]:
    """What an order meets: best price first, then who came first, none beyond its limit."""
    found: list[Match] = []
    for one in waiting(world, symbol, opposite(side)):
        if shares == 0 or (limit_cents is not None and not crosses(side, limit_cents, one.price_cents)):
            break
        met = min(shares, one.remaining)
        found.append((one, met))
        shares -= met
    return found


def crosses(side: str, limit_cents: int, price_cents: int) -> bool:
    """Whether an order with this limit trades at a price."""
    return price_cents <= limit_cents if side == "buy" else price_cents >= limit_cents


def refuse_own(found: Sequence[Match]) -> None:
    """Fails with ``SELF_TRADE`` if one of the trader's own orders would be met."""
    for one, _ in found:
        if isinstance(one, Order):
            raise ToolError("SELF_TRADE", f"the order would meet your own order {one.id}; cancel or modify that first")


def next_seq(world: World) -> int:
    """A place in the queue behind everybody who is there."""
    clock = world.need(MarketClock, CLOCK)
    return world.update(clock, seq=clock.seq + 1).seq


def reserve(world: World, order: Order, shares: int) -> None:
    """Set cash or shares aside for so many shares of an order; a negative number gives them back."""
    if order.side == "buy":
        account = world.need(Account, order.account_id)
        world.update(account, reserved_cents=account.reserved_cents + shares * order.price_cents)
    else:
        position = world.need(Position, (order.account_id, order.symbol))
        world.update(position, reserved=position.reserved + shares)


def trade(world: World, symbol: str, found: Sequence[Match], at: int, taker: Order | None) -> Order | None:
    """Let an order (``None``: one of somebody else) meet those that wait. Returns it as it is then."""
    for one, shares in found:
        price = one.price_cents
        if isinstance(one, Order):
            fill(world, one, shares, price, at, "maker")
        elif shares == one.remaining:
            world.drop(one)
        else:
            world.update(one, remaining=one.remaining - shares)
        if taker is not None:
            taker = fill(world, taker, shares, price, at, "taker")
        print_price(world, symbol, price, shares, at)
    return taker


def fill(world: World, order: Order, shares: int, price_cents: int, at: int, role: str) -> Order:
    """Trade a part of an order of the trader: reserves, cash, shares and cost change."""
    reserve(world, order, -shares)
    filled = order.filled + shares
    order = world.update(order, filled=filled, status="filled" if filled == order.shares else order.status)
    world.put(Fill(world.new_id(Fill), order.id, order.symbol, order.side, shares, price_cents, at, role))
    account = world.need(Account, order.account_id)
    position = world.get(Position, (order.account_id, order.symbol)) or Position(
        order.account_id, order.symbol, 0, 0, 0, 0
    )
    value = shares * price_cents
    if order.side == "buy":
        world.update(account, cash_cents=account.cash_cents - value)
        world.put(
            Position(
                position.account_id,
                position.symbol,
                position.shares + shares,
                position.reserved,
                position.cost_cents + value,
                position.realised_cents,
            )
        )
    else:
        world.update(account, cash_cents=account.cash_cents + value)
        cost = position.cost_cents * shares // position.shares
        world.update(
            position,
            shares=position.shares - shares,
            cost_cents=position.cost_cents - cost,
            realised_cents=position.realised_cents + value - cost,
        )
    return order


def print_price(world: World, symbol: str, price_cents: int, shares: int, at: int) -> None:
    """A trade took place: prices of the day, volume and alerts follow."""
    row = world.need(Symbol, symbol)
    first = row.volume == 0
    world.update(
        row,
        last_cents=price_cents,
        open_cents=price_cents if first else row.open_cents,
        high_cents=price_cents if first else max(row.high_cents, price_cents),
        low_cents=price_cents if first else min(row.low_cents, price_cents),
        volume=row.volume + shares,
    )
    for alert in world.find(Alert, symbol=symbol, triggered_at=0):
        if (price_cents >= alert.price_cents) == (alert.direction == "above") or price_cents == alert.price_cents:
            world.update(alert, triggered_at=at)


def arrive(world: World, incoming: Incoming) -> None:
    """Somebody else's order comes in: it trades, and what is left waits."""
    row = world.need(Symbol, incoming.symbol)
    low, high = row.band
    if row.halted or not low <= incoming.price_cents <= high:
        return
    found = matches(world, incoming.symbol, incoming.side, incoming.shares, incoming.price_cents)
    trade(world, incoming.symbol, found, incoming.at, None)
    left = incoming.shares - sum(shares for _, shares in found)
    if left:
        world.put(
            BookOrder(
                world.new_id(BookOrder),
                incoming.symbol,
                incoming.side,
                incoming.price_cents,
                left,
                next_seq(world),
            )
        )
