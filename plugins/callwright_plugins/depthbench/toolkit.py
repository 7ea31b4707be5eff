"""How tools are written here: plain typed functions of a domain, tables that only references pass on, stable errors.

Types say what the schemas say. Nothing here imports pydantic: the schemas are derived when the package is built
(:mod:`.build`) and shipped beside the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar

from attrs import define, evolve, field, frozen

from callwright.tools.spec import ToolError
from callwright.tools.validation import TABLE
from callwright_plugins.depthbench.world import CITIES, FIRST_DAY, LAST_DAY, City, at_hand

Category = Literal["information", "retrieval", "workflow"]
Row = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


class Rows(list[Row]):
    """A table that a tool handed out. Never changed afterwards, so it is shared and not copied."""

    __slots__ = ()


@frozen(eq=False)
class Says:
    """Schema keywords of a type, written as ``Annotated[int, says(minimum=1)]``."""

    keywords: dict[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Add the keywords to what the type itself says."""
        return {**handler(core_schema), **self.keywords}


def says(**keywords: Any) -> Says:
    """Schema keywords."""
    return Says(keywords)


#: Marks a parameter that only a reference to an earlier result can fill.
REFERENCE_ONLY: Final = Says({TABLE: True})

CityName = Annotated[str, says(description="Name of a city, such as 'Lisbon'")]
Day = Annotated[str, says(format="date", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="Date as YYYY-MM-DD")]
Clock = Annotated[str, says(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", description="Time of day as HH:MM, 24 hours")]
Amount = Annotated[float, says(minimum=0, maximum=100_000_000)]
Currency = Literal["USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "SEK", "NOK", "DKK", "SGD", "MXN", "CZK"]
Email = Annotated[str, says(pattern="^[^@ ]+@[^@ ]+[.][^@ ]+$", maxLength=80)]
Phone = Annotated[str, says(pattern="^[+]?[0-9 ()-]{6,20}$")]
PersonName = Annotated[str, says(minLength=1, maxLength=60)]


@frozen
class Described:
    """A tool function with what its types cannot say."""

    function: Callable[..., Any]
    domain: str
    category: Category
    result_field: str | None
    read_only: bool


@define
class Domain:
    """The tools of one module."""

    name: str
    tools: dict[str, Described] = field(factory=dict)

    def tool(self, category: Category, result_field: str | None = None, *, read_only: bool = True) -> Callable[[F], F]:
        """Register a function as a tool; ``result_field`` is what a bare reference to its result means."""

        def register(function: F) -> F:
            self.tools[function.__name__] = Described(function, self.name, category, result_field, read_only)
            return function

        return register


# Failures -------------------------------------------------------------------------------------------------------------

#: Every code that a tool may fail with. Tests reach each of them.
CODES: Final = (
    "closed_then",
    "coupon_expired",
    "date_out_of_range",
    "empty_table",
    "expired_document",
    "fully_booked",
    "insufficient_stock",
    "invalid_date",
    "no_free_slot",
    "no_such_variant",
    "not_a_table",
    "not_cancellable",
    "same_place",
    "same_unit",
    "sold_out",
    "too_large",
    "unknown_artist",
    "unknown_book",
    "unknown_cinema",
    "unknown_city",
    "unknown_coupon",
    "unknown_dealership",
    "unknown_dish",
    "unknown_film",
    "unknown_flight",
    "unknown_hotel",
    "unknown_kitchen",
    "unknown_listing",
    "unknown_message",
    "unknown_product",
    "unknown_restaurant",
    "unknown_showing",
    "unknown_song",
    "unknown_word",
    "zero_amount",
)


def fail(code: str, message: str) -> NoReturn:
    """End a tool with a documented failure."""
    raise ToolError(code, message)


def the_city(name: str) -> City:
    """A city by name; fails with ``unknown_city``."""
    city = CITIES.get(name)
    if city is None:
        fail("unknown_city", f"no city named {name[:40]!r} is known")
    changed = at_hand.get().edits.get("cities", {}).get(name)
    return evolve(city, **changed) if changed else city


def the_day(text: str) -> date:
    """A date; fails with ``invalid_date`` or ``date_out_of_range``."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        fail("invalid_date", f"{text[:20]!r} is not a date of the calendar")
    if not FIRST_DAY <= day <= LAST_DAY:
        fail("date_out_of_range", f"{text} is not between {FIRST_DAY} and {LAST_DAY}")
    return day


def minutes(clock: str) -> int:
    """Minutes since midnight of ``HH:MM``."""
    return int(clock[:2]) * 60 + int(clock[3:5])


def clock(minute: int) -> str:
    """The inverse of :func:`minutes`, around midnight."""
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


# Data as the world at hand has them -----------------------------------------------------------------------------------


def edited(name: str, rows: Rows, key: Callable[[Row], str]) -> Rows:
    """The drawn rows of a table as the world at hand has them: with its edits, if it has any of this table."""
    edits = at_hand.get().edits
    if not edits or name not in edits:
        return rows
    changed = edits[name]
    return Rows([{**row, **changed[key(row)]} if key(row) in changed else row for row in rows])


def edited_row(name: str, key: str, row: Row) -> Row:
    """One drawn row as the world at hand has it."""
    changed = at_hand.get().edits.get(name, {}).get(key)
    return {**row, **changed} if changed else row


def asked_for(names: Sequence[str]) -> list[str]:
    """Each name once: in the order of the argument, or by the alphabet where the order is to make no difference."""
    once = list(dict.fromkeys(names))
    return sorted(once) if at_hand.get().version.lenient else once


# Tables ---------------------------------------------------------------------------------------------------------------


def table(rows: Any, *columns: str) -> Sequence[Row]:
    """The rows, if they are a result of this world or look like one; fails with ``not_a_table``.

    Whoever passes tables by value (a copying wrapper, a client in another process) sends plain lists.
    """
    if type(rows) is Rows and (not rows or columns[0] in rows[0]):
        return rows
    if isinstance(rows, list) and all(isinstance(row, dict) and all(_fits(row, c) for c in columns) for row in rows):
        return rows
    fail("not_a_table", f"this tool takes a table with {', '.join(columns)}; pass on the result of an earlier call")


def _fits(row: Row, column: str) -> bool:
    kinds: Any = _COLUMN_KINDS.get(column, str)
    value = row.get(column)
    if not isinstance(value, kinds) or isinstance(value, bool):
        return False
    if kinds is _NUMBER:
        return bool(abs(value) <= 1e12)
    return column not in _CLOCKS or _CLOCK.fullmatch(value) is not None


_NUMBER: Final = (int, float)
_COLUMN_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        (
            *("rating", "average_bill", "price", "mileage_km", "year", "stops", "duration_minutes", "calories"),
            *(
                "stars",
                "nightly_rate",
                "guest_score",
                "pages",
                "published",
                "age_limit",
                "seconds",
                "released",
                "plays",
            ),
        ),
        _NUMBER,
    ),
    **dict.fromkeys(("attendees", "amenities", "diets", "labels"), list),
}
_CLOCKS: Final = frozenset({"opens", "closes", "departs", "starts"})
_CLOCK: Final = re.compile("[0-9]{2}:[0-9]{2}")


def keep(rows: Iterable[Row], column: str, value: Any) -> Rows:
    """The rows whose column is this value."""
    return Rows([row for row in rows if row[column] == value])


def keep_having(rows: Iterable[Row], column: str, value: Any) -> Rows:
    """The rows whose list holds this value."""
    return Rows([row for row in rows if value in row[column]])


def at_most(rows: Iterable[Row], column: str, limit: float, margin: str) -> Rows:
    """The rows up to a limit, each with how far it stays below."""
    if not at_hand.get().version.margins:
        return Rows([row for row in rows if row[column] <= limit])
    return Rows([{**row, margin: round(limit - row[column], 2)} for row in rows if row[column] <= limit])


def at_least(rows: Iterable[Row], column: str, limit: float, margin: str) -> Rows:
    """The rows from a limit on, each with how far it lies above."""
    if not at_hand.get().version.margins:
        return Rows([row for row in rows if row[column] >= limit])
    return Rows([{**row, margin: round(row[column] - limit, 2)} for row in rows if row[column] >= limit])


def from_time(rows: Iterable[Row], column: str, time: str, margin: str) -> Rows:
    """The rows from a time of day on, each with how many minutes later it is."""
    after = minutes(time)
    if not at_hand.get().version.margins:
        return Rows([row for row in rows if minutes(row[column]) >= after])
    return Rows([{**row, margin: over} for row in rows if (over := minutes(row[column]) - after) >= 0])


def at_least_by(rows: Iterable[Row], measure: Callable[[Row], int], margin: str) -> Rows:
    """The rows with a measure of zero or more, each with that measure."""
    if not at_hand.get().version.margins:
        return Rows([row for row in rows if measure(row) >= 0])
    return Rows([{**row, margin: over} for row in rows if (over := measure(row)) >= 0])


#: What filters add to rows in versions with margins.
MARGINS: Final = frozenset(
    {
        *("rating_above_minimum", "under_budget_by", "minutes_until_closing", "calories_to_spare", "below_mileage_by"),
        *("years_newer", "stops_to_spare", "minutes_after", "days_since", "minutes_later", "years_to_spare"),
        *("seconds_to_spare", "years_after", "pages_to_spare", "stars_above_minimum", "under_rate_by"),
    }
)


def first_by(rows: Sequence[Row], key: Callable[[Row], Any]) -> Row:
    """The first row by an order; fails with ``empty_table``."""
    if not rows:
        fail("empty_table", "there is nothing to choose from: the table has no rows")
    return min(rows, key=key)
