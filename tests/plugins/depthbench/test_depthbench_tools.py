"""The environment: 163 tools, their specifications, every failure, and arguments of every kind."""

# ruff: noqa: E501  (tables of values)

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest

from callwright.environments.protocol import Outcome
from callwright.errors import UsageError
from callwright.tools.validation import TABLE
from callwright_plugins.depthbench.environment import DepthBench, DepthBenchSession
from callwright_plugins.depthbench.families.singles import singles
from callwright_plugins.depthbench.specifications import derive, specifications, text_of
from callwright_plugins.depthbench.toolkit import CODES
from callwright_plugins.depthbench.tools import SPLIT, TOOLS
from callwright_plugins.depthbench.tools.train import agenda, flights, kitchens, restaurants, shopping
from callwright_plugins.depthbench.tools.validation import books, cinema, hotels, mailbox
from callwright_plugins.depthbench.world import CITY_NAMES, CONTEXTS, context, stream

ENVIRONMENT = DepthBench()
USER = "user-0007"


def call(tool: str, /, **arguments: Any) -> Outcome:
    return ENVIRONMENT.open(USER).call(tool, arguments)


def code(tool: str, /, **arguments: Any) -> str:
    outcome = call(tool, **arguments)
    assert not outcome.executed
    assert outcome.value is None
    assert outcome.message
    return outcome.code


def value(tool: str, /, **arguments: Any) -> Any:
    outcome = call(tool, **arguments)
    assert outcome.kind == "ok", outcome
    return outcome.value


def test_there_are_163_tools_in_three_categories_and_two_disjoint_splits() -> None:
    assert len(TOOLS) == len(specifications()) == 163
    assert list(TOOLS) == list(specifications())
    assert set(Counter(described.category for described in TOOLS.values())) == {"information", "retrieval", "workflow"}
    assert Counter(SPLIT.values()) == {"train": 84, "validation": 79}


def test_the_shipped_specifications_are_what_the_types_say() -> None:
    from importlib import resources

    shipped = (
        resources.files("callwright_plugins.depthbench").joinpath("data", "tools.json").read_text(encoding="utf-8")
    )
    assert shipped == text_of(derive())


def test_every_tool_is_described_and_its_schemas_compile() -> None:
    for spec in specifications().values():
        assert spec.description.endswith(".")
        assert spec.parameters["additionalProperties"] is False
        assert spec.result is not None
        assert spec.compiled.types_at("no such parameter") is None
        jsonschema_rs.meta.validate(spec.parameters)
        jsonschema_rs.meta.validate(spec.result)


