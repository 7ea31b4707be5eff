"""Food to be delivered: kitchens, menus, orders."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    CityName,
    Clock,
    Domain,
    PersonName,
    Phone,
    Rows,
    at_most,
    clock,
    edited,
    fail,
    keep_having,
    minutes,
    says,
    table,
    the_city,
)
from callwright_plugins.depthbench.world import CITY_NAMES, at_hand, naming, per_world, roll, shuffled, stream

DOMAIN: Final = Domain("kitchens")
DIETS: Final = ("vegan", "vegetarian", "gluten-free", "nut-free")
Diet = Literal["vegan", "vegetarian", "gluten-free", "nut-free"]
_STYLE: Final = (
    "Bao",
    "Burger",
    "Curry",
    "Dumpling",
    "Falafel",
    "Noodle",
    "Pizza",
    "Poke",
    "Ramen",
    "Taco",
    "Wrap",
    "Salad",
)
_HOUSE: Final = ("Box", "Corner", "Club", "Factory", "House", "Lab", "Room", "Stop", "Yard", "Works")
_NAMES: Final = [f"{style} {house}" for style in _STYLE for house in _HOUSE]
_BASE: Final = ("crispy", "smoked", "spicy", "herbed", "grilled", "sesame", "garlic", "roasted", "sweet", "house")
_MAIN: Final = ("tofu", "chicken", "mushroom", "prawn", "lentil", "beef", "halloumi", "aubergine", "salmon", "chickpea")
_FORM: Final = ("bowl", "wrap", "plate", "salad", "soup", "skewers")


class Dish(TypedDict):
    """A dish; the last two stand there after the filter of that kind."""

    dish: str
    kitchen: str
    price: float
    calories: int
    diets: list[Diet]
    under_budget_by: NotRequired[float]
    calories_to_spare: NotRequired[float]


class Kitchens(TypedDict):
    """The kitchens of a city."""

    city: CityName
    kitchens: list[str]


class Menu(TypedDict):
    """What a kitchen cooks."""

    kitchen: str
    dishes: list[Dish]


class DishLine(TypedDict):
    """So many of a dish."""

    dish: str
    quantity: Annotated[int, says(minimum=1, maximum=20)]


class Delivery(TypedDict):
    """Where the food goes."""

    name: PersonName
    street: Annotated[str, says(minLength=1, maxLength=80)]
    phone: NotRequired[Phone]


class FoodOrder(TypedDict):
    """A placed order."""

    order_number: str
    kitchen: str
    items: int
    total: float
    deliver_to: str


class DeliveryEstimate(TypedDict):
    """When the food comes."""

    kitchen: str
    ordered_at: Clock
    arrives_at: Clock
    fee: float


class FoodCancellation(TypedDict):
    """A cancelled order."""

    order_number: str
    refund: float
    reason: str


Dishes = Annotated[list[Dish], REFERENCE_ONLY]
FoodOrderResult = Annotated[FoodOrder, REFERENCE_ONLY]


@per_world()
def kitchens() -> dict[str, list[str]]:
    """Four kitchens in every city."""
    names = shuffled(stream("kitchens"), _NAMES)
    return {city: names[4 * number : 4 * number + 4] for number, city in enumerate(CITY_NAMES)}


@per_world()
def menus() -> dict[str, Rows]:
    """Sixteen dishes of every kitchen; a dish is on one menu only."""
    dishes = [f"{base} {main} {form}" for base in _BASE for main in _MAIN for form in _FORM]
    made: dict[str, Rows] = {}
    pinned = at_hand.get().version.pins_names
    for names in (_NAMES,) if pinned else kitchens().values():
        for kitchen in names:
            rng = stream(f"menu/{kitchen}")
            made[kitchen] = Rows()
            for dish in shuffled(naming(rng, f"menu/{kitchen}"), dishes)[:16]:
                meat = any(word in dish for word in ("chicken", "prawn", "beef", "salmon"))
                vegan = not meat and "halloumi" not in dish and rng.random() < 0.6
                diets = [
                    *(["vegan"] if vegan else []),
                    *(["vegetarian"] if not meat else []),
                    *(["gluten-free"] if rng.random() < 0.5 else []),
                    *(["nut-free"] if rng.random() < 0.6 else []),
                ]
                made[kitchen].append(
                    {
                        "dish": dish,
                        "kitchen": kitchen,
                        "price": round(5.5 + 14 * rng.random(), 1),
                        "calories": 240 + 10 * int(rng.random() * 80),
                        "diets": diets,
                    }
                )
    return made


def _the_menu(kitchen: str) -> Rows:
    rows = menus().get(kitchen)
    if rows is None:
        fail("unknown_kitchen", f"no kitchen named {kitchen[:40]!r} is known")
    return edited("dishes", rows, lambda row: f"{kitchen}/{row['dish']}")


@DOMAIN.tool("retrieval", "kitchens")
def list_kitchens(city: CityName) -> Kitchens:
    """The names of the kitchens that deliver in a city."""
    the_city(city)
    return {"city": city, "kitchens": kitchens()[city]}


@DOMAIN.tool("retrieval", "dishes")
def get_kitchen_menu(kitchen: str) -> Menu:
    """The menu of a kitchen with prices in euros, calories and diets."""
    return {"kitchen": kitchen, "dishes": _the_menu(kitchen)}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def filter_dishes_by_diet(dishes: Dishes, diet: Diet) -> list[Dish]:
    """Those of the given dishes that suit a diet."""
    return keep_having(table(dishes, "dish", "diets"), "diets", diet)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_dishes_by_price(
    dishes: Dishes, maximum_price: Annotated[float, says(minimum=1, maximum=1000)]
) -> list[Dish]:
    """Those of the given dishes that cost at most this."""
    return at_most(table(dishes, "dish", "price"), "price", maximum_price, "under_budget_by")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def filter_dishes_by_calories(
    dishes: Dishes, maximum_calories: Annotated[int, says(minimum=1, maximum=5000)]
) -> list[Dish]:
    """Those of the given dishes that have at most so many calories."""
    return at_most(table(dishes, "dish", "calories"), "calories", maximum_calories, "calories_to_spare")  # type: ignore[return-value]


@DOMAIN.tool("workflow", read_only=False)
def place_food_order(
    kitchen: str, lines: Annotated[list[DishLine], says(minItems=1, maxItems=8)], delivery: Delivery
) -> FoodOrder:
    """Order dishes from a kitchen. Fails for dishes that are not on its menu or are sold out."""
    prices = {row["dish"]: row["price"] for row in _the_menu(kitchen)}
    total, said = 2.5, []
    for line in sorted(lines, key=lambda line: line["dish"]):
        if line["dish"] not in prices:
            fail("unknown_dish", f"{line['dish'][:40]!r} is not on the menu of {kitchen}")
        if roll(f"dish/{kitchen}/{line['dish']}", 12) == 0:
            fail("sold_out", f"{line['dish']} is sold out")
        total += prices[line["dish"]] * line["quantity"]
        said.append(f"{line['dish']}*{line['quantity']}")
    place = f"{delivery['name']}, {delivery['street']}"
    number = roll(f"food/{kitchen}/{'/'.join(said)}/{place}/{delivery.get('phone', '')}", 90_000) + 10_000
    return {
        "order_number": f"F{number}",
        "kitchen": kitchen,
        "items": sum(line["quantity"] for line in lines),
        "total": round(total, 2),
        "deliver_to": place,
    }


@DOMAIN.tool("information", "arrives_at")
def estimate_food_delivery(kitchen: str, time: Clock) -> DeliveryEstimate:
    """When food arrives that is ordered from a kitchen at a time of day, and the delivery fee."""
    _the_menu(kitchen)
    seed = roll(f"delivery/{kitchen}/{minutes(time) // 30}", 1000)
    return {
        "kitchen": kitchen,
        "ordered_at": time,
        "arrives_at": clock(minutes(time) + 18 + seed % 40),
        "fee": round(1.5 + seed % 9 * 0.5, 2),
    }


@DOMAIN.tool("workflow", "refund", read_only=False)
def cancel_food_order(
    order: FoodOrderResult, reason: Literal["too late", "wrong address", "ordered twice"]
) -> FoodCancellation:
    """Cancel an order that was just placed; how much is refunded depends on the reason."""
    number, total = order.get("order_number"), order.get("total")
    if (
        not isinstance(number, str)
        or isinstance(total, bool)
        or not isinstance(total, int | float)
        or not abs(total) < 1e12
    ):
        fail("not_a_table", "this tool takes a food order; pass on the result of the call that made it")
    share = {"too late": 1.0, "wrong address": 0.5, "ordered twice": 0.8}[reason]
    return {"order_number": number, "refund": round(total * share, 2), "reason": reason}
