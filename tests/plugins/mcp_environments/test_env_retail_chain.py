"""Retail chain: its surface, every failure, golden edges, and pieces that are all accounted for."""

from __future__ import annotations

from collections import defaultdict
from math import dist
from typing import Any

import pytest
from environment_sessions import fails, need, ok, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, Scenario, StatefulEnvironment, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.retail_chain import environment
from callwright_plugins.mcp_environments.retail_chain.rows import (
    ROWS,
    Item,
    Reservation,
    Sale,
    Stock,
    Store,
    Transfer,
)
from callwright_plugins.mcp_environments.retail_chain.tools import TOOLS

ENV = environment()
DAY, HOUR = 86_400, 3_600
READ = {
    "list_stores",
    "search_items",
    "get_stock_level",
    "find_nearest_store_with_stock",
    "list_transfers",
    "get_sales_report",
}
DISCOVERY = {"list_stores", "search_items", "list_transfers"}
DESTRUCTIVE = {"release_reservation"}
WRITE = {"transfer_stock", "receive_shipment", "adjust_inventory", "reserve_item", "release_reservation"}


def small() -> StatefulSession:
    """Shops S1 (20 of I1, 50 fit), S2 50 km off (40 of 50), S3 that opens at 10, S4 closed for good; warehouse S5."""
    today = NOW // DAY * DAY
    rows = [
        Store("S1", "One", "Calder", "shop", 0, 0, 8, 20, "active"),
        Store("S2", "Two", "Calder", "shop", 30, 40, 8, 20, "active"),
        Store("S3", "Three", "Umbria", "shop", 6, 8, 10, 20, "active"),
        Store("S4", "Four", "Umbria", "shop", 1, 1, 8, 20, "closed"),
        Store("S5", "Five", "Umbria", "warehouse", 60, 80, 0, 24, "active"),
        Item("I1", "KIT-1", "Kettle", "kitchen", 2_000),
        Item("I2", "KIT-2", "Kettle large", "kitchen", 3_000),
        Stock("S1", "I1", 20, 50, 25),
        Stock("S2", "I1", 40, 50, 10),
        Stock("S3", "I1", 5, 50, 10),
        Stock("S4", "I1", 30, 50, 10),
        Stock("S5", "I1", 300, 500, 100),
        Stock("S5", "I2", 100, 500, 100),
        Sale("S1", "I1", today - DAY, 2, 4_000),
        Sale("S2", "I1", today - DAY, 1, 2_000),
        Sale("S1", "I1", today - 3 * DAY, 5, 10_000),
        Sale("S5", "I2", today - 9 * DAY, 1, 3_000),
    ]
    return StatefulEnvironment(
        "retail_chain", rows=ROWS, tools=TOOLS, scenarios={"small": Scenario(lambda rng, scale: rows)}
    ).open()


def send(session: StatefulSession, quantity: int, **changes: Any) -> Any:
    call = {"item_id": "I1", "from_store_id": "S1", "to_store_id": "S2", "quantity": quantity, **changes}
    return ok(session, "transfer_stock", **call)


def level(session: StatefulSession, store: str, item: str = "I1") -> Any:
    return ok(session, "get_stock_level", store_id=store, item_id=item)


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 11
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=tuple(ENV.scenarios))


# Golden edges ---------------------------------------------------------------------------------------------------------


def test_list_stock_transfer_receive() -> None:
    session = small()
    stores = [one["store_id"] for one in ok(session, "list_stores", city="calder")["items"]]
    assert stores == ["S1", "S2"]
    free = [level(session, store)["free"] for store in stores]
    assert free == [20, 40]
    fails(session, "NOT_FOUND", "receive_shipment", transfer_id="T00001")
    sent = send(session, 8, carrier="courier")
    assert (level(session, "S1")["on_hand"], level(session, "S2")["on_hand"], level(session, "S2")["in_transit"]) == (
        12,
        40,
        8,
    )
    done = ok(session, "receive_shipment", transfer_id=sent["transfer_id"])
    assert (done["stock"]["on_hand"], done["stock"]["in_transit"], done["transfer"]["status"]) == (48, 0, "received")
    fails(session, "INVALID_STATE", "receive_shipment", transfer_id=sent["transfer_id"])


