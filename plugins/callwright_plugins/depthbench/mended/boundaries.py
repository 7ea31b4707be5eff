"""Rows on and beside the bounds of a query: edits under which each condition decides what the answer is.

For a chain of conditions, perhaps with a choice at its end, one row of the source is put on every bound, so that it
is the answer, and for each condition another row beside its bound alone, which would be chosen if that condition were
left out or a step wider. Where a column cannot be edited (the make of a car, which its model tells), rows are taken
that have what is needed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final, Literal

from attrs import define, frozen

from callwright.language.program import Program, Reference
from callwright.walk.execution import execute
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace
from callwright_plugins.depthbench.families.family import FILTERS
from callwright_plugins.depthbench.mended.edits import COLUMNS, written
from callwright_plugins.depthbench.toolkit import clock, minutes
from callwright_plugins.depthbench.tools.train import restaurants
from callwright_plugins.depthbench.tools.validation import cinema, hotels, mailbox, songs
from callwright_plugins.depthbench.world import CITIES, LANGUAGES, Edits

Row = dict[str, Any]
Kind = Literal["most", "least", "is", "has", "open"]


@frozen
class Rule:
    """What a filter keeps: the column, how it is compared, and the smallest step of its bound.

    ``options`` are the values that a column of names can have.
    """

    column: str
    kind: Kind
    step: float = 1
    options: Sequence[str] = ()


#: Filter -> its rule. The bound is its argument that is not the table.
RULES: Final[Mapping[str, Rule]] = {
    "filter_restaurants_by_cuisine": Rule("cuisine", "is", options=restaurants.CUISINES),
    "filter_restaurants_by_rating": Rule("rating", "least", 0.1),
    "filter_restaurants_by_budget": Rule("average_bill", "most"),
    "filter_restaurants_open_at": Rule("opens", "open", 5),
    "filter_cars_by_make": Rule("make", "is"),
    "filter_cars_by_body": Rule("body", "is"),
    "filter_cars_by_price": Rule("price", "most"),
    "filter_cars_by_mileage": Rule("mileage_km", "most"),
    "filter_cars_by_year": Rule("year", "least"),
    "filter_flights_by_airline": Rule("airline", "is"),
    "filter_flights_by_fare": Rule("price", "most"),
    "filter_flights_by_stops": Rule("stops", "most"),
    "filter_flights_departing_after": Rule("departs", "least", 5),
    "filter_dishes_by_diet": Rule("diets", "has"),
    "filter_dishes_by_price": Rule("price", "most", 0.1),
    "filter_dishes_by_calories": Rule("calories", "most"),
    "filter_events_after": Rule("starts", "least", 5),
    "filter_events_by_attendee": Rule("attendees", "has"),
    "filter_events_by_kind": Rule("kind", "is"),
    "keep_hotels_with_stars": Rule("stars", "least"),
    "keep_hotels_within_rate": Rule("nightly_rate", "most"),
    "keep_hotels_with_amenity": Rule("amenities", "has", options=hotels.AMENITIES),
    "keep_hotels_in_district": Rule("district", "is", options=hotels.DISTRICTS),
    "keep_books_in_language": Rule("language", "is", options=LANGUAGES),
    "keep_books_up_to_pages": Rule("pages", "most"),
    "keep_books_published_since": Rule("published", "least"),
    "keep_showings_of_genre": Rule("genre", "is", options=cinema.GENRES),
    "keep_showings_from": Rule("starts", "least", 5),
    "keep_showings_for_age": Rule("age_limit", "most"),
    "keep_showings_within_price": Rule("price", "most", 0.1),
    "keep_songs_of_mood": Rule("mood", "is", options=songs.MOODS),
    "keep_songs_up_to_seconds": Rule("seconds", "most"),
    "keep_songs_released_since": Rule("released", "least"),
    "keep_messages_from": Rule("sender", "is", options=mailbox.SENDERS),
    "keep_messages_since": Rule("received", "least"),
    "keep_messages_labelled": Rule("labels", "has", options=mailbox.LABELS),
}
#: Choice -> its column, and whether the smallest or the largest is taken.
CHOICES: Final[Mapping[str, tuple[str, Literal["min", "max"]]]] = {
    "pick_best_rated_restaurant": ("rating", "max"),
    "pick_cheapest_restaurant": ("average_bill", "min"),
    "pick_cheapest_car": ("price", "min"),
    "pick_newest_car": ("year", "max"),
    "pick_cheapest_flight": ("price", "min"),
    "pick_fastest_flight": ("duration_minutes", "min"),
    "pick_first_event": ("starts", "min"),
    "choose_cheapest_hotel": ("nightly_rate", "min"),
    "choose_top_reviewed_hotel": ("guest_score", "max"),
    "choose_longest_book": ("pages", "max"),
    "choose_newest_book": ("published", "max"),
    "choose_earliest_showing": ("starts", "min"),
    "choose_longest_song": ("seconds", "max"),
    "choose_most_played_song": ("plays", "max"),
    "choose_latest_message": ("received", "max"),
}
#: Columns whose largest value is a limit: no row is put above the largest that the table has.
_CAPPED: Final = frozenset({"rating", "guest_score", "received", "year", "published"})
#: Tools whose results are facts of geography, which only an edit makes different.
GEOGRAPHY: Final = frozenset({"coordinates_of", "elevation_of", "population_of", "timezone_of", "clock_elsewhere"})


def is_idle(rule: Rule, choice: str) -> bool:
    """Whether a condition cannot matter before a choice: the cheapest of what costs at most so much."""
    column, direction = CHOICES[choice]
    return rule.column == column and rule.kind == ("most" if direction == "min" else "least")


# Values ---------------------------------------------------------------------------------------------------------------


def moved(value: Any, by: float) -> Any:
    """A number, a time of day or a date so many units further: of a time minutes, of a date days."""
    if isinstance(value, str) and ":" in value:
        return clock(min(max(minutes(value) + round(by), 0), 1439))
    if isinstance(value, str):
        return (date.fromisoformat(value) + timedelta(days=round(by))).isoformat()
    found = round(value + by, 2)
    return int(found) if isinstance(value, int) and float(by).is_integer() else found


def meets(rule: Rule, row: Row, bound: Any) -> bool:
    """Whether a row meets a condition."""
    value = row[rule.column]
    match rule.kind:
        case "most":
            return bool(value <= bound)
        case "least":
            return bool(value >= bound)
        case "is":
            return bool(value == bound)
        case "has":
            return bound in value
        case "open":
            return bool(value <= bound < row["closes"])


def _on(rule: Rule, row: Row, bound: Any, inside: int = 0) -> Row:
    """What makes a row meet a condition with nothing to spare, or with so many steps."""
    match rule.kind:
        case "most":
            return {rule.column: moved(bound, -inside * rule.step)}
        case "least":
            return {rule.column: moved(bound, inside * rule.step)}
        case "is":
            return {rule.column: bound}
        case "has":
            return {rule.column: sorted({*row[rule.column], bound})}
        case "open":
            return {"opens": bound, "closes": moved(bound, 5)}


def _beside(rule: Rule, row: Row, bound: Any, rng: random.Random) -> Row:
    """What makes a row miss a condition by as little as can be."""
    match rule.kind:
        case "most":
            return {rule.column: moved(bound, rule.step)}
        case "least":
            return {rule.column: moved(bound, -rule.step)}
        case "is":
            return {rule.column: rng.choice([one for one in rule.options if one != bound])}
        case "has":
            left = [one for one in row[rule.column] if one != bound]
            return {rule.column: left or [rng.choice([one for one in rule.options or ("Omar",) if one != bound])]}
        case "open":
            return {"opens": moved(bound, 5), "closes": "23:55"}


# Chains ---------------------------------------------------------------------------------------------------------------


@frozen
class Chain:
    """A source, the filters after it, each with its bound, and the choice at their end (or nothing)."""

    source: int
    filters: tuple[int, ...]
    rules: tuple[tuple[Rule, Any], ...]
    choice: str


def chains(program: Program, trace: Trace) -> list[Chain]:
    """The chains of filters of a program; in a tree a branch is one. Bounds are those of the trace."""
    users: dict[int, list[int]] = {}
    for number, call in enumerate(program.calls):
        for _, reference in call.located:
            users.setdefault(reference.call, []).append(number)
    records = {record.call: record for record in trace.records}
    found: list[Chain] = []

    def extend(source: int, filters: tuple[int, ...], rules: tuple[tuple[Rule, Any], ...]) -> None:
        after = [program.calls[number] for number in users.get(filters[-1] if filters else source, ())]
        further = [call for call in after if call.tool in FILTERS and _table_of(call) == (filters or (source,))[-1]]
        for call in further:
            if call.id in records:
                bound = _bound_of(call.tool, records[call.id].arguments)
                extend(source, (*filters, call.id), (*rules, (RULES[call.tool], bound)))
        if filters and not further:
            choice = next((call.tool for call in after if call.tool in CHOICES), "")
            found.append(Chain(source, filters, rules, choice))

    for call in program.calls:
        if call.tool not in FILTERS and any(
            program.calls[number].tool in FILTERS and _table_of(program.calls[number]) == call.id
            for number in users.get(call.id, ())
        ):
            extend(call.id, (), ())
    return found


def _bound_of(tool: str, arguments: Mapping[str, Any]) -> Any:
    return next(value for name, value in arguments.items() if name != FILTERS[tool])


def _table_of(call: Any) -> int:
    table = call.arguments[FILTERS[call.tool]]
    return table.call if isinstance(table, Reference) else -1


def key_of(tool: str, column: str, row: Row, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The table and the key under which a column of a row of a source's result is edited; no table if it cannot be."""
    match tool:
        case "list_cars_at_dealerships":
            place = ("cars", row["listing_id"])
        case "find_restaurants":
            place = ("restaurants", row["name"])
        case "search_flights":
            place = ("flights", f"{row['flight_number']}/{row['date']}")
        case "get_kitchen_menu":
            place = ("dishes", f"{row['kitchen']}/{row['dish']}")
        case "list_events":
            place = ("events", f"{row['date']}/{row['event_id']}")
        case "search_hotels" if column == "nightly_rate":
            place = ("rates", f"{row['hotel']}/{arguments['arrival']}")
        case "search_hotels":
            place = ("hotels", row["hotel"])
        case "browse_books":
            place = ("books", row["isbn"])
        case "showings_at" if column in ("genre", "age_limit"):
            place = ("films", row["film"])
        case "showings_at":
            place = ("showings", row["showing_id"])
        case "songs_by":
            place = ("songs", row["song"])
        case "open_mail_folder":
            place = ("messages", row["message_id"])
        case _:
            return "", ""
    return place if column in COLUMNS[place[0]] else ("", "")


