"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.closed_sets import none_such
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.trading.book import waiting
from callwright_plugins.mcp_environments.trading.hours import is_open, next_close, next_open
from callwright_plugins.mcp_environments.trading.rows import Account, Alert, Order, Position, PriceBar, Symbol
from callwright_plugins.mcp_environments.trading.session import current
from callwright_plugins.mcp_environments.trading.views import (
    AlertView,
    BarView,
    LevelView,
    OrderDetails,
    OrderView,
    PositionView,
    SymbolView,
    alert_view,
    bar_view,
    order_details,
    order_view,
    position_view,
    symbol_view,
)

SymbolName = Annotated[str, Field(description="A symbol, such as ACRN; search_symbols finds them.", max_length=10)]
AccountId = Annotated[
    str, Field(description="Id of one of your accounts, such as U00001; empty for the first.", max_length=20)
]
OrderId = Annotated[str, Field(description="Id of an order, such as O00012.", max_length=20)]


class QuoteView(TypedDict):
    """Prices of a symbol now; a bid or ask of ``None`` means that nobody waits on that side."""

    symbol: str
    bid_cents: int | None
    bid_shares: int
    ask_cents: int | None
    ask_shares: int
    last_cents: Annotated[int, Field(description="Price of the last trade.")]
    prev_close_cents: int
    high_cents: Annotated[int, Field(description="Of today.")]
    low_cents: Annotated[int, Field(description="Of today.")]
    volume: Annotated[int, Field(description="Shares traded today.")]
    tick_cents: Annotated[int, Field(description="Limit prices are multiples of it.")]
    band_low_cents: Annotated[int, Field(description="Orders below this are refused today.")]
    band_high_cents: Annotated[int, Field(description="Orders above this are refused today.")]
    halted: Annotated[bool, Field(description="Nothing is traded while it is.")]
    market_open: bool
    next_change_at: Annotated[str, Field(description="When the market next opens or closes.")]


class BookView(TypedDict):
    """The waiting orders of both sides, the best prices first."""

    symbol: str
    bids: list[LevelView]
    asks: list[LevelView]


class PortfolioView(TypedDict):
    """An account with its positions; items are the positions."""

    account_id: str
    name: str
    cash_cents: Annotated[int, Field(description="With what open orders reserve.")]
    reserved_cents: Annotated[int, Field(description="Set aside for open buy orders.")]
    buying_power_cents: Annotated[int, Field(description="What new buy orders may come to.")]
    market_value_cents: Annotated[int, Field(description="Of all positions, at the last prices; no cash.")]
    positions: list[PositionView]
    alerts: list[AlertView]
    other_account_ids: list[str]


def need_symbol(world: World, symbol: str) -> Symbol:
    """The symbol in any case of letters, or ``NOT_FOUND``."""
    return world.need(Symbol, symbol.upper(), message=f"there is no symbol {symbol!r}; search_symbols finds them")


def need_trading_account(world: World, account_id: str) -> Account:
    """The account, the first one for ``""``, or ``NOT_FOUND``."""
    account_id = account_id or next(world.rows(Account)).id
    return world.need(Account, account_id, message=f"you have no account {account_id!r}; get_portfolio names them")


def need_order(world: World, order_id: str) -> Order:
    """The order, or ``NOT_FOUND``."""
    return world.need(Order, order_id, message=f"you have no order {order_id!r}; list_orders names them")