def test_using_the_environment_imports_no_pydantic() -> None:
    program = (
        "import sys\n"
        "from callwright_plugins.depthbench.environment import DepthBench\n"
        "assert DepthBench().open('user-0001').call('find_restaurants', {'city': 'Oslo'}).executed\n"
        "sys.exit('pydantic' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("family", singles(), ids=lambda family: family.steps[0].tool)
def test_every_tool_that_literals_can_call_answers(family: Any) -> None:
    answered = 0
    for number in range(12):
        user = context(number)
        rng = stream(f"test/{family.name}/{number}")
        step = family.program(family.draw(rng, user)).calls[0]
        first = ENVIRONMENT.open(user.key).call(step.tool, dict(step.arguments))
        assert first == ENVIRONMENT.open(user.key).call(step.tool, dict(step.arguments))
        assert first.kind in ("ok", "execution_error")
        answered += first.kind == "ok"
    assert answered >= 6


def test_every_tool_that_takes_a_result_answers_with_one_and_refuses_others() -> None:
    taken = {name for name, spec in specifications().items() if _tables(spec.parameters)}
    givers = {
        "restaurants": value("find_restaurants", city="Oslo")["restaurants"],
        "cars": value("list_cars_at_dealerships", dealerships=value("find_dealerships", city="Oslo")["dealerships"])[
            "cars"
        ],
        "flights": value("search_flights", origin="Oslo", destination="Paris", date="2026-05-04")["flights"],
        "dishes": value("get_kitchen_menu", kitchen=next(iter(kitchens.menus())))["dishes"],
        "events": value("list_events", date="2026-05-04")["events"],
        "hotels": value("search_hotels", place="Oslo", arrival="2026-05-04", nights=2)["hotels"],
        "books": value("browse_books", subject="history")["books"],
        "showings": value("showings_at", cinemas=cinema.cinemas()["Oslo"], day="2026-05-04")["showings"],
        "songs": value("songs_by", artist="Glasshouse")["songs"],
        "messages": value("open_mail_folder", folder="inbox")["messages"],
    }
    filling = {
        "cuisine": "Greek", "minimum_rating": 3.0, "maximum_bill": 90, "time": "19:00", "make": "Audi", "body": "SUV",
        "maximum_price": 90_000, "maximum_km": 300_000, "minimum_year": 2000, "airline": "Cirrus", "maximum_fare": 9000,
        "maximum_stops": 2, "diet": "vegan", "maximum_calories": 2000, "attendee": "Amir", "kind": "call", "minimum_stars": 2,
        "maximum_rate": 2000, "amenity": "gym", "district": "centre", "language": "French", "maximum_pages": 2000, "year": 1900,
        "genre": "drama", "clock": "11:00", "age": 60, "mood": "sad", "maximum_seconds": 900, "sender": "Zoe Quinn",
        "day": "2025-03-01", "label": "work",
    }  # fmt: skip
    ran = set()
    for name in taken:
        spec = specifications()[name]
        parameter = _tables(spec.parameters)[0]
        if parameter in givers:
            rest = {key: filling[key] for key in spec.parameters["properties"] if key != parameter}
            if name in ("filter_dishes_by_price", "keep_showings_within_price"):
                rest["maximum_price"] = 500
            outcome = call(name, **{parameter: givers[parameter], **rest})
            assert outcome.executed, (name, outcome)
            assert outcome == call(name, **{parameter: json.loads(json.dumps(givers[parameter])), **rest})
            other = givers["songs" if parameter != "songs" else "books"]
            assert code(name, **{parameter: json.loads(json.dumps(other)), **rest}) == "not_a_table"
            assert code(name, **{parameter: other, **rest}) == "not_a_table"
            assert code(name, **{parameter: "text", **rest}) == "type"
            assert code(name, **rest) == "missing"
            ran.add(name)
    objects = {
        "quote_shipping",
        "checkout_cart",
        "request_order_refund",
        "cancel_flight_booking",
        "cancel_food_order",
        "cancel_hotel_room",
    }
    assert taken == ran | objects  # those are in test_every_failure_is_reached and the tasks


def _tables(parameters: Any) -> list[str]:
    return [name for name, schema in parameters["properties"].items() if schema.get(TABLE)]


def _first(search: Any) -> Any:
    return next(found for found in search if found is not None)


def _cart(**extra: Any) -> dict[str, Any]:
    sku = _first(s if call("check_product_stock", sku=s).value["available"] > 3 else None for s in shopping.by_sku())
    return {"items": [{"sku": sku, "quantity": 1}], **extra}


GUEST = {"name": "Ines Dahl", "phone": "555-1234"}
FLIGHT = next(iter(flights.timetable("Oslo", "Paris")))["flight_number"]


def _passengers(expires: str = "2027-11-30") -> dict[str, Any]:
    passport = {"number": "C1234567", "expires": expires}
    return {
        "passengers": [{"name": {"first": "Ines", "last": "Dahl"}, "passport": passport}],
        "contact": {"email": "ines@example.com"},
    }


def _failures() -> dict[str, Any]:
    place, day = next(iter(restaurants.by_name())), "2026-05-04"
    days = [f"2026-{month:02d}-{number:02d}" for month in range(1, 13) for number in range(1, 29)]
    hotel, isbn = next(iter(hotels.by_hotel())), list(books.by_isbn())
    kitchen = next(iter(kitchens.menus()))
    showing = value("showings_at", cinemas=cinema.cinemas()["Oslo"], day=day)["showings"]
    billing = {"name": "Ines Dahl", "email": "i@example.com", "card_last_four": "1234"}
    row = restaurants.by_name()[place]
    room = {"hotel": hotel, "arrival": day, "party": {"adults": 1}, "billing": billing}
    delivery = {"name": "Ines Dahl", "street": "1 Mill Lane"}
    premium = _first(
        found.value
        for d in days
        if (found := call("book_flight", flight_number=FLIGHT, date=d, cabin="premium", **_passengers())).executed
    )
    long_stay = _first(
        found.value for d in days if (found := call("book_hotel_room", **{**room, "arrival": d, "nights": 12})).executed
    )
    missing = _first(
        key
        for key in (
            (i, b, c, s)
            for i in shopping.ITEMS
            for b in shopping.BRANDS
            for c in shopping.COLOURS
            for s in shopping.SIZES
        )
        if key not in shopping.products()
    )
    item, brand, colour, size = missing

    def some(tool: str, wanted: str, options: Any) -> Any:
        return lambda: _first(wanted if call(tool, **o).code == wanted else None for o in options)

    slots = [{"date": d, "minutes": 480} for d in days]
    sold = [{"flight_number": FLIGHT, "date": d, "cabin": "business", **_passengers()} for d in days]
    full = [{"restaurant": place, "date": d, "time": row["opens"], "party_size": 2, "guest": GUEST} for d in days]
    return {
        "closed_then": lambda: code(
            "reserve_table", restaurant=place, date=day, time="03:00", party_size=2, guest=GUEST
        ),
        "coupon_expired": lambda: code("create_cart", **_cart(coupon="WINTER25")),
        "unknown_coupon": lambda: code("create_cart", **_cart(coupon="NOPE")),
        "date_out_of_range": lambda: code("get_weather", city="Oslo", date="1999-05-04"),
        "invalid_date": lambda: code("get_weather", city="Oslo", date="2026-02-30"),
        "empty_table": lambda: code("pick_cheapest_car", cars=[]),
        "expired_document": lambda: code("book_flight", flight_number=FLIGHT, date=day, **_passengers("2026-05-04")),
        "fully_booked": some("reserve_table", "fully_booked", full),
        "insufficient_stock": some(
            "create_cart", "insufficient_stock", ({"items": [{"sku": s, "quantity": 20}]} for s in shopping.by_sku())
        ),
        "no_free_slot": some("find_free_slot", "no_free_slot", slots),
        "no_such_variant": lambda: code("find_product_code", item=item, brand=brand, colour=colour, size=size),
        "not_a_table": lambda: code("cancel_food_order", order={"total": 3}, reason="too late"),
        "not_cancellable": lambda: code("cancel_flight_booking", booking=premium, reason="illness"),
        "same_place": lambda: code("search_flights", origin="Oslo", destination="Oslo", date=day),
        "same_unit": lambda: code("convert_mass", value=1, source="grams", target="grams"),
        "sold_out": some("book_flight", "sold_out", sold),
        "too_large": lambda: code(
            "reserve_table", restaurant=place, date=day, time=row["opens"], party_size=13, guest=GUEST
        ),
        "unknown_artist": lambda: code("songs_by", artist="Nobody"),
        "unknown_book": lambda: code("book_summary", isbn="978-0"),
        "unknown_cinema": lambda: code("showings_at", cinemas=["Nowhere"], day=day),
        "unknown_city": lambda: code("population_of", place="Atlantis"),
        "unknown_dealership": lambda: code("list_cars_at_dealerships", dealerships=["Nowhere"]),
        "unknown_dish": lambda: code(
            "place_food_order", kitchen=kitchen, lines=[{"dish": "gravel", "quantity": 1}], delivery=delivery
        ),
        "unknown_film": lambda: code("film_credits", film="Nothing"),
        "unknown_flight": lambda: code("get_flight_status", flight_number="ZZ1", date=day),
        "unknown_hotel": lambda: code("hotel_policies", hotel="Nowhere"),
        "unknown_kitchen": lambda: code("get_kitchen_menu", kitchen="Nowhere"),
        "unknown_listing": lambda: code("get_car_history", listing_id="C0"),
        "unknown_message": lambda: code("read_mail_message", message_id="M9"),
        "unknown_product": lambda: code("get_product_price", sku="SKU-0"),
        "unknown_restaurant": lambda: code("get_restaurant_contact", restaurant="Nowhere"),
        "unknown_showing": lambda: code(
            "reserve_cinema_seats", showing_id="S1", seats=1, viewer={"name": "I", "email": "i@e.x"}
        ),
        "unknown_song": lambda: code("song_lyrics", song="Nothing"),
        "unknown_word": lambda: code("define_word", word="zzz"),
        "zero_amount": lambda: code("percent_change", before=0, after=2),
        # the same codes by their other ways
        "fully_booked ": some("book_hotel_room", "fully_booked", ({**room, "arrival": d, "nights": 2} for d in days)),
        "fully_booked  ": some(
            "book_test_drive",
            "fully_booked",
            ({"listing_id": "C1001", "date": d, "driver": {"name": "I", "licence": "AB123456"}} for d in days),
        ),
        "sold_out ": some(
            "reserve_library_book",
            "sold_out",
            (
                {"isbn": i, "place": "Oslo", "pick_up": day, "reader": {"name": "I", "card_number": "L12345"}}
                for i in isbn
            ),
        ),
        "sold_out  ": some(
            "reserve_cinema_seats",
            "sold_out",
            ({"showing_id": r["showing_id"], "seats": 10, "viewer": {"name": "I", "email": "i@e.x"}} for r in showing),
        ),
        "sold_out   ": some(
            "place_food_order",
            "sold_out",
            (
                {"kitchen": k, "lines": [{"dish": r["dish"], "quantity": 1}], "delivery": delivery}
                for k, rows in kitchens.menus().items()
                for r in rows
            ),
        ),
        "not_cancellable ": lambda: code("cancel_hotel_room", booking=long_stay, reason="illness"),
        "too_large ": lambda: code("quote_hotel_transfer", hotel=hotel, passengers=13),
        "too_large  ": lambda: code("book_hotel_room", **{**room, "nights": 2, "party": {"adults": 6, "children": 2}}),
        "zero_amount ": lambda: code("quote_car_loan", price=100, deposit=100, months=12),
        "same_place ": lambda: code("clock_elsewhere", clock="10:00", source="Oslo", target="Oslo"),
        "same_place  ": lambda: code(
            "bearing_between", start={"latitude": 1, "longitude": 2}, end={"latitude": 1, "longitude": 2}
        ),
        "same_unit ": lambda: code("convert_temperature", value=1, source="kelvin", target="kelvin"),
        "date_out_of_range ": lambda: code("shift_date", date="2027-12-01", days=400),
    }


@pytest.mark.parametrize("wanted", list(_failures()))
def test_every_failure_is_reached(wanted: str) -> None:
    assert _failures()[wanted]() == wanted.strip()


def test_no_code_is_documented_that_nothing_reaches() -> None:
    assert {name.strip() for name in _failures()} == set(CODES)


def test_numbers_agree_with_what_is_known_of_the_world() -> None:
    assert value("convert_length", value=1, source="miles", target="kilometres")["result"] == 1.6093
    assert value("convert_temperature", value=212, source="fahrenheit", target="celsius")["result"] == 100
    assert value("convert_mass", value=1, source="pounds", target="grams")["result"] == 453.5924
    paris, london = (value("coordinates_of", place=name)["coordinates"] for name in ("Paris", "London"))
    assert value("distance_between", start=paris, end=london)["kilometres"] == pytest.approx(344, abs=3)
    assert value("bearing_between", start=paris, end=london)["direction"] == "north-west"
    assert value("clock_elsewhere", clock="23:30", source="London", target="Tokyo")["result"] == "08:30"
    assert value("shift_date", date="2026-02-27", days=3) == {"date": "2026-03-02", "weekday": "Monday"}
    assert value("count_days_between", start="2026-01-01", end="2027-01-01")["days"] == 365
    loan = value("quote_car_loan", price=20_000, deposit=0, months=60)
    assert loan["monthly_payment"] == pytest.approx(377.42, abs=0.01)
    summer, winter = (value("get_sun_times", city="Oslo", date=f"2026-{m}-21") for m in ("06", "12"))
    assert summer["sunrise"] < winter["sunrise"] < winter["sunset"] < summer["sunset"]


def test_filters_keep_exactly_the_rows_that_fit() -> None:
    cars = value("list_cars_at_dealerships", dealerships=value("find_dealerships", city="Oslo")["dealerships"])["cars"]
    assert len(cars) == 27
    prices = sorted(row["price"] for row in cars)
    kept = value("filter_cars_by_price", cars=cars, maximum_price=prices[9])
    assert [row["listing_id"] for row in kept] == [row["listing_id"] for row in cars if row["price"] <= prices[9]]
    assert all(row["under_budget_by"] == prices[9] - row["price"] for row in kept)
    assert "under_budget_by" not in cars[0]


def test_sessions_are_of_their_scenario_alone() -> None:
    assert ENVIRONMENT.open("user-0001").digest() == ENVIRONMENT.open("user-0001", seed=5).digest()
    assert ENVIRONMENT.open("user-0001").digest() != ENVIRONMENT.open("user-0002").digest()
    assert ENVIRONMENT.open("", 3).digest() == ENVIRONMENT.open("user-0003").digest()
    places = {ENVIRONMENT.open(f"user-{n:04d}").call("get_current_city", {}).value["city"] for n in range(CONTEXTS)}
    assert places == set(CITY_NAMES)
    for scenario in ("Oslo", "user-1024", "user-00١1", "user-1", "user-00001"):
        with pytest.raises(UsageError, match="user-0000 to user-1023"):
            ENVIRONMENT.open(scenario)


def test_mail_belongs_to_one_user() -> None:
    theirs = mailbox.messages_in(context(8), "inbox")[0]["message_id"]
    assert code("read_mail_message", message_id=theirs) == "unknown_message"
    assert ENVIRONMENT.open("user-0008").call("read_mail_message", {"message_id": theirs}).executed
    assert agenda.events_of(context(8), "2026-05-04") != agenda.events_of(context(9), "2026-05-04")


def test_unknown_tools_and_arguments_are_outcomes() -> None:
    assert call("no_such_tool").kind == "unknown_tool"
    for arguments, wanted in (
        ({}, "missing"),
        ({"city": "Oslo", "date": "2026-05-04", "more": 1}, "unexpected"),
        ({"city": 5, "date": "2026-05-04"}, "type"),
        ({"city": "Oslo", "date": "4 May"}, "value"),
    ):
        outcome = ENVIRONMENT.open(USER).call("get_weather", arguments)
        assert (outcome.kind, outcome.code) == ("schema_error", wanted)


# Arguments of every kind ----------------------------------------------------------------------------------------------

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 10**30, -(10**400), 0.5, 1e308, "", " ", "x", "Oslo", "2026-05-04", "24:00", "\x00", "😀", "é" * 300,
    [], {}, [None], [{}], [[]], {"a": 1}, "API_RESPONSE_0", "user-0001", "M1000100", "S260504-1-1", "AE99999", "978-10-1000",
]  # fmt: skip


