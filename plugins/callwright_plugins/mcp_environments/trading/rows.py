"""Rows of the exchange and the broker. Prices are cents a share, times seconds of the Unix clock (UTC)."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: The key of the only row of :class:`MarketClock`, and a time that never comes (the end of the year 9999).
CLOCK: Final = "clock"
NEVER: Final = 253_402_300_799


# The market: what the trader did to it shows in orders, fills and positions; the rest others did.
@row("symbols", bookkeeping=True)
class Symbol:
    """A share that is traded; open, high, low and volume are today's."""

    symbol: str
    name: str
    sector: str
    tick_cents: int
    band_bps: int
    prev_close_cents: int
    open_cents: int
    high_cents: int
    low_cents: int
    last_cents: int
    volume: int
    halted: bool = False

    @property
    def band(self) -> tuple[int, int]:
        """The lowest and the highest limit price."""
        width = self.prev_close_cents * self.band_bps // 10_000
        return max(self.tick_cents, self.prev_close_cents - width), self.prev_close_cents + width


# The market, too.
@row("book_levels", prefix="B", index=("symbol",), bookkeeping=True)
class BookOrder:
    """A waiting order of somebody else; of two at one price the one with the smaller ``seq`` came first."""

    id: str
    symbol: str
    side: str  # buy, sell
    price_cents: int
    remaining: int
    seq: int


# What others will do.
@row("incoming", bookkeeping=True)
class Incoming:
    """An order that somebody else will send at a time; numbers go up with times."""

    number: int
    at: int
    symbol: str
    side: str
    price_cents: int
    shares: int


@row("accounts", prefix="U")
class Account:
    """An account of the trader; ``deposited_cents`` is all that was ever paid in."""

    id: str
    name: str
    cash_cents: int
    reserved_cents: int
    deposited_cents: int

    @property
    def buying_power_cents(self) -> int:
        """Cash that no open order has reserved."""
        return self.cash_cents - self.reserved_cents


@row("positions", key=("account_id", "symbol"), index=("account_id",))
class Position:
    """Shares held, those reserved by open sell orders, what they cost, and the profit taken so far."""

    account_id: str
    symbol: str
    shares: int
    reserved: int
    cost_cents: int
    realised_cents: int

    @property
    def free(self) -> int:
        """Shares that can be sold."""
        return self.shares - self.reserved


# When it ends follows from ``time_in_force``; ``seq`` is the order of arrival.
@row("orders", prefix="O", index=("symbol", "account_id"), stamps=("placed_at",), bookkeeping=("expires_at", "seq"))
class Order:
    """An order of the trader; ``price_cents`` is its limit, 0 for a market order."""

    id: str
    account_id: str
    symbol: str
    side: str
    kind: str  # market, limit
    shares: int
    filled: int
    price_cents: int
    time_in_force: str  # day, gtc, ioc
    status: str  # open, filled, cancelled, expired
    placed_at: int
    expires_at: int
    seq: int

    @property
    def remaining(self) -> int:
        """Shares not traded yet."""
        return self.shares - self.filled


@row("fills", prefix="F", index=("order_id",), stamps=("at",))
class Fill:
    """A part of an order that was traded; a ``maker`` had waited in the book."""

    id: str
    order_id: str
    symbol: str
    side: str
    shares: int
    price_cents: int
    at: int
    role: str  # maker, taker


@row("alerts", prefix="L", index=("symbol",), stamps=("created_at", "triggered_at"))
class Alert:
    """A wish to know when a trade is at or beyond a price; ``triggered_at`` is 0 until then."""

    id: str
    symbol: str
    direction: str  # above, below
    price_cents: int
    created_at: int
    triggered_at: int = 0


# The market, too.
@row("price_history", key=("symbol", "day"), index=("symbol",), bookkeeping=True)
class PriceBar:
    """A day of trading that is over."""

    symbol: str
    day: str
    open_cents: int
    high_cents: int
    low_cents: int
    close_cents: int
    volume: int


# When to look again.
@row("market_clock", bookkeeping=True)
class MarketClock:
    """What happens next without the trader: the next incoming order and the next close; and the last ``seq`` given."""

    id: str
    next_incoming: int
    incoming_at: int
    close_at: int
    seq: int


ROWS: Final = (
    Symbol,
    BookOrder,
    Incoming,
    Account,
    Position,
    Order,
    Fill,
    Alert,
    PriceBar,
    MarketClock,
)
