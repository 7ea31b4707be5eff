"""The scenarios of the delivery service: dinner time in a city, an almost empty town, and five minutes to closing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.codes import own_codes
from callwright_plugins.mcp_environments.food_delivery.ordering import steps_of
from callwright_plugins.mcp_environments.food_delivery.rows import (
    Address,
    CourierEvent,
    District,
    Item,
    Menu,
    Option,
    OptionGroup,
    Order,
    OrderItem,
    Profile,
    Promo,
    Rating,
    Restaurant,
    Zone,
)
from callwright_plugins.mcp_environments.people import FIRST, LAST, full_name
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

#: Monday, 18:30 UTC: dinner time.
DINNER: Final = NOW + 9 * HOUR + 30 * MINUTE
#: Monday, 21:55 UTC: many restaurants close in five minutes.
LATE: Final = NOW + 12 * HOUR + 55 * MINUTE

_DISTRICTS: Final = (
    ("old-town", "Old Town", 0, 0),
    ("harbour", "Harbour", 1800, -600),
    ("station", "Station Quarter", -900, 1100),
    ("university", "University", 700, 2100),
    ("mills", "The Mills", -2400, -300),
    ("gardens", "Gardens", 2600, 1900),
    ("heights", "Heights", -1500, 3200),
    ("southbank", "Southbank", 300, -2500),
    ("airport", "Airport", 6500, 5200),
)
#: Cuisines: dishes with prices, and the group of options that mains have.
_CUISINES: Final[dict[str, tuple[tuple[tuple[str, int, bool], ...], str]]] = {
    "italian": (
        (
            ("Margherita", 950, True),
            ("Diavola", 1190, False),
            ("Quattro formaggi", 1250, True),
            ("Lasagne", 1290, False),
        ),
        "pizza",
    ),
    "indian": (
        (
            ("Butter chicken", 1390, False),
            ("Palak paneer", 1190, True),
            ("Lamb vindaloo", 1490, False),
            ("Dal", 890, True),
        ),
        "heat",
    ),
    "burgers": (
        (("Classic burger", 1090, False), ("Bean burger", 1050, True), ("Double burger", 1490, False)),
        "burger",
    ),
    "japanese": (
        (("Salmon nigiri", 1290, False), ("Vegetable ramen", 1190, True), ("Chicken katsu", 1390, False)),
        "side",
    ),
    "mexican": (
        (("Beef burrito", 1090, False), ("Bean tacos", 950, True), ("Chicken quesadilla", 1050, False)),
        "heat",
    ),
    "thai": ((("Green curry", 1290, False), ("Pad thai with tofu", 1150, True), ("Tom yum soup", 890, False)), "heat"),
    "lebanese": (
        (("Falafel plate", 990, True), ("Lamb kofta", 1390, False), ("Chicken shawarma", 1190, False)),
        "side",
    ),
    "bakery": ((("Cheese quiche", 690, True), ("Ham baguette", 590, False), ("Soup of the day", 550, True)), "side"),
}
#: Groups of options: name, least, most, and the options with what they add.
_GROUPS: Final[dict[str, tuple[tuple[str, int, int, tuple[tuple[str, int], ...]], ...]]] = {
    "pizza": (
        ("Size", 1, 1, (("small", -150), ("regular", 0), ("large", 350))),
        ("Extra toppings", 0, 3, (("olives", 100), ("mushrooms", 120), ("rocket", 130), ("ham", 180))),
    ),
    "heat": (
        ("How hot", 1, 1, (("mild", 0), ("medium", 0), ("hot", 0))),
        ("Rice", 0, 1, (("basmati", 250), ("brown", 280))),
    ),
    "burger": (
        ("Bun", 1, 1, (("brioche", 0), ("wholemeal", 0), ("gluten-free", 120))),
        ("Sides", 0, 2, (("fries", 290), ("salad", 320), ("onion rings", 350))),
    ),
    "side": (("Two sides", 2, 2, (("rice", 0), ("salad", 0), ("pickles", 0), ("fries", 50))),),
}
_EXTRAS: Final = (
    ("Still water", 250, True),
    ("Lemonade", 350, True),
    ("Beer", 450, True),
    ("Chocolate cake", 550, True),
)
_BREAKFAST: Final = (("Granola", 590, True), ("Scrambled eggs", 690, True), ("Croissant", 290, True))
_ADJECTIVES: Final = ("Golden", "Little", "Blue", "Old", "Royal", "Happy", "Green", "Red", "Silver", "Grand")
_NOUNS: Final = ("Spoon", "Table", "Garden", "Kitchen", "Corner", "Lantern", "House", "Fork", "Oven", "Terrace")


class _Numbers:
    """Ids in the order in which they are asked for, as :meth:`callwright.World.new_id` writes them."""

    def __init__(self) -> None:
        self._last: dict[type[Any], int] = {}

    def __call__(self, kind: type[Any]) -> str:
        self._last[kind] = self._last.get(kind, 0) + 1
        return table_of(kind).identifier(self._last[kind])


def _hours(rng: Random) -> tuple[tuple[int, int, int], ...]:
    """Opening hours: all day, lunch and dinner, evenings into the night, or mornings; some have a day off."""
    off = rng.choice((None, None, 0, 6))
    spans = rng.choice((((660, 1320),), ((690, 870), (1020, 1380)), ((1020, 1560),), ((420, 960),), ((600, 1320),)))
    return tuple((day, first, last) for day in range(7) if day != off for first, last in spans)


def _menu(
    rng: Random, number: _Numbers, restaurant: Restaurant, *, sold_out: float, breakfast: bool
) -> Iterable[Menu | Item | OptionGroup | Option]:
    """What a restaurant sells; ``sold_out`` is the share of items and options that are."""
    dishes, kind = _CUISINES[restaurant.cuisine]
    parts: list[tuple[str, int, int, Sequence[tuple[str, int, bool]], str]] = [
        ("Mains", 0, 1440, dishes, kind),
        ("Drinks and desserts", 0, 1440, _EXTRAS, ""),
    ]
    if breakfast:
        parts.insert(0, ("Breakfast", 420, 690, _BREAKFAST, ""))
    if rng.random() < 0.3:
        parts.append(("Dinner specials", 1020, 1440, (("Chef's plate", 1890, False), ("Garden plate", 1690, True)), ""))
    for name, first, last, dishes_of, choices in parts:
        menu = Menu(number(Menu), restaurant.id, name, first, last)
        yield menu
        for dish, price, vegetarian in dishes_of:
            item = Item(
                id=number(Item),
                restaurant_id=restaurant.id,
                menu_id=menu.id,
                name=dish,
                description=f"{dish}, {'vegetarian, ' if vegetarian else ''}as {restaurant.name} makes it.",
                price_cents=price + rng.randrange(-2, 5) * 50 if price > 400 else price,
                vegetarian=vegetarian,
                sold_out=rng.random() < sold_out,
            )
            yield item
            for title, least, most, options in _GROUPS.get(choices, ()):
                group = OptionGroup(number(OptionGroup), item.id, title, least, most)
                yield group
                # A required group keeps enough options for the dish to be ordered at all.
                spare = len(options) - max(least, 1)
                for option, delta in options:
                    gone = spare > 0 and rng.random() < sold_out
                    spare -= gone
                    yield Option(number(Option), group.id, option, delta, gone)


def _zones(rng: Random, restaurant: Restaurant, reach: int) -> Iterable[Zone]:
    """The districts within ``reach`` metres; fees and minimum orders grow with the distance."""
    home = next(one for one in _DISTRICTS if one[0] == restaurant.district_id)
    for name, _, x, y in _DISTRICTS:
        distance = abs(home[2] - x) + abs(home[3] - y)
        if distance <= reach:
            step = distance // 1000
            yield Zone(restaurant.id, name, 99 + 70 * step + rng.choice((0, 50)), 1000 + 300 * step)


def _restaurants(
    rng: Random, number: _Numbers, count: int, *, sold_out: float, now: int
) -> Iterable[Restaurant | Zone | Menu | Item | OptionGroup | Option]:
    for n in range(count):
        cuisine = tuple(_CUISINES)[n % len(_CUISINES)]
        votes = rng.choice((0, 12, 80, 240, 900))
        restaurant = Restaurant(
            id=number(Restaurant),
            name=f"{rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)}",
            cuisine=cuisine,
            district_id=_DISTRICTS[rng.randrange(len(_DISTRICTS) - 1)][0],
            hours=_hours(rng),
            paused_until=now + 45 * MINUTE if rng.random() < 0.05 else 0,
            prepare_minutes=rng.choice((10, 15, 20, 30)),
            rating_sum=votes * rng.randint(28, 49) // 10,
            rating_count=votes,
        )
        yield restaurant
        yield from _zones(rng, restaurant, rng.choice((2500, 4000, 6000)))
        yield from _menu(rng, number, restaurant, sold_out=sold_out, breakfast=rng.random() < 0.3)


def _order(
    rng: Random,
    number: _Numbers,
    restaurant: Restaurant,
    items: Sequence[Item],
    address: Address,
    placed_at: int,
    *,
    ride: int = 12,
    cancelled: bool = False,
    rated: bool = False,
) -> Iterable[Any]:
    """An order of the past, of items without options."""
    chosen = rng.sample(items, min(len(items), 2))
    quantities = [rng.randint(1, 3) for _ in chosen]
    subtotal = sum(item.price_cents * quantity for item, quantity in zip(chosen, quantities, strict=True))
    service = min(max(subtotal * 5 // 100, 99), 399)
    order = Order(
        id=number(Order),
        restaurant_id=restaurant.id,
        address_id=address.id,
        placed_at=placed_at,
        cancelled_at=placed_at + MINUTE if cancelled else None,
        payment="card",
        promo_code="",
        subtotal_cents=subtotal,
        discount_cents=0,
        delivery_cents=199,
        service_cents=service,
        total_cents=subtotal + 199 + service,
        tip_cents=0,
        refunded_cents=subtotal + 199 + service if cancelled else 0,
    )
    yield order
    for item, quantity in zip(chosen, quantities, strict=True):
        yield OrderItem(number(OrderItem), order.id, item.id, item.name, (), quantity, item.price_cents)
    courier = rng.choice(FIRST)
    steps = steps_of(restaurant.prepare_minutes, ride)
    for status, minutes in steps:
        yield CourierEvent(number(CourierEvent), order.id, placed_at + minutes * MINUTE, status, courier)
    if rated:
        stars, at = rng.randint(1, 5), placed_at + steps[-1][1] * MINUTE + HOUR
        yield Rating(number(Rating), order.id, restaurant.id, stars, rng.choice((None, 4, 5)), "", at)


def _districts() -> Iterable[District]:
    for name, title, x, y in _DISTRICTS:
        yield District(name, title, x, y)


def _address(rng: Random, number: _Numbers, label: str, district: str) -> Address:
    return Address(number(Address), label, f"{rng.randint(1, 120)} {rng.choice(LAST)} Street", district)


def _me(rng: Random, available: int) -> Profile:
    return Profile("me", full_name(rng), f"+00 555 {rng.randrange(10**6):06d}", "4242", "123", available)


def _promos(now: int, restaurant_id: str) -> Iterable[Promo]:
    week = now + 7 * DAY
    yield Promo("HELLO20", "percent", 20, 1500, 1000, "", True, True, week, False)
    yield Promo("DINNER5", "fixed", 500, 2500, None, "", False, True, week, False)
    yield Promo("FREERIDE", "free_delivery", 0, 1200, None, "", False, True, week, False)
    yield Promo("HOUSE15", "percent", 15, 0, 600, restaurant_id, False, True, week, False)
    yield Promo("FRIEND10", "percent", 10, 0, None, "", False, False, week, True)
    yield Promo("CARNIVAL", "percent", 30, 0, None, "", False, True, now - 10 * DAY, False)


def _typical_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    yield _me(rng, 60_000)
    yield from _districts()
    rows = list(_restaurants(rng, number, max(8, round(60 * scale)), sold_out=0.08, now=DINNER))
    yield from rows
    addresses = [
        _address(rng, number, "home", "old-town"),
        _address(rng, number, "office", "station"),
        _address(rng, number, "parents", "gardens"),
        _address(rng, number, "hangar", "airport"),
    ]
    yield from addresses
    restaurants = [one for one in rows if isinstance(one, Restaurant)]
    yield from _promos(DINNER, restaurants[0].id)
    # Two orders are under way: one still with the restaurant, one in the kitchen.
    ages = [3 * MINUTE, 12 * MINUTE, 5 * HOUR, 2 * DAY]
    extras = _extras(rows)
    for n in range(max(6, round(24 * scale))):
        where = restaurants[n % len(restaurants)]
        age = ages[n] if n < len(ages) else rng.randrange(3 * 24, 300 * 24) * HOUR
        yield from _order(
            rng,
            number,
            where,
            extras[where.id],
            addresses[n % 2],
            DINNER - age,
            cancelled=n > 5 and rng.random() < 0.1,
            rated=n > 5 and rng.random() < 0.3,
        )


def _extras(rows: Iterable[Any]) -> dict[str, list[Item]]:
    """What each restaurant sells without options: drinks and desserts."""
    names, found = {name for name, _, _ in _EXTRAS}, dict[str, list[Item]]()
    for one in rows:
        if isinstance(one, Item) and one.name in names:
            found.setdefault(one.restaurant_id, []).append(one)
    return found


def _sparse_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    yield _me(rng, 3_000)
    yield from _districts()
    for _ in range(max(2, round(2 * scale))):
        restaurant = Restaurant(
            number(Restaurant),
            "Village Inn",
            "bakery",
            "old-town",
            ((0, 480, 1200),),
            0,
            20,
            rating_sum=0,
            rating_count=0,
        )
        yield restaurant
        yield Zone(restaurant.id, "old-town", 199, 800)
        yield from _menu(rng, number, restaurant, sold_out=0.0, breakfast=True)
    yield _address(rng, number, "home", "old-town")
    yield Promo("HELLO20", "percent", 20, 1500, 1000, "", True, True, DINNER + DAY, False)


def _adversarial_rows(rng: Random, scale: float) -> Iterable[Any]:
    number = _Numbers()
    yield _me(rng, 2_500)
    yield from _districts()
    # Chains: the same name in several districts, with other hours, zones and prices.
    rows: list[Any] = []
    hours = (
        tuple((day, 660, 1320) for day in range(7)),  # closes at 22:00, in five minutes
        tuple((day, 660, 1315) for day in range(7)),  # closed at 21:55, this minute
        tuple((day, 1020, 1500) for day in range(7)),  # open until one at night
        tuple((day, 660, 1380) for day in range(1, 7)),  # not on Mondays
        ((6, 1080, 1560), (1, 660, 1320)),  # the night of Sunday is over
    )
    for n in range(max(12, round(30 * scale))):
        cuisine = ("italian", "burgers", "indian")[n % 3]
        restaurant = Restaurant(
            id=number(Restaurant),
            name=f"{('Bella Roma', 'Burger Bros', 'Taj Palace')[n % 3]}{('', ' II')[n // 3 % 2]}",
            cuisine=cuisine,
            district_id=_DISTRICTS[n % 5][0],
            hours=hours[n // 2 % len(hours)],
            paused_until=LATE + 10 * MINUTE if n % 7 == 6 else 0,
            prepare_minutes=20,
            rating_sum=40 + n,
            rating_count=10,
        )
        rows.append(restaurant)
        rows += _zones(rng, restaurant, (0, 2500, 4000)[n % 3])
        rows += _menu(rng, number, restaurant, sold_out=0.35, breakfast=True)
    yield from rows
    addresses = [
        _address(rng, number, "home", "old-town"),
        _address(rng, number, "home (old)", "harbour"),
        _address(rng, number, "home office", "airport"),
    ]
    yield from addresses
    restaurants = [one for one in rows if isinstance(one, Restaurant)]
    yield from _promos(LATE, restaurants[1].id)
    yield Promo("HELLO2O", "percent", 2, 0, None, "", False, True, LATE + DAY, False)  # a letter, not a zero
    yield Promo("LASTMINUTE", "percent", 25, 0, None, "", False, True, LATE + MINUTE, False)
    yield Promo("TOOLATE", "percent", 25, 0, None, "", False, True, LATE, False)
    extras = _extras(rows)
    # Kitchens here take 20 minutes and rides 12: deliveries 37 minutes after the order, on every limit of time.
    ages = [
        5 * MINUTE - 1,
        5 * MINUTE,
        25 * MINUTE,
        37 * MINUTE - 1,
        37 * MINUTE,
        DAY + 37 * MINUTE,
        DAY + 37 * MINUTE + 1,
        14 * DAY + 37 * MINUTE,
        14 * DAY + 37 * MINUTE + 1,
    ]
    for n, age in enumerate(ages):
        where = restaurants[n % len(restaurants)]
        yield from _order(rng, number, where, extras[where.id], addresses[0], LATE - age)
    where = restaurants[0]
    yield from _order(rng, number, where, extras[where.id], addresses[0], LATE - 2 * MINUTE, cancelled=True)
    yield from _order(rng, number, where, extras[where.id], addresses[0], LATE - 3 * DAY, rated=True)


def _typical(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_typical_rows(rng, scale), rng)


def _sparse(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_sparse_rows(rng, scale), rng)


def _adversarial(rng: Random, scale: float) -> Iterable[Any]:
    return own_codes(_adversarial_rows(rng, scale), rng)


SCENARIOS: Final = {
    "typical": Scenario(_typical, "Monday, 18:30: sixty restaurants, two orders under way, many in the past", DINNER),
    "sparse": Scenario(_sparse, "a small town with two inns, one address and no orders yet", DINNER),
    "adversarial": Scenario(
        _adversarial,
        "Monday, 21:55: chains that close in minutes, sold-out dishes, look-alike codes, little money",
        LATE,
    ),
}