def _draw(schema: Any, rng: random.Random, depth: int = 0) -> Any:
    """A value that fits a schema most of the time: valid, at a boundary, just beyond it, or of another type."""
    roll = rng.random()
    if roll < 0.07:
        return rng.choice(ODD)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _draw(rng.choice(schema[key]), rng, depth)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -1000), schema.get("maximum", 100_000)
        edge = rng.choice([low, high, low - 1, high + 1, (low + high) // 2, low + 1])
        return edge if kind == "integer" or roll < 0.5 else edge + rng.random()
    if kind == "boolean":
        return roll < 0.5
    if kind == "array":
        low, high = schema.get("minItems", 0), schema.get("maxItems", 4)
        items = schema.get("items", {})
        return [_draw(items, rng, depth + 1) for _ in range(rng.choice([low, low, 1, 2, min(high + 1, 12)]))]
    if kind == "object":
        properties = schema.get("properties")
        if not properties:
            return {rng.choice(COLUMNS): rng.choice(ODD) for _ in range(rng.randrange(4))}
        return {
            name: _draw(inner, rng, depth + 1)
            for name, inner in properties.items()
            if (name in schema.get("required", ()) and rng.random() < 0.98) or rng.random() < 0.4
        }
    return rng.choice(TEXTS)


COLUMNS = [
    "listing_id",
    "price",
    "cuisine",
    "rating",
    "name",
    "opens",
    "total",
    "cart_id",
    "booking_code",
    "cabin",
    "nights",
    "order_id",
]
TEXTS = [
    *CITY_NAMES[:6], "2026-05-04", "2026-02-30", "2027-12-31", "1800-01-01", "00:00", "23:59", "12:30", "candid", "water",
    next(iter(restaurants.by_name())), next(iter(hotels.by_hotel())), next(iter(kitchens.menus())), next(iter(shopping.by_sku())),
    FLIGHT, "C1001", "Glasshouse", next(iter(books.by_isbn())), "Rex Oslo", "ines@example.com", "555-1234", "tok_a1b2c3", "SAVE10",
    "AB123456", "C1234567", "L12345", "1234", "12345", "M1000700", "Midnight Harvest", "S260504-40-3", "x" * 600, "", "\u202e",
]  # fmt: skip


def test_no_arguments_make_a_tool_raise() -> None:
    """100,000 calls; anything but a documented outcome fails. The session catches nothing but ToolError itself."""
    rng = random.Random(3)
    session = ENVIRONMENT.open(USER)
    results: list[Any] = []
    kinds: Counter[str] = Counter()
    names = list(TOOLS)
    for number in range(100_000):
        name = names[number % len(names)]
        spec = specifications()[name]
        arguments = _draw(spec.parameters, rng)
        if not isinstance(arguments, dict):
            arguments = {}
        for table in _tables(spec.parameters):
            if results and rng.random() < 0.85:
                arguments[table] = rng.choice(results)
        outcome = session.call(name, arguments)
        kinds[outcome.kind] += 1
        if outcome.kind == "execution_error":
            assert outcome.code in CODES
            assert len(outcome.message) < 400
        elif outcome.executed:
            json.dumps(outcome.value, allow_nan=False)
            found = outcome.value
            if isinstance(found, dict):
                results.extend(inner for inner in found.values() if isinstance(inner, list | dict))
                results.append(found)
            elif isinstance(found, list):
                results.append(found)
            if len(results) > 400:
                del results[: len(results) - 300]
    assert min(kinds["ok"], kinds["schema_error"], kinds["execution_error"]) > 5000
    assert session.digest() == ENVIRONMENT.open(USER).digest()


def test_the_session_is_one_of_the_core() -> None:
    from callwright.environments.protocol import Environment, Session

    assert isinstance(ENVIRONMENT, Environment)
    assert isinstance(ENVIRONMENT.open(USER), Session)
    assert isinstance(ENVIRONMENT.open(USER), DepthBenchSession)
