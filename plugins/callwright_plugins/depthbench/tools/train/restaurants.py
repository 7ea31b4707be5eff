"""Restaurants: finding, filtering, choosing, asking and reserving."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Clock,
    Day,
    Domain,
    PersonName,
    Phone,
    Row,
    Rows,
    at_least,
    at_least_by,
    at_most,
    edited,
    edited_row,
    fail,
    first_by,
    keep,
    minutes,
    says,
    table,
    the_city,
    the_day,
)
from callwright_plugins.depthbench.world import (
    CITY_NAMES,
    mixed,
    naming,
    per_world,
    pick,
    roll,
    shuffled,
    stream,
)

DOMAIN: Final = Domain("restaurants")
CUISINES: Final = ("French", "Greek", "Indian", "Italian", "Japanese", "Mexican", "Thai", "Vietnamese")
Cuisine = Literal["French", "Greek", "Indian", "Italian", "Japanese", "Mexican", "Thai", "Vietnamese"]
_FIRST: Final = [
    "Amber",
    "Blue",
    "Copper",
    "Crooked",
    "Golden",
    "Green",
    "Hidden",
    "Iron",
    "Ivory",
    "Jade",
    "Little",
    "Lucky",
    "Olive",
    "Painted",
    "Quiet",
    "Red",
    "Rustic",
    "Salt",
    "Silver",
    "Smoky",
    "Stone",
    "Velvet",
    "White",
    "Wild",
]
_SECOND: Final = [
    "Anchor",
    "Barrel",
    "Basil",
    "Bridge",
    "Cedar",
    "Elm",
    "Fennel",
    "Fig",
    "Fork",
    "Garden",
    "Grove",
    "Hearth",
    "Kettle",
    "Lantern",
    "Lemon",
    "Mill",
    "Orchard",
    "Oven",
    "Pepper",
    "Plum",
    "Rooster",
    "Saffron",
    "Spoon",
    "Table",
    "Thistle",
    "Whisk",
]


class Restaurant(TypedDict):
    """A restaurant; the last three stand there after the filter of that kind."""

    name: str
    city: CityName
    cuisine: Cuisine
    rating: float
    average_bill: int
    opens: Clock
    closes: Clock
    rating_above_minimum: NotRequired[float]
    under_budget_by: NotRequired[float]
    minutes_until_closing: NotRequired[int]


class Found(TypedDict):
    """The restaurants of a city."""

    city: CityName
    restaurants: list[Restaurant]


class RestaurantContact(TypedDict):
    """How to reach a restaurant."""

    name: str
    phone: str
    street: str
    city: CityName


class Specials(TypedDict):
    """What is on the board."""

    name: str
    date: Day
    starter: str
    main: str
    dessert: str


class Guest(TypedDict):
    """Who the table is for."""

    name: PersonName
    phone: Phone


class TableReservation(TypedDict):
    """A reserved table."""

    reservation_id: str
    restaurant: str
    date: Day
    time: Clock
    party_size: int
    guest: str


Restaurants = Annotated[list[Restaurant], REFERENCE_ONLY]


@per_world()
def by_city() -> dict[str, Rows]:
    """Eighteen restaurants in every city."""
    every = [f"{a} {b}" for a in _FIRST for b in _SECOND]
    taken = shuffled(naming(stream("restaurants/names"), "restaurants"), every)[: 18 * len(CITY_NAMES)]
    names = mixed("restaurants", taken)
    made: dict[str, Rows] = {}
    for number, city in enumerate(CITY_NAMES):
        rng = stream(f"restaurants/{city}")
        rows = Rows()
        for name in names[number * 18 : number * 18 + 18]:
            rows.append(
                {
                    "name": name,
                    "city": city,
                    "cuisine": pick(rng, CUISINES[number % 4 : number % 4 + 5]),
                    "rating": round(3 + 2 * rng.random(), 1),
                    "average_bill": 12 + int(rng.random() * 70),
                    "opens": f"{pick(rng, (7, 9, 11, 12, 17)):02d}:{pick(rng, (0, 30)):02d}",
                    "closes": f"{pick(rng, (15, 20, 21, 22, 23)):02d}:{pick(rng, (0, 15, 30, 45)):02d}",
                }
            )
        made[city] = Rows(
            [row if minutes(row["opens"]) < minutes(row["closes"]) else {**row, "opens": "10:00"} for row in rows]
        )
    return made


@per_world()
def by_name() -> dict[str, Row]:
    """Every restaurant by its name, which is its own."""
    return {row["name"]: row for rows in by_city().values() for row in rows}


def _the_restaurant(name: str) -> Row:
    row = by_name().get(name)
    if row is None:
        fail("unknown_restaurant", f"no restaurant named {name[:40]!r} is known")
    return edited_row("restaurants", name, row)


@DOMAIN.tool("retrieval", "restaurants")
def find_restaurants(city: CityName) -> Found:
    """All restaurants of a city."""
    the_city(city)
    rows = edited("restaurants", by_city()[city], lambda row: row["name"])
    return {"city": city, "restaurants": rows}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def filter_restaurants_by_cuisine(restaurants: Restaurants, cuisine: Cuisine) -> list[Restaurant]:
    """Those of the given restaurants that serve a cuisine."""
    return keep(table(restaurants, "cuisine"), "cuisine", cuisine)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_restaurants_by_rating(
    restaurants: Restaurants, minimum_rating: Annotated[float, says(minimum=1, maximum=5)]
) -> list[Restaurant]:
    """Those of the given restaurants that are rated at least so high (1 to 5)."""
    return at_least(table(restaurants, "cuisine", "rating"), "rating", minimum_rating, "rating_above_minimum")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_restaurants_by_budget(
    restaurants: Restaurants, maximum_bill: Annotated[int, says(minimum=1, maximum=1000)]
) -> list[Restaurant]:
    """Those of the given restaurants whose average bill per person is at most this."""
    return at_most(table(restaurants, "cuisine", "average_bill"), "average_bill", maximum_bill, "under_budget_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_restaurants_open_at(restaurants: Restaurants, time: Clock) -> list[Restaurant]:
    """Those of the given restaurants that are open at a time of day."""
    now = minutes(time)
    rows = [row for row in table(restaurants, "cuisine", "opens", "closes") if minutes(row["opens"]) <= now]
    open_then = (row for row in rows if now < minutes(row["closes"]))
    return at_least_by(open_then, lambda row: minutes(row["closes"]) - now, "minutes_until_closing")  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "name")
def pick_best_rated_restaurant(restaurants: Restaurants) -> Restaurant:
    """The best rated of the given restaurants; the cheaper one of equals."""
    rows = table(restaurants, "cuisine", "name", "rating", "average_bill")
    return first_by(rows, lambda row: (-row["rating"], row["average_bill"], row["name"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "name")
def pick_cheapest_restaurant(restaurants: Restaurants) -> Restaurant:
    """The cheapest of the given restaurants; the better rated one of equals."""
    rows = table(restaurants, "cuisine", "name", "rating", "average_bill")
    return first_by(rows, lambda row: (row["average_bill"], -row["rating"], row["name"]))  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def get_restaurant_contact(restaurant: str) -> RestaurantContact:
    """Phone number and street address of a restaurant, by its name."""
    row = _the_restaurant(restaurant)
    seed = roll(f"contact/{restaurant}", 10_000_000)
    street = ("Harbour Street", "Mill Lane", "Station Road", "Church Square", "Canal Walk", "Park Avenue")[seed % 6]
    return {
        "name": restaurant,
        "phone": f"555-{seed % 10000:04d}",
        "street": f"{1 + seed // 7 % 180} {street}",
        "city": row["city"],
    }


@DOMAIN.tool("information")
def get_restaurant_specials(restaurant: str, date: Day) -> Specials:
    """The starter, main course and dessert of the day of a restaurant."""
    _the_restaurant(restaurant)
    the_day(date)
    seed = roll(f"specials/{restaurant}/{date}", 1 << 20)
    return {
        "name": restaurant,
        "date": date,
        "starter": ("tomato soup", "beetroot salad", "spring rolls", "grilled octopus", "leek tart", "burrata")[
            seed % 6
        ],
        "main": (
            "roast duck",
            "mushroom risotto",
            "sea bass",
            "lamb stew",
            "aubergine curry",
            "beef noodles",
            "gnocchi",
        )[seed // 6 % 7],
        "dessert": ("lemon cake", "rice pudding", "poached pear", "chocolate mousse", "mango sorbet")[seed // 42 % 5],
    }


@DOMAIN.tool("workflow", "reservation_id", read_only=False)
def reserve_table(
    restaurant: str, date: Day, time: Clock, party_size: Annotated[int, says(minimum=1, maximum=20)], guest: Guest
) -> TableReservation:
    """Reserve a table. Fails if the restaurant is closed then, fully booked that day, or too small for the party."""
    row = _the_restaurant(restaurant)
    the_day(date)
    if not minutes(row["opens"]) <= minutes(time) < minutes(row["closes"]):
        fail("closed_then", f"{restaurant} is open from {row['opens']} to {row['closes']}")
    if party_size > 12:
        fail("too_large", f"{restaurant} takes parties of up to 12")
    if roll(f"full/{restaurant}/{date}", 8) == 0:
        fail("fully_booked", f"{restaurant} is fully booked on {date}")
    number = (
        roll(f"reserve/{restaurant}/{date}/{time}/{party_size}/{guest['name']}/{guest['phone']}", 900_000) + 100_000
    )
    return {
        "reservation_id": f"T{number}",
        "restaurant": restaurant,
        "date": date,
        "time": time,
        "party_size": party_size,
        "guest": guest["name"],
    }
