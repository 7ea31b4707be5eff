"""Shares, indices and what they come to."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import Amount, Day, Domain, fail, says, the_day
from callwright_plugins.depthbench.world import FIRST_DAY, roll

DOMAIN: Final = Domain("stocks")
#: Ticker -> name and price in dollars around which it moves. The companies are made up.
TICKERS: Final = {
    "ARBO": ("Arbor Paper", 48.0),
    "BLUM": ("Blume Foods", 112.0),
    "CORV": ("Corvus Air", 27.5),
    "DELT": ("Delta Works", 203.0),
    "FENX": ("Fenix Power", 64.0),
    "GLAD": ("Glade Health", 151.0),
    "HELI": ("Helion Solar", 19.2),
    "KITE": ("Kite Systems", 388.0),
    "LUMA": ("Luma Optics", 73.5),
    "NORD": ("Nordhaven Shipping", 35.8),
}
Ticker = Literal["ARBO", "BLUM", "CORV", "DELT", "FENX", "GLAD", "HELI", "KITE", "LUMA", "NORD"]
INDICES: Final = {"Harbour 100": 5400.0, "Summit 40": 18_300.0, "Valley 250": 2150.0}


class Quote(TypedDict):
    """What a share cost."""

    ticker: Ticker
    company: str
    day: Day
    price: float


class Volume(TypedDict):
    """How many shares changed hands."""

    ticker: Ticker
    day: Day
    shares_traded: int


class Dividend(TypedDict):
    """What a share paid."""

    ticker: Ticker
    year: int
    dividend: float


class Index(TypedDict):
    """Where an index stood."""

    index: str
    day: Day
    level: float


class Position(TypedDict):
    """What shares are worth."""

    shares: int
    price: float
    value: float


class Change(TypedDict):
    """A change in percent."""

    before: float
    after: float
    percent: float


class Holding(TypedDict):
    """So many shares at a price."""

    shares: Annotated[int, says(minimum=1, maximum=1_000_000)]
    price: Amount


class Total(TypedDict):
    """What holdings are worth together."""

    holdings: int
    total: float


def _price(ticker: str, day: str) -> float:
    number = (the_day(day) - FIRST_DAY).days
    wave = 1 + 0.18 * math.sin(number / 47 + len(TICKERS[ticker][0]))
    return round(TICKERS[ticker][1] * (wave + (roll(f"stock/{ticker}/{day}", 600) - 300) / 10_000), 2)


@DOMAIN.tool("information", "price")
def stock_quote(ticker: Ticker, day: Day) -> Quote:
    """The closing price of a share on a day, in US dollars."""
    return {"ticker": ticker, "company": TICKERS[ticker][0], "day": day, "price": _price(ticker, day)}


@DOMAIN.tool("information", "shares_traded")
def stock_volume(ticker: Ticker, day: Day) -> Volume:
    """How many shares of a company were traded on a day."""
    the_day(day)
    return {"ticker": ticker, "day": day, "shares_traded": 40_000 + roll(f"volume/{ticker}/{day}", 4_000_000)}


@DOMAIN.tool("information", "dividend")
def stock_dividend(ticker: Ticker, year: Annotated[int, says(minimum=2015, maximum=2025)]) -> Dividend:
    """What a share paid in a year, in US dollars."""
    share = TICKERS[ticker][1] * (0.5 + roll(f"dividend/{ticker}/{year}", 350) / 100) / 100
    return {"ticker": ticker, "year": year, "dividend": round(share, 2)}


@DOMAIN.tool("information", "level")
def market_index_level(index: Literal["Harbour 100", "Summit 40", "Valley 250"], day: Day) -> Index:
    """Where a market index closed on a day."""
    number = (the_day(day) - FIRST_DAY).days
    level = INDICES[index] * (1 + number / 9000 + (roll(f"index/{index}/{day}", 800) - 400) / 10_000)
    return {"index": index, "day": day, "level": round(level, 1)}


@DOMAIN.tool("information", "value")
def value_position(shares: Annotated[int, says(minimum=1, maximum=1_000_000)], price: Amount) -> Position:
    """What so many shares are worth at a price."""
    return {"shares": shares, "price": price, "value": round(shares * price, 2)}


@DOMAIN.tool("information", "percent")
def percent_change(before: Amount, after: Amount) -> Change:
    """By how many percent a value changed. Fails if it was zero before."""
    if not before:
        fail("zero_amount", "there is no percentage of zero")
    if after / before > 1e12:
        fail("zero_amount", "the earlier value is too close to zero")
    return {"before": before, "after": after, "percent": round((after - before) / before * 100, 2)}


@DOMAIN.tool("information", "total")
def portfolio_total(holdings: Annotated[list[Holding], says(minItems=1, maxItems=10)]) -> Total:
    """What several holdings are worth together."""
    total = round(sum(sorted(holding["shares"] * holding["price"] for holding in holdings)), 2)
    return {"holdings": len(holdings), "total": total}