def test_reserve_release() -> None:
    session = small()
    fails(session, "NOT_FOUND", "release_reservation", reservation_id="R00001")
    made = ok(session, "reserve_item", store_id="S1", item_id="I1", quantity=15, customer="Ada Berg")
    assert (level(session, "S1")["on_hand"], level(session, "S1")["free"]) == (20, 5)
    send(session, 5)
    fails(session, "INSUFFICIENT_STOCK", "reserve_item", store_id="S1", item_id="I1", quantity=1, customer="Ida")
    assert ok(session, "release_reservation", reservation_id=made["reservation_id"])["status"] == "released"
    assert level(session, "S1")["free"] == 15
    fails(session, "INVALID_STATE", "release_reservation", reservation_id=made["reservation_id"])


# Time -----------------------------------------------------------------------------------------------------------------


def test_reservations_end_by_themselves() -> None:
    session = small()
    made = ok(session, "reserve_item", store_id="S1", item_id="I1", quantity=20, customer="Ada Berg", hours=3)
    wait(session, 3 * HOUR - 1)
    fails(session, "INSUFFICIENT_STOCK", "reserve_item", store_id="S1", item_id="I1", quantity=1, customer="Ida")
    wait(session, 1)
    assert level(session, "S1")["reserved"] == 0
    fails(session, "RESERVATION_EXPIRED", "release_reservation", reservation_id=made["reservation_id"])
    ok(session, "reserve_item", store_id="S1", item_id="I1", quantity=20, customer="Ida")


def test_a_lorry_takes_its_time() -> None:
    session = small()
    sent = send(session, 10)  # 50 km: an hour on the road, four to load and unload
    assert (sent["status"], sent["arrives_at"]) == ("in_transit", "2026-03-02T14:00:00Z")
    wait(session, 5 * HOUR - 1)
    assert "14:00" in fails(session, "NOT_ARRIVED", "receive_shipment", transfer_id=sent["transfer_id"])
    assert session.call("list_transfers", {"status": "arrived"}).kind == "empty"
    wait(session, 1)
    assert ok(session, "list_transfers", status="arrived")["items"][0]["transfer_id"] == sent["transfer_id"]
    outcome = session.call("receive_shipment", {"transfer_id": sent["transfer_id"], "received_quantity": 7})
    assert (outcome.kind, outcome.code, outcome.value["missing"]) == ("partial", "SHORT_RECEIPT", 3)
    assert level(session, "S2")["on_hand"] == 47


def test_shops_serve_customers_in_their_hours() -> None:
    session = small()
    call = {"store_id": "S3", "item_id": "I1", "quantity": 1, "customer": "Ada Berg"}
    assert "10 to 20" in fails(session, "STORE_CLOSED", "reserve_item", **call)
    wait(session, HOUR)
    ok(session, "reserve_item", **call)
    wait(session, 10 * HOUR)
    fails(session, "STORE_CLOSED", "reserve_item", **call)


def test_what_is_on_its_way_takes_room() -> None:
    session = small()
    send(session, 6)
    fails(session, "NO_ROOM", "transfer_stock", item_id="I1", from_store_id="S5", to_store_id="S2", quantity=5)
    fails(session, "NO_ROOM", "adjust_inventory", store_id="S2", item_id="I1", change=5, reason="found")
    ok(session, "transfer_stock", item_id="I1", from_store_id="S5", to_store_id="S2", quantity=4)


def test_a_store_that_closes_meanwhile_receives_nothing() -> None:
    session = small()
    sent = send(session, 1, carrier="courier")
    session.world.update(need(session, Store, "S2"), status="closed")
    fails(session, "STORE_CLOSED", "receive_shipment", transfer_id=sent["transfer_id"])


# Failures -------------------------------------------------------------------------------------------------------------

