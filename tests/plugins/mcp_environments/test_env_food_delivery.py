"""Food delivery: its surface, every failure, what makes calls work, opening hours, and that money is kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from environment_sessions import executed
from environment_sessions import wait as pass_time
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.food_delivery import environment, scenarios, service
from callwright_plugins.mcp_environments.food_delivery import rows as food
from callwright_plugins.mcp_environments.food_delivery.scenarios import DINNER

ENV = environment()
MINUTE, DAY = 60, 86_400
READ = (
    "search_restaurants* get_restaurant get_menu* get_item_options list_addresses* view_basket get_delivery_estimate "
    "track_order list_past_orders*"
)
WRITE = "start_basket add_item remove_item! apply_promo place_order cancel_order! tip_courier rate_order"
Call = tuple[str, dict[str, Any]]


@pytest.fixture(autouse=True, scope="module")
def codes_by_their_first_names() -> Iterator[None]:
    """The tests name codes; what each seed calls them is a matter of its own (``test_codes.py``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenarios, "own_codes", lambda rows, rng: rows)
        yield


def open_place(session: StatefulSession, served: bool = True) -> food.Restaurant:
    """An open restaurant that delivers to A00001 (or does not), with a main dish that can be had."""
    district = session.world.need(food.Address, "A00001").district_id
    for one in session.world.rows(food.Restaurant):
        delivers = session.world.get(food.Zone, (one.id, district)) is not None
        if service.is_open(one, session.world.now) and delivers is served and dish(session, one.id, groups=True):
            return one
    raise AssertionError


def dish(session: StatefulSession, restaurant: str, *, groups: bool) -> str:
    """An item that can be had now, with required options or without any; empty if there is none."""
    world = session.world
    for item in world.find(food.Item, restaurant_id=restaurant):
        has = bool(world.find(food.OptionGroup, item_id=item.id))
        if has is groups and service.is_served(world, item):
            return item.id
    return ""


def least(session: StatefulSession, item: str) -> list[str]:
    """The first options that make an item whole."""
    chosen = []
    for group in executed(session, "get_item_options", item_id=item)["groups"]:
        there = [one["option_id"] for one in group["options"] if one["available"]]
        chosen += there[: group["min_choices"]]
    return chosen


def basket(session: StatefulSession, quantity: int = 3, address: str = "A00001") -> dict[str, Any]:
    place = open_place(session)
    made = executed(session, "start_basket", restaurant_id=place.id, address_id=address)
    if quantity:
        item = dish(session, place.id, groups=True)
        options = least(session, item)
        made = executed(
            session, "add_item", basket_id=made["basket_id"], item_id=item, quantity=quantity, option_ids=options
        )
    return dict(made)


def ordered(session: StatefulSession, payment: str = "card", quantity: int = 3) -> dict[str, Any]:
    made = basket(session, quantity)
    cvv = "123" if payment == "card" else ""
    return dict(executed(session, "place_order", basket_id=made["basket_id"], payment=payment, cvv=cvv))


def minutes_of(session: StatefulSession, order: dict[str, Any]) -> int:
    """Minutes from the order to the door."""
    expected = executed(session, "get_delivery_estimate", restaurant_id=order["restaurant_id"], address_id="A00001")
    return int(expected["delivery_minutes"])


def test_the_surface_is_table_2s() -> None:
    tools = ENV.tools
    assert len(tools) == 17
    assert {name for name, spec in tools.items() if spec.read_only} == {name.strip("*") for name in READ.split()}
    assert {name for name, spec in tools.items() if spec.discovery} == {n[:-1] for n in READ.split() if n[-1] == "*"}
    assert {name for name, spec in tools.items() if not spec.read_only} == {name.strip("!") for name in WRITE.split()}
    assert {name for name, spec in tools.items() if spec.destructive} == {n[:-1] for n in WRITE.split() if n[-1] == "!"}
    assert [name for name, spec in tools.items() if spec.sensitive] == ["place_order"]


def test_the_environment_conforms() -> None:
    check_component("environment", ENV, scenarios=list(ENV.scenarios))


