"""Travel: its surface, every failure, what makes calls work, and that seats, rooms, money and points are kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from environment_sessions import executed
from environment_sessions import wait as pass_time
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.times import iso, iso_date
from callwright_plugins.mcp_environments.travel_booking import environment, fares
from callwright_plugins.mcp_environments.travel_booking import rows as travel

ENV = environment()
MINUTE, HOUR, DAY = 60, 3600, 86_400
READ = (
    "search_airports* search_flights* get_flight get_seat_map get_fare_rules search_hotels* get_hotel list_travelers* "
    "list_bookings* get_itinerary get_loyalty_balance"
)
WRITE = (
    "add_traveler hold_flight book_flight select_seat change_flight cancel_flight! "
    "book_hotel modify_hotel cancel_hotel!"
)
DOMESTIC = {"VAL", "VAC", "KNG", "THO"}
Call = tuple[str, dict[str, Any]]


def flight(
    session: StatefulSession,
    fare: str = "standard",
    *,
    seats: int = 3,
    most: int = 99,
    domestic: bool = True,
    after: float = 8,
    besides: str = "",
    route: str = "",
) -> travel.Flight:
    """A flight with seats of a fare, at least so many days ahead."""
    for one in session.world.rows(travel.Flight):
        inland = {one.origin, one.destination} <= DOMESTIC
        far = one.departs_at >= session.world.now + after * DAY
        if inland is domestic and far and not one.cancelled and one.id != besides and route in ("", one.route):
            row = session.world.need(travel.Fare, (one.id, fare))
            if seats <= fares.free_seats(session.world, row) <= most:
                return one
    raise AssertionError("no such flight")


def price(session: StatefulSession, flight_id: str, fare: str) -> int:
    view = executed(session, "get_flight", flight_id=flight_id)
    return next(int(one["price_cents"]) for one in view["fares"] if one["fare_class"] == fare)


def held(session: StatefulSession, chosen: travel.Flight, fare: str = "standard", seats: int = 1) -> dict[str, Any]:
    quoted = price(session, chosen.id, fare)
    call = {"flight_id": chosen.id, "fare_class": fare, "seats": seats, "quoted_price_cents": quoted}
    return dict(executed(session, "hold_flight", **call))


def booked(
    session: StatefulSession,
    fare: str = "standard",
    travelers: tuple[str, ...] = ("T00001",),
    points: int = 0,
    chosen: travel.Flight | None = None,
) -> dict[str, Any]:
    hold = held(session, chosen or flight(session, fare), fare, len(travelers))
    return dict(
        executed(session, "book_flight", hold_id=hold["hold_id"], traveler_ids=list(travelers), points_to_use=points)
    )


def day(number: int) -> str:
    return iso_date(NOW + number * DAY)


def room(session: StatefulSession, first: int, nights: int, *, refundable: bool = True, min_stay: int = 1) -> str:
    """A kind of room that can be had for these nights from today on, and a night before and after."""
    for one in session.world.rows(travel.RoomType):
        stay = [session.world.get(travel.RoomNight, (one.id, day(n))) for n in range(first - 1, first + nights + 1)]
        if one.refundable is refundable and all(night is not None and night.rooms_left for night in stay):
            assert stay[1] is not None
            if stay[1].min_stay == min_stay:
                return one.id
    raise AssertionError("no such room")


def stayed(session: StatefulSession, first: int = 8, nights: int = 2, points: int = 0, **wanted: Any) -> dict[str, Any]:
    name = room(session, first, nights, **wanted)
    call = {"room_type_id": name, "check_in": day(first), "check_out": day(first + nights), "guest_ids": ["T00001"]}
    return dict(executed(session, "book_hotel", **call, points_to_use=points))


def test_the_surface_is_table_2s() -> None:
    tools = ENV.tools
    assert len(tools) == 20
    assert {name for name, spec in tools.items() if spec.read_only} == {name.strip("*") for name in READ.split()}
    assert {name for name, spec in tools.items() if spec.discovery} == {n[:-1] for n in READ.split() if n[-1] == "*"}
    assert {name for name, spec in tools.items() if not spec.read_only} == {name.strip("!") for name in WRITE.split()}
    assert {name for name, spec in tools.items() if spec.destructive} == {n[:-1] for n in WRITE.split() if n[-1] == "!"}
    assert [name for name, spec in tools.items() if spec.sensitive] == ["add_traveler"]


def test_the_environment_conforms() -> None:
    check_component("environment", ENV, scenarios=list(ENV.scenarios))


# Failures -------------------------------------------------------------------------------------------------------------


def _hold(**changes: Any) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        chosen = flight(session)
        arguments = {"flight_id": chosen.id, "fare_class": "standard", "seats": 1}
        return "hold_flight", {**arguments, "quoted_price_cents": price(session, chosen.id, "standard"), **changes}

    return call


def _hold_after(wait: float) -> Callable[[StatefulSession], Call]:
    """A hold at a quote that is ``wait`` days old."""

    def call(session: StatefulSession) -> Call:
        chosen = flight(session, after=14)
        quoted = price(session, chosen.id, "standard")
        pass_time(session, chosen.departs_at - session.world.now - int(wait * DAY))
        arguments = {"flight_id": chosen.id, "fare_class": "standard", "seats": 1, "quoted_price_cents": quoted}
        return "hold_flight", arguments

    return call


def _sold_out(session: StatefulSession) -> Call:
    chosen = flight(session, most=9)
    left = session.world.need(travel.Fare, (chosen.id, "standard")).seats_left
    held(session, chosen, "standard", left)
    return "hold_flight", {"flight_id": chosen.id, "fare_class": "standard", "seats": 1, "quoted_price_cents": 0}


def _book(travelers: list[str], *, seats: int = 0, wait: int = 0, domestic: bool = True, points: int = 0) -> Any:
    def call(session: StatefulSession) -> Call:
        hold = held(session, flight(session, domestic=domestic), seats=seats or len(travelers))
        pass_time(session, wait)
        return "book_flight", {"hold_id": hold["hold_id"], "traveler_ids": travelers, "points_to_use": points}

    return call


def _book_twice(session: StatefulSession) -> Call:
    hold = held(session, flight(session))
    executed(session, "book_flight", hold_id=hold["hold_id"], traveler_ids=["T00001"])
    return "book_flight", {"hold_id": hold["hold_id"], "traveler_ids": ["T00002"]}


def _two_places_at_once(session: StatefulSession) -> Call:
    first = flight(session)
    booked(session, chosen=first)
    hold = held(session, first)
    return "book_flight", {"hold_id": hold["hold_id"], "traveler_ids": ["T00001"]}


def _seat(seat: str = "", fare: str = "standard", traveler: str = "T00001") -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        made = booked(session, fare, ("T00001", "T00003"))
        taken = next(one["seat"] for one in seats_of(session, made) if not one["available"])
        return "select_seat", {"booking_id": made["booking_id"], "traveler_id": traveler, "seat": seat or taken}

    return call


def seats_of(session: StatefulSession, made: dict[str, Any], cabin: str = "economy") -> list[dict[str, Any]]:
    return list(executed(session, "get_seat_map", flight_id=made["flight_id"], cabin=cabin)["seats"])


def _exit_row(session: StatefulSession) -> Call:
    made = booked(session, "standard", ("T00001", "T00003"))
    seat = next(one["seat"] for one in seats_of(session, made) if one["exit_row"] and one["available"])
    return "select_seat", {"booking_id": made["booking_id"], "traveler_id": "T00003", "seat": seat}


def _own_neighbour(session: StatefulSession) -> Call:
    made = booked(session, "standard", ("T00001", "T00003"))
    seat = next(one["seat"] for one in seats_of(session, made) if one["available"] and not one["exit_row"])
    executed(session, "select_seat", booking_id=made["booking_id"], traveler_id="T00001", seat=seat)
    return "select_seat", {"booking_id": made["booking_id"], "traveler_id": "T00003", "seat": seat}


def _change(fare: str = "standard", *, wait: int = 0, other_route: bool = False, quote: int | None = None) -> Any:
    def call(session: StatefulSession) -> Call:
        first = flight(session, fare, after=10)
        made = booked(session, fare, chosen=first)
        pass_time(session, wait)
        if other_route:
            second = next(
                one
                for one in session.world.rows(travel.Flight)
                if one.route != first.route and one.departs_at > session.world.now + DAY
            )
        else:
            second = flight(session, fare, after=1, besides=first.id, route=first.route)
        quoted = price(session, second.id, fare) if quote is None else quote
        arguments = {"booking_id": made["booking_id"], "new_flight_id": second.id, "quoted_price_cents": quoted}
        return "change_flight", arguments

    return call


def _change_to_itself(session: StatefulSession) -> Call:
    made = booked(session)
    return "change_flight", {
        "booking_id": made["booking_id"],
        "new_flight_id": made["flight_id"],
        "quoted_price_cents": 0,
    }


def _cancel(fare: str, *, wait: int = 0, fee: int = 0) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        made = booked(session, fare)
        pass_time(session, wait)
        return "cancel_flight", {"booking_id": made["booking_id"], "accepted_fee_cents": fee}

    return call


def _after_departure(session: StatefulSession) -> Call:
    made = booked(session, "flex")
    pass_time(session, session.world.need(travel.Flight, made["flight_id"]).departs_at - session.world.now - HOUR)
    return "cancel_flight", {"booking_id": made["booking_id"], "accepted_fee_cents": 1500}


def _cancelled_twice(session: StatefulSession) -> Call:
    call = _cancel("flex")(session)
    executed(session, call[0], **call[1])
    return call


def _stay(first: int, last: int, *, guests: tuple[str, ...] = ("T00001",), points: int = 0, **wanted: Any) -> Any:
    def call(session: StatefulSession) -> Call:
        name = room(session, wanted.pop("at", 8), 2, **wanted)
        arguments = {"room_type_id": name, "check_in": day(first), "check_out": day(last)}
        return "book_hotel", {**arguments, "guest_ids": list(guests), "points_to_use": points}

    return call


def _points_above_the_price(session: StatefulSession) -> Call:
    night = min(
        (one for one in session.world.rows(travel.RoomNight) if one.rooms_left and one.min_stay == 1),
        key=lambda one: one.rate_cents,
    )
    assert night.rate_cents < 15_000
    days = [day(n) for n in range(60)]
    arguments = {"room_type_id": night.room_type_id, "check_in": night.day, "guest_ids": ["T00001"]}
    return "book_hotel", {
        **arguments,
        "check_out": days[days.index(night.day) + 1],
        "points_to_use": night.rate_cents + 1,
    }


def _room_sold_out(session: StatefulSession) -> Call:
    night = next(one for one in session.world.rows(travel.RoomNight) if not one.rooms_left)
    after = iso_date(NOW - NOW % DAY + DAY * (1 + [day(n) for n in range(60)].index(night.day)))
    arguments = {"room_type_id": night.room_type_id, "check_in": night.day, "check_out": after}
    return "book_hotel", {**arguments, "guest_ids": ["T00001"]}


def _min_stay(session: StatefulSession) -> Call:
    for night in session.world.rows(travel.RoomNight):
        if night.min_stay > 1 and night.rooms_left and night.day > day(0):
            after = day([day(n) for n in range(60)].index(night.day) + 1)
            arguments = {"room_type_id": night.room_type_id, "check_in": night.day, "check_out": after}
            return "book_hotel", {**arguments, "guest_ids": ["T00001"]}
    raise AssertionError


def _shorten(*, refundable: bool, wait: int = 0) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        made = stayed(session, refundable=refundable)
        pass_time(session, wait)
        return "modify_hotel", {"booking_id": made["booking_id"], "check_out": day(9)}

    return call


def _cancel_stay(*, refundable: bool = True, wait: int = 0) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        made = stayed(session, refundable=refundable)
        pass_time(session, wait)
        return "cancel_hotel", {"booking_id": made["booking_id"]}

    return call


def _traveler(**changes: Any) -> Callable[[StatefulSession], Call]:
    whole = {"first_name": "Ida", "last_name": "Lund", "birth_date": "1990-01-01", **changes}
    return lambda session: ("add_traveler", whole)


FAILURES: list[tuple[str, Callable[[StatefulSession], Call]]] = [
    ("FARE_CHANGED", _hold(quoted_price_cents=1)),
    ("FARE_CHANGED", _hold_after(13.9)),
    ("FARE_CHANGED", _hold_after(2.9)),
    ("FARE_CHANGED", _change(quote=1)),
    ("SOLD_OUT", _hold(seats=9, fare_class="business")),
    ("SOLD_OUT", _sold_out),
    ("SOLD_OUT", _room_sold_out),
    ("SALES_CLOSED", _hold_after(1 / 24)),
    ("HOLD_EXPIRED", _book(["T00001"], wait=30 * MINUTE)),
    ("INVALID_STATE", _book_twice),
    ("INVALID_STATE", _cancelled_twice),
    ("INVALID_STATE", _cancel_stay(wait=9 * DAY)),
    ("TRAVELER_COUNT", _book(["T00001"], seats=2)),
    ("DUPLICATE_TRAVELER", _book(["T00001", "T00001"])),
    ("ADULT_REQUIRED", _book(["T00003"])),
    ("ADULT_REQUIRED", _stay(8, 10, guests=("T00003",))),
    ("TRAVELER_DOC_MISSING", _book(["T00001", "T00004"], domestic=False)),
    ("TRAVELER_DOC_MISSING", _book(["T00005"], domestic=False)),
    ("TRAVELER_CONFLICT", _two_places_at_once),
    ("INSUFFICIENT_POINTS", _book(["T00001"], points=15_001)),
    ("POINTS_EXCEED_PRICE", _points_above_the_price),
    ("SEAT_TAKEN", _seat()),
    ("SEAT_TAKEN", _own_neighbour),
    ("WRONG_CABIN", _seat("1A")),
    ("WRONG_CABIN", _seat("10A", "business")),
    ("SEAT_RESTRICTED", _exit_row),
    ("NOT_CHANGEABLE", _change("basic", wait=DAY)),
    ("ROUTE_MISMATCH", _change(other_route=True, quote=0)),
    ("SAME_FLIGHT", _change_to_itself),
    ("NON_REFUNDABLE", _cancel("basic", wait=DAY)),
    ("NON_REFUNDABLE", _cancel_stay(refundable=False)),
    ("NON_REFUNDABLE", _shorten(refundable=False)),
    ("FEE_NOT_ACCEPTED", _cancel("standard", wait=DAY)),
    ("FEE_NOT_ACCEPTED", _cancel("standard", fee=8000)),
    ("DEPARTURE_CLOSED", _after_departure),
    ("DATE_ORDER", _stay(8, 8)),
    ("DATE_ORDER", _stay(9, 8)),
    ("DATE_ORDER", _stay(-1, 2)),
    ("DATE_ORDER", lambda session: ("search_flights", {"origin": "VAL", "date": day(-1)})),
    ("MIN_STAY", _min_stay),
    ("NOT_ON_SALE", _stay(45, 47)),
    ("STAY_TOO_LONG", _stay(1, 32)),
    ("ROOM_TOO_SMALL", _stay(8, 10, guests=("T00001", "T00002", "T00003"), refundable=False)),
    ("DEADLINE_PASSED", _shorten(refundable=True, wait=8 * DAY)),
    ("BAD_DOCUMENT", _traveler(passport_no="AB123456")),
    ("BAD_DOCUMENT", _traveler(passport_no="AB123456", passport_expires="2026-03-01")),
    ("BAD_DATE", _traveler(birth_date="2026-02-30")),
    ("BAD_DATE", _traveler(birth_date="2027-01-01")),
    ("BAD_NAME", _traveler(last_name=" ")),
    ("BAD_FARE_CLASS", lambda session: ("get_fare_rules", {})),
    ("BAD_FARE_CLASS", lambda session: ("get_fare_rules", {"fare_class": "flex", "booking_id": "BF00001"})),
    ("SAME_AIRPORT", lambda session: ("search_flights", {"origin": "VAL", "destination": "val"})),
    ("NOT_FOUND", lambda session: ("search_flights", {"origin": "XXX"})),
    ("NOT_FOUND", _seat("19A")),
    ("NOT_FOUND", _seat("10A", traveler="T00002")),
    ("NOT_FOUND", lambda session: ("get_itinerary", {"booking_id": "BF99999"})),
    ("NOT_FOUND", lambda session: ("cancel_hotel", {"booking_id": "BF00001"})),
    ("BAD_CURSOR", lambda session: ("list_bookings", {"cursor": "99"})),
]


@pytest.mark.parametrize(("code", "prepare"), FAILURES)
def test_a_failure_has_its_code_and_changes_nothing(code: str, prepare: Callable[[StatefulSession], Call]) -> None:
    session = ENV.open()
    tool, arguments = prepare(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert session.digest() == before


def test_every_code_in_the_source_is_reached() -> None:
    folder = Path(str(travel.__file__)).parent
    found = {
        node.value
        for name in ("fares", "party", "flights", "trips", "hotels", "journeys")
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", node.value)
    }
    assert found <= {code for code, _ in FAILURES} | {"FLIGHT_CANCELLED"}


# Paths ----------------------------------------------------------------------------------------------------------------


def test_from_airports_to_a_seat() -> None:
    session = ENV.open()
    codes = [one["code"] for one in executed(session, "search_airports", query="Alderland")["items"]]
    found = executed(session, "search_flights", origin=codes[0], destination=codes[2], travelers=2, sort="price")[
        "items"
    ]
    cheapest = [min(fare["price_cents"] for fare in one["fares"]) for one in found]
    assert cheapest == sorted(cheapest)
    chosen = next(one for one in found if one["departs_at"] > iso(NOW + 4 * DAY))
    fare = chosen["fares"][0]
    assert session.call("book_flight", {"hold_id": "HO00001", "traveler_ids": ["T00001", "T00002"]}).code == "NOT_FOUND"
    hold = executed(
        session,
        "hold_flight",
        flight_id=chosen["flight_id"],
        fare_class=fare["fare_class"],
        seats=2,
        quoted_price_cents=fare["price_cents"],
    )
    shown = executed(session, "get_flight", flight_id=chosen["flight_id"])["fares"]
    left = next(one["seats_left"] for one in shown if one["fare_class"] == fare["fare_class"])
    assert left == fare["seats_left"] - 2
    made = executed(session, "book_flight", hold_id=hold["hold_id"], traveler_ids=["T00001", "T00002"])
    assert made["fare_cents"] == 2 * fare["price_cents"]
    free = [one for one in seats_of(session, made) if one["available"] and not one["extra_legroom"]]
    executed(session, "select_seat", booking_id=made["booking_id"], traveler_id="T00002", seat=free[0]["seat"].lower())
    entries = executed(session, "get_itinerary", booking_id=made["booking_id"])["entries"]
    assert [one["kind"] for one in entries] == ["departure", "arrival"]
    assert free[0]["seat"] in entries[0]["what"]
    assert executed(session, "get_itinerary", traveler_id="T00005")["entries"] == []


def test_a_hold_keeps_seats_and_price_until_it_expires() -> None:
    session = ENV.open()
    chosen = flight(session, after=14, most=9)
    fare = session.world.need(travel.Fare, (chosen.id, "standard"))
    pass_time(session, chosen.departs_at - NOW - 14 * DAY)
    hold = held(session, chosen, seats=fare.seats_left)
    shown = [
        one["flight_id"]
        for one in executed(session, "search_flights", origin=chosen.origin, fare_class="standard", limit=100)["items"]
    ]
    assert chosen.id not in shown
    pass_time(session, 30 * MINUTE - 1)
    assert fares.free_seats(session.world, fare) == 0
    fork = session.fork()
    assert price(session, chosen.id, "standard") > hold["price_cents"]  # less than 14 days now, and all are held
    people = [
        executed(session, "add_traveler", first_name=f"Guest {n}", last_name="Lund", birth_date="1990-01-01")[
            "traveler_id"
        ]
        for n in range(fare.seats_left)
    ]
    made = executed(session, "book_flight", hold_id=hold["hold_id"], traveler_ids=people)
    assert made["fare_cents"] == hold["total_cents"]
    pass_time(fork, 1)
    assert fares.free_seats(fork.world, fare) == fare.seats_left


def test_the_price_follows_the_days_and_the_seats() -> None:
    fare = travel.Fare("F1", "basic", 10_000, 12, 12)
    session = ENV.open()
    chosen = session.world.need(travel.Flight, "F00001")

    def at(days: float, left: int) -> int:
        from attrs import evolve

        one = evolve(chosen, departs_at=session.world.now + int(days * DAY))
        return fares.quote(session.world, one, evolve(fare, seats_left=left))

    assert [at(20, 12), at(14, 5), at(14, 4), at(13.9, 12), at(3, 12), at(2.9, 12), at(2.9, 1)] == [
        10_000,
        10_000,
        11_000,
        11_500,
        11_500,
        13_000,
        14_000,
    ]


@pytest.mark.parametrize(
    ("fare", "wait", "fee"),
    [("basic", 0, 0), ("standard", DAY - 1, 0), ("standard", DAY, 8000), ("flex", DAY, 1500), ("business", DAY, 0)],
)
def test_cancelling_costs_what_the_rules_say(fare: str, wait: int, fee: int) -> None:
    session = ENV.open()
    points = executed(session, "get_loyalty_balance")
    made = booked(session, fare, points=1_000, chosen=flight(session, fare, after=9))
    between = executed(session, "get_loyalty_balance")
    assert between["available_points"] == points["available_points"] - 1_000
    assert between["pending_points"] > points["pending_points"]
    pass_time(session, wait)
    rules = executed(session, "get_fare_rules", booking_id=made["booking_id"])["booking"]
    assert rules["cancel_fee_cents"] == fee
    if fee:
        assert session.call("cancel_flight", {"booking_id": made["booking_id"]}).code == "FEE_NOT_ACCEPTED"
    back = executed(session, "cancel_flight", booking_id=made["booking_id"], accepted_fee_cents=fee)
    assert (back["refund_cents"], back["points_returned"]) == (rules["refund_cents"], rules["points_returned"])
    assert back["refund_cents"] + back["points_returned"] == max(made["fare_cents"] - fee, 0)
    after = executed(session, "get_loyalty_balance")
    assert after["pending_points"] == points["pending_points"]
    assert after["available_points"] == points["available_points"] - 1_000 + back["points_returned"]


def cheaper_pair(session: StatefulSession, fare: str) -> tuple[travel.Flight, travel.Flight]:
    """Two flights of one route, of which the second is cheaper."""
    ahead = [one for one in session.world.rows(travel.Flight) if one.departs_at > NOW + 8 * DAY]
    for first in ahead:
        for second in session.world.find(travel.Flight, route=first.route):
            seats = [session.world.need(travel.Fare, (one.id, fare)).seats_left for one in (first, second)]
            inland = {first.origin, first.destination} <= DOMESTIC
            fits = inland and min(seats) > 3 and second.departs_at > NOW + 8 * DAY
            if fits and price(session, second.id, fare) < price(session, first.id, fare):
                return first, second
    raise AssertionError


@pytest.mark.parametrize(("fare", "fee"), [("standard", 5000), ("flex", 0)])
def test_a_change_to_a_cheaper_flight_pays_back_only_where_the_rules_say_so(fare: str, fee: int) -> None:
    session = ENV.open()
    first, second = cheaper_pair(session, fare)
    made = booked(session, fare, ("T00005",), chosen=first)
    pass_time(session, DAY)
    quoted = price(session, second.id, fare)
    difference = quoted - made["fare_cents"]
    assert difference < 0
    call = {"booking_id": made["booking_id"], "new_flight_id": second.id, "quoted_price_cents": quoted}
    changed = executed(session, "change_flight", **call)
    back = 0 if fare == "standard" else -difference
    assert (changed["charged_cents"], changed["refunded_cents"]) == (fee, back)
    assert changed["booking"]["fare_cents"] == made["fare_cents"] - back
    assert changed["booking"]["fees_cents"] == fee


def test_points_that_paid_come_back_as_points() -> None:
    session = ENV.open()
    first, second = cheaper_pair(session, "flex")
    session.world.begin(read_only=False)
    session.world.put(travel.LoyaltyEntry("L99999", NOW, NOW, 100_000, "given", ""))
    session.world.end()
    whole = price(session, first.id, "flex")
    points = executed(session, "get_loyalty_balance")["available_points"]
    made = booked(session, "flex", ("T00005",), points=whole, chosen=first)
    quoted = price(session, second.id, "flex")
    call = {"booking_id": made["booking_id"], "new_flight_id": second.id, "quoted_price_cents": quoted}
    changed = executed(session, "change_flight", **call)
    assert (changed["refunded_cents"], changed["points_returned"]) == (0, whole - quoted)
    assert changed["booking"]["points_used"] == quoted
    assert executed(session, "get_loyalty_balance")["available_points"] == points - quoted


def test_a_missing_passport_can_be_given() -> None:
    session = ENV.open()
    call = _book(["T00001", "T00004"], domestic=False)(session)
    assert session.call(*call).code == "TRAVELER_DOC_MISSING"
    juno = session.world.need(travel.Traveler, "T00004")
    named = {"first_name": juno.first_name, "last_name": juno.last_name, "birth_date": juno.birth_date}
    seen = executed(session, "add_traveler", **named, passport_no="AB424242", passport_expires="2030-05-05")
    assert seen["traveler_id"] == "T00004"
    assert "AB424242" not in str(executed(session, "list_travelers"))
    executed(session, call[0], **call[1])


def test_a_cancelled_flight_costs_nothing_to_leave() -> None:
    session = ENV.open("adversarial")
    gone = next(one for one in session.world.rows(travel.Flight) if one.cancelled)
    view = next(
        one for one in executed(session, "list_bookings", limit=100)["items"] if one["status"] == "cancelled_by_airline"
    )
    before = session.digest()
    refused = session.call(
        "hold_flight", {"flight_id": gone.id, "fare_class": "basic", "seats": 1, "quoted_price_cents": 0}
    )
    assert (refused.code, session.digest()) == ("FLIGHT_CANCELLED", before)
    booked = session.world.need(travel.FlightBooking, view["booking_id"])
    free = executed(session, "get_seat_map", flight_id=booked.flight_id, available_only=True)["seats"]
    seat = next(one["seat"] for one in free if one["fee_cents"] and not one["exit_row"])
    sat = {"booking_id": booked.id, "traveler_id": booked.traveler_ids[0], "seat": seat}
    assert (session.call("select_seat", sat).code, session.digest()) == ("FLIGHT_CANCELLED", before)
    assert (
        executed(session, "cancel_flight", booking_id=view["booking_id"])["refund_cents"]
        == view["total_cents"]
        == 12_000
    )


def test_a_flight_that_was_cancelled_earns_nothing() -> None:
    session = ENV.open("adversarial")
    booked = next(
        one
        for one in session.world.rows(travel.FlightBooking)
        if session.world.need(travel.Flight, one.flight_id).cancelled
    )
    session.helper("_advance_clock", {"seconds": 10 * DAY})  # past its departure
    before = executed(session, "get_loyalty_balance")
    executed(session, "cancel_flight", booking_id=booked.id)
    after = executed(session, "get_loyalty_balance")
    for name in ("available_points", "points_earned_in_a_year"):
        assert before[name] == after[name]


def test_the_adversarial_bookings_lie_on_the_limits() -> None:
    session = ENV.open("adversarial")

    def code(booking: str, fee: int = 0, wait: int = 0) -> str:
        fork = session.fork()
        pass_time(fork, wait)
        return fork.call("cancel_flight", {"booking_id": booking, "accepted_fee_cents": fee}).code

    assert [code("BF00001", 1500), code("BF00002", 1500), code("BF00002", 1500, MINUTE)] == [
        "DEPARTURE_CLOSED",
        "",
        "DEPARTURE_CLOSED",
    ]
    assert [code("BF00003"), code("BF00003", wait=MINUTE), code("BF00004")] == ["", "NON_REFUNDABLE", "NON_REFUNDABLE"]
    back = executed(session, "cancel_flight", booking_id="BF00006", accepted_fee_cents=8000)
    assert (back["refund_cents"], back["points_returned"]) == (0, 0)  # the fee is more than was paid
    assert session.call("book_flight", {"hold_id": "HO00002", "traveler_ids": ["T00001"]}).code == "HOLD_EXPIRED"
    executed(session, "book_flight", hold_id="HO00001", traveler_ids=["T00003"])


def test_hotels_from_search_to_modification() -> None:
    session = ENV.open()
    offer = executed(session, "search_hotels", check_in=day(8), check_out=day(10), guests=2)["items"][0]
    kind = next(one for one in offer["rooms"])
    made = executed(
        session,
        "book_hotel",
        room_type_id=kind["room_type_id"],
        check_in=day(8),
        check_out=day(10),
        guest_ids=["T00001", "T00002"],
    )
    assert made["total_cents"] == kind["total_cents"]
    assert executed(session, "get_itinerary", booking_id=made["booking_id"])["entries"][0]["kind"] == "check_in"
    view = executed(session, "get_hotel", hotel_id=offer["hotel_id"], from_day=day(8), nights=2)
    left = next(one for one in view["rooms"] if one["room_type_id"] == kind["room_type_id"])["nights"]
    assert min(one["rooms_left"] for one in left) == kind["rooms_left"] - 1


def test_modified_stays_keep_the_rates_of_kept_nights() -> None:
    session = ENV.open()
    made = stayed(session, 8, 2)
    name = made["room_type_id"]
    world = session.world
    rates = {n: world.need(travel.RoomNight, (name, day(n))).rate_cents for n in range(7, 12)}
    session.world.begin(read_only=False)
    for n in (8, 9):
        night = world.need(travel.RoomNight, (name, day(n)))
        world.update(night, rate_cents=night.rate_cents * 2, rooms_left=0)
    session.world.end()
    longer = executed(session, "modify_hotel", booking_id=made["booking_id"], check_out=day(11))
    assert longer["charged_cents"] == rates[10]
    assert longer["booking"]["total_cents"] == rates[8] + rates[9] + rates[10]
    moved = executed(session, "modify_hotel", booking_id=made["booking_id"], check_in=day(9))
    assert moved["refunded_cents"] == rates[8]
    assert world.need(travel.RoomNight, (name, day(8))).rooms_left == 1
    assert world.need(travel.RoomNight, (name, day(9))).rooms_left == 0


@pytest.mark.parametrize("late", [False, True])
def test_after_the_deadline_the_first_night_is_kept(late: bool) -> None:
    session = ENV.open()
    made = stayed(session, 8, 2, points=500)
    kept = session.world.need(travel.RoomNight, (made["room_type_id"], day(8)))
    limit = next(n for n in range(0, 9 * DAY, HOUR) if iso(NOW + n) >= made["free_until"])
    pass_time(session, limit if late else limit - 1)
    back = executed(session, "cancel_hotel", booking_id=made["booking_id"])
    assert back["fee_cents"] == (kept.rate_cents if late else 0)
    assert back["refund_cents"] + back["points_returned"] == made["total_cents"] - back["fee_cents"]
    assert session.world.need(travel.RoomNight, (kept.room_type_id, kept.day)).rooms_left == kept.rooms_left + 1


def test_points_come_when_the_journey_begins_and_make_tiers() -> None:
    session = ENV.open()
    assert executed(session, "get_loyalty_balance")["tier"] == "silver"
    made = booked(session, "business")
    start = executed(session, "get_loyalty_balance")
    earned = next(one for one in start["history"] if one["booking_id"] == made["booking_id"])
    assert earned["points"] == made["fare_cents"] * 10 * 125 // 10_000
    assert earned["available_at"] == made["departs_at"]
    pass_time(session, session.world.need(travel.Flight, made["flight_id"]).departs_at - NOW)
    end = executed(session, "get_loyalty_balance")
    assert end["available_points"] >= start["available_points"] + earned["points"]


# Whatever is called: seats, rooms, money and points are kept ----------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("hold_flight"), st.integers(0, 5), st.integers(0, 3)),
    st.tuples(st.just("book_flight"), st.integers(0, 3), st.integers(0, 4000)),
    st.tuples(st.just("book_flight"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("select_seat"), st.integers(0, 8), st.integers(0, 101)),
    st.tuples(st.just("change_flight"), st.integers(0, 8), st.integers(0, 5)),
    st.tuples(st.just("cancel_flight"), st.integers(0, 8), st.integers(0, 1)),
    st.tuples(st.just("book_hotel"), st.integers(0, 20), st.integers(0, 1500)),
    st.tuples(st.just("modify_hotel"), st.integers(0, 5), st.integers(-2, 2)),
    st.tuples(st.just("cancel_hotel"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("_time"), st.sampled_from([10, 40, 1440, 4 * 1440]), st.just(0)),
)
ROUTE = ("VAL-VAC", "VAC-VAL")
CLASSES = ("basic", "standard", "flex", "business")


def arguments_of(session: StatefulSession, tool: str, a: int, b: int) -> dict[str, Any]:
    world = session.world
    flights = [one for one in world.find(travel.Flight, route=ROUTE[a % 2]) if one.departs_at > world.now + 2 * HOUR][
        :3
    ]
    bookings, stays = list(world.rows(travel.FlightBooking)), list(world.rows(travel.HotelBooking))
    holds = list(world.rows(travel.Hold))
    mine, stay = bookings[a % len(bookings)], stays[a % len(stays)]
    if tool == "hold_flight" and flights:
        chosen, fare = flights[a % len(flights)].id, CLASSES[b % 4]
        quoted = price(session, chosen, fare)
        return {"flight_id": chosen, "fare_class": fare, "seats": 1 + a % 2, "quoted_price_cents": quoted}
    if tool == "book_flight" and holds:
        hold = holds[-1 - a % len(holds)]
        people = ["T00001", "T00002", "T00003"][a % 2 :][: hold.seats]
        return {"hold_id": hold.id, "traveler_ids": people, "points_to_use": b}
    if tool == "select_seat":
        seat = fares.places(world.need(travel.Flight, mine.flight_id))[b].seat
        return {"booking_id": mine.id, "traveler_id": mine.traveler_ids[a % len(mine.traveler_ids)], "seat": seat}
    if tool == "change_flight":
        there = world.find(travel.Flight, route=world.need(travel.Flight, mine.flight_id).route)
        there = [one for one in there if one.departs_at > world.now + 2 * HOUR] or there
        chosen = there[b % len(there)].id
        return {
            "booking_id": mine.id,
            "new_flight_id": chosen,
            "quoted_price_cents": price(session, chosen, mine.fare_class),
        }
    if tool == "cancel_flight":
        fee = fares.terms(world, mine).cancel_cents or 0
        return {"booking_id": mine.id, "accepted_fee_cents": fee + b}
    today = (world.now - NOW) // DAY
    made: dict[str, dict[str, Any]] = {
        "book_hotel": {
            "room_type_id": f"RM{a + 1:05d}",
            "check_in": day(today + a % 4),
            "check_out": day(today + a % 4 + 2),
            "guest_ids": ["T00001"],
            "points_to_use": b,
        },
        "modify_hotel": {
            "booking_id": stay.id,
            "check_out": iso_date(
                NOW + DAY * (len(stay.nights) + b + [day(n) for n in range(60)].index(stay.nights[0][0]))
            ),
        },
        "cancel_hotel": {"booking_id": stay.id},
    }
    return made.get(tool, {"hold_id": "HO00000", "traveler_ids": ["T00001"]})


def ledger(session: StatefulSession) -> tuple[int, int]:
    """Money that the agency has of the customer, and points spent and not returned."""
    world = session.world
    money = points = 0
    for one in world.rows(travel.FlightBooking):
        money += one.fare_cents + one.fees_cents - one.points_used - one.refunded_cents
        points += one.points_used - one.points_returned
    for stay in world.rows(travel.HotelBooking):
        money += sum(rate for _, rate in stay.nights) - stay.points_used - stay.refunded_cents
        points += stay.points_used - stay.points_returned
    return money, points


def paid(tool: str, value: dict[str, Any]) -> int:
    """What a call says that it charged, less what it says that it paid back."""
    if tool == "book_flight":
        return int(value["fare_cents"] - value["points_used"])
    if tool == "book_hotel":
        return int(value["total_cents"] - value["points_used"])
    charged = value.get("charged_cents", 0) - value.get("refunded_cents", 0) - value.get("refund_cents", 0)
    return int(charged)


def spent_points(session: StatefulSession) -> int:
    return -sum(one.points for one in session.world.rows(travel.LoyaltyEntry) if one.reason in ("spent", "returned"))


def seats_of_fares(session: StatefulSession) -> int:
    """Seats to sell and seats sold."""
    world = session.world
    sold = sum(len(one.traveler_ids) for one in world.rows(travel.FlightBooking) if one.cancelled_at is None)
    return sold + sum(one.seats_left for one in world.rows(travel.Fare))


def rooms_of_nights(session: StatefulSession) -> int:
    world = session.world
    sold = sum(len(one.nights) for one in world.rows(travel.HotelBooking) if one.cancelled_at is None)
    return sold + sum(one.rooms_left for one in world.rows(travel.RoomNight))


@settings(max_examples=50)
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
def test_seats_rooms_money_and_points_are_kept(steps: list[tuple[str, int, int]]) -> None:
    session = ENV.open()
    whole = seats_of_fares(session), rooms_of_nights(session)
    money, points = ledger(session)
    spent = spent_points(session)
    for tool, a, b in steps:
        if tool == "_time":
            pass_time(session, a * MINUTE)
            continue
        arguments = arguments_of(session, tool, a, b)
        before = session.digest()
        outcome = session.call(tool, arguments)
        if not outcome.executed:
            assert session.digest() == before
            continue
        money += paid(tool, outcome.value)
        now = ledger(session)
        assert now[0] == money
        assert now[1] - points == spent_points(session) - spent
    assert (seats_of_fares(session), rooms_of_nights(session)) == whole
    world = session.world
    assert executed(session, "get_loyalty_balance")["available_points"] >= 0
    assert all(fares.free_seats(world, one) >= 0 for one in world.rows(travel.Fare))
    assert all(one.rooms_left >= 0 for one in world.rows(travel.RoomNight))
    for seat in world.rows(travel.Seat):
        booking = world.need(travel.FlightBooking, seat.booking_id)
        assert booking.cancelled_at is None
        assert booking.flight_id == seat.flight_id
        assert seat.seat not in world.need(travel.Flight, seat.flight_id).occupied
    for one in world.rows(travel.FlightBooking):
        assert 0 <= one.points_used <= one.fare_cents + one.fees_cents
        assert one.refunded_cents >= 0


# Scenarios ------------------------------------------------------------------------------------------------------------


def test_every_tool_works_in_the_typical_scenario() -> None:
    session = ENV.open()
    called = set()

    def works(tool: str, **arguments: Any) -> Any:
        called.add(tool)
        return executed(session, tool, **arguments)

    works("search_airports", query="valmont")
    works("search_flights", origin="VAL", destination="KNG", travelers=2)
    works("list_travelers", name="noor")
    works("list_bookings", upcoming_only=True)
    works("get_itinerary")
    works("get_loyalty_balance")
    works("add_traveler", first_name="Ida", last_name="Lund", birth_date="1990-01-01")
    first = flight(session, "flex")
    works("get_flight", flight_id=first.id)
    works("get_seat_map", flight_id=first.id, available_only=True)
    works("get_fare_rules", fare_class="flex")
    quoted = price(session, first.id, "flex")
    hold = works("hold_flight", flight_id=first.id, fare_class="flex", seats=1, quoted_price_cents=quoted)
    made = works("book_flight", hold_id=hold["hold_id"], traveler_ids=["T00001"], points_to_use=500)["booking_id"]
    seat = next(one["seat"] for one in seats_of(session, {"flight_id": first.id}) if one["available"])
    works("select_seat", booking_id=made, traveler_id="T00001", seat=seat)
    other = flight(session, "flex", after=1, besides=first.id, route=first.route)
    quoted = price(session, other.id, "flex")
    works("change_flight", booking_id=made, new_flight_id=other.id, quoted_price_cents=quoted)
    fee = executed(session, "get_fare_rules", booking_id=made)["booking"]["cancel_fee_cents"]
    works("cancel_flight", booking_id=made, accepted_fee_cents=fee)
    hotel = works("search_hotels", city="Valmont", check_in=day(8), check_out=day(10))["items"][0]
    works("get_hotel", hotel_id=hotel["hotel_id"])
    name = room(session, 8, 2)
    stay = works("book_hotel", room_type_id=name, check_in=day(8), check_out=day(10), guest_ids=["T00001"])[
        "booking_id"
    ]
    works("modify_hotel", booking_id=stay, check_out=day(11))
    works("cancel_hotel", booking_id=stay)
    assert called == set(ENV.tools)


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_references_lead_somewhere(scenario: str, scale: float) -> None:
    world = environment(scale=scale).open(scenario, 7).world
    assert world.dump() == environment(scale=scale).open(scenario, 7).world.dump()
    assert world.count(travel.Profile) == 1
    for table, field, kind in (
        (travel.Flight, "origin", travel.Airport),
        (travel.Flight, "destination", travel.Airport),
        (travel.Fare, "flight_id", travel.Flight),
        (travel.Fare, "fare_class", travel.FareRule),
        (travel.Hold, "flight_id", travel.Flight),
        (travel.Seat, "booking_id", travel.FlightBooking),
        (travel.FlightBooking, "flight_id", travel.Flight),
        (travel.RoomType, "hotel_id", travel.Hotel),
        (travel.RoomNight, "room_type_id", travel.RoomType),
        (travel.HotelBooking, "room_type_id", travel.RoomType),
    ):
        for row in world.rows(table):
            assert world.get(kind, getattr(row, field)) is not None, row
    for one in world.rows(travel.FlightBooking):
        assert all(world.get(travel.Traveler, name) is not None for name in one.traveler_ids)
    for entry in world.rows(travel.LoyaltyEntry):
        known = world.get(travel.FlightBooking, entry.booking_id) or world.get(travel.HotelBooking, entry.booking_id)
        assert known is not None or not entry.booking_id


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_no_flight_can_be_oversold(scenario: str) -> None:
    """Every fare may sell all that it ever had, and our own bookings too, and still each has a seat of the cabin."""
    world = ENV.open(scenario).world
    ours: dict[tuple[str, str], int] = {}
    for one in world.rows(travel.FlightBooking):
        cabin = world.need(travel.FareRule, one.fare_class).cabin
        ours[one.flight_id, cabin] = ours.get((one.flight_id, cabin), 0) + len(one.traveler_ids)
    for one in world.rows(travel.Flight):
        free = [place.cabin for place in fares.places(one) if place.seat not in one.occupied]
        for cabin in ("economy", "business"):
            capacity = sum(
                fare.capacity
                for fare in world.find(travel.Fare, flight_id=one.id)
                if world.need(travel.FareRule, fare.fare_class).cabin == cabin
            )
            assert capacity + ours.get((one.id, cabin), 0) <= free.count(cabin)


def test_the_sparse_scenario_is_empty() -> None:
    session = ENV.open("sparse")
    for tool in ("list_bookings", "search_hotels"):
        arguments = {"city": "Umbria"} if tool == "search_hotels" else {}
        assert session.call(tool, arguments).kind == "empty"
    assert executed(session, "get_loyalty_balance")["tier"] == "member"


def test_a_search_says_why_it_found_nothing() -> None:
    """A day that is not on sale, a route that nobody flies and a city that is not there are told apart."""
    session = ENV.open()
    flight = next(iter(session.world.rows(travel.Flight)))
    there = {"origin": flight.origin, "destination": flight.destination}
    late = session.call("search_flights", {**there, "date": "2026-11-25"})
    assert (late.kind, late.code, late.value["items"]) == ("partial", "OUTSIDE_SCHEDULE", [])
    assert "2026-11-25" in late.message
    flown = {(one.origin, one.destination) for one in session.world.rows(travel.Flight)}
    codes = sorted({code for pair in flown for code in pair})
    unflown = next((a, b) for a in codes for b in codes if a != b and (a, b) not in flown)
    never = session.call("search_flights", dict(zip(("origin", "destination"), unflown, strict=True)))
    assert (never.kind, never.code) == ("partial", "ROUTE_NOT_FLOWN")
    assert session.call("search_hotels", {"city": "Nowhere"}).code == "NOT_FOUND"
    stay = {"check_in": "2026-11-25", "check_out": "2026-11-27"}
    assert session.call("search_hotels", stay).code == "OUTSIDE_SCHEDULE"
    full = session.call("search_flights", {**there, "travelers": 9, "fare_class": "business", "date": day(3)})
    assert (full.kind, full.code) == ("empty", ""), "within the schedule nothing is plainly nothing"