MOVE: dict[str, Any] = {"item_id": "I1", "from_store_id": "S1", "to_store_id": "S2", "quantity": 1}
HOLD: dict[str, Any] = {"store_id": "S1", "item_id": "I1", "quantity": 1, "customer": "Ada Berg"}
ADJUST: dict[str, Any] = {"store_id": "S1", "item_id": "I1", "change": -1, "reason": "damage"}
FAILURES: list[tuple[str, str, dict[str, Any]]] = [
    ("SAME_STORE", "transfer_stock", {**MOVE, "to_store_id": "S1"}),
    ("STORE_CLOSED", "transfer_stock", {**MOVE, "to_store_id": "S4"}),
    ("STORE_CLOSED", "transfer_stock", {**MOVE, "from_store_id": "S4"}),
    ("ITEM_NOT_CARRIED", "transfer_stock", {**MOVE, "item_id": "I2", "from_store_id": "S5"}),
    ("INSUFFICIENT_STOCK", "transfer_stock", {**MOVE, "quantity": 8}),
    ("NO_ROOM", "transfer_stock", {**MOVE, "from_store_id": "S5", "quantity": 8}),
    ("INVALID_QUANTITY", "transfer_stock", {**MOVE, "quantity": 11, "carrier": "courier"}),
    ("NOT_FOUND", "transfer_stock", {**MOVE, "item_id": "I"}),
    ("NOT_FOUND", "transfer_stock", {**MOVE, "to_store_id": "S"}),
    ("INVALID_QUANTITY", "receive_shipment", {"transfer_id": "T00001", "received_quantity": 4}),
    ("NEGATIVE_ADJUSTMENT", "adjust_inventory", {**ADJUST, "change": -8}),
    ("INVALID_QUANTITY", "adjust_inventory", {**ADJUST, "change": 1}),
    ("INVALID_QUANTITY", "adjust_inventory", {**ADJUST, "reason": "found"}),
    ("INVALID_QUANTITY", "adjust_inventory", {**ADJUST, "change": 0, "reason": "count_correction"}),
    ("NO_ROOM", "adjust_inventory", {**ADJUST, "change": 34, "reason": "found"}),
    ("NOTE_REQUIRED", "adjust_inventory", {**ADJUST, "store_id": "S5", "change": -50}),
    ("STORE_CLOSED", "adjust_inventory", {**ADJUST, "store_id": "S4"}),
    ("ITEM_NOT_CARRIED", "adjust_inventory", {**ADJUST, "item_id": "I2"}),
    ("STORE_CLOSED", "reserve_item", {**HOLD, "store_id": "S4"}),
    ("STORE_CLOSED", "reserve_item", {**HOLD, "store_id": "S3"}),
    ("INVALID_STATE", "reserve_item", {**HOLD, "store_id": "S5"}),
    ("ITEM_NOT_CARRIED", "reserve_item", {**HOLD, "item_id": "I2"}),
    ("INSUFFICIENT_STOCK", "reserve_item", {**HOLD, "quantity": 8}),
    ("ITEM_NOT_CARRIED", "get_stock_level", {"store_id": "S1", "item_id": "I2"}),
    ("NOT_FOUND", "get_stock_level", {"store_id": "S", "item_id": "I2"}),
    ("NOT_FOUND", "find_nearest_store_with_stock", {"item_id": "I", "near_store_id": "S1"}),
    ("NOT_FOUND", "list_transfers", {"store_id": "S"}),
    ("NOT_FOUND", "list_transfers", {"item_id": "I"}),
    ("NOT_FOUND", "get_sales_report", {"store_id": "S"}),
    ("NOT_FOUND", "get_sales_report", {"item_id": "I"}),
    ("BAD_DATE", "get_sales_report", {"since": "2026-03-02", "until": "2026-03-01"}),
    ("BAD_DATE", "get_sales_report", {"since": "monday"}),
]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"), FAILURES, ids=[f"{case[1]}-{case[0]}-{n}" for n, case in enumerate(FAILURES)]
)
def test_failures_leave_the_state_untouched(code: str, tool: str, arguments: dict[str, Any]) -> None:
    session = small()
    send(session, 3, carrier="courier")
    ok(session, "reserve_item", **{**HOLD, "quantity": 10})
    fails(session, code, tool, **arguments)


# Lookups against plain reckoning --------------------------------------------------------------------------------------


def test_the_nearest_store_is_the_nearest() -> None:
    session = small()
    near = ok(session, "find_nearest_store_with_stock", item_id="I1", near_store_id="S1", most=9)
    assert [(one["store_id"], one["distance_km"], one["free"]) for one in near] == [
        ("S3", 10.0, 5),
        ("S2", 50.0, 40),
        ("S5", 100.0, 300),
    ]
    near = ok(session, "find_nearest_store_with_stock", item_id="I1", near_store_id="S1", quantity=6, kind="shop")
    assert [one["store_id"] for one in near] == ["S2"]
    call = {"item_id": "I1", "near_store_id": "S1", "quantity": 999}
    assert session.call("find_nearest_store_with_stock", call).kind == "empty"