# Failures -------------------------------------------------------------------------------------------------------------


def _add(session: StatefulSession, item: str, **more: Any) -> Call:
    made = executed(session, "view_basket")
    return "add_item", {"basket_id": made["basket_id"], "item_id": item, **more}


def _sold_out_item(session: StatefulSession) -> Call:
    for gone in session.world.rows(food.Item):
        place = session.world.need(food.Restaurant, gone.restaurant_id)
        zone = session.world.get(food.Zone, (place.id, "old-town"))
        if gone.sold_out and zone and service.is_open(place, session.world.now):
            executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")
            return _add(session, gone.id)
    raise AssertionError


def _breakfast_at_dinner(session: StatefulSession) -> Call:
    for menu in session.world.rows(food.Menu):
        place = session.world.need(food.Restaurant, menu.restaurant_id)
        zone = session.world.get(food.Zone, (place.id, "old-town"))
        if menu.name == "Breakfast" and zone and service.is_open(place, session.world.now):
            executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")
            item = next(one for one in session.world.find(food.Item, menu_id=menu.id) if not one.sold_out)
            return _add(session, item.id)
    raise AssertionError


def _sold_out_option(session: StatefulSession) -> Call:
    for option in session.world.rows(food.Option):
        group = session.world.need(food.OptionGroup, option.group_id)
        item = session.world.need(food.Item, group.item_id)
        place = session.world.need(food.Restaurant, item.restaurant_id)
        reach = session.world.get(food.Zone, (place.id, "old-town"))
        if option.sold_out and reach and not item.sold_out and service.is_open(place, session.world.now):
            executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")
            return _add(session, item.id, option_ids=[option.id])
    raise AssertionError


def _without_options(session: StatefulSession) -> Call:
    made = basket(session, 0)
    return _add(session, dish(session, made["restaurant_id"], groups=True))


def _all_options(session: StatefulSession) -> Call:
    made = basket(session, 0)
    for item in session.world.find(food.Item, restaurant_id=made["restaurant_id"]):
        groups = executed(session, "get_item_options", item_id=item.id)["groups"]
        there = [[one["option_id"] for one in group["options"] if one["available"]] for group in groups]
        if groups and not item.sold_out and len(there[0]) > groups[0]["max_choices"]:
            return _add(session, item.id, option_ids=there[0])
    raise AssertionError


def _option_twice(session: StatefulSession) -> Call:
    made = basket(session, 0)
    item = dish(session, made["restaurant_id"], groups=True)
    return _add(session, item, option_ids=least(session, item)[:1] * 2)


def _elsewhere(session: StatefulSession) -> Call:
    made = basket(session, 0)
    other = next(one for one in session.world.rows(food.Restaurant) if one.id != made["restaurant_id"])
    return _add(session, session.world.find(food.Item, restaurant_id=other.id)[0].id)


def _too_many(session: StatefulSession) -> Call:
    made = basket(session, 20)
    line = session.world.find(food.BasketItem, basket_id=made["basket_id"])[0]
    return _add(session, line.item_id, option_ids=list(line.option_ids))


def _closed(session: StatefulSession) -> Call:
    for one in session.world.rows(food.Restaurant):
        zone = session.world.get(food.Zone, (one.id, "old-town"))
        if zone and not service.is_open(one, session.world.now):
            return "start_basket", {"restaurant_id": one.id, "address_id": "A00001"}
    raise AssertionError


def _closed_meanwhile(session: StatefulSession) -> Call:
    made = basket(session)
    pass_time(session, 10 * 3600)  # 04:30: nobody is open
    return "place_order", {"basket_id": made["basket_id"], "payment": "cash"}


def _place(quantity: int = 3, **arguments: Any) -> Callable[[StatefulSession], Call]:
    return lambda session: ("place_order", {"basket_id": basket(session, quantity)["basket_id"], **arguments})


def _below_minimum(session: StatefulSession) -> Call:
    made = basket(session, 0)
    drink = dish(session, made["restaurant_id"], groups=False)
    assert executed(session, "add_item", basket_id=made["basket_id"], item_id=drink)["missing_cents"] > 0
    return "place_order", {"basket_id": made["basket_id"], "payment": "cash"}


