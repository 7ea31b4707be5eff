"""The thirteen tools of trading; here are those that write."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.times import DAY, iso
from callwright_plugins.mcp_environments.trading.book import matches, next_seq, refuse_own, reserve, trade
from callwright_plugins.mcp_environments.trading.hours import is_open, next_close, next_open
from callwright_plugins.mcp_environments.trading.lookup import (
    LOOKUP,
    AccountId,
    OrderId,
    SymbolName,
    need_order,
    need_symbol,
    need_trading_account,
)
from callwright_plugins.mcp_environments.trading.rows import Account, Alert, Order, Position, Symbol
from callwright_plugins.mcp_environments.trading.session import end_order, settle
from callwright_plugins.mcp_environments.trading.views import AlertView, OrderDetails, alert_view, order_details

MOST_ALERTS: Final = 20
#: How long an order that is good till cancelled waits.
LONGEST: Final = 90 * DAY

Side = Annotated[Literal["buy", "sell"], Field(description="buy or sell")]
Shares = Annotated[int, Field(description="Number of shares.", ge=1, le=1_000_000)]
Price = Annotated[int, Field(description="Price of a share in cents.", ge=1, le=10**9)]


class Deposit(TypedDict):
    """An account after money came in."""

    account_id: str
    cash_cents: Annotated[int, Field(description="With what open orders reserve.")]
    buying_power_cents: Annotated[int, Field(description="What new buy orders may come to.")]


@tool(latency=2, irreversible=True)
def deposit_funds(
    world: World,
    /,
    amount_cents: Annotated[int, Field(description="Amount in cents.", ge=1, le=10**10)],
    account_id: AccountId = "",
) -> Deposit:
    """Pay money into one of your accounts; it can be used at once."""
    settle(world)
    account = need_trading_account(world, account_id)
    account = world.update(
        account,
        cash_cents=account.cash_cents + amount_cents,
        deposited_cents=account.deposited_cents + amount_cents,
    )
    return {
        "account_id": account.id,
        "cash_cents": account.cash_cents,
        "buying_power_cents": account.buying_power_cents,
    }


@tool(latency=1, irreversible=True)
def place_market_order(
    world: World, /, symbol: SymbolName, side: Side, shares: Shares, account_id: AccountId = ""
) -> OrderDetails:
    """Buy or sell at once at the best prices that wait in the book.

    What the book cannot fill is cancelled: a partial success with the code PARTIAL_FILL. Buying needs buying power for
    all that is filled, selling needs shares that no open order has reserved.
    """
    settle(world)
    row = _traded(world, symbol)
    account = need_trading_account(world, account_id)
    found = [
        (one, met) for one, met in matches(world, row.symbol, side, shares, None) if _in_band(row, one.price_cents)
    ]
    refuse_own(found)
    if side == "sell":
        _need_shares(world, account.id, row.symbol, shares)
    else:
        _need_cash(account, sum(met * one.price_cents for one, met in found))
    if not found:
        raise ToolError("NO_LIQUIDITY", f"nobody offers to {'sell' if side == 'buy' else 'buy'} {row.symbol} now")
    order = _new_order(world, account, row, side, "market", shares, 0, "ioc")
    done = trade(world, row.symbol, found, world.now, order)
    assert done is not None
    return order_details(world, _drop_rest(world, done))


@tool(latency=1, irreversible=True)
def place_limit_order(
    world: World,
    /,
    symbol: SymbolName,
    side: Side,
    shares: Shares,
    limit_price_cents: Price,
    time_in_force: Annotated[
        Literal["day", "gtc", "ioc"],
        Field(
            description="day: waits until the close; gtc: until cancelled; ioc: what is not filled now is cancelled."
        ),
    ] = "day",
    account_id: AccountId = "",
) -> OrderDetails:
    """Buy or sell at a price or better. What is not filled at once waits in the book and reserves cash or shares.

    The price must be a multiple of the tick size and within the price band that get_quote shows.
    """
    settle(world)
    row = _traded(world, symbol)
    account = need_trading_account(world, account_id)
    _check_price(row, limit_price_cents)
    found = matches(world, row.symbol, side, shares, limit_price_cents)
    refuse_own(found)
    if side == "sell":
        _need_shares(world, account.id, row.symbol, shares)
    else:
        _need_cash(account, shares * limit_price_cents)
    order = _new_order(world, account, row, side, "limit", shares, limit_price_cents, time_in_force)
    done = trade(world, row.symbol, found, world.now, order)
    assert done is not None
    return order_details(world, _drop_rest(world, done) if time_in_force == "ioc" else done)


@tool(idempotent=True, latency=1, irreversible=True)
def modify_order(
    world: World,
    /,
    order_id: OrderId,
    shares: Annotated[
        int | None,
        Field(description="New size, shares already filled included; at least one more.", ge=1, le=1_000_000),
    ] = None,
    limit_price_cents: Annotated[int | None, Field(description="New limit in cents.", ge=1, le=10**9)] = None,
) -> OrderDetails:
    """Change size or limit price of an open order. It goes to the end of the queue unless only its size shrinks.

    At a new price it may be filled at once. Fails with ORDER_NOT_OPEN once it is filled, cancelled or expired.
    """
    settle(world)
    order = need_order(world, order_id)
    _need_open(order)
    row = _traded(world, order.symbol)
    size = order.shares if shares is None else shares
    price = order.price_cents if limit_price_cents is None else limit_price_cents
    if (size, price) == (order.shares, order.price_cents):
        return order_details(world, order)
    if size <= order.filled:
        raise ToolError(
            "INVALID_STATE", f"{order.filled} shares of {order_id} are filled; {size} in all are not more; cancel_order"
        )
    left = size - order.filled
    if price == order.price_cents and size < order.shares:
        reserve(world, order, size - order.shares)
        return order_details(world, world.update(order, shares=size))
    if price != order.price_cents:
        _check_price(row, price)
    found = matches(world, order.symbol, order.side, left, price)
    refuse_own(found)
    reserve(world, order, -order.remaining)
    if order.side == "sell":
        _need_shares(world, order.account_id, order.symbol, left)
    else:
        _need_cash(world.need(Account, order.account_id), left * price)
    order = world.update(order, shares=size, price_cents=price, seq=next_seq(world))
    reserve(world, order, left)
    done = trade(world, order.symbol, found, world.now, order)
    assert done is not None
    return order_details(world, done)


@tool(destructive=True, latency=1)
def cancel_order(world: World, /, order_id: OrderId) -> OrderDetails:
    """Cancel what is not filled of an open order and free what it reserved. What is filled stays."""
    settle(world)
    order = need_order(world, order_id)
    _need_open(order)
    return order_details(world, end_order(world, order, "cancelled"))


@tool
def set_price_alert(
    world: World,
    /,
    symbol: SymbolName,
    direction: Annotated[Literal["above", "below"], Field(description="Which side of the price to watch.")],
    price_cents: Price,
) -> AlertView:
    """Watch for a trade at a price or beyond it. get_portfolio shows alerts and whether they were triggered."""
    settle(world)
    row = need_symbol(world, symbol)
    active = [one for one in world.rows(Alert) if not one.triggered_at]
    if any((one.symbol, one.direction, one.price_cents) == (row.symbol, direction, price_cents) for one in active):
        raise ToolError("ALREADY_EXISTS", f"there is an alert for {row.symbol} {direction} {price_cents} already")
    if len(active) >= MOST_ALERTS:
        raise ToolError("ALERT_LIMIT", f"there are {MOST_ALERTS} alerts that wait, the most there can be")
    if row.last_cents >= price_cents if direction == "above" else row.last_cents <= price_cents:
        raise ToolError(
            "INVALID_STATE",
            f"{row.symbol} was last traded at {row.last_cents}: that is {direction} {price_cents} already",
        )
    return alert_view(world.put(Alert(world.new_id(Alert), row.symbol, direction, price_cents, world.now)))


def _traded(world: World, symbol: str) -> Symbol:
    row = need_symbol(world, symbol)
    if not is_open(world.now):
        raise ToolError("MARKET_CLOSED", f"the exchange is closed until {iso(next_open(world.now))}")
    if row.halted:
        raise ToolError("SYMBOL_HALTED", f"trading in {row.symbol} is halted; orders in it can only be cancelled")
    return row


def _in_band(row: Symbol, price_cents: int) -> bool:
    low, high = row.band
    return low <= price_cents <= high


def _check_price(row: Symbol, price_cents: int) -> None:
    if price_cents % row.tick_cents:
        raise ToolError(
            "TICK_SIZE", f"prices of {row.symbol} are multiples of {row.tick_cents} cents, not {price_cents}"
        )
    if not _in_band(row, price_cents):
        low, high = row.band
        raise ToolError("PRICE_BAND", f"prices of {row.symbol} are from {low} to {high} cents today, not {price_cents}")


def _need_cash(account: Account, amount_cents: int) -> None:
    if amount_cents > account.buying_power_cents:
        raise ToolError(
            "INSUFFICIENT_BUYING_POWER",
            f"that needs {amount_cents} cents; the account {account.id} has {account.buying_power_cents} "
            f"({account.cash_cents} less {account.reserved_cents} reserved); deposit_funds or cancel orders",
        )


def _need_shares(world: World, account_id: str, symbol: str, shares: int) -> None:
    position = world.get(Position, (account_id, symbol))
    free = position.free if position else 0
    if shares > free:
        raise ToolError(
            "INSUFFICIENT_SHARES",
            f"the account {account_id} can sell {free} shares of {symbol}"
            f"{f' ({position.reserved} are reserved)' if position else ''}, not {shares}",
        )


def _need_open(order: Order) -> None:
    if order.status != "open":
        raise ToolError("ORDER_NOT_OPEN", f"the order {order.id} is {order.status}")


def _new_order(
    world: World, account: Account, row: Symbol, side: str, kind: str, shares: int, price_cents: int, force: str
) -> Order:
    order = world.put(
        Order(
            id=world.new_id(Order),
            account_id=account.id,
            symbol=row.symbol,
            side=side,
            kind=kind,
            shares=shares,
            filled=0,
            price_cents=price_cents,
            time_in_force=force,
            status="open",
            placed_at=world.now,
            expires_at=world.now + LONGEST if force == "gtc" else next_close(world.now),
            seq=next_seq(world),
        )
    )
    reserve(world, order, shares)
    return order


def _drop_rest(world: World, order: Order) -> Order:
    if order.status != "open":
        return order
    world.warn(
        "PARTIAL_FILL",
        f"{order.filled} of {order.shares} shares were filled; no more was to be had, the rest is cancelled",
    )
    return end_order(world, order, "cancelled")


TOOLS: Final = [
    *LOOKUP,
    deposit_funds,
    place_market_order,
    place_limit_order,
    modify_order,
    cancel_order,
    set_price_alert,
]
