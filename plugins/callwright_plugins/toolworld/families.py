"""Every family of the small world, by domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from callwright.language.program import Program, Reference
from callwright_plugins.toolworld.family import SLOTS, Draft, Family, Values, each

Build = Callable[[Values], Program]


def _single(tool: str, **slots: str) -> Build:
    """One call whose arguments are slots."""

    def build(values: Values) -> Program:
        draft = Draft()
        draft.add(tool, **{name: values[slot] for name, slot in slots.items()})
        return draft.one()

    return build


# Restaurants and cars: find, then narrow by conditions that commute -------------------------------------------------

_VERBS: Final = ("show", "find", "list")
#: Condition -> tool, parameter, wordings after the noun (none: the value itself stands before the noun).
_CONDITIONS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "cuisine": ("FilterByCuisine", "cuisine", ()),
    "rating": ("FilterByRating", "rating", ("rated above {rating}", "rated over {rating}")),
    "price": ("FilterByPrice", "price", ("under {price}", "cheaper than {price}")),
    "hour": ("FilterByOpen", "hour", ("open at {hour}",)),
    "now": ("FilterByOpen", "hour", ("open now", "open right now")),
    "make": ("FilterByMake", "make", ()),
    "colour": ("FilterByColour", "colour", ()),
    "year": ("FilterByYear", "year", ("newer than {year}", "built after {year}")),
}


def _find_restaurants(draft: Draft, place: Any) -> Reference:
    return draft.add("FindRestaurants", location=place)


def _find_dealers(draft: Draft, place: Any) -> Reference:
    return draft.add("FindDealers", location=place)


def _find_cars(draft: Draft, place: Any) -> Reference:
    return draft.add("ListCars", dealers=_find_dealers(draft, place))


def _narrowing(
    name: str, noun: str, find: Callable[[Draft, Any], Reference], here: bool, conditions: Sequence[str] = ()
) -> Family:
    table = "restaurants" if find is _find_restaurants else "cars"

    def build(values: Values) -> Program:
        draft = Draft()
        place = draft.add("GetLocation") if here else values["city"]
        now = draft.add("GetTime") if "now" in conditions else None
        rows = find(draft, place)
        for condition in conditions:
            tool, parameter, _ = _CONDITIONS[condition]
            rows = draft.add(tool, **{table: rows, parameter: values[condition] if condition != "now" else now})
        return draft.one()

    before = "".join(f"{{{condition}}} " for condition in conditions if not _CONDITIONS[condition][2])
    after = [_CONDITIONS[condition][2] for condition in conditions if _CONDITIONS[condition][2]]
    templates = tuple(
        f"{verb} {before}{noun} {place}" + (f" {' and '.join(words)}" if words else "")
        for verb in _VERBS
        for place in (("near me", "around here") if here else ("in {city}",))
        for order in itertools.permutations(after)
        for words in itertools.product(*order)
    )
    full_name = "/".join((name, "here" if here else "city", "+".join(conditions) or "all"))
    return Family(full_name, build, templates, conjunctive=len(conditions) > 1)


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [chosen for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]


def _narrowing_families() -> list[Family]:
    """Up to three conditions: with four, hardly any table is left in which each of them still matters."""
    families = []
    for here in (False, True):
        families.append(_narrowing("cars/dealers", "car dealers", _find_dealers, here))
        for conditions in _subsets(("colour", "make", "year")):
            families.append(_narrowing("cars", "cars", _find_cars, here, conditions))
        for conditions in _subsets(("cuisine", "rating", "price")):
            for opening in ((), ("hour",), ("now",)):
                if len(conditions) + len(opening) <= 3:
                    chosen = (*conditions, *opening)
                    families.append(_narrowing("restaurants", "restaurants", _find_restaurants, here, chosen))
    return families


# Weather ------------------------------------------------------------------------------------------------------------


def _temperature(place: Literal["here", "city"], hour: Literal["now", "hour"]) -> Build:
    def build(values: Values) -> Program:
        draft = Draft()
        at = draft.add("GetLocation") if place == "here" else values["city"]
        draft.add("GetTemperature", location=at, hour=draft.add("GetTime") if hour == "now" else values["hour"])
        return draft.one()

    return build


def _temperatures(
    places: Sequence[int | Literal["here"]], hours: Sequence[int | Literal["now"]], *, compare: bool = False
) -> Build:
    """Temperatures of several places and hours, or how the first two differ.

    A number is the position of a value among those of its slot.
    """

    def build(values: Values) -> Program:
        draft = Draft()
        here = draft.add("GetLocation") if "here" in places else None
        now = draft.add("GetTime") if "now" in hours else None
        found = []
        for place, hour in zip(places, hours, strict=True):
            location = here if place == "here" else each(values["city"])[place]
            at = now if hour == "now" else each(values["hour"])[hour]
            found.append(draft.add("GetTemperature", location=location, hour=at))
        if not compare:
            return draft.all()
        draft.add("GetDifference", first=found[0], second=found[1])
        return draft.one()

    return build


def _weather_families() -> list[Family]:
    def ask(name: str, build: Build, *templates: str) -> Family:
        return Family(f"weather/{name}", build, templates)

    return [
        ask(
            "city_hour",
            _temperature("city", "hour"),
            "temperature in {city} at {hour}",
            "how warm is {city} at {hour}",
        ),
        ask(
            "humidity",
            _single("GetHumidity", location="city", hour="hour"),
            "humidity in {city} at {hour}",
            "how humid is {city} at {hour}",
        ),
        ask(
            "here_hour",
            _temperature("here", "hour"),
            "temperature near me at {hour}",
            "how warm is it around here at {hour}",
        ),
        ask("city_now", _temperature("city", "now"), "temperature in {city} now", "how warm is {city} right now"),
        ask("here_now", _temperature("here", "now"), "temperature near me now", "how warm is it around here right now"),
        ask("cities", _temperatures((0, 1), (0, 0)), "temperatures in {city} and {city2} at {hour}"),
        ask("hours", _temperatures((0, 0), (0, 1)), "temperatures in {city} at {hour} and at {hour2}"),
        ask("cities3", _temperatures((0, 1, 2), (0, 0, 0)), "temperatures in {city} and {city2} and {city3} at {hour}"),
        ask(
            "cities_now",
            _temperatures((0, 1), ("now", "now")),
            "temperatures in {city} and {city2} now",
            "temperatures in {city} and {city2} right now",
        ),
        ask(
            "here_hours",
            _temperatures(("here", "here"), (0, 1)),
            "temperatures near me at {hour} and at {hour2}",
            "temperatures around here at {hour} and at {hour2}",
        ),
        ask(
            "cities3_now",
            _temperatures((0, 1, 2), ("now", "now", "now")),
            "temperatures in {city} and {city2} and {city3} now",
            "temperatures in {city} and {city2} and {city3} right now",
        ),
        ask(
            "warmer",
            _temperatures((0, 1), (0, 0), compare=True),
            "how much warmer is {city} than {city2} at {hour}",
        ),
        ask(
            "warmer_now",
            _temperatures((0, 1), ("now", "now"), compare=True),
            "how much warmer is {city} than {city2} now",
            "how much warmer is {city} than {city2} right now",
        ),
        ask(
            "warmer_here",
            _temperatures(("here", 0), (0, 0), compare=True),
            "how much warmer is it around here than in {city} at {hour}",
        ),
        ask(
            "warmer_here_now",
            _temperatures(("here", 0), ("now", "now"), compare=True),
            "how much warmer is it around here than in {city} now",
            "how much warmer is it around here than in {city} right now",
        ),
    ]


# Money --------------------------------------------------------------------------------------------------------------

Money = Literal["dollars", "currency", "mine"]


def _currency(draft: Draft, money: Money, values: Values) -> Any:
    return draft.add("GetCurrency") if money == "mine" else values["currency"]


def _total(money: Money, join: str = "GetSum") -> Build:
    """The prices of the items, joined pairwise from the left, in some money."""

    def build(values: Values) -> Program:
        draft = Draft()
        amount, *prices = [draft.add("GetPrice", item=item) for item in each(values["item"])]
        for price in prices:
            amount = draft.add(join, first=amount, second=price)
        if money != "dollars":
            draft.add("ConvertPrice", amount=amount, currency=_currency(draft, money, values))
        return draft.one()

    return build


def _prices(money: Money) -> Build:
    """The price of each item, and each in some money."""

    def build(values: Values) -> Program:
        draft = Draft()
        currency = _currency(draft, money, values) if money != "dollars" else None
        for price in [draft.add("GetPrice", item=item) for item in each(values["item"])]:
            if money != "dollars":
                draft.add("ConvertPrice", amount=price, currency=currency)
        return draft.all()

    return build


def _in_each(values: Values) -> Program:
    """The price of one item, and that in each currency."""
    draft = Draft()
    price = draft.add("GetPrice", item=values["item"])
    for currency in each(values["currency"]):
        draft.add("ConvertPrice", amount=price, currency=currency)
    return draft.all()


def _convert_to_mine(values: Values) -> Program:
    draft = Draft()
    draft.add("ConvertPrice", amount=values["amount"], currency=draft.add("GetCurrency"))
    return draft.one()


def _money_families() -> list[Family]:
    def ask(name: str, build: Build, *templates: str) -> Family:
        return Family(f"money/{name}", build, templates)

    mine, two, three = "in my currency", "{item} and {item2}", "{item} and {item2} and {item3}"
    return [
        ask("price", _single("GetPrice", item="item"), "price of {item}", "what does {item} cost"),
        ask("stock", _single("GetStock", item="item"), "stock of {item}", "how much {item} is left"),
        ask(
            "convert",
            _single("ConvertPrice", amount="amount", currency="currency"),
            "convert {amount} dollars to {currency}",
            "{amount} dollars in {currency}",
        ),
        ask("convert_mine", _convert_to_mine, "convert {amount} dollars to my currency", f"{{amount}} dollars {mine}"),
        ask("price_in", _total("currency"), "price of {item} in {currency}", "what does {item} cost in {currency}"),
        ask("price_mine", _total("mine"), f"price of {{item}} {mine}", f"what does {{item}} cost {mine}"),
        ask("prices", _prices("dollars"), f"prices of {two}"),
        ask("prices3", _prices("dollars"), f"prices of {three}"),
        ask("sum", _total("dollars"), f"total price of {two}"),
        ask("dearer", _total("dollars", "GetDifference"), "how much more does {item} cost than {item2}"),
        ask("price_in_two", _in_each, "prices of {item} in {currency} and {currency2}"),
        ask("price_in_three", _in_each, "prices of {item} in {currency} and {currency2} and {currency3}"),
        ask("sum_in", _total("currency"), f"total price of {two} in {{currency}}"),
        ask("prices_in", _prices("currency"), f"prices of {two} each in {{currency}}"),
        ask("sum_mine", _total("mine"), f"total price of {two} {mine}"),
        ask("dearer_mine", _total("mine", "GetDifference"), f"how much more does {{item}} cost than {{item2}} {mine}"),
        ask("prices_mine", _prices("mine"), f"prices of {two} each {mine}"),
        ask("sum3_in", _total("currency"), f"total price of {three} in {{currency}}"),
    ]


# One call, and none -------------------------------------------------------------------------------------------------


def _single_families() -> list[Family]:
    def ask(name: str, build: Build, *templates: str) -> Family:
        return Family(name, build, templates)

    return [
        ask("context/location", _single("GetLocation"), "where is this", "which city is this"),
        ask("context/home", _single("GetHomeCity"), "where is my home", "which city is my home"),
        ask("context/time", _single("GetTime"), "what time is it", "which hour is it"),
        ask("context/sunset", _single("GetSunset"), "when is sunset", "when does it get dark"),
        ask("context/currency", _single("GetCurrency"), "what is my currency", "which currency is mine"),
        ask("context/local", _single("GetLocalCurrency"), "what is the local currency", "which currency is local"),
        ask(
            "restaurants/hotels",
            _single("FindHotels", location="city"),
            *(f"{verb} hotels in {{city}}" for verb in _VERBS),
        ),
        ask(
            "restaurants/dish",
            _single("GetDish", cuisine="cuisine"),
            "what is a typical {cuisine} dish",
            "which dish is {cuisine}",
        ),
        ask(
            "cars/country",
            _single("GetCountry", make="make"),
            "where does {make} come from",
            "which country builds {make}",
        ),
    ]


def _nothing(values: Values) -> Program:
    return Program()


def _abstaining_families(answering: Sequence[Family]) -> list[Family]:
    """Depth 0: three honest reasons to call nothing."""

    def unfit(name: str, *templates: str) -> Family:
        return Family(f"unfit/{name}", _nothing, templates, kind="unfit")

    def vague(name: str, needed: tuple[str, ...], withheld: tuple[str, ...], *templates: str) -> Family:
        return Family(f"vague/{name}", _nothing, templates, kind="value_missing", needed=needed, withheld=withheld)

    def missing(family: Family) -> Family:
        (call,) = family.build({slot: SLOTS[slot][0] for slot, _ in family.slots}).calls
        return Family(f"missing/{family.name}", _nothing, family.templates, kind="tool_missing", withheld=(call.tool,))

    place, money = ("GetLocation", "GetHomeCity"), ("GetCurrency", "GetLocalCurrency")
    return [
        unfit("poem", "write a poem about {city}", "tell me a story about {city}"),
        unfit("book", "book a table in {city} at {hour}", "call a taxi in {city} at {hour}"),
        unfit("buy", "buy {item} for me", "sell my {item}"),
        unfit("repair", "repair my {make}", "wash my {make}"),
        unfit("cook", "teach me to cook {cuisine}", "order {cuisine} for me"),
        vague("temperature", ("GetTemperature",), place, "temperature at {hour}", "how warm is it at {hour}"),
        vague("convert", ("ConvertPrice",), money, "convert {amount} dollars", "change {amount} dollars"),
        vague("price", ("GetPrice", "ConvertPrice"), (), "price in {currency}", "cost in {currency}"),
        vague(
            "restaurants",
            ("FindRestaurants", "FilterByCuisine"),
            place,
            *(f"{v} {{cuisine}} restaurants" for v in _VERBS),
        ),
        vague("cars", ("FindDealers", "ListCars", "FilterByMake"), place, *(f"{v} {{make}} cars" for v in _VERBS)),
        *(missing(family) for family in answering if family.depth == 1),
    ]


def _all() -> tuple[Family, ...]:
    answering = [*_single_families(), *_narrowing_families(), *_weather_families(), *_money_families()]
    return (*_abstaining_families(answering), *answering)


FAMILIES: Final = _all()