def _promo(code: str, quantity: int = 3) -> Callable[[StatefulSession], Call]:
    return lambda session: ("apply_promo", {"basket_id": basket(session, quantity)["basket_id"], "code": code})


def _promo_used_just_now(session: StatefulSession) -> Call:
    made = basket(session)
    executed(session, "apply_promo", basket_id=made["basket_id"], code="DINNER5")
    executed(session, "place_order", basket_id=made["basket_id"], cvv="123")
    return "apply_promo", {"basket_id": basket(session)["basket_id"], "code": "DINNER5"}


def _promo_below_spend_when_ordered(session: StatefulSession) -> Call:
    made = basket(session, 3)
    executed(session, "apply_promo", basket_id=made["basket_id"], code="DINNER5")
    line = made["items"][0]["basket_item_id"]
    executed(session, "remove_item", basket_id=made["basket_id"], basket_item_id=line, quantity=2)
    drink = dish(session, made["restaurant_id"], groups=False)
    left = executed(session, "add_item", basket_id=made["basket_id"], item_id=drink)
    assert left["promo_problem"]
    assert left["discount_cents"] == 0
    assert not left["missing_cents"]
    return "place_order", {"basket_id": made["basket_id"], "payment": "cash"}


def _on_order(tool: str, wait: int = 0, **arguments: Any) -> Callable[[StatefulSession], Call]:
    """A call about a new order after ``wait`` minutes; counted from its delivery if negative."""

    def call(session: StatefulSession) -> Call:
        order = ordered(session)
        pass_time(
            session, MINUTE * (wait if wait is None or wait >= 0 else minutes_of(session, order) - wait) if wait else 0
        )
        return tool, {"order_id": order["order_id"], **arguments}

    return call


def _twice(tool: str, wait: int, **arguments: Any) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        again = _on_order(tool, wait, **arguments)(session)
        executed(session, again[0], **again[1])
        return again

    return call


def _tip_after_cancelling(session: StatefulSession) -> Call:
    order = ordered(session)
    executed(session, "cancel_order", order_id=order["order_id"])
    return "tip_courier", {"order_id": order["order_id"], "amount_cents": 100}


def _old_basket(session: StatefulSession) -> Call:
    made = basket(session)
    executed(session, "place_order", basket_id=made["basket_id"], cvv="123")
    return "apply_promo", {"basket_id": made["basket_id"], "code": "FREERIDE"}


def _second_basket(session: StatefulSession) -> Call:
    made = basket(session)
    return "start_basket", {"restaurant_id": made["restaurant_id"], "address_id": "A00001"}


def _remove(quantity: int | None, line: str = "") -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        made = basket(session)
        name = line or made["items"][0]["basket_item_id"]
        return "remove_item", {"basket_id": made["basket_id"], "basket_item_id": name, "quantity": quantity}

    return call


