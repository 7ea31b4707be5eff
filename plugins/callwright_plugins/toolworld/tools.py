"""The tools of the small world: plain typed functions and their specifications.

The positional-only first parameter is the hidden context of the session. Each tool has a *twin*: another tool with the
same parameters and the same kind of result, which runs just as well and answers something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import frozen

from callwright.tools.spec import FunctionTool, ToolError, ToolSpec
from callwright_plugins.toolworld import world
from callwright_plugins.toolworld.world import Row, Table

Schema = Mapping[str, Any]


@frozen
class Context:
    """What a session knows about its user and never says unasked: where, when, in which money, from where."""

    location: str
    hour: int
    currency: str
    home: str


def _object(**properties: str) -> Schema:
    fields = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _rows(**properties: str) -> Schema:
    """A table. Rows that a model writes itself may have less or more in them, so nothing is required."""
    return {"type": "array", "items": {"type": "object", "properties": _object(**properties)["properties"]}}


_STRING: Final[Schema] = {"type": "string"}
_HOUR: Final[Schema] = {"type": "integer", "description": "Hour of the day, 0 to 23"}
_YEAR: Final[Schema] = {"type": "integer"}
_NUMBER: Final[Schema] = {"type": "number"}
_TABLE: Final[Schema] = {"type": "array", "items": {"type": "object"}}
_RESTAURANTS: Final = _rows(
    name="string",
    cuisine="string",
    rating="number",
    stars="integer",
    price="integer",
    opens="integer",
    closes="integer",
)
_CARS: Final = _rows(id="string", make="string", colour="string", year="integer")

FUNCTIONS: Final[dict[str, FunctionTool]] = {}
#: Tool -> the tools that look like it.
TWINS: Final[dict[str, tuple[str, ...]]] = {}
#: Tools that take a table and return a part of it; two of them can change places.
FILTERS: Final[dict[str, str]] = {}
#: Tools that make several rows of each row of a table. No other returns more than it is given or the world holds.
MULTIPLYING: Final = frozenset({"ListCars", "ListTrucks"})

Function = Callable[..., Any]


def _tool(
    name: str, result: Schema, *, field: str | None = None, twin: str | None = None, **parameters: Schema
) -> Callable[[Function], Function]:
    """Register a function as a tool. The specification is written out here: no schema library is imported for it."""

    def register(function: Function) -> Function:
        schema = {
            "type": "object",
            "properties": dict(parameters),
            "required": list(parameters),
            "additionalProperties": False,
        }
        spec = ToolSpec(
            name=name,
            description=(function.__doc__ or "").strip(),
            parameters=schema,
            result=result,
            result_field=field,
            read_only=True,
        )
        FUNCTIONS[name] = FunctionTool(spec, function, "context")
        if twin is not None:
            TWINS[name] = (*TWINS.get(name, ()), twin)
            TWINS[twin] = (*TWINS.get(twin, ()), name)
        first = next(iter(parameters), "")
        if parameters.get(first) is _TABLE and result.get("type") == "array" and len(parameters) == 2:
            FILTERS[name] = first
        return function

    return register


# Checks of what no schema says: that a name is known, that a number is in its range, that rows have a column. ---------


def _city(value: str) -> str:
    if value in world.RESTAURANTS:
        return value
    raise ToolError("unknown_city", f"no city is called {value[:40]!r}")


def _member(value: str, known: Mapping[str, Any] | tuple[str, ...], what: str) -> str:
    if value in known:
        return value
    raise ToolError(f"unknown_{what}", f"no {what} is called {value[:40]!r}")


def _hour(value: int) -> int:
    if not 0 <= value <= 23:
        raise ToolError("out_of_range", "an hour lies between 0 and 23")
    return value


def _number(value: float) -> int | float:
    if not -1_000_000_000 <= value <= 1_000_000_000:  # not a number (NaN) compares false and ends here too
        raise ToolError("out_of_range", "a number lies between -1e9 and 1e9")
    return value


def _select(table: Table, keep: Callable[[Row], Any]) -> Table:
    """The rows to keep, in order. The rows may come from a model, so anything may be in them."""
    try:
        return [row for row in table if keep(row)]
    except KeyError as error:
        raise ToolError("missing_column", f"a row of the table has no {error.args[0]!r}") from None
    except TypeError:
        raise ToolError("not_a_table", "a row of the table is not an object of this kind") from None


# Context ------------------------------------------------------------------------------------------------------------


@_tool("GetLocation", _object(location="string"), field="location", twin="GetHomeCity")
def get_location(context: Context, /) -> dict[str, str]:
    """The city where the user is now."""
    return {"location": context.location}


@_tool("GetHomeCity", _object(location="string"), field="location")
def get_home_city(context: Context, /) -> dict[str, str]:
    """The city where the user lives."""
    return {"location": context.home}


@_tool("GetTime", _object(hour="integer"), field="hour", twin="GetSunset")
def get_time(context: Context, /) -> dict[str, int]:
    """The current hour of the day."""
    return {"hour": context.hour}


@_tool("GetSunset", _object(hour="integer"), field="hour")
def get_sunset(context: Context, /) -> dict[str, int]:
    """The hour of sunset where the user is now."""
    return {"hour": world.SUNSET[context.location]}


@_tool("GetCurrency", _object(currency="string"), field="currency", twin="GetLocalCurrency")
def get_currency(context: Context, /) -> dict[str, str]:
    """The currency that the user pays in."""
    return {"currency": context.currency}


@_tool("GetLocalCurrency", _object(currency="string"), field="currency")
def get_local_currency(context: Context, /) -> dict[str, str]:
    """The currency of the place where the user is now."""
    return {"currency": world.LOCAL_CURRENCY[context.location]}


# Restaurants and hotels ---------------------------------------------------------------------------------------------


@_tool("FindRestaurants", _RESTAURANTS, twin="FindHotels", location=_STRING)
def find_restaurants(context: Context, /, location: str) -> Table:
    """The restaurants of a city."""
    return world.RESTAURANTS[_city(location)].copy()


@_tool("FindHotels", _rows(name="string", stars="integer", price="integer"), location=_STRING)
def find_hotels(context: Context, /, location: str) -> Table:
    """The hotels of a city."""
    return world.HOTELS[_city(location)].copy()


@_tool("FilterByCuisine", _RESTAURANTS, twin="ExcludeCuisine", restaurants=_TABLE, cuisine=_STRING)
def filter_by_cuisine(context: Context, /, restaurants: Table, cuisine: str) -> Table:
    """The restaurants of one cuisine."""
    _member(cuisine, world.CUISINES, "cuisine")
    return _select(restaurants, lambda row: row["cuisine"] == cuisine)


@_tool("ExcludeCuisine", _RESTAURANTS, restaurants=_TABLE, cuisine=_STRING)
def exclude_cuisine(context: Context, /, restaurants: Table, cuisine: str) -> Table:
    """The restaurants of every other cuisine."""
    _member(cuisine, world.CUISINES, "cuisine")
    return _select(restaurants, lambda row: row["cuisine"] != cuisine)


@_tool("FilterByRating", _RESTAURANTS, twin="FilterByStars", restaurants=_TABLE, rating=_NUMBER)
def filter_by_rating(context: Context, /, restaurants: Table, rating: float) -> Table:
    """The restaurants that guests rate above a number."""
    _number(rating)
    return _select(restaurants, lambda row: row["rating"] > rating)


@_tool("FilterByStars", _RESTAURANTS, restaurants=_TABLE, stars=_NUMBER)
def filter_by_stars(context: Context, /, restaurants: Table, stars: float) -> Table:
    """The places with more stars in the guide than a number."""
    _number(stars)
    return _select(restaurants, lambda row: row["stars"] > stars)


@_tool("FilterByOpen", _RESTAURANTS, twin="FilterByClosed", restaurants=_TABLE, hour=_HOUR)
def filter_by_open(context: Context, /, restaurants: Table, hour: int) -> Table:
    """The restaurants that are open at an hour."""
    at = _hour(hour)
    return _select(restaurants, lambda row: row["opens"] <= at < row["closes"])


@_tool("FilterByClosed", _RESTAURANTS, restaurants=_TABLE, hour=_HOUR)
def filter_by_closed(context: Context, /, restaurants: Table, hour: int) -> Table:
    """The restaurants that are closed at an hour."""
    at = _hour(hour)
    return _select(restaurants, lambda row: not row["opens"] <= at < row["closes"])


@_tool("FilterByPrice", _RESTAURANTS, restaurants=_TABLE, price=_NUMBER)
def filter_by_price(context: Context, /, restaurants: Table, price: float) -> Table:
    """The places that cost less than a number."""
    _number(price)
    return _select(restaurants, lambda row: row["price"] < price)


@_tool("GetDish", _object(dish="string"), field="dish", cuisine=_STRING)
def get_dish(context: Context, /, cuisine: str) -> dict[str, str]:
    """The typical dish of a cuisine."""
    return {"dish": world.DISH_OF[_member(cuisine, world.DISH_OF, "cuisine")]}


# Cars ---------------------------------------------------------------------------------------------------------------


@_tool("FindDealers", _rows(dealer="string"), twin="FindHotels", location=_STRING)
def find_dealers(context: Context, /, location: str) -> Table:
    """The car dealers of a city."""
    return world.DEALERS[_city(location)].copy()


def _sold_by(dealers: Table, stock: Mapping[str, Table]) -> Table:
    try:
        return [row for dealer in dealers for row in stock[dealer["dealer"]]]
    except KeyError as error:
        if error.args[0] == "dealer":
            raise ToolError("missing_column", "a row of the table has no 'dealer'") from None
        raise ToolError("unknown_dealer", f"no dealer is called {str(error.args[0])[:40]!r}") from None
    except TypeError:
        raise ToolError("not_a_table", "a row of the table is not an object of this kind") from None


@_tool("ListCars", _CARS, twin="ListTrucks", dealers=_TABLE)
def list_cars(context: Context, /, dealers: Table) -> Table:
    """The cars that these dealers sell."""
    return _sold_by(dealers, world.CARS)


@_tool("ListTrucks", _CARS, dealers=_TABLE)
def list_trucks(context: Context, /, dealers: Table) -> Table:
    """The trucks that these dealers sell."""
    return _sold_by(dealers, world.TRUCKS)


@_tool("FilterByMake", _CARS, cars=_TABLE, make=_STRING)
def filter_by_make(context: Context, /, cars: Table, make: str) -> Table:
    """The cars of one make."""
    _member(make, world.MAKES, "make")
    return _select(cars, lambda row: row["make"] == make)


@_tool("FilterByColour", _CARS, cars=_TABLE, colour=_STRING)
def filter_by_colour(context: Context, /, cars: Table, colour: str) -> Table:
    """The cars of one colour."""
    _member(colour, world.COLOURS, "colour")
    return _select(cars, lambda row: row["colour"] == colour)


@_tool("FilterByYear", _CARS, cars=_TABLE, year=_YEAR)
def filter_by_year(context: Context, /, cars: Table, year: int) -> Table:
    """The cars that were built after a year."""
    _number(year)
    return _select(cars, lambda row: row["year"] > year)


@_tool("GetCountry", _object(country="string"), field="country", make=_STRING)
def get_country(context: Context, /, make: str) -> dict[str, str]:
    """The country that a make of cars comes from."""
    return {"country": world.COUNTRY_OF[_member(make, world.COUNTRY_OF, "make")]}


# Weather ------------------------------------------------------------------------------------------------------------


@_tool("GetTemperature", _object(degrees="integer"), field="degrees", twin="GetHumidity", location=_STRING, hour=_HOUR)
def get_temperature(context: Context, /, location: str, hour: int) -> dict[str, int]:
    """The temperature of a city at an hour, in degrees Celsius."""
    return {"degrees": world.TEMPERATURE[_city(location)][_hour(hour)]}


@_tool("GetHumidity", _object(percent="integer"), field="percent", location=_STRING, hour=_HOUR)
def get_humidity(context: Context, /, location: str, hour: int) -> dict[str, int]:
    """The humidity of a city at an hour, in per cent."""
    return {"percent": world.HUMIDITY[_city(location)][_hour(hour)]}


# Prices and arithmetic ----------------------------------------------------------------------------------------------


@_tool("GetPrice", _object(amount="integer"), field="amount", twin="GetStock", item=_STRING)
def get_price(context: Context, /, item: str) -> dict[str, int]:
    """The price of an item, in dollars."""
    return {"amount": world.PRICE_OF[_member(item, world.PRICE_OF, "item")]}


@_tool("GetStock", _object(count="integer"), field="count", item=_STRING)
def get_stock(context: Context, /, item: str) -> dict[str, int]:
    """The number of pieces of an item in stock."""
    return {"count": world.STOCK_OF[_member(item, world.STOCK_OF, "item")]}


@_tool("ConvertPrice", _object(amount="integer"), field="amount", amount=_NUMBER, currency=_STRING)
def convert_price(context: Context, /, amount: float, currency: str) -> dict[str, int]:
    """An amount of dollars in another currency, rounded down."""
    rate = world.RATES[_member(currency, world.RATES, "currency")]
    return {"amount": int(_number(amount) * rate // 100)}


@_tool("GetSum", _object(result="number"), field="result", twin="GetDifference", first=_NUMBER, second=_NUMBER)
def get_sum(context: Context, /, first: float, second: float) -> dict[str, float]:
    """The sum of two numbers."""
    return {"result": _number(first) + _number(second)}


@_tool("GetDifference", _object(result="number"), field="result", first=_NUMBER, second=_NUMBER)
def get_difference(context: Context, /, first: float, second: float) -> dict[str, float]:
    """The first number less the second."""
    return {"result": _number(first) - _number(second)}