@define
class _Rows:
    """The rows of a source while they are being changed."""

    tool: str
    arguments: Mapping[str, Any]
    edits: dict[str, dict[str, Row]]

    def set(self, row: Row, changes: Row) -> None:
        """Change columns of a row; ``KeyError`` for one that cannot be changed."""
        for column, value in changes.items():
            table, key = key_of(self.tool, column, row, self.arguments)
            if not table:
                raise KeyError(column)
            if row[column] != value:
                self.edits.setdefault(table, {}).setdefault(key, {})[column] = value


def rows_at_bounds(task: Task, trace: Trace, rng: random.Random) -> Edits | None:
    """Edits that put rows on and beside the bounds of one chain of the reference program; ``None`` if there are none.

    ``trace`` is the run of the reference in the world that is to be edited; it may have failed after the source.
    """
    assert task.program is not None
    options = chains(task.program, trace)
    if not options:
        return None
    chain = options[int(rng.random() * len(options))]
    record = next((record for record in trace.records if record.call == chain.source), None)
    if record is None or record.outcome.kind != "ok":
        return None
    field = task.tools[record.tool].result_field
    table = record.outcome.value[field] if field else record.outcome.value
    made = _Rows(record.tool, record.arguments, {})
    try:
        return _placed(chain, list(table), made, rng)
    except (KeyError, IndexError, ValueError):
        return None  # too few rows that have what cannot be edited