FAILURES: list[tuple[str, Callable[[StatefulSession], Call]]] = [
    ("RESTAURANT_CLOSED", _closed),
    ("RESTAURANT_CLOSED", _closed_meanwhile),
    ("ITEM_UNAVAILABLE", _sold_out_item),
    ("ITEM_UNAVAILABLE", _breakfast_at_dinner),
    ("ITEM_UNAVAILABLE", _sold_out_option),
    ("REQUIRED_OPTION_MISSING", _without_options),
    ("TOO_MANY_OPTIONS", _all_options),
    ("TOO_MANY_OPTIONS", _option_twice),
    ("WRONG_RESTAURANT", _elsewhere),
    ("QUANTITY_LIMIT", _too_many),
    ("QUANTITY_LIMIT", _remove(4)),
    ("BELOW_MINIMUM", _below_minimum),
    ("OUT_OF_ZONE", lambda s: ("start_basket", {"restaurant_id": open_place(s, False).id, "address_id": "A00001"})),
    ("OUT_OF_ZONE", lambda s: ("get_delivery_estimate", {"restaurant_id": open_place(s).id, "address_id": "A00004"})),
    ("PROMO_EXPIRED", _promo("CARNIVAL")),
    ("PROMO_USED", _promo("friend10")),
    ("PROMO_USED", _promo_used_just_now),
    ("PROMO_FIRST_ORDER", _promo("HELLO20")),
    ("PROMO_NOT_HERE", _promo("HOUSE15")),
    ("PROMO_MIN_SPEND", _promo("DINNER5", 1)),
    ("PROMO_MIN_SPEND", _promo_below_spend_when_ordered),
    ("EMPTY_BASKET", _promo("DINNER5", 0)),
    ("EMPTY_BASKET", _place(0, payment="cash")),
    ("NO_BASKET", lambda session: ("view_basket", {})),
    ("BASKET_OPEN", _second_basket),
    ("BASKET_CLOSED", _old_basket),
    ("BAD_CVV", _place(cvv="124")),
    ("BAD_CVV", _place()),
    ("ORDER_PREPARING", _on_order("cancel_order", 5)),
    ("ORDER_PREPARING", _on_order("cancel_order", 20)),
    ("INVALID_STATE", _on_order("cancel_order", -1)),
    ("INVALID_STATE", _twice("cancel_order", 4)),
    ("INVALID_STATE", _tip_after_cancelling),
    ("NOT_DELIVERED", _on_order("rate_order", 5, food_stars=5)),
    ("ALREADY_RATED", _twice("rate_order", -1, food_stars=5)),
    ("RATING_WINDOW_CLOSED", _on_order("rate_order", -14 * 1440 - 1, food_stars=5)),
    ("ALREADY_TIPPED", _twice("tip_courier", 1, amount_cents=100)),
    ("TIP_WINDOW_CLOSED", _on_order("tip_courier", -1441, amount_cents=100)),
    ("ADDRESS_REQUIRED", lambda session: ("search_restaurants", {"sort": "fee"})),
    ("NOT_FOUND", lambda session: ("get_menu", {"restaurant_id": "R99999"})),
    ("NOT_FOUND", lambda session: ("add_item", {"basket_id": "B00009", "item_id": "I00001"})),
    ("NOT_FOUND", _promo("NOSUCHCODE")),
    ("NOT_FOUND", _remove(None, "BI99999")),
    ("NOT_FOUND", lambda session: ("track_order", {"order_id": "O99999"})),
    ("BAD_CURSOR", lambda session: ("list_past_orders", {"cursor": "0"})),
]


