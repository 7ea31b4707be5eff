"""The exchange's worlds: an ordinary Monday, an almost empty book, a Friday of traps, a weekend."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import COMPANIES, company
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE, iso_date
from callwright_plugins.mcp_environments.trading.hours import CLOSES, OPENS, is_trading_day, next_close
from callwright_plugins.mcp_environments.trading.rows import (
    CLOCK,
    NEVER,
    Account,
    Alert,
    BookOrder,
    Fill,
    Incoming,
    MarketClock,
    Order,
    Position,
    PriceBar,
    Symbol,
)

SECTORS: Final = ("energy", "finance", "health", "industry", "retail", "technology")
FRIDAY: Final = NOW + 4 * DAY + 7 * HOUR + 20 * MINUTE  # 16:20, ten minutes before the close
SATURDAY: Final = NOW + 5 * DAY
_ACCOUNTS: Final = ("Everyday", "Retirement", "Children")


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """At scale 1, 60 symbols with some 20 waiting orders and 40 days of history each, and three accounts."""
    yield from _exchange(rng, _n(60, scale), NOW, levels=5, days=40, coming=10)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three young symbols, of which one has an empty book; one account without positions or orders."""
    symbols = [_symbol(rng, ticker) for ticker in _tickers(rng, _n(3, scale))]
    yield from symbols
    yield Account("U00001", "Everyday", 100_000, 0, 100_000)
    seq = 0
    for symbol in symbols[1:]:
        for side in ("buy", "sell"):
            seq += 1
            price = _price(symbol, symbol.last_cents * (99 if side == "buy" else 101) // 100)
            yield BookOrder(f"B{seq:05d}", symbol.symbol, side, price, rng.randint(1, 20), seq)
    yield MarketClock(CLOCK, 1, NEVER, next_close(NOW), seq)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Ten minutes before the weekend: look-alike symbols, halts, thin books, coarse ticks, all cash reserved."""
    rows = list(_exchange(rng, _n(20, scale), FRIDAY, levels=2, days=10, coming=6, alike=True))
    for number, row in enumerate(row for row in rows if isinstance(row, Symbol)):
        yield _with(row, halted=number % 5 == 3, band_bps=(200, 1_000)[number % 2])
    for row in rows:
        if isinstance(row, Account) and row.id == "U00002":  # nothing to buy with
            row = _with(
                row,
                cash_cents=row.reserved_cents,
                deposited_cents=row.deposited_cents - row.cash_cents + row.reserved_cents,
            )
        if not isinstance(row, Symbol):
            yield row


def weekend(rng: Random, scale: float) -> Iterator[Any]:
    """Saturday: nothing can be placed until Monday."""
    yield from _exchange(rng, _n(40, scale), SATURDAY, levels=4, days=20, coming=8)


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _n(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _tickers(rng: Random, count: int, alike: bool = False) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        name = rng.choice(COMPANIES).upper()
        made = name[:2] + "".join(rng.choice("AEIORNST") for _ in range(2))
        found[made] = None
        if alike and len(found) < count:
            found[made[:3] + rng.choice("BDPQ")] = None
        if len(found) > 1200:  # four letters run out
            found[made + rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") + rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = None
    return list(found)[:count]


def _symbol(rng: Random, ticker: str) -> Symbol:
    tick = rng.choice((1, 1, 1, 5, 10))
    price = rng.randint(8_00, 400_00) // tick * tick
    return Symbol(
        symbol=ticker,
        name=f"{company(rng)} {rng.choice(('Inc', 'plc', 'AG', 'SA'))}",
        sector=rng.choice(SECTORS),
        tick_cents=tick,
        band_bps=1_000,
        prev_close_cents=price,
        open_cents=price,
        high_cents=price,
        low_cents=price,
        last_cents=price,
        volume=0,
    )


def _price(symbol: Symbol, cents: int) -> int:
    """The nearest price that has the tick and is in the band."""
    low, high = symbol.band
    tick = symbol.tick_cents
    return min(max(cents // tick * tick, -(-low // tick) * tick), high // tick * tick)


def _exchange(
    rng: Random, count: int, now: int, *, levels: int, days: int, coming: int, alike: bool = False
) -> Iterator[Any]:
    symbols = [_symbol(rng, ticker) for ticker in _tickers(rng, count, alike)]
    yield from symbols
    yield from (bar for symbol in symbols for bar in _bars(rng, symbol, now, days))
    book: list[BookOrder] = []
    for symbol in symbols:
        gap = max(symbol.tick_cents, symbol.last_cents // 800 // symbol.tick_cents * symbol.tick_cents)
        for side, sign in (("buy", -1), ("sell", 1)):
            for level in range(1, levels + 1):
                price = _price(symbol, symbol.last_cents + sign * level * gap)
                for _ in range(rng.choice((1, 2, 3))):
                    seq = len(book) + 1
                    book.append(BookOrder(f"B{seq:05d}", symbol.symbol, side, price, rng.randint(1, 60) * 5, seq))
    yield from book
    seq = len(book)
    for row in _trader(rng, symbols, now, seq):
        if isinstance(row, Order):
            seq = max(seq, row.seq)
        yield row
    coming_orders = list(_coming(rng, symbols, now, coming))
    yield from coming_orders
    yield MarketClock(CLOCK, 1, coming_orders[0].at if coming_orders else NEVER, next_close(now), seq)


def _bars(rng: Random, symbol: Symbol, now: int, days: int) -> Iterator[PriceBar]:
    """The last trading days before today; the newest closes at ``prev_close_cents``."""
    found: list[PriceBar] = []
    close, day = symbol.prev_close_cents, now // DAY * DAY - DAY
    while len(found) < days:
        if is_trading_day(day):
            opened = _step(rng, symbol, close)
            high, low = max(opened, close), min(opened, close)
            found.append(
                PriceBar(
                    symbol.symbol,
                    iso_date(day),
                    opened,
                    high + rng.randint(0, 3) * symbol.tick_cents,
                    max(symbol.tick_cents, low - rng.randint(0, 3) * symbol.tick_cents),
                    close,
                    rng.randint(1, 900) * 100,
                )
            )
            close = _step(rng, symbol, opened)
        day -= DAY
    yield from reversed(found)


def _step(rng: Random, symbol: Symbol, cents: int) -> int:
    moved = cents + cents * rng.randint(-200, 200) // 10_000
    return max(symbol.tick_cents, moved // symbol.tick_cents * symbol.tick_cents)


def _trader(rng: Random, symbols: list[Symbol], now: int, seq: int) -> Iterator[Any]:
    """Accounts with a past that adds up: deposits, orders, fills, positions; some orders wait, some alerts too."""
    fills = number = 0
    for nth, name in enumerate(_ACCOUNTS, 1):
        account_id = f"U{nth:05d}"
        deposited = cash = rng.randint(150, 900) * 1_000_00
        held: dict[str, list[int]] = {}  # shares, cost, realised, reserved
        at = now // DAY * DAY - 30 * DAY
        orders: list[Order] = []
        for _ in range(40):
            at += rng.randint(4, 16) * HOUR
            if not is_trading_day(at) or at >= now // DAY * DAY:
                continue
            at = at // DAY * DAY + rng.randint(OPENS, CLOSES - 1)
            symbol = rng.choice(symbols)
            price = _price(symbol, symbol.last_cents * rng.randint(95, 105) // 100)
            owned = held.setdefault(symbol.symbol, [0, 0, 0, 0])
            side = "sell" if owned[0] and rng.random() < 0.5 else "buy"
            shares = rng.randint(1, owned[0]) if side == "sell" else rng.randint(1, 60)
            if side == "buy" and shares * price > cash:
                continue
            kind = rng.choice(("market", "limit", "limit"))
            status = rng.choice(("filled", "filled", "filled", "cancelled", "expired")) if kind == "limit" else "filled"
            filled = shares if status == "filled" else rng.choice((0, shares // 2))
            number += 1
            orders.append(
                Order(
                    f"O{number:05d}",
                    account_id,
                    symbol.symbol,
                    side,
                    kind,
                    shares,
                    filled,
                    price if kind == "limit" else 0,
                    "day" if kind == "limit" else "ioc",
                    status,
                    at,
                    next_close(at),
                    0,
                )
            )
            for part in (filled - filled // 3, filled // 3):
                if not part:
                    continue
                fills += 1
                yield Fill(f"F{fills:05d}", orders[-1].id, symbol.symbol, side, part, price, at, "taker")
                value = part * price
                if side == "buy":
                    cash -= value
                    owned[0] += part
                    owned[1] += value
                else:
                    cash += value
                    cost = owned[1] * part // owned[0]
                    owned[0] -= part
                    owned[1] -= cost
                    owned[2] += value - cost
        yield from orders
        reserved = 0
        for _ in range(4):  # orders that wait, well away from the other side of the book
            symbol = rng.choice(symbols)
            owned = held.setdefault(symbol.symbol, [0, 0, 0, 0])
            side = "sell" if owned[0] - owned[3] > 1 else "buy"
            price = _price(symbol, symbol.last_cents * (105 if side == "sell" else 95) // 100)
            shares = rng.randint(1, owned[0] - owned[3]) if side == "sell" else rng.randint(1, 20)
            if side == "buy" and shares * price > cash - reserved:
                continue
            if side == "sell":
                owned[3] += shares
            else:
                reserved += shares * price
            number, seq = number + 1, seq + 1
            placed = now // DAY * DAY - 3 * DAY + 10 * HOUR
            yield Order(
                f"O{number:05d}",
                account_id,
                symbol.symbol,
                side,
                "limit",
                shares,
                0,
                price,
                "gtc",
                "open",
                placed,
                placed + 90 * DAY,
                seq,
            )
        yield Account(account_id, name, cash, reserved, deposited)
        for ticker, (shares, cost, realised, aside) in held.items():
            if shares or realised or aside:
                yield Position(account_id, ticker, shares, aside, cost, realised)
    for nth, symbol in enumerate(rng.sample(symbols, min(5, len(symbols))), 1):
        up = rng.random() < 0.5
        price = _price(symbol, symbol.last_cents * (104 if up else 96) // 100)
        yield Alert(f"L{nth:05d}", symbol.symbol, "above" if up else "below", price, now - DAY)


def _coming(rng: Random, symbols: list[Symbol], now: int, each: int) -> Iterator[Incoming]:
    """Orders of others on this and the next four days, in the order of their times."""
    found: list[tuple[int, str, str, int, int]] = []
    first = now // DAY * DAY
    open_days = [day for day in range(first, first + 8 * DAY, DAY) if is_trading_day(day)][:5]
    for symbol in symbols:
        for _ in range(each):
            at = rng.choice(open_days) + rng.randrange(OPENS, CLOSES)
            if at <= now:
                continue
            price = _price(symbol, symbol.last_cents * rng.randint(965, 1035) // 1000)
            found.append((at, symbol.symbol, rng.choice(("buy", "sell")), price, rng.randint(1, 80) * 5))
    for number, one in enumerate(sorted(found), 1):
        yield Incoming(number, *one)


SCENARIOS: Final = {
    "typical": Scenario(typical, "a Monday morning with 60 symbols and three accounts"),
    "sparse": Scenario(sparse, "three symbols with hardly a book, an account without positions"),
    "adversarial": Scenario(
        adversarial, "ten minutes before the weekend: halts, thin books, look-alike symbols", now=FRIDAY
    ),
    "weekend": Scenario(weekend, "Saturday: the exchange is closed until Monday", now=SATURDAY),
}
