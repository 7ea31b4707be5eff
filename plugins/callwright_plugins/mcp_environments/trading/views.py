"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.trading.rows import Alert, Fill, Order, Position, PriceBar, Symbol


class SymbolView(TypedDict):
    """A symbol in a list."""

    symbol: str
    name: str
    sector: str
    last_cents: Annotated[int, Field(description="Price of the last trade.")]
    tick_cents: Annotated[int, Field(description="Limit prices are multiples of it.")]
    halted: Annotated[bool, Field(description="Nothing is traded while it is.")]


class LevelView(TypedDict):
    """All orders at one price of one side of the book."""

    price_cents: Annotated[int, Field(description="For a share.")]
    shares: Annotated[int, Field(description="Of all orders at the price.")]
    orders: Annotated[int, Field(description="How many wait at the price.")]


class OrderView(TypedDict):
    """An order; ``limit_price_cents`` is 0 for a market order."""

    order_id: str
    account_id: str
    symbol: str
    side: str
    kind: str
    shares: Annotated[int, Field(description="Ordered, filled or not.")]
    filled_shares: int
    limit_price_cents: Annotated[int, Field(description="For a share; 0: at the market.")]
    time_in_force: Annotated[str, Field(description="day, gtc (until cancelled) or ioc (at once or not at all).")]
    status: str
    placed_at: str


class FillView(TypedDict):
    """A part of an order that was traded."""

    fill_id: str
    shares: Annotated[int, Field(description="Of this fill.")]
    price_cents: Annotated[int, Field(description="For a share.")]
    at: str
    role: Annotated[str, Field(description="maker: the order waited; taker: it met one.")]


class OrderDetails(OrderView):
    """An order with its fills; the average price is 0 without any."""

    expires_at: str
    average_price_cents: float
    traded_cents: Annotated[int, Field(description="What the filled shares came to in all.")]
    fills: list[FillView]


class PositionView(TypedDict):
    """Shares of one symbol."""

    symbol: str
    shares: Annotated[int, Field(description="With those that open orders sell.")]
    available_shares: Annotated[int, Field(description="Shares that no open sell order reserves.")]
    cost_cents: Annotated[int, Field(description="What the shares that are held were bought for.")]
    market_value_cents: Annotated[int, Field(description="At the last price.")]
    unrealised_cents: Annotated[int, Field(description="Market value less cost.")]
    realised_cents: Annotated[int, Field(description="Gain or loss of shares that were sold.")]


class AlertView(TypedDict):
    """A price alert; ``triggered_at`` is empty until a trade was at or beyond the price."""

    alert_id: str
    symbol: str
    direction: str
    price_cents: Annotated[int, Field(description="At or beyond which it is triggered.")]
    status: str
    triggered_at: Annotated[str, Field(description="When a trade reached the price; empty: not yet.")]


class BarView(TypedDict):
    """The prices of a day."""

    day: str
    open_cents: Annotated[int, Field(description="First price of that day.")]
    high_cents: Annotated[int, Field(description="Of that day.")]
    low_cents: Annotated[int, Field(description="Of that day.")]
    close_cents: Annotated[int, Field(description="Last price of that day.")]
    volume: Annotated[int, Field(description="Shares traded that day.")]


def symbol_view(row: Symbol) -> SymbolView:
    """A symbol as tools show it."""
    return {
        "symbol": row.symbol,
        "name": row.name,
        "sector": row.sector,
        "last_cents": row.last_cents,
        "tick_cents": row.tick_cents,
        "halted": row.halted,
    }


def order_view(row: Order) -> OrderView:
    """An order as lists show it."""
    return {
        "order_id": row.id,
        "account_id": row.account_id,
        "symbol": row.symbol,
        "side": row.side,
        "kind": row.kind,
        "shares": row.shares,
        "filled_shares": row.filled,
        "limit_price_cents": row.price_cents,
        "time_in_force": row.time_in_force,
        "status": row.status,
        "placed_at": iso(row.placed_at),
    }


def order_details(world: World, row: Order) -> OrderDetails:
    """An order with all its fills."""
    fills = world.find(Fill, order_id=row.id)
    traded = sum(one.shares * one.price_cents for one in fills)
    return {
        **order_view(row),
        "expires_at": iso(row.expires_at),
        "average_price_cents": round(traded / row.filled, 4) if row.filled else 0.0,
        "traded_cents": traded,
        "fills": [fill_view(one) for one in fills],
    }


def fill_view(row: Fill) -> FillView:
    """A fill as tools show it."""
    return {
        "fill_id": row.id,
        "shares": row.shares,
        "price_cents": row.price_cents,
        "at": iso(row.at),
        "role": row.role,
    }


def position_view(row: Position, last_cents: int) -> PositionView:
    """A position at the last price."""
    value = row.shares * last_cents
    return {
        "symbol": row.symbol,
        "shares": row.shares,
        "available_shares": row.free,
        "cost_cents": row.cost_cents,
        "market_value_cents": value,
        "unrealised_cents": value - row.cost_cents,
        "realised_cents": row.realised_cents,
    }


def alert_view(row: Alert) -> AlertView:
    """An alert as tools show it."""
    return {
        "alert_id": row.id,
        "symbol": row.symbol,
        "direction": row.direction,
        "price_cents": row.price_cents,
        "status": "triggered" if row.triggered_at else "active",
        "triggered_at": iso(row.triggered_at) if row.triggered_at else "",
    }


def bar_view(row: PriceBar) -> BarView:
    """A day as tools show it."""
    return {
        "day": row.day,
        "open_cents": row.open_cents,
        "high_cents": row.high_cents,
        "low_cents": row.low_cents,
        "close_cents": row.close_cents,
        "volume": row.volume,
    }