@pytest.mark.parametrize(("code", "prepare"), FAILURES)
def test_a_failure_has_its_code_and_changes_nothing(code: str, prepare: Callable[[StatefulSession], Call]) -> None:
    session = ENV.open()
    tool, arguments = prepare(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert session.digest() == before


def test_a_card_without_money_is_declined() -> None:
    session = ENV.open("sparse")
    place = session.world.need(food.Restaurant, "R00001")
    made = executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")
    item = dish(session, place.id, groups=True)
    call = {"basket_id": made["basket_id"], "item_id": item, "quantity": 12, "option_ids": least(session, item)}
    executed(session, "add_item", **call)
    before = session.digest()
    outcome = session.call("place_order", {"basket_id": made["basket_id"], "cvv": "123"})
    assert (outcome.code, session.digest()) == ("CARD_DECLINED", before)
    executed(session, "place_order", basket_id=made["basket_id"], payment="cash")


def test_every_code_in_the_source_is_reached() -> None:
    folder = Path(str(food.__file__)).parent
    found = {
        node.value
        for name in ("browsing", "basket", "ordering", "service")
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", node.value)
    }
    warned = {"UNKNOWN_VALUE"}  # in test_closed_sets.py
    assert found <= {code for code, _ in FAILURES} | {"CARD_DECLINED"} | warned


# Paths ----------------------------------------------------------------------------------------------------------------


def test_from_search_to_rating() -> None:
    session = ENV.open()
    found = executed(session, "search_restaurants", address_id="A00001", open_now=True, sort="time")["items"]
    assert [one["delivery_minutes"] for one in found] == sorted(one["delivery_minutes"] for one in found)
    assert all(one["open_now"] for one in found)
    place = next(one for one in found if dish(session, one["restaurant_id"], groups=True))
    menu = executed(session, "get_menu", restaurant_id=place["restaurant_id"], available_only=True)["items"]
    item = next(one for one in menu if one["has_required_options"])["item_id"]
    assert session.call("add_item", {"basket_id": "B00001", "item_id": item}).code == "NOT_FOUND"
    made = executed(session, "start_basket", restaurant_id=place["restaurant_id"], address_id="A00001")
    assert session.call("apply_promo", {"basket_id": made["basket_id"], "code": "FREERIDE"}).code == "EMPTY_BASKET"
    made = executed(
        session, "add_item", basket_id=made["basket_id"], item_id=item, quantity=3, option_ids=least(session, item)
    )
    reduced = executed(session, "apply_promo", basket_id=made["basket_id"], code="FREERIDE")
    assert made["total_cents"] - reduced["total_cents"] == made["delivery_cents"] > 0
    order = executed(session, "place_order", basket_id=made["basket_id"], cvv="123")
    assert order["total_cents"] == reduced["total_cents"]
    assert session.call("view_basket", {}).code == "NO_BASKET"
    assert executed(session, "view_basket", basket_id=made["basket_id"])["state"] == "ordered"
    seen = []
    for _ in range(place["delivery_minutes"] + 1):
        track = executed(session, "track_order", order_id=order["order_id"])
        assert track["status"] == track["steps"][-1]["status"]
        assert track["can_cancel"] == (
            session.fork().call("cancel_order", {"order_id": order["order_id"]}).kind == "ok"
        )
        seen.append(track["status"])
        early = session.fork().call("rate_order", {"order_id": order["order_id"], "food_stars": 4})
        assert (early.code == "NOT_DELIVERED") == (track["status"] != "delivered")
        pass_time(session, MINUTE)
    assert list(dict.fromkeys(seen)) == ["placed", "confirmed", "preparing", "picked_up", "delivered"]
    assert seen.count("delivered") == 1
    before = executed(session, "get_restaurant", restaurant_id=place["restaurant_id"])
    executed(session, "rate_order", order_id=order["order_id"], food_stars=1, courier_stars=5)
    after = executed(session, "get_restaurant", restaurant_id=place["restaurant_id"])
    assert after["rating_count"] == before["rating_count"] + 1
    assert before["rating"] is None or after["rating"] <= before["rating"]


@pytest.mark.parametrize("payment", ["card", "cash"])
def test_cancelling_refunds_what_the_card_paid_and_frees_the_code(payment: str) -> None:
    session = ENV.open()
    purse = session.world.need(food.Profile, "me").card_available_cents
    made = basket(session)
    executed(session, "apply_promo", basket_id=made["basket_id"], code="DINNER5")
    cvv = {"cvv": "123"} if payment == "card" else {}
    order = executed(session, "place_order", basket_id=made["basket_id"], payment=payment, **cvv)
    executed(session, "tip_courier", order_id=order["order_id"], amount_cents=300)
    pass_time(session, 5 * MINUTE - 1)
    refund = executed(session, "cancel_order", order_id=order["order_id"])["refund_cents"]
    assert refund == 300 + (order["total_cents"] if payment == "card" else 0)
    assert session.world.need(food.Profile, "me").card_available_cents == purse
    assert (
        executed(session, "apply_promo", basket_id=basket(session)["basket_id"], code="DINNER5")["discount_cents"]
        == 500
    )


def test_a_first_order_code_works_until_there_is_an_order() -> None:
    session = ENV.open("sparse")
    for code in ("", "PROMO_USED"):
        made = executed(session, "start_basket", restaurant_id="R00001", address_id="A00001")
        item = dish(session, "R00001", groups=True)
        made = executed(
            session, "add_item", basket_id=made["basket_id"], item_id=item, quantity=3, option_ids=least(session, item)
        )
        outcome = session.call("apply_promo", {"basket_id": made["basket_id"], "code": "HELLO20"})
        assert outcome.code == code
        if not code:
            assert outcome.value["discount_cents"] == made["subtotal_cents"] // 5
            executed(session, "place_order", basket_id=made["basket_id"], payment="cash")


def test_options_change_the_price_and_same_lines_become_one() -> None:
    session = ENV.open()
    place = next(
        one
        for one in session.world.rows(food.Restaurant)
        if one.cuisine == "italian"
        and service.is_open(one, session.world.now)
        and session.world.get(food.Zone, (one.id, "old-town"))
        and dish(session, one.id, groups=True)
    )
    made = executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")
    view = executed(session, "get_item_options", item_id=dish(session, place.id, groups=True))
    options = [one for group in view["groups"] for one in group["options"] if one["available"]]
    sizes = [one for one in view["groups"][0]["options"] if one["available"]]
    chosen = [sizes[-1], *[one for one in options if one not in view["groups"][0]["options"]]][:3]
    ids = [one["option_id"] for one in chosen]
    call = {"basket_id": made["basket_id"], "item_id": view["item_id"]}
    executed(session, "add_item", **call, option_ids=ids)
    again = executed(session, "add_item", **call, option_ids=list(reversed(ids)), quantity=2)
    assert [line["quantity"] for line in again["items"]] == [3]
    price = view["price_cents"] + sum(one["delta_cents"] for one in chosen)
    assert again["items"][0]["unit_price_cents"] == price
    assert again["subtotal_cents"] == 3 * price
    apart = executed(session, "add_item", **call, option_ids=ids, note="no onions")
    assert [line["quantity"] for line in apart["items"]] == [3, 1]
    less = executed(
        session,
        "remove_item",
        basket_id=made["basket_id"],
        basket_item_id=again["items"][0]["basket_item_id"],
        quantity=2,
    )
    assert [line["quantity"] for line in less["items"]] == [1, 1]


def test_a_basket_can_be_replaced_on_purpose() -> None:
    session = ENV.open()
    first = basket(session)
    place = first["restaurant_id"]
    second = executed(session, "start_basket", restaurant_id=place, address_id="A00001", replace=True)
    assert second["items"] == []
    assert executed(session, "view_basket", basket_id=first["basket_id"])["state"] == "discarded"
    assert session.world.count(food.Basket, state="open") == 1


def test_the_security_code_is_never_shown() -> None:
    session = ENV.open()
    made = basket(session)
    assert "cvv" not in str(executed(session, "view_basket"))
    assert made["saved_card_last4"] == "4242"


# Opening hours against a list of minutes ------------------------------------------------------------------------------

HOURS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1439), st.integers(1, 800)).map(lambda t: (t[0], t[1], t[1] + t[2])),
    max_size=5,
)
MONDAY = DINNER - DINNER % DAY