@given(st.integers(0, 3), st.integers(1, 120), st.integers(1, 25), st.integers(1, 200))
@settings(max_examples=40)
def test_the_nearest_stores_are_those_that_a_scan_finds(seed: int, item: int, start: int, quantity: int) -> None:
    session = ENV.open("typical", seed)
    world, item_id = session.world, f"I{item:05d}"
    home = need(session, Store, f"S{start:05d}")
    expected = []
    for store in world.rows(Store):
        stock = world.get(Stock, (store.id, item_id))
        if stock is None or store.id == home.id or store.status != "active":
            continue
        held = sum(
            one.quantity
            for one in world.rows(Reservation)
            if (one.store_id, one.item_id) == (store.id, item_id) and one.expires_at > world.now
        )
        if stock.on_hand - held >= quantity:
            expected.append((round(dist((store.x_km, store.y_km), (home.x_km, home.y_km)), 1), store.id))
    found = session.call(
        "find_nearest_store_with_stock",
        {"item_id": item_id, "near_store_id": home.id, "quantity": quantity, "most": 20},
    )
    assert [(one["distance_km"], one["store_id"]) for one in found.value] == sorted(expected)[:20]


def test_reports_sum_sales() -> None:
    session = small()
    report = ok(session, "get_sales_report")
    assert (report["since"], report["until"], report["quantity"], report["revenue_cents"]) == (
        "2026-02-23",
        "2026-03-01",
        8,
        16_000,
    )
    lines = ok(session, "get_sales_report", group_by="store", since="2026-02-01")["lines"]
    assert [(one["group"], one["revenue_cents"]) for one in lines] == [("S1", 14_000), ("S5", 3_000), ("S2", 2_000)]
    days = ok(session, "get_sales_report", group_by="day", store_id="S1", item_id="I1")["lines"]
    assert [one["group"] for one in days] == ["2026-02-27", "2026-03-01"]
    large = ENV.open()
    for group_by in ("item", "store", "category", "day"):
        report = ok(large, "get_sales_report", group_by=group_by, since="2026-01-01")
        assert report["revenue_cents"] == sum(row.revenue_cents for row in large.world.rows(Sale))


# Every piece ----------------------------------------------------------------------------------------------------------

STEP = st.tuples(
    st.sampled_from(("send", "send", "receive", "adjust", "reserve", "reserve", "release", "wait")),
    st.sampled_from(("S1", "S2", "S3", "S5")),
    st.sampled_from(("S1", "S2", "S3", "S5")),
    st.integers(1, 30),
    st.booleans(),
)


