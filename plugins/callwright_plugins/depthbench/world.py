"""The shared parts of the world: cities, people, dates, and seeded draws that are the same on every machine."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, timedelta
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

from attrs import field, frozen

T = TypeVar("T")
#: Changes of rows: table -> key of a row -> column -> value (:mod:`.mended.edits` reads and writes them).
Edits = Mapping[str, Mapping[str, Mapping[str, Any]]]
NO_EDITS: Final[Edits] = {}


@frozen
class Version:
    """What is fixed of all worlds of a version of DepthBench.

    ``name`` is also the seed of its first world. With ``margins`` filters add to each row by how much it meets the
    bound. With ``pins_names`` the names that queries mention (of kitchens, dishes, hotels, showings …) exist in every
    world; what is known of them differs, and where they are. A
    ``lenient`` version takes what a person would: names in any case, lists in any order, one listing as several.
    """

    name: str
    margins: bool = True
    pins_names: bool = False
    lenient: bool = False


V1: Final = Version("depthbench-v1")
V1_1: Final = Version("depthbench-v1.1", margins=False, pins_names=True, lenient=True)
VERSIONS: Final[Mapping[str, Version]] = {version.name: version for version in (V1, V1_1)}


@frozen(eq=False)
class World:
    """A world of a version by its number: the tasks play in 0, the others have other data of the same kinds.

    Cities, currencies, makes and the like are the same in all; what is drawn differs. ``edits`` are rows that differ
    from what was drawn. ``kept`` remembers what was made of the drawn data, by the functions that make it; a world
    shares it with all those that differ by edits only.
    """

    number: int
    version: Version = V1
    edits: Edits = field(default=NO_EDITS, repr=False)
    kept: dict[Callable[..., Any], Callable[..., Any]] = field(factory=dict, repr=False)
    seed: str = field(init=False)

    def __reduce__(self) -> Any:
        """As what fixes it; its data are made again, or are there already, where it is unpickled."""
        return edited_world, (self.number, self.version, self.edits)

    @seed.default
    def _seed_of_number(self) -> str:
        return f"{self.version.name}/world-{self.number}" if self.number else self.version.name


#: Numbers of worlds are below this.
WORLDS: Final = 100_000
FIRST: Final = World(0)
#: The world whose session is being called: in each thread its own.
at_hand: Final = ContextVar("depthbench_world", default=FIRST)


def world(number: int, version: Version = V1) -> World:
    """The world of a number; its data are made when they are first asked for."""
    return _world(number, version)


@lru_cache(maxsize=64)
def _world(number: int, version: Version) -> World:
    return World(number, version) if number or version != V1 else FIRST


def edited_world(number: int, version: Version, edits: Edits) -> World:
    """The world of a number with edits, which shares all that is drawn with the one that has none."""
    drawn = world(number, version)
    return World(number, version, edits, drawn.kept) if edits else drawn


@contextmanager
def within(chosen: World) -> Iterator[None]:
    """Draw from this world, in this thread."""
    before = at_hand.set(chosen)
    try:
        yield
    finally:
        at_hand.reset(before)


def per_world(most: int | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Remember what a function of drawn data gives, in each world for itself; the ``most`` recent if stated.

    Such a function must not look at edits: worlds that differ by edits only share what it gave.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        first = lru_cache(maxsize=most)(function)

        @wraps(function)
        def remembered(*arguments: Any) -> T:
            here = at_hand.get()
            if here is FIRST or here.kept is FIRST.kept:
                return first(*arguments)
            found = here.kept.get(function)
            if found is None:
                found = here.kept[function] = lru_cache(maxsize=most)(function)
            made: T = found(*arguments)
            return made

        return remembered

    return decorate


def roll(key: str, sides: int) -> int:
    """A number in ``[0, sides)`` that depends on nothing but the world and the key. About a microsecond."""
    return _roll(at_hand.get().seed, key, sides)


def named_roll(key: str, sides: int) -> int:
    """As :func:`roll`, but the same number in all worlds of a version that pins names."""
    version = at_hand.get().version
    return _roll(f"{version.name}/names", key, sides) if version.pins_names else roll(key, sides)


@lru_cache(maxsize=8192)
def _roll(seed: str, key: str, sides: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=8).digest(), "big") % sides


def stream(key: str) -> random.Random:
    """A generator of its own for a key of the world at hand."""
    return random.Random(f"{at_hand.get().seed}/{key}")


def naming(rng: random.Random, key: str) -> random.Random:
    """The generator that names are drawn from: ``rng`` itself, or one that is the same in all worlds of a version."""
    version = at_hand.get().version
    return random.Random(f"{version.name}/names/{key}") if version.pins_names else rng


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """One of the options. Uses :meth:`random.Random.random` only, whose sequence never changes between versions."""
    return options[int(rng.random() * len(options))]


def shuffled(rng: random.Random, options: Sequence[T]) -> list[T]:
    """The options in a random order."""
    return [option for _, option in sorted(((rng.random(), option) for option in options), key=lambda pair: pair[0])]


def mixed(key: str, names: Sequence[T]) -> Sequence[T]:
    """Names that are the same in all worlds, in an order of the world's own: who has which of them differs.

    As they are in a version that does not pin names: there the names themselves differ.
    """
    return shuffled(stream(f"{key}/mixed"), names) if at_hand.get().version.pins_names else names


@frozen
class City:
    """A city: currency, hours from UTC, position in degrees, metres above the sea, thousands of inhabitants, tax."""

    name: str
    code: str
    country: str
    currency: str
    offset: int
    latitude: float
    longitude: float
    elevation: int
    population: int
    tax: float


CITIES: Final[dict[str, City]] = {
    city.name: city
    for city in (
        City("Amsterdam", "AMS", "Netherlands", "EUR", 1, 52.37, 4.9, -2, 921, 21.0),
        City("Athens", "ATH", "Greece", "EUR", 2, 37.98, 23.73, 70, 643, 24.0),
        City("Berlin", "BER", "Germany", "EUR", 1, 52.52, 13.41, 34, 3677, 19.0),
        City("Boston", "BOS", "United States", "USD", -5, 42.36, -71.06, 43, 654, 6.25),
        City("Brussels", "BRU", "Belgium", "EUR", 1, 50.85, 4.35, 13, 1222, 21.0),
        City("Chicago", "ORD", "United States", "USD", -6, 41.88, -87.63, 182, 2697, 10.25),
        City("Copenhagen", "CPH", "Denmark", "DKK", 1, 55.68, 12.57, 5, 644, 25.0),
        City("Denver", "DEN", "United States", "USD", -7, 39.74, -104.99, 1609, 711, 8.81),
        City("Dublin", "DUB", "Ireland", "EUR", 0, 53.35, -6.26, 20, 592, 23.0),
        City("Edinburgh", "EDI", "United Kingdom", "GBP", 0, 55.95, -3.19, 47, 526, 20.0),
        City("Helsinki", "HEL", "Finland", "EUR", 2, 60.17, 24.94, 26, 658, 25.5),
        City("Lisbon", "LIS", "Portugal", "EUR", 0, 38.72, -9.14, 15, 546, 23.0),
        City("London", "LHR", "United Kingdom", "GBP", 0, 51.51, -0.13, 11, 8866, 20.0),
        City("Madrid", "MAD", "Spain", "EUR", 1, 40.42, -3.7, 657, 3280, 21.0),
        City("Melbourne", "MEL", "Australia", "AUD", 10, -37.81, 144.96, 31, 5078, 10.0),
        City("Mexico City", "MEX", "Mexico", "MXN", -6, 19.43, -99.13, 2240, 9209, 16.0),
        City("Milan", "MXP", "Italy", "EUR", 1, 45.46, 9.19, 120, 1371, 22.0),
        City("Montreal", "YUL", "Canada", "CAD", -5, 45.5, -73.57, 36, 1763, 14.98),
        City("Oslo", "OSL", "Norway", "NOK", 1, 59.91, 10.75, 23, 709, 25.0),
        City("Paris", "CDG", "France", "EUR", 1, 48.86, 2.35, 35, 2103, 20.0),
        City("Prague", "PRG", "Czechia", "CZK", 1, 50.08, 14.44, 235, 1357, 21.0),
        City("San Diego", "SAN", "United States", "USD", -8, 32.72, -117.16, 19, 1382, 7.75),
        City("Seattle", "SEA", "United States", "USD", -8, 47.61, -122.33, 53, 749, 10.35),
        City("Singapore", "SIN", "Singapore", "SGD", 8, 1.35, 103.82, 16, 5917, 9.0),
        City("Stockholm", "ARN", "Sweden", "SEK", 1, 59.33, 18.07, 28, 984, 25.2),
        City("Tokyo", "HND", "Japan", "JPY", 9, 35.68, 139.69, 40, 14178, 10.0),
        City("Vienna", "VIE", "Austria", "EUR", 1, 48.21, 16.37, 171, 1982, 20.2),
        City("Zurich", "ZRH", "Switzerland", "CHF", 1, 47.37, 8.54, 408, 443, 8.1),
    )
}
CITY_NAMES: Final = tuple(CITIES)

#: Units of a currency for one US dollar, before the small daily movement.
RATES: Final[dict[str, float]] = {
    "USD": 1.0,
    "EUR": 0.92,
    "GBP": 0.79,
    "JPY": 149.3,
    "CHF": 0.88,
    "CAD": 1.36,
    "AUD": 1.52,
    "SEK": 10.45,
    "NOK": 10.72,
    "DKK": 6.87,
    "SGD": 1.34,
    "MXN": 17.1,
    "CZK": 23.2,
}

FIRST_NAMES: Final = (
    "Alice",
    "Amir",
    "Anna",
    "Bruno",
    "Carla",
    "Daniel",
    "Elena",
    "Farah",
    "Felix",
    "Grace",
    "Hana",
    "Henrik",
    "Ines",
    "Ivan",
    "Jonas",
    "Julia",
    "Kofi",
    "Laura",
    "Leo",
    "Lucia",
    "Marco",
    "Maya",
    "Nadia",
    "Nils",
    "Omar",
    "Paula",
    "Priya",
    "Rosa",
    "Samuel",
    "Sofia",
    "Tomas",
    "Vera",
    "Wei",
    "Yusuf",
    "Zoe",
)
LAST_NAMES: Final = (
    "Adler",
    "Bakker",
    "Castro",
    "Dahl",
    "Eriksen",
    "Ferreira",
    "Garcia",
    "Hansen",
    "Ito",
    "Jensen",
    "Keller",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Quinn",
    "Rossi",
    "Sato",
    "Tanaka",
    "Ueda",
    "Varga",
    "Weber",
    "Young",
    "Zeman",
)

FIRST_DAY: Final = date(2025, 1, 1)
LAST_DAY: Final = date(2027, 12, 31)
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@frozen
class Context:
    """What a session knows of its user and never tells without being asked: place, clock, and the person."""

    key: str
    user: str
    city: str
    home: str
    office: str
    birthplace: str
    today: date
    time: str
    birthday: date
    currency: str
    account_currency: str
    language: str


#: The languages of the users and of books.
LANGUAGES: Final = ("English", "French", "German", "Italian", "Spanish")
#: There are this many contexts; ``open("user-0000")`` to ``open("user-1023")``.
CONTEXTS: Final = 1024


@per_world()
def context(number: int) -> Context:
    """The context of a number; its key says nothing about what is in it."""
    rng = stream(f"context/{number}")
    city, home, office, birthplace = shuffled(rng, CITY_NAMES)[:4]
    today = date(2026, 1, 5) + timedelta(days=int(rng.random() * 340))
    currency, account = shuffled(rng, tuple(RATES))[:2]
    return Context(
        key=f"user-{number:04d}" + (f"@{at_hand.get().number}" if at_hand.get().number else ""),
        user=f"{pick(rng, FIRST_NAMES)} {pick(rng, LAST_NAMES)}",
        city=city,
        home=home,
        office=office,
        birthplace=birthplace,
        today=today,
        time=f"{8 + int(rng.random() * 14):02d}:{5 * int(rng.random() * 12):02d}",
        birthday=today + timedelta(days=20 + int(rng.random() * 250)),
        currency=currency,
        account_currency=account,
        language=pick(rng, LANGUAGES),
    )
