"""Coins and currencies, taxes, tips and bills."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import Amount, CityName, Currency, Day, Domain, fail, says, the_city, the_day
from callwright_plugins.depthbench.world import FIRST_DAY, RATES, roll

DOMAIN: Final = Domain("money")
#: Coin -> price in dollars around which it moves, and coins in circulation.
COINS: Final = {
    "BTC": (68_000.0, 19_700_000),
    "ETH": (3_400.0, 120_200_000),
    "SOL": (152.0, 465_000_000),
    "ADA": (0.46, 35_600_000_000),
    "DOT": (7.1, 1_440_000_000),
    "LTC": (84.0, 74_600_000),
    "XRP": (0.55, 55_500_000_000),
    "AVAX": (36.0, 393_000_000),
}
Coin = Literal["BTC", "ETH", "SOL", "ADA", "DOT", "LTC", "XRP", "AVAX"]


class CoinPrice(TypedDict):
    """What a coin cost."""

    coin: Coin
    date: Day
    price: float


class MarketCap(TypedDict):
    """What all coins of a kind were worth."""

    coin: Coin
    date: Day
    market_cap: float


class Conversion(TypedDict):
    """An amount in another currency."""

    amount: float
    source: Currency
    target: Currency
    date: Day
    result: float


class Rate(TypedDict):
    """Units of the target for one of the source."""

    source: Currency
    target: Currency
    date: Day
    rate: float


class Taxed(TypedDict):
    """An amount with tax."""

    amount: float
    city: CityName
    tax: float
    total: float


class Split(TypedDict):
    """A bill shared evenly."""

    amount: float
    people: int
    share: float


class Tip(TypedDict):
    """A tip."""

    amount: float
    percent: float
    tip: float
    total: float


def _coin(coin: str, date: str) -> float:
    day = (the_day(date) - FIRST_DAY).days
    price = COINS[coin][0] * (
        1 + 0.25 * math.sin(day / 61 + len(coin)) + (roll(f"coin/{coin}/{date}", 900) - 450) / 10_000
    )
    return round(price, 2 if price > 10 else 4)


def _rate(source: str, target: str, date: str) -> float:
    the_day(date)
    if source == target:
        fail("same_unit", f"both currencies are {source}")
    moved = [RATES[code] * (1 + (roll(f"rate/{code}/{date}", 400) - 200) / 10_000) for code in (target, source)]
    return round(moved[0] / moved[1], 6)


@DOMAIN.tool("information", "price")
def get_coin_price(coin: Coin, date: Day) -> CoinPrice:
    """The price of a cryptocurrency on a date, in US dollars."""
    return {"coin": coin, "date": date, "price": _coin(coin, date)}


@DOMAIN.tool("information", "market_cap")
def get_coin_market_cap(coin: Coin, date: Day) -> MarketCap:
    """The market capitalisation of a cryptocurrency on a date, in millions of US dollars."""
    return {"coin": coin, "date": date, "market_cap": round(_coin(coin, date) * COINS[coin][1] / 1e6, 1)}


@DOMAIN.tool("information", "result")
def convert_currency(amount: Amount, source: Currency, target: Currency, date: Day) -> Conversion:
    """An amount of money in another currency, at the rate of a date."""
    result = round(amount * _rate(source, target, date), 2)
    return {"amount": amount, "source": source, "target": target, "date": date, "result": result}


@DOMAIN.tool("information", "rate")
def get_exchange_rate(source: Currency, target: Currency, date: Day) -> Rate:
    """The exchange rate between two currencies on a date."""
    return {"source": source, "target": target, "date": date, "rate": _rate(source, target, date)}


@DOMAIN.tool("information", "total")
def add_sales_tax(amount: Amount, city: CityName) -> Taxed:
    """An amount with the sales tax of a city."""
    tax = round(amount * the_city(city).tax / 100, 2)
    return {"amount": amount, "city": city, "tax": tax, "total": round(amount + tax, 2)}


@DOMAIN.tool("information", "share")
def split_bill(amount: Amount, people: Annotated[int, says(minimum=2, maximum=40)]) -> Split:
    """What each person pays of an amount."""
    return {"amount": amount, "people": people, "share": round(amount / people, 2)}


@DOMAIN.tool("information", "total")
def add_tip(amount: Amount, percent: Annotated[float, says(minimum=1, maximum=50)]) -> Tip:
    """An amount with a tip of so many percent."""
    tip = round(amount * percent / 100, 2)
    return {"amount": amount, "percent": percent, "tip": tip, "total": round(amount + tip, 2)}