@given(st.lists(STEP, max_size=25))
@settings(max_examples=80)
def test_a_ledger_of_plain_numbers_agrees(steps: list[tuple[str, str, str, int, bool]]) -> None:
    session = small()
    on_hand = {"S1": 20, "S2": 40, "S3": 5, "S5": 300}
    capacity = {"S1": 50, "S2": 50, "S3": 50, "S5": 500}
    place = {"S1": (0, 0), "S2": (30, 40), "S3": (6, 8), "S5": (60, 80)}
    road: dict[str, list[Any]] = {}  # transfer: to, quantity, arrives
    held: dict[str, list[Any]] = {}  # reservation: store, quantity, expires
    now = NOW
    for what, first, second, number, flag in steps:
        free = {
            store: on_hand[store] - sum(one[1] for one in held.values() if one[0] == store and one[2] > now)
            for store in on_hand
        }
        coming = {store: sum(one[1] for one in road.values() if one[0] == store) for store in on_hand}
        outcome, code = None, ""
        if what == "wait":
            wait(session, number * 20 * 60)
            now += number * 20 * 60
        elif what == "send":
            carrier = "courier" if flag else "lorry"
            call = {"item_id": "I1", "from_store_id": first, "to_store_id": second, "quantity": number}
            outcome = session.call("transfer_stock", {**call, "carrier": carrier})
            if first == second:
                code = "SAME_STORE"
            elif flag and number > 10:
                code = "INVALID_QUANTITY"
            elif number > free[first]:
                code = "INSUFFICIENT_STOCK"
            elif number > capacity[second] - on_hand[second] - coming[second]:
                code = "NO_ROOM"
            else:
                on_hand[first] -= number
                hours = 0 if flag else 4 + dist(place[first], place[second]) / 50
                road[outcome.value["transfer_id"]] = [second, number, now + round(hours * HOUR)]
        elif what == "receive" and road:
            name = sorted(road)[number % len(road)]
            outcome = session.call("receive_shipment", {"transfer_id": name})
            if road[name][2] > now:
                code = "NOT_ARRIVED"
            else:
                on_hand[road[name][0]] += road.pop(name)[1]
        elif what == "adjust":
            change = number if flag else -number
            call = {"store_id": first, "item_id": "I1", "change": change, "reason": "count_correction"}
            outcome = session.call("adjust_inventory", call)
            if change < 0 and -change > free[first]:
                code = "NEGATIVE_ADJUSTMENT"
            elif change > capacity[first] - on_hand[first] - coming[first]:
                code = "NO_ROOM"
            else:
                on_hand[first] += change
        elif what == "reserve":
            hour = now % DAY // HOUR
            call = {"store_id": first, "item_id": "I1", "quantity": number, "customer": "Ada", "hours": 6}
            outcome = session.call("reserve_item", call)
            if first == "S5":
                code = "INVALID_STATE"
            elif not (10 if first == "S3" else 8) <= hour < 20:
                code = "STORE_CLOSED"
            elif number > free[first]:
                code = "INSUFFICIENT_STOCK"
            else:
                held[outcome.value["reservation_id"]] = [first, number, now + 6 * HOUR]
        elif what == "release" and held:
            name = sorted(held)[number % len(held)]
            outcome = session.call("release_reservation", {"reservation_id": name})
            if held[name][2] <= now:
                code = "RESERVATION_EXPIRED"
            else:
                del held[name]
        assert outcome is None or outcome.code == code, (what, outcome)
        for store, count in on_hand.items():
            shown = level(session, store)
            assert (shown["on_hand"], shown["in_transit"]) == (
                count,
                sum(one[1] for one in road.values() if one[0] == store),
            )
            assert 0 <= shown["free"] <= shown["on_hand"] <= shown["capacity"]


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    session = ENV.open(scenario, seed)
    assert environment().open(scenario, seed).digest() == session.digest()
    world = session.world
    coming: dict[tuple[str, str], int] = defaultdict(int)
    held: dict[tuple[str, str], int] = defaultdict(int)
    for transfer in world.rows(Transfer):
        assert transfer.from_store_id != transfer.to_store_id
        assert transfer.sent_at < min(world.now, transfer.arrives_at)
        for store in (transfer.from_store_id, transfer.to_store_id):
            need(session, Stock, (store, transfer.item_id))
        if transfer.status == "in_transit":
            coming[transfer.to_store_id, transfer.item_id] += transfer.quantity
        else:
            assert transfer.received_at <= world.now
    for one in world.rows(Reservation):
        held[one.store_id, one.item_id] += one.holds(world.now)
        need(session, Stock, (one.store_id, one.item_id))
    for stock in world.rows(Stock):
        need(session, Store, stock.store_id)
        need(session, Item, stock.item_id)
        assert held[stock.store_id, stock.item_id] <= stock.on_hand
        assert stock.on_hand + coming[stock.store_id, stock.item_id] <= stock.capacity
    for sale in world.rows(Sale):
        need(session, Stock, (sale.store_id, sale.item_id))
        assert sale.revenue_cents == sale.quantity * need(session, Item, sale.item_id).price_cents
        assert sale.day < world.now // DAY * DAY


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_every_tool_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    shop, stock, source = next(
        (store, stock, other)
        for store in world.rows(Store)
        if store.kind == "shop" and store.is_open(world.now)
        for stock in world.find(Stock, store_id=store.id)
        if level(session, store.id, stock.item_id)["room"] > 1
        for other in world.find(Stock, item_id=stock.item_id)
        if other.store_id != store.id
        and need(session, Store, other.store_id).status == "active"
        and level(session, other.store_id, stock.item_id)["free"] > 1
    )
    ok(session, "list_stores", kind="shop")
    ok(session, "search_items", query=need(session, Item, stock.item_id).sku)
    call = {"item_id": stock.item_id, "near_store_id": shop.id}
    assert ok(session, "find_nearest_store_with_stock", **call)
    sent = ok(
        session,
        "transfer_stock",
        item_id=stock.item_id,
        from_store_id=source.store_id,
        to_store_id=shop.id,
        quantity=1,
        carrier="courier",
    )
    ok(session, "list_transfers", store_id=shop.id, item_id=stock.item_id, status="arrived")
    ok(session, "receive_shipment", transfer_id=sent["transfer_id"])
    ok(session, "adjust_inventory", store_id=shop.id, item_id=stock.item_id, change=1, reason="found")
    made = ok(session, "reserve_item", store_id=shop.id, item_id=stock.item_id, quantity=1, customer="Ada Berg")
    ok(session, "release_reservation", reservation_id=made["reservation_id"])
    ok(session, "get_sales_report", store_id=shop.id)
