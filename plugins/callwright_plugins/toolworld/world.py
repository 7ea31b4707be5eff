"""What is true in the small world: places, tables and numbers, drawn once from a fixed seed.

Nothing here ever changes while a process runs. The data belong to the version in the name of the world: another table
would be ``toolworld-mini-v2``. Only :meth:`random.Random.random` is drawn from, whose sequence Python promises to keep
for a seed, so that every machine and every version of Python sees the same world.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")
Row = dict[str, Any]
Table = list[Row]

CITIES: Final = ("Paris", "London", "Tokyo", "Oslo", "Lima", "Cairo", "Rome", "Delhi")
HOURS: Final = (9, 12, 15, 18, 21)
CUISINES: Final = ("Italian", "Japanese", "Mexican", "Indian")
RATINGS: Final = (2, 3, 4)
PRICES: Final = (20, 30, 40)
MAKES: Final = ("Toyota", "Ford", "Fiat", "Volvo")
COLOURS: Final = ("red", "blue", "black")
YEARS: Final = (2012, 2016, 2020)
ITEMS: Final = ("gold", "silver", "copper", "coffee", "sugar", "cotton")
AMOUNTS: Final = (50, 60, 70, 80)

#: Units of a currency for 100 dollars; whole numbers, so that no answer needs a tolerance.
RATES: Final[Mapping[str, int]] = {
    "EUR": 91,
    "GBP": 78,
    "JPY": 15300,
    "NOK": 1040,
    "PEN": 373,
    "EGP": 4800,
    "INR": 8350,
}
CURRENCIES: Final = tuple(RATES)
LOCAL_CURRENCY: Final[Mapping[str, str]] = dict(
    zip(CITIES, ("EUR", "GBP", "JPY", "NOK", "PEN", "EGP", "EUR", "INR"), strict=True)
)
#: The hour of sunset, never one of :data:`HOURS`.
SUNSET: Final[Mapping[str, int]] = dict(zip(CITIES, (20, 19, 17, 16, 17, 19, 20, 16), strict=True))
PRICE_OF: Final[Mapping[str, int]] = dict(zip(ITEMS, (640, 290, 130, 370, 210, 450), strict=True))
STOCK_OF: Final[Mapping[str, int]] = dict(zip(ITEMS, (12, 75, 410, 230, 95, 160), strict=True))
DISH_OF: Final[Mapping[str, str]] = dict(zip(CUISINES, ("lasagne", "sushi", "tacos", "biryani"), strict=True))
COUNTRY_OF: Final[Mapping[str, str]] = dict(zip(MAKES, ("Japan", "America", "Italy", "Sweden"), strict=True))

_SEED: Final = 20250601
_PER_CUISINE: Final = 9
_DEALERS: Final = 3
_PER_DEALER: Final = 13
_OPENS: Final = (8, 11, 14, 17, 20)


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """One of the options, each equally likely."""
    return options[int(rng.random() * len(options))]


def shuffled(rng: random.Random, items: Sequence[T]) -> list[T]:
    """The items in a random order, each equally likely (Fisher and Yates)."""
    out = list(items)
    for last in range(len(out) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        out[last], out[other] = out[other], out[last]
    return out


def _restaurants(rng: random.Random, city: str) -> Table:
    """Ratings and prices lie between the thresholds that queries mention, each band equally often per cuisine."""
    rows: Table = []
    for cuisine in CUISINES:
        ratings, prices = shuffled(rng, range(_PER_CUISINE)), shuffled(rng, range(_PER_CUISINE))
        for rating, price in zip(ratings, prices, strict=True):
            opens = int(rng.random() * len(_OPENS))
            closes = min(len(_OPENS), opens + 1 + int(rng.random() * 4))
            rows.append(
                {
                    "name": "",
                    "cuisine": cuisine,
                    "rating": 1.5 + rating % 4,
                    "stars": 1 + int(rng.random() * 5),
                    "price": 15 + 10 * (price % 4),
                    "opens": _OPENS[opens],
                    "closes": (*_OPENS, 23)[closes],
                }
            )
    rows = shuffled(rng, rows)
    for number, row in enumerate(rows):
        row["name"] = f"{city}-R{number + 1}"
    return rows


def _hotels(rng: random.Random, city: str) -> Table:
    return [
        {"name": f"{city}-H{number + 1}", "stars": 1 + int(rng.random() * 5), "price": 55 + 10 * int(rng.random() * 9)}
        for number in range(4)
    ]


def _vehicles(rng: random.Random, dealer: str, letter: str, count: int) -> Table:
    return [
        {
            "id": f"{dealer}-{letter}{number + 1}",
            "make": pick(rng, MAKES),
            "colour": pick(rng, COLOURS),
            "year": pick(rng, (2010, 2014, 2018, 2022)),
        }
        for number in range(count)
    ]


def _by_city_and_hour(rng: random.Random, low: int, high: int) -> dict[str, tuple[int, ...]]:
    """A number for each city and hour of the day; all different over :data:`HOURS`, so that each of them matters."""
    distinct = iter(shuffled(rng, range(low, high))[: len(CITIES) * len(HOURS)])
    return {
        city: tuple(next(distinct) if hour in HOURS else low + int(rng.random() * (high - low)) for hour in range(24))
        for city in CITIES
    }


_rng = random.Random(_SEED)
RESTAURANTS: Final[Mapping[str, Table]] = {city: _restaurants(_rng, city) for city in CITIES}
HOTELS: Final[Mapping[str, Table]] = {city: _hotels(_rng, city) for city in CITIES}
DEALERS: Final[Mapping[str, Table]] = {
    city: [{"dealer": f"{city}-D{number + 1}"} for number in range(_DEALERS)] for city in CITIES
}
CARS: Final[Mapping[str, Table]] = {
    row["dealer"]: _vehicles(_rng, row["dealer"], "C", _PER_DEALER) for rows in DEALERS.values() for row in rows
}
TRUCKS: Final[Mapping[str, Table]] = {
    row["dealer"]: _vehicles(_rng, row["dealer"], "T", 4) for rows in DEALERS.values() for row in rows
}
TEMPERATURE: Final[Mapping[str, tuple[int, ...]]] = _by_city_and_hour(_rng, -12, 38)
HUMIDITY: Final[Mapping[str, tuple[int, ...]]] = _by_city_and_hour(_rng, 25, 98)