@tool(read_only=True, discovery=True)
def search_symbols(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of a symbol or company name; empty for all.", max_length=60)] = "",
    sector: Annotated[
        str, Field(description="energy, finance, health, industry, retail or technology; empty for all.", max_length=30)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[SymbolView]:
    """Find symbols by a part of the symbol or the company's name, and by sector."""
    world = current(world)
    wanted = query.strip().casefold()
    found = [
        row
        for row in world.rows(Symbol)
        if wanted in f"{row.symbol}\n{row.name}".casefold() and sector.casefold() in ("", row.sector)
    ]
    if not found and (unknown := none_such(world, Symbol, "sector", sector)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, symbol_view, limit, cursor)


@tool(read_only=True)
def get_quote(world: World, /, symbol: SymbolName) -> QuoteView:
    """Best bid and ask, last price, price band, tick size, and whether the symbol is traded now."""
    world = current(world)
    row = need_symbol(world, symbol)
    bids, asks = _levels(world, row.symbol, "buy", 1), _levels(world, row.symbol, "sell", 1)
    low, high = row.band
    trading = is_open(world.now)
    return {
        "symbol": row.symbol,
        "bid_cents": bids[0]["price_cents"] if bids else None,
        "bid_shares": bids[0]["shares"] if bids else 0,
        "ask_cents": asks[0]["price_cents"] if asks else None,
        "ask_shares": asks[0]["shares"] if asks else 0,
        "last_cents": row.last_cents,
        "prev_close_cents": row.prev_close_cents,
        "high_cents": row.high_cents,
        "low_cents": row.low_cents,
        "volume": row.volume,
        "tick_cents": row.tick_cents,
        "band_low_cents": low,
        "band_high_cents": high,
        "halted": row.halted,
        "market_open": trading,
        "next_change_at": iso(next_close(world.now) if trading else next_open(world.now)),
    }


@tool(read_only=True)
def get_order_book(
    world: World,
    /,
    symbol: SymbolName,
    depth: Annotated[int, Field(description="Most prices to show on each side.", ge=1, le=50)] = 5,
) -> BookView:
    """The waiting orders of a symbol by price, yours among them, the best prices first."""
    world = current(world)
    row = need_symbol(world, symbol)
    return {
        "symbol": row.symbol,
        "bids": _levels(world, row.symbol, "buy", depth),
        "asks": _levels(world, row.symbol, "sell", depth),
    }


@tool(read_only=True)
def get_price_history(
    world: World,
    /,
    symbol: SymbolName,
    days: Annotated[int, Field(description="Most days to show.", ge=1, le=100)] = 10,
) -> list[BarView]:
    """Open, high, low, close and volume of the last trading days that are over, the newest last."""
    world = current(world)
    row = need_symbol(world, symbol)
    return [bar_view(bar) for bar in world.find(PriceBar, symbol=row.symbol)[-days:]]


@tool(read_only=True, discovery=True)
def get_portfolio(world: World, /, account_id: AccountId = "") -> PortfolioView:
    """Cash, buying power, positions and price alerts of one of your accounts, and the ids of the others."""
    world = current(world)
    account = need_trading_account(world, account_id)
    positions = [
        position_view(row, world.need(Symbol, row.symbol).last_cents)
        for row in world.find(Position, account_id=account.id)
        if row.shares or row.realised_cents
    ]
    return {
        "account_id": account.id,
        "name": account.name,
        "cash_cents": account.cash_cents,
        "reserved_cents": account.reserved_cents,
        "buying_power_cents": account.buying_power_cents,
        "market_value_cents": sum(one["market_value_cents"] for one in positions),
        "positions": positions,
        "alerts": [alert_view(row) for row in world.rows(Alert)],
        "other_account_ids": [row.id for row in world.rows(Account) if row.id != account.id],
    }


@tool(read_only=True, discovery=True)
def list_orders(
    world: World,
    /,
    account_id: Annotated[str, Field(description="Only of this account; empty for all.", max_length=20)] = "",
    symbol: Annotated[str, Field(description="Only of this symbol; empty for all.", max_length=10)] = "",
    status: Annotated[
        Literal["any", "open", "filled", "cancelled", "expired"], Field(description="Only orders in this status.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[OrderView]:
    """List your orders, the newest first. An open order can be filled in part."""
    world = current(world)
    if account_id:
        need_trading_account(world, account_id)
    wanted = need_symbol(world, symbol).symbol if symbol else ""
    found = world.find(Order, symbol=wanted) if wanted else list(world.rows(Order))
    found = [
        row
        for row in reversed(found)
        if account_id in ("", row.account_id) and (status == "any" or row.status == status)
    ]
    return page(found, order_view, limit, cursor)


@tool(read_only=True)
def get_order(world: World, /, order_id: OrderId) -> OrderDetails:
    """One of your orders with its fills and average price."""
    world = current(world)
    return order_details(world, need_order(world, order_id))


def _levels(world: World, symbol: str, side: str, depth: int) -> list[LevelView]:
    levels: list[LevelView] = []
    for one in waiting(world, symbol, side):
        if levels and levels[-1]["price_cents"] == one.price_cents:
            levels[-1]["shares"] += one.remaining
            levels[-1]["orders"] += 1
        elif len(levels) == depth:
            break
        else:
            levels.append({"price_cents": one.price_cents, "shares": one.remaining, "orders": 1})
    return levels


LOOKUP: Final = (
    search_symbols,
    get_quote,
    get_order_book,
    get_price_history,
    get_portfolio,
    list_orders,
    get_order,
)
