"""Edits of a world: every tool that knows a row agrees on it, and nothing else changes."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UsageError
from callwright.walk.execution import execute
from callwright_plugins.depthbench.corpus import DepthBenchCorpus, DepthBenchV11Corpus
from callwright_plugins.depthbench.environment import DepthBench, DepthBenchV11
from callwright_plugins.depthbench.families.family import FILTERS
from callwright_plugins.depthbench.mended.boundaries import CHOICES, RULES, chains, is_idle, moved, rows_at_bounds
from callwright_plugins.depthbench.mended.edits import COLUMNS, MOST_CHARACTERS, MOST_ROWS, read, written
from callwright_plugins.depthbench.tools import TOOLS
from callwright_plugins.depthbench.world import V1, edited_world, world

ENVIRONMENTS = {"v1": DepthBench(), "v1.1": DepthBenchV11()}
DAY = "2026-05-11"
BUYER = {"name": "Omar Quinn", "email": "omar@example.com", "card_last_four": "1234"}


def ask(environment: Any, edits: dict[str, Any], tool: str, **arguments: Any) -> Any:
    outcome = environment.open(written("user-0007", edits)).call(tool, arguments)
    assert outcome.kind == "ok", outcome
    return outcome.value


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> Any:
    return ENVIRONMENTS[request.param]


def column(rows: list[dict[str, Any]], name: str, key: str) -> list[Any]:
    return [row[name] for row in rows if key in row.values()]


# Every tool agrees ----------------------------------------------------------------------------------------------------


def test_a_car(environment: Any) -> None:
    dealership = ask(environment, {}, "find_dealerships", city="Oslo")["dealerships"][0]
    row = ask(environment, {}, "list_cars_at_dealerships", dealerships=[dealership])["cars"][3]
    edits = {"cars": {row["listing_id"]: {"price": 1, "year": 2025}}}
    rows = ask(environment, edits, "list_cars_at_dealerships", dealerships=[dealership])["cars"]
    assert rows[3] == {**row, "price": 1, "year": 2025}
    assert ask(environment, edits, "pick_cheapest_car", cars=rows) == rows[3]
    assert ask(environment, edits, "get_car_history", listing_id=row["listing_id"])["owners"] == 1
    assert ask(environment, {}, "list_cars_at_dealerships", dealerships=[dealership])["cars"][3] == row


def test_a_restaurant(environment: Any) -> None:
    row = ask(environment, {}, "find_restaurants", city="Oslo")["restaurants"][0]
    edits = {"restaurants": {row["name"]: {"opens": "03:00", "closes": "04:00"}}}
    assert ask(environment, edits, "find_restaurants", city="Oslo")["restaurants"][0]["opens"] == "03:00"
    guest = {"name": "Omar Quinn", "phone": "555-1234"}
    made = {"restaurant": row["name"], "party_size": 2, "guest": guest}
    session = environment.open(written("user-0007", edits))
    days = [f"2026-05-{day:02d}" for day in range(10, 30)]
    assert any(session.call("reserve_table", {**made, "date": day, "time": "03:30"}).kind == "ok" for day in days)
    assert session.call("reserve_table", {**made, "date": DAY, "time": "12:30"}).code == "closed_then"


def test_a_flight_of_a_day(environment: Any) -> None:
    route = {"origin": "Oslo", "destination": "Paris"}
    rows = ask(environment, {}, "search_flights", **route, date=DAY)["flights"]
    row = rows[2]
    edits = {"flights": {f"{row['flight_number']}/{DAY}": {"price": 9, "departs": "00:05"}}}
    found = ask(environment, edits, "search_flights", **route, date=DAY)["flights"]
    assert found == [*rows[:2], {**row, "price": 9, "departs": "00:05"}, *rows[3:]]
    other = ask(environment, {}, "search_flights", **route, date="2026-05-12")
    assert ask(environment, edits, "search_flights", **route, date="2026-05-12") == other
    passport = {"number": "K1234567", "expires": "2027-12-01"}
    booking = {
        "flight_number": row["flight_number"],
        "date": DAY,
        "passengers": [{"name": {"first": "Omar", "last": "Quinn"}, "passport": passport}],
        "contact": {"email": "omar@example.com"},
    }
    session = environment.open(written("user-0007", edits))
    totals = {
        cabin: outcome.value["total"]
        for cabin in ("economy", "premium", "business")
        if (outcome := session.call("book_flight", {**booking, "cabin": cabin})).kind == "ok"
    }
    assert totals
    assert totals.items() <= {"economy": 9.0, "premium": 15.3, "business": 30.6}.items()


def test_a_dish(environment: Any) -> None:
    kitchen = ask(environment, {}, "list_kitchens", city="Oslo")["kitchens"][0]
    rows = ask(environment, {}, "get_kitchen_menu", kitchen=kitchen)["dishes"]
    edits = {"dishes": {f"{kitchen}/{row['dish']}": {"price": 1000.0} for row in rows}}
    assert {row["price"] for row in ask(environment, edits, "get_kitchen_menu", kitchen=kitchen)["dishes"]} == {1000.0}
    session = environment.open(written("user-0007", edits))
    delivery = {"name": "Omar Quinn", "street": "1 Mill Lane"}
    orders = [
        session.call("place_food_order", {"kitchen": kitchen, "lines": [line], "delivery": delivery})
        for line in ({"dish": row["dish"], "quantity": 1} for row in rows)
    ]
    assert {one.value["total"] for one in orders if one.kind == "ok"} == {1002.5}


def test_an_event(environment: Any) -> None:
    rows = ask(environment, {}, "list_events", date=DAY)["events"]
    edits = {"events": {f"{DAY}/{row['event_id']}": {"starts": "19:45"} for row in rows}}
    assert {row["starts"] for row in ask(environment, edits, "list_events", date=DAY)["events"]} == {"19:45"}
    assert ask(environment, edits, "find_free_slot", date=DAY, minutes=480)["starts"] == "08:00"


def test_a_hotel_and_its_rate(environment: Any) -> None:
    stay = {"place": "Oslo", "arrival": DAY, "nights": 3}
    row = ask(environment, {}, "search_hotels", **stay)["hotels"][0]
    edits = {
        "hotels": {row["hotel"]: {"stars": 1, "amenities": ["sauna"]}},
        "rates": {f"{row['hotel']}/{DAY}": {"nightly_rate": 7}},
    }
    found = ask(environment, edits, "search_hotels", **stay)["hotels"][0]
    assert found == {**row, "stars": 1, "amenities": ["sauna"], "nightly_rate": 7, "total": 21}
    booked = ask(
        environment, edits, "book_hotel_room", hotel=row["hotel"], arrival=DAY, nights=3, party={"adults": 1},
        billing=BUYER,
    )  # fmt: skip
    assert booked["total"] == 21.0
    later = {**stay, "arrival": "2026-05-12"}
    for mine, theirs in zip(
        ask(environment, edits, "search_hotels", **later)["hotels"],
        ask(environment, {}, "search_hotels", **later)["hotels"],
        strict=True,
    ):
        assert mine["nightly_rate"] == theirs["nightly_rate"]


def test_books_songs_and_messages(environment: Any) -> None:
    row = ask(environment, {}, "browse_books", subject="poetry")["books"][0]
    edits: dict[str, Any] = {"books": {row["isbn"]: {"pages": 5000}}}
    rows = ask(environment, edits, "browse_books", subject="poetry")["books"]
    assert ask(environment, edits, "choose_longest_book", books=rows)["isbn"] == row["isbn"]
    row = ask(environment, {}, "songs_by", artist="Glasshouse")["songs"][0]
    edits = {"songs": {row["song"]: {"plays": 10**9}}}
    rows = ask(environment, edits, "songs_by", artist="Glasshouse")["songs"]
    assert ask(environment, edits, "choose_most_played_song", songs=rows)["song"] == row["song"]
    row = ask(environment, {}, "open_mail_folder", folder="inbox")["messages"][0]
    sender = next(name for name in ("Zoe Quinn", "Hana Sato") if name != row["sender"])
    edits = {"messages": {row["message_id"]: {"sender": sender}}}
    assert ask(environment, edits, "read_mail_message", message_id=row["message_id"])["sender"] == sender
    assert ask(environment, edits, "reply_to_message", message_id=row["message_id"], text="Yes.")["to"] == sender


def test_a_showing_and_its_film(environment: Any) -> None:
    name = ask(environment, {}, "cinemas_in", place="Oslo")["cinemas"][0]
    row = ask(environment, {}, "showings_at", cinemas=[name], day=DAY)["showings"][0]
    genre = next(one for one in ("drama", "comedy") if one != row["genre"])
    edits = {"showings": {row["showing_id"]: {"price": 3.5}}, "films": {row["film"]: {"genre": genre}}}
    found = ask(environment, edits, "showings_at", cinemas=[name], day=DAY)["showings"][0]
    assert found == {**row, "price": 3.5, "genre": genre}
    viewer = {"name": "Omar Quinn", "email": "omar@example.com"}
    session = environment.open(written("user-0007", edits))
    rows = ask(environment, {}, "showings_at", cinemas=[name], day=DAY)["showings"]
    edits = {"showings": {one["showing_id"]: {"price": 3.5} for one in rows}}
    session = environment.open(written("user-0007", edits))
    asked = [{"showing_id": one["showing_id"], "seats": 1, "viewer": viewer} for one in rows]
    totals = {made.value["total"] for one in asked if (made := session.call("reserve_cinema_seats", one)).kind == "ok"}
    assert totals == {3.5}


def test_a_city(environment: Any) -> None:
    edits = {"cities": {"Oslo": {"elevation": 1234, "offset": 9, "latitude": 1.5}}}
    assert ask(environment, edits, "elevation_of", place="Oslo")["metres"] == 1234
    assert ask(environment, edits, "coordinates_of", place="Oslo")["coordinates"]["latitude"] == 1.5
    assert (
        ask(environment, edits, "clock_elsewhere", clock="10:00", source="London", target="Oslo")["result"] == "19:00"
    )
    assert ask(environment, edits, "elevation_of", place="Paris") == ask(environment, {}, "elevation_of", place="Paris")


# What a scenario says -------------------------------------------------------------------------------------------------


def test_a_scenario_with_edits_is_read_as_it_was_written() -> None:
    edits = {"cars": {"C1003": {"price": 9000}}, "events": {f"{DAY}/E0511-1": {"attendees": ["Amir"]}}}
    assert read(written("user-0042@7", edits), "x") == (42, 7, edits)
    assert written("user-0042", dict(reversed(edits.items()))) == written("user-0042", edits)
    assert read("user-0042", "x") == (42, 0, {})
    environment = ENVIRONMENTS["v1"]
    sessions = [environment.open(one) for one in ("user-0042", written("user-0042", edits), "user-0042@7")]
    assert len({session.digest() for session in sessions}) == 3


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        ("{", "no JSON"),
        ('{"boats":{}}', "the table 'boats'; there are: restaurants, cars"),
        ('{"cars":[]}', "an object of rows"),
        ('{"cars":{"C1003":{}}}', "an object of rows"),
        ('{"cars":{"C1003":5}}', "an object of rows"),
        ('{"cars":{"C1003":{"make":"Audi"}}}', "cars.make; there are: year, mileage_km, price"),
        ('{"cars":{"C1003":{"price":"9000"}}}', "sets cars.price to '9000'"),
        ('{"cars":{"C1003":{"price":true}}}', "sets cars.price to 'True'"),
        ('{"cars":{"C1003":{"price":NaN}}}', "sets cars.price to 'None'"),
        ('{"books":{"x":{"pages":1e999}}}', "sets books.pages to 'inf'"),
        ('{"cities":{"Atlantis":{"elevation":-5}}}', "the city 'Atlantis'"),
        ('{"showings":{"S":{"starts":"25:00"}}}', "sets showings.starts to '25:00'"),
        ('{"messages":{"M":{"received":"tomorrow"}}}', "sets messages.received to 'tomorrow'"),
        ('{"hotels":{"H":{"amenities":[1]}}}', r"sets hotels.amenities to '\[1\]'"),
        ('{"cars":' + "[" * 5000, "no JSON"),
        ('{"cars":{"C1":{"price":1}}}' + " " * MOST_CHARACTERS, "at most 16384 are read"),
        (json.dumps({"cars": {f"C{n}": {"price": 1} for n in range(MOST_ROWS + 1)}}), "edits 65 rows; at most 64"),
    ],
)
def test_what_is_no_edit_is_refused(edits: str, says: str) -> None:
    for environment in ENVIRONMENTS.values():
        with pytest.raises(UsageError, match=says):
            environment.open(f"user-0042@7{edits}")


def test_worlds_that_differ_by_edits_share_what_is_drawn() -> None:
    plain, edited = world(3), edited_world(3, V1, {"cars": {"C1003": {"price": 1}}})
    assert edited.kept is plain.kept
    assert edited_world(3, V1, {}) is plain


def test_edits_of_one_session_are_not_seen_by_another_in_threads() -> None:
    environment = ENVIRONMENTS["v1.1"]
    prices = [1000 + number for number in range(8)]
    dealership = ask(environment, {}, "find_dealerships", city="Oslo")["dealerships"][0]
    number = ask(environment, {}, "list_cars_at_dealerships", dealerships=[dealership])["cars"][0]["listing_id"]

    def seen(price: int) -> int:
        edits = {"cars": {number: {"price": price}}}
        rows = ask(environment, edits, "list_cars_at_dealerships", dealerships=[dealership])["cars"]
        return int(rows[0]["price"])

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(seen, prices * 40)) == prices * 40


# Rows at bounds -------------------------------------------------------------------------------------------------------


def test_every_filter_has_a_rule_and_every_choice_a_column() -> None:
    assert set(RULES) == set(FILTERS)
    assert set(CHOICES) == {name for name in TOOLS if name.startswith(("pick_", "choose_"))}
    assert all(COLUMNS.values())


def test_what_a_rule_keeps_is_what_its_filter_keeps() -> None:
    """Over the tables of the tasks: the rule decides of every row as the tool does."""
    from callwright_plugins.depthbench.mended.boundaries import meets

    corpus, tried = DepthBenchCorpus(), set()
    for task in (task for split in corpus.splits for task in corpus[split] if task.depth > 1):
        assert task.program is not None
        trace = execute(task.program, task.environment, task.tools, scenario=task.scenario)
        for record in trace.records:
            if record.tool in FILTERS:
                tried.add(record.tool)
                table = record.arguments[FILTERS[record.tool]]
                bound = next(value for name, value in record.arguments.items() if name != FILTERS[record.tool])
                kept = [row for row in table if meets(RULES[record.tool], row, bound)]
                found = [{name: row[name] for name in kept[0]} for row in record.outcome.value]
                assert found == kept, record.tool
    assert tried == set(FILTERS)


def test_edited_rows_make_each_condition_decide() -> None:
    """In the edited world, each filter left out or moved by its smallest step changes what the reference gives."""
    from attrs import evolve

    corpus, decided = DepthBenchV11Corpus(instances=False), 0
    tasks = [task for split in corpus.splits for task in corpus[split] if task.structure == "conjunctive"]
    for task in tasks[::4]:
        assert task.program is not None
        trace = execute(task.program, task.environment, task.tools, scenario=task.scenario)
        edits = next((found for n in range(20) if (found := rows_at_bounds(task, trace, random.Random(n)))), None)
        if edits is None:
            continue
        where = written(task.scenario, edits)
        (chain,) = chains(task.program, trace)
        right = execute(task.program, task.environment, task.tools, scenario=where)
        assert right.executed
        for call in task.program.calls:
            if call.id not in chain.filters:
                continue
            rule, bound = dict(zip(chain.filters, chain.rules, strict=True))[call.id]
            chosen_by = CHOICES[chain.choice][0] if chain.choice else ""
            if rule.kind in ("most", "least") and rule.column != chosen_by:
                name = next(name for name in call.arguments if name != FILTERS[call.tool])
                for by in (-rule.step, rule.step):
                    changed = evolve(call, arguments={**call.arguments, name: moved(bound, by)})
                    calls = tuple(changed if one is call else one for one in task.program.calls)
                    program = evolve(task.program, calls=calls)
                    other = execute(program, task.environment, task.tools, scenario=where)
                    assert not other.executed or other.returned != right.returned, (task.id, call.tool, by)
                    decided += 1
    assert decided > 40


def test_a_condition_that_cannot_matter_is_known() -> None:
    assert is_idle(RULES["filter_cars_by_price"], "pick_cheapest_car")
    assert is_idle(RULES["filter_cars_by_year"], "pick_newest_car")
    assert not is_idle(RULES["filter_cars_by_price"], "pick_newest_car")
    assert not is_idle(RULES["keep_showings_from"], "choose_earliest_showing")
    assert not is_idle(RULES["keep_books_up_to_pages"], "choose_longest_book")


@pytest.mark.parametrize(
    ("value", "by", "then"),
    [
        (5, 1, 6),
        (5, 0.5, 5.5),
        (4.3, -0.1, 4.2),
        ("10:55", 10, "11:05"),
        ("23:58", 5, "23:59"),
        (DAY, -11, "2026-04-30"),
    ],
)
def test_values_are_moved(value: Any, by: float, then: Any) -> None:
    assert moved(value, by) == then
    assert type(moved(value, by)) is type(then)


def test_mail_of_other_worlds_can_be_read() -> None:
    for environment in ENVIRONMENTS.values():
        session = environment.open("user-0042@7")
        rows = session.call("open_mail_folder", {"folder": "inbox"}).value["messages"]
        assert len(rows) >= 14
        text = session.call("read_mail_message", {"message_id": rows[0]["message_id"]})
        assert text.value["sender"] == rows[0]["sender"]
    assert cw.corpus("depthbench-v1").environment.name == "depthbench-v1"
