"""Slots: where the values of tasks come from, and which other values would be as plausible."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from callwright_plugins.depthbench.tools.train import (
    agenda,
    cars,
    dictionary,
    flights,
    kitchens,
    money,
    restaurants,
    shopping,
)
from callwright_plugins.depthbench.tools.validation import (
    books,
    cinema,
    hotels,
    mailbox,
    maps,
    songs,
    stocks,
    translation,
    units,
)
from callwright_plugins.depthbench.world import (
    CITY_NAMES,
    FIRST_NAMES,
    LANGUAGES,
    LAST_NAMES,
    RATES,
    Context,
    per_world,
    pick,
    shuffled,
)

Values = dict[str, Any]
Draw = Callable[[random.Random, Values, Context], Any]


def _of(options: Sequence[Any]) -> Draw:
    return lambda rng, values, context: pick(rng, options)


def _from(load: Callable[[], Any]) -> Draw:
    return lambda rng, values, context: pick(rng, tuple(load()))


def _whole(low: int, high: int, step: int = 1) -> Draw:
    return _of(range(low, high + 1, step))


def _day(rng: random.Random, values: Values, context: Context) -> str:
    return (date(2025, 3, 1) + timedelta(days=int(rng.random() * 900))).isoformat()


def _soon(rng: random.Random, values: Values, context: Context) -> str:
    return (context.today + timedelta(days=2 + int(rng.random() * 60))).isoformat()


def _past(rng: random.Random, values: Values, context: Context) -> str:
    return (context.today - timedelta(days=2 + int(rng.random() * 30))).isoformat()


def _person(rng: random.Random, values: Values, context: Context) -> str:
    return f"{pick(rng, FIRST_NAMES)} {pick(rng, LAST_NAMES)}"


def _email(rng: random.Random, values: Values, context: Context) -> str:
    name = _last(values, "person") or _person(rng, values, context)
    return f"{name.lower().replace(' ', '.')}@{pick(rng, ('example.com', 'example.org', 'mail.example'))}"


def _last(values: Values, kind: str) -> Any:
    """The value of the slot of a kind that was drawn last; ``None`` if there is none."""
    return next((values[slot] for slot in reversed(values) if kind_of(slot) == kind), None)


def _passport(rng: random.Random, values: Values, context: Context) -> str:
    return f"{pick(rng, 'CKLPX')}{int(rng.random() * 9_000_000) + 1_000_000}"


def _flight(rng: random.Random, values: Values, context: Context) -> str:
    start, end = shuffled(rng, CITY_NAMES)[:2]
    return str(pick(rng, flights.timetable(start, end))["flight_number"])


def _dish(rng: random.Random, values: Values, context: Context) -> str:
    return str(pick(rng, kitchens.menus()[_last(values, "kitchen")])["dish"])


def _showing(rng: random.Random, values: Values, context: Context) -> str:
    while True:
        names = cinema.cinemas()[pick(rng, CITY_NAMES)]
        rows = cinema.showings_at(names, _soon(rng, values, context))["showings"]
        if rows:
            return str(pick(rng, rows)["showing_id"])


def _message(rng: random.Random, values: Values, context: Context) -> str:
    return str(pick(rng, mailbox.messages_in(context, pick(rng, mailbox.FOLDERS)))["message_id"])


def _token(rng: random.Random, values: Values, context: Context) -> str:
    return "tok_" + "".join(pick(rng, "abcdefghkmnpqrstuvwxyz23456789") for _ in range(6))


STREETS: Final = (
    "Harbour Street",
    "Mill Lane",
    "Station Road",
    "Church Square",
    "Canal Walk",
    "Park Avenue",
    "Elm Grove",
)
TITLES: Final = (
    "Budget review",
    "Dentist",
    "Driving lesson",
    "Interview",
    "Piano practice",
    "Project kick-off",
    "Team lunch",
    "Yoga class",
)
SUBJECT_LINES: Final = (
    "Lunch tomorrow",
    "Quarterly figures",
    "Holiday plans",
    "Broken printer",
    "Choir rehearsal",
    "New timetable",
)
BODIES: Final = (
    "The numbers are ready.",
    "Can we meet at noon?",
    "I shall be late.",
    "The parcel has arrived.",
    "Please bring the keys.",
    "See you on Thursday.",
)
REPLIES: Final = (
    "Agreed, thank you.",
    "I will look into it.",
    "Sorry, I cannot make it.",
    "Sounds good to me.",
    "Please call me.",
)

#: Kind of slot -> how a value is drawn. A slot's kind is its name without a number at the end.
KINDS: Final[Mapping[str, Draw]] = {
    "city": _of(CITY_NAMES),
    "date": _day,
    "soon": _soon,
    "past": _past,
    "time": lambda rng, values, context: f"{8 + int(rng.random() * 14):02d}:{15 * int(rng.random() * 4):02d}",
    "evening": lambda rng, values, context: f"{17 + int(rng.random() * 4):02d}:{15 * int(rng.random() * 4):02d}",
    "person": _person,
    "phone": lambda rng, values, context: f"555-{int(rng.random() * 9000) + 1000}",
    "email": _email,
    "street": lambda rng, values, context: f"{1 + int(rng.random() * 180)} {pick(rng, STREETS)}",
    "postcode": lambda rng, values, context: str(int(rng.random() * 90_000) + 10_000),
    "token": _token,
    "passport": _passport,
    "expires": lambda rng, values, context: (date(2027, 1, 1) + timedelta(days=int(rng.random() * 360))).isoformat(),
    "first": _of(FIRST_NAMES),
    "last": _of(LAST_NAMES),
    "cuisine": _of(restaurants.CUISINES),
    "rating": lambda rng, values, context: round(3.2 + int(rng.random() * 14) / 10, 1),
    "bill": _whole(18, 70),
    "restaurant": _from(restaurants.by_name),
    "party": _whole(2, 9),
    "dealership": _from(cars.by_dealership),
    "make": _of(tuple(cars.MAKES)),
    "body": _of(cars.BODIES),
    "car_price": _whole(9000, 40_000, 500),
    "mileage": _whole(30_000, 160_000, 5000),
    "year": _whole(2013, 2022),
    "listing": _from(cars.by_listing),
    "deposit": _whole(500, 4000, 100),
    "months": _of((12, 18, 24, 36, 48, 60, 72)),
    "licence": lambda rng, values, context: (
        f"{pick(rng, 'ABDKM')}{pick(rng, 'RSTX')}{int(rng.random() * 900_000) + 100_000}"
    ),
    "airline": _of(flights.AIRLINES),
    "cabin": _of(flights.CABINS),
    "fare": _whole(150, 700, 5),
    "stops": _whole(0, 1),
    "flight": _flight,
    "flight_reason": _of(("change of plans", "illness", "duplicate booking")),
    "item": _of(shopping.ITEMS),
    "brand": _of(shopping.BRANDS),
    "colour": _of(shopping.COLOURS),
    "size": _of(shopping.SIZES),
    "sku": _from(shopping.by_sku),
    "quantity": _whole(2, 9),
    "coupon": _of(("SAVE10", "SPRING15", "WELCOME5", "VIP20")),
    "country": _of(shopping.COUNTRIES),
    "method": _of(shopping.METHODS),
    "refund_method": _of(("original card", "bank transfer", "store credit")),
    "kitchen": _from(kitchens.menus),
    "dish": _dish,
    "diet": _of(kitchens.DIETS),
    "dish_price": lambda rng, values, context: 8 + int(rng.random() * 20) / 2,
    "calories": _whole(400, 950, 10),
    "food_reason": _of(("too late", "wrong address", "ordered twice")),
    "coin": _of(tuple(money.COINS)),
    "currency": _of(tuple(RATES)),
    "amount": _whole(20, 9000),
    "people": _whole(3, 12),
    "percent": _whole(5, 25),
    "word": _of(tuple(dictionary.WORDS)),
    "title": _of(TITLES),
    "duration": _of((20, 25, 30, 40, 45, 60, 75, 90, 120)),
    "colleague": _of(agenda.COLLEAGUES),
    "event_kind": _of(agenda.KINDS),
    "days": _whole(3, 180),
    "nights": _whole(2, 9),
    "stars": _whole(3, 4),
    "rate": _whole(120, 300, 5),
    "amenity": _of(hotels.AMENITIES),
    "district": _of(hotels.DISTRICTS),
    "hotel": _from(hotels.by_hotel),
    "adults": _whole(1, 5),
    "card": lambda rng, values, context: str(int(rng.random() * 9000) + 1000),
    "room_reason": _of(("found another hotel", "illness", "trip cancelled")),
    "ticker": _of(tuple(stocks.TICKERS)),
    "dividend_year": _whole(2016, 2025),
    "index": _of(tuple(stocks.INDICES)),
    "shares": _whole(5, 400),
    "subject": _of(books.SUBJECTS),
    "language": _of(LANGUAGES),
    "pages": _whole(180, 600, 10),
    "published": _whole(1970, 2015),
    "isbn": _from(books.by_isbn),
    "library_card": lambda rng, values, context: f"L{int(rng.random() * 90_000) + 10_000}",
    "genre": _of(cinema.GENRES),
    "age": _whole(6, 17),
    "ticket_price": lambda rng, values, context: 8 + int(rng.random() * 16) / 2,
    "film": _from(cinema.films),
    "showing": _showing,
    "cinema": lambda rng, values, context: pick(rng, cinema.cinemas()[pick(rng, CITY_NAMES)]),
    "seats": _whole(2, 6),
    "artist": _of(songs.ARTISTS),
    "mood": _of(songs.MOODS),
    "song_seconds": _whole(170, 330, 5),
    "released": _whole(2001, 2019),
    "song": _from(songs.by_title),
    "length_unit": _of(tuple(units.LENGTH)),
    "mass_unit": _of(tuple(units.MASS)),
    "volume_unit": _of(tuple(units.VOLUME)),
    "speed_unit": _of(tuple(units.SPEED)),
    "area_unit": _of(tuple(units.AREA)),
    "temperature_unit": _of(units.TEMPERATURE),
    "measure": _whole(2, 900),
    "folder": _of(mailbox.FOLDERS),
    "sender": _of(mailbox.SENDERS),
    "label": _of(mailbox.LABELS),
    "message": _message,
    "reply": _of(REPLIES),
    "subject_line": _of(SUBJECT_LINES),
    "mail_body": _of(BODIES),
    "priority": _of(("low", "high")),
    "mode": _of(tuple(maps.MODES)),
    "kilometres": _whole(12, 1400),
    "latitude": lambda rng, values, context: round(-50 + int(rng.random() * 11_000) / 100, 2),
    "longitude": lambda rng, values, context: round(-120 + int(rng.random() * 24_000) / 100, 2),
    "noun": _of(tuple(translation.WORDS)),
}


def kind_of(slot: str) -> str:
    """``city2`` is of the kind ``city``."""
    return slot.rstrip("0123456789")


@per_world()
def _pools() -> tuple[tuple[Any, ...], ...]:
    """Values that stand for one another, without numbers."""
    return (
        CITY_NAMES,
        restaurants.CUISINES,
        tuple(restaurants.by_name()),
        tuple(cars.by_dealership()),
        tuple(cars.MAKES),
        cars.BODIES,
        tuple(cars.by_listing()),
        flights.AIRLINES,
        flights.CABINS,
        ("change of plans", "illness", "duplicate booking"),
        ("found another hotel", "illness", "trip cancelled"),
        shopping.ITEMS,
        shopping.BRANDS,
        shopping.COLOURS,
        shopping.SIZES,
        tuple(shopping.by_sku()),
        ("SAVE10", "SPRING15", "WELCOME5", "VIP20"),
        shopping.COUNTRIES,
        shopping.METHODS,
        ("original card", "bank transfer", "store credit"),
        tuple(kitchens.menus()),
        kitchens.DIETS,
        ("too late", "wrong address", "ordered twice"),
        tuple(money.COINS),
        tuple(RATES),
        tuple(dictionary.WORDS),
        TITLES,
        agenda.COLLEAGUES,
        agenda.KINDS,
        hotels.AMENITIES,
        hotels.DISTRICTS,
        tuple(hotels.by_hotel()),
        tuple(stocks.TICKERS),
        tuple(stocks.INDICES),
        books.SUBJECTS,
        LANGUAGES,
        tuple(books.by_isbn()),
        cinema.GENRES,
        tuple(cinema.films()),
        tuple(cinema.known_cinemas()),
        songs.ARTISTS,
        songs.MOODS,
        tuple(songs.by_title()),
        tuple(units.LENGTH),
        tuple(units.MASS),
        tuple(units.VOLUME),
        tuple(units.SPEED),
        tuple(units.AREA),
        units.TEMPERATURE,
        mailbox.FOLDERS,
        mailbox.SENDERS,
        mailbox.LABELS,
        REPLIES,
        SUBJECT_LINES,
        BODIES,
        ("low", "normal", "high"),
        tuple(maps.MODES),
        tuple(translation.WORDS),
    )


@per_world()
def _pool_of(value: str) -> tuple[Any, ...]:
    return next((pool for pool in _pools() if value in pool), ())


@per_world()
def alternatives(value: Any) -> tuple[Any, ...]:
    """Other values as plausible as this one: neighbours of numbers, dates and times, the same pool for names.

    Names are those of the world at hand.
    """
    if isinstance(value, bool) or value is None:
        return (not value,)
    if isinstance(value, int):
        return tuple(dict.fromkeys((value + 1, value - 1, value * 2, value + 10)))
    if isinstance(value, float):
        return (round(value + 0.1, 2), round(value - 0.1, 2), round(value + 0.5, 2), round(value * 2, 2))
    if len(value) == 10 and value[4] == value[7] == "-" and value[:4].isdigit():
        day = date.fromisoformat(value)
        return tuple((day + timedelta(days=days)).isoformat() for days in (1, -1, 7, 31))
    if len(value) == 5 and value[2] == ":":
        minute = int(value[:2]) * 60 + int(value[3:])
        return tuple(f"{(minute + by) // 60 % 24:02d}:{(minute + by) % 60:02d}" for by in (15, -15, 60, -120))
    pool = _pool_of(value)
    if pool:
        others = [other for other in pool if other != value]
        start = sum(map(ord, value)) % len(others)
        return tuple((others * 2)[start : start + min(6, len(others))])
    if "@" in value:
        return (f"x{value}", value.replace("example", "sample"))
    swapped = "".join(chr((ord(c) - 48 + 1) % 10 + 48) if c.isdigit() else c for c in value)
    if swapped != value:
        return (swapped,)
    return tuple(name for name in ("Omar Quinn", "Hana Keller") if name != value)