def _placed(chain: Chain, table: list[Row], made: _Rows, rng: random.Random) -> Edits | None:
    fixed = {
        number for number, (rule, _) in enumerate(chain.rules)
        if not key_of(made.tool, rule.column, table[0], made.arguments)[0]
    }  # fmt: skip

    def has_what_is_fixed(row: Row, but: int = -1) -> bool:
        return all(meets(chain.rules[n][0], row, chain.rules[n][1]) == (n != but) for n in fixed)

    free = sorted(table, key=lambda row: rng.random())

    def take(but: int = -1) -> Row:
        row = next(row for row in free if has_what_is_fixed(row, but if but in fixed else -1))
        free.remove(row)
        return row

    try:
        wins = take()
        others = [take(number) for number in range(len(chain.rules))]
    except StopIteration:
        return None
    column, direction = CHOICES.get(chain.choice, ("", "min"))
    bound_by = next((n for n, (rule, _) in enumerate(chain.rules) if rule.column == column), -1)
    if chain.choice and bound_by >= 0 and is_idle(chain.rules[bound_by][0], chain.choice):
        return None
    for number, (rule, bound) in enumerate(chain.rules):
        if number in fixed:
            continue
        made.set(wins, _on(rule, wins, bound, inside=int(number == bound_by)))
        for other, row in enumerate(others):
            made.set(row, _beside(rule, row, bound, rng) if other == number else _on(rule, row, bound))
    if chain.choice and bound_by < 0:
        sign = -1 if direction == "min" else 1
        competing = free if column not in _CAPPED else [row for row in free if _satisfies(chain, row)]
        step = {"rating": 0.1, "guest_score": 0.1, "starts": 5, "nightly_rate": 2, "plays": 1000}.get(column, 1)
        ranked = sorted((row[column] for row in competing), reverse=direction == "max")
        limit = max(row[column] for row in table) if column in _CAPPED else None
        best = ranked[0] if ranked else wins[column]
        for place, row in enumerate((wins, *others), 1):
            value = moved(best, sign * step * (1 if place == 1 else 2 + int(rng.random() * 3)))
            if limit is not None and value > limit:
                raise ValueError(column)
            made.set(row, {column: value})
    return made.edits or None