def open_minutes(hours: list[tuple[int, int, int]]) -> set[int]:
    """The minutes of a week from Monday in which a restaurant is open, written out one by one."""
    return {(day * 1440 + minute) % (7 * 1440) for day, first, last in hours for minute in range(first, last)}


@given(hours=HOURS, minute=st.integers(0, 7 * 1440 - 1), second=st.integers(0, 59), paused=st.integers(-100, 3000))
def test_opening_hours(hours: list[tuple[int, int, int]], minute: int, second: int, paused: int) -> None:
    now = MONDAY + minute * MINUTE + second
    week = open_minutes(hours)
    place = food.Restaurant("R1", "x", "x", "x", tuple(hours), now + paused * MINUTE, 10, 0, 0)
    assert service.within_hours(place.hours, now) == (minute in week)
    assert service.is_open(place, now) == (minute in week and paused <= 0)
    opening = service.next_opening(place, now)
    start = max(now, place.paused_until)
    ahead = [at for at in range(start, start + 8 * DAY, MINUTE) if (at - MONDAY) // MINUTE % (7 * 1440) in week]
    if not ahead:
        assert opening is None
    else:
        assert opening is not None
        assert opening == (start if ahead[0] == start else ahead[0] - ahead[0] % MINUTE)


# Whatever is called: money is kept ------------------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("start_basket"), st.integers(0, 59), st.integers(0, 1)),
    st.tuples(st.just("add_item"), st.integers(0, 12), st.integers(1, 4)),
    st.tuples(st.just("add_item"), st.integers(0, 12), st.integers(1, 4)),
    st.tuples(st.just("remove_item"), st.integers(0, 3), st.integers(1, 2)),
    st.tuples(st.just("apply_promo"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("place_order"), st.integers(0, 1), st.just(0)),
    st.tuples(st.just("cancel_order"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("tip_courier"), st.integers(0, 5), st.integers(50, 900)),
    st.tuples(st.just("rate_order"), st.integers(0, 5), st.integers(1, 5)),
    st.tuples(st.just("_time"), st.sampled_from([1, 4, 30, 90]), st.just(0)),
)


def arguments_of(session: StatefulSession, tool: str, a: int, b: int) -> dict[str, Any]:
    world = session.world
    opened = world.find(food.Basket, state="open")
    mine = opened[0].id if opened else "B0"
    items = world.find(food.Item, restaurant_id=opened[0].restaurant_id) if opened else []
    lines = world.find(food.BasketItem, basket_id=mine)
    orders = sorted(world.rows(food.Order), key=lambda one: -one.placed_at)
    codes = [promo.code for promo in world.rows(food.Promo)]
    item = items[a % len(items)].id if items else "I00001"
    order = orders[a % len(orders)].id
    made: dict[str, dict[str, Any]] = {
        "start_basket": {"restaurant_id": f"R{a + 1:05d}", "address_id": "A00001", "replace": bool(b)},
        "add_item": {"basket_id": mine, "item_id": item, "quantity": b or 1, "option_ids": least(session, item)},
        "remove_item": {
            "basket_id": mine,
            "basket_item_id": lines[a % len(lines)].id if lines else "BI1",
            "quantity": b or 1,
        },
        "apply_promo": {"basket_id": mine, "code": codes[a % len(codes)]},
        "place_order": {"basket_id": mine, "payment": ("card", "cash")[a % 2], "cvv": ("123", "")[a % 2]},
        "cancel_order": {"order_id": order},
        "tip_courier": {"order_id": order, "amount_cents": max(b, 50)},
        "rate_order": {"order_id": order, "food_stars": max(1, b % 6)},
    }
    return made[tool]


def money(session: StatefulSession) -> int:
    """What is on the card and what the service keeps of it."""
    kept = sum(
        (one.total_cents if one.payment == "card" else 0) + one.tip_cents - one.refunded_cents
        for one in session.world.rows(food.Order)
    )
    return session.world.need(food.Profile, "me").card_available_cents + kept


@settings(max_examples=60)
@given(steps=st.lists(STEPS, min_size=5, max_size=30))
def test_money_is_kept(steps: list[tuple[str, int, int]]) -> None:
    session = ENV.open()
    whole = money(session)
    basket(session)
    for tool, a, b in steps:
        if tool == "_time":
            pass_time(session, a * MINUTE)
            continue
        before = session.digest()
        outcome = session.call(tool, arguments_of(session, tool, a, b))
        if not outcome.executed:
            assert session.digest() == before
        assert money(session) == whole
        assert session.world.count(food.Basket, state="open") <= 1
    world = session.world
    assert world.need(food.Profile, "me").card_available_cents >= 0
    for order in world.rows(food.Order):
        lines = world.find(food.OrderItem, order_id=order.id)
        assert order.subtotal_cents == sum(line.unit_price_cents * line.quantity for line in lines)
        parts = order.subtotal_cents - order.discount_cents + order.delivery_cents + order.service_cents
        assert order.total_cents == parts
        assert 0 <= order.discount_cents <= order.subtotal_cents
        assert len(world.find(food.Rating, order_id=order.id)) <= 1
    used = [order.promo_code for order in world.rows(food.Order) if order.promo_code and order.cancelled_at is None]
    assert len(used) == len(set(used))


# Scenarios ------------------------------------------------------------------------------------------------------------


def test_every_tool_works_in_the_typical_scenario() -> None:
    session = ENV.open()
    called = set()

    def works(tool: str, **arguments: Any) -> Any:
        called.add(tool)
        return executed(session, tool, **arguments)

    works("list_addresses")
    works("search_restaurants", query="i", address_id="A00002", max_fee_cents=400, min_rating=1)
    place = open_place(session).id
    works("get_restaurant", restaurant_id=place)
    works("get_delivery_estimate", restaurant_id=place, address_id="A00001")
    works("get_menu", restaurant_id=place, vegetarian_only=True)
    item = dish(session, place, groups=True)
    works("get_item_options", item_id=item)
    made = works("start_basket", restaurant_id=place, address_id="A00001")["basket_id"]
    works("add_item", basket_id=made, item_id=item, quantity=4, option_ids=least(session, item))
    line = works("view_basket")["items"][0]["basket_item_id"]
    works("remove_item", basket_id=made, basket_item_id=line, quantity=1)
    works("apply_promo", basket_id=made, code="DINNER5")
    order = works("place_order", basket_id=made, cvv="123")["order_id"]
    works("track_order", order_id=order)
    works("tip_courier", order_id=order, amount_cents=200)
    works("cancel_order", order_id=order)
    works("rate_order", order_id="O00003", food_stars=4)
    works("list_past_orders", status="delivered")
    assert called == set(ENV.tools)
    statuses = {one["status"] for one in executed(session, "list_past_orders", limit=100)["items"]}
    assert {"confirmed", "preparing", "delivered", "cancelled"} <= statuses


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_references_lead_somewhere(scenario: str, scale: float) -> None:
    world = environment(scale=scale).open(scenario, 7).world
    assert world.dump() == environment(scale=scale).open(scenario, 7).world.dump()
    assert world.count(food.Profile) == 1
    for table, field, kind in (
        (food.Address, "district_id", food.District),
        (food.Restaurant, "district_id", food.District),
        (food.Zone, "restaurant_id", food.Restaurant),
        (food.Zone, "district_id", food.District),
        (food.Menu, "restaurant_id", food.Restaurant),
        (food.Item, "menu_id", food.Menu),
        (food.Item, "restaurant_id", food.Restaurant),
        (food.OptionGroup, "item_id", food.Item),
        (food.Option, "group_id", food.OptionGroup),
        (food.Order, "restaurant_id", food.Restaurant),
        (food.Order, "address_id", food.Address),
        (food.OrderItem, "order_id", food.Order),
        (food.OrderItem, "item_id", food.Item),
        (food.CourierEvent, "order_id", food.Order),
        (food.Rating, "order_id", food.Order),
    ):
        for row in world.rows(table):
            assert world.get(kind, getattr(row, field)) is not None, row
    for group in world.rows(food.OptionGroup):
        there = [one for one in world.find(food.Option, group_id=group.id) if not one.sold_out]
        assert group.min_choices <= len(there)
        price = world.need(food.Item, group.item_id).price_cents
        assert price + sum(min(one.delta_cents, 0) for one in there) > 0
    for promo in world.rows(food.Promo):
        assert not promo.restaurant_id or world.get(food.Restaurant, promo.restaurant_id)


def test_the_adversarial_orders_lie_on_the_limits() -> None:
    session = ENV.open("adversarial")

    def code(tool: str, order: str, **arguments: Any) -> str:
        return session.fork().call(tool, {"order_id": order, **arguments}).code

    assert [code("cancel_order", f"O{n:05d}") for n in range(1, 6)] == ["", *["ORDER_PREPARING"] * 3, "INVALID_STATE"]
    assert [code("tip_courier", f"O{n:05d}", amount_cents=50) for n in (6, 7)] == ["", "TIP_WINDOW_CLOSED"]
    assert [code("rate_order", f"O{n:05d}", food_stars=1) for n in (4, 5, 8, 9)] == [
        "NOT_DELIVERED",
        "",
        "",
        "RATING_WINDOW_CLOSED",
    ]
    hours = [one["open_now"] for one in executed(session, "search_restaurants", limit=100)["items"]]
    assert True in hours
    assert False in hours