def _satisfies(chain: Chain, row: Row) -> bool:
    return all(meets(rule, row, bound) for rule, bound in chain.rules)


def other_geography(task: Task, trace: Trace, rng: random.Random) -> Edits | None:
    """Edits of the cities that a program asks about by name: they lie elsewhere, higher, with other inhabitants."""
    named = sorted(
        {
            value
            for record in trace.records
            if record.tool in GEOGRAPHY
            for value in record.arguments.values()
            if isinstance(value, str) and value in CITIES
        }
    )
    cities = {
        name: {
            "elevation": CITIES[name].elevation + 5 + int(rng.random() * 400),
            "population": CITIES[name].population + 10 + int(rng.random() * 900),
            "latitude": round(CITIES[name].latitude * (0.5 + rng.random() / 3), 2),
            "longitude": round(CITIES[name].longitude * (0.3 + rng.random() / 2), 2),
            "offset": CITIES[name].offset + (1 if rng.random() < 0.5 else -1) * (1 + int(rng.random() * 2)),
        }
        for name in named
    }
    return {"cities": cities} if cities else None


def merged(*parts: Edits | None) -> Edits:
    """All edits together."""
    every: dict[str, dict[str, Row]] = {}
    for part in parts:
        for table, rows in (part or {}).items():
            every.setdefault(table, {}).update({key: dict(values) for key, values in rows.items()})
    return every


def with_edits(task: Task, scenario: str, rng: random.Random) -> str:
    """The scenario with rows on and beside the bounds of the query, and with another geography."""
    assert task.program is not None
    trace = execute(task.program, task.environment, task.tools, scenario=scenario)
    return written(scenario, merged(rows_at_bounds(task, trace, rng), other_geography(task, trace, rng)))


# Bounds ---------------------------------------------------------------------------------------------------------------


@frozen
class Bound:
    """A bound of a query: the call that has it, and whether some world puts a row on it and one a step beside it."""

    call: int
    on: bool
    beside: bool


def bounds(task: Task, traces: Sequence[Trace]) -> Iterator[Bound]:
    """The bounds that a query says, over the runs of its reference in all worlds of the task."""
    assert task.program is not None
    said = {
        call.id
        for call in task.program.calls
        if call.tool in FILTERS
        and RULES[call.tool].kind in ("most", "least", "open")
        and not isinstance(_bound_of(call.tool, call.arguments), Reference)
    }
    on: set[int] = set()
    beside: set[int] = set()
    for trace in traces:
        records = {record.call: record for record in trace.records}
        for number in said & records.keys():
            record = records[number]
            rule, table = RULES[record.tool], record.arguments[FILTERS[record.tool]]
            bound = _bound_of(record.tool, record.arguments)
            near = moved(bound, -rule.step if rule.kind == "least" else rule.step)
            low, high = sorted((bound, near))
            for row in table:
                value = row[rule.column]
                if value == bound:
                    on.add(number)
                elif low <= value <= high:
                    beside.add(number)
    for number in sorted(said):
        yield Bound(number, number in on, number in beside)
