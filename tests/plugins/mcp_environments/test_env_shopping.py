"""The shop: its surface, every failure, what makes calls work, and that neither money nor goods come from nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from environment_sessions import executed
from environment_sessions import wait as pass_time
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments import ClockPolicy
from callwright.environments.stateful import NOW, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.shopping import environment, scenarios
from callwright_plugins.mcp_environments.shopping import rows as shop

ENV = environment()
DAY = 86_400
READ = (
    "search_products* list_categories* get_product get_stock compare_products list_reviews list_coupons* "
    "list_addresses* list_payment_methods* list_orders* view_cart get_order track_order"
)
WRITE = (
    "add_to_cart update_cart_item remove_from_cart! clear_cart! apply_coupon remove_coupon set_shipping_address "
    "checkout cancel_order! request_return"
)
Call = tuple[str, dict[str, Any]]


@pytest.fixture(autouse=True, scope="module")
def codes_by_their_first_names() -> Iterator[None]:
    """The tests name codes; what each seed calls them is a matter of its own (``test_codes.py``)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenarios, "own_codes", lambda rows, rng: rows)
        yield


def variant(session: StatefulSession, stock: int = 1, **wanted: Any) -> shop.Variant:
    """A variant that is sold, with at least this stock and a product (or category) like this."""
    for one in session.world.rows(shop.Variant):
        product = session.world.need(shop.Product, one.product_id)
        facts = {"hazardous": False, "bulky": False, **wanted}
        low, high = facts.pop("cents", (0, 10**9))
        if product.discontinued or one.stock < stock or product.order_limit < min(stock, 2):
            continue
        if low <= one.price_cents <= high and all(getattr(product, name) == value for name, value in facts.items()):
            return one
    raise AssertionError(f"no variant like {wanted}")


def filled(session: StatefulSession, quantity: int = 1, **wanted: Any) -> shop.Variant:
    chosen = variant(session, max(quantity, 2), **wanted)
    executed(session, "add_to_cart", variant_id=chosen.id, quantity=quantity)
    return chosen


def bought(session: StatefulSession, quantity: int = 2, method: str = "standard", **wanted: Any) -> dict[str, Any]:
    filled(session, quantity, **wanted)
    executed(session, "set_shipping_address", address_id="A00001")
    return dict(executed(session, "checkout", payment_method_id="PM00001", cvv="123", shipping_method=method))


def test_the_surface_is_table_2s() -> None:
    tools = ENV.tools
    assert len(tools) == 23
    assert {name for name, spec in tools.items() if spec.read_only} == {name.strip("*") for name in READ.split()}
    assert {name for name, spec in tools.items() if spec.discovery} == {n[:-1] for n in READ.split() if n[-1] == "*"}
    assert {name for name, spec in tools.items() if not spec.read_only} == {name.strip("!") for name in WRITE.split()}
    assert {name for name, spec in tools.items() if spec.destructive} == {n[:-1] for n in WRITE.split() if n[-1] == "!"}
    assert [name for name, spec in tools.items() if spec.sensitive] == ["checkout"]


def test_the_environment_conforms() -> None:
    check_component("environment", ENV, scenarios=list(ENV.scenarios))


# Failures -------------------------------------------------------------------------------------------------------------


def _unshippable(session: StatefulSession) -> Call:
    filled(session, hazardous=True)
    return "set_shipping_address", {"address_id": "A00004"}


def _unshippable_later(session: StatefulSession) -> Call:
    executed(session, "set_shipping_address", address_id="A00003")
    filled(session, bulky=True)
    return "checkout", {"payment_method_id": "PM00001", "cvv": "123"}


def _coupon(code: str, **wanted: Any) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        filled(session, **wanted)
        return "apply_coupon", {"code": code}

    return call


def _checkout(method: str, cvv: str = "", **wanted: Any) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        filled(session, **wanted)
        executed(session, "set_shipping_address", address_id="A00001")
        return "checkout", {"payment_method_id": method, "cvv": cvv}

    return call


def _stacked(first: str, second: str) -> Callable[[StatefulSession], Call]:
    def call(session: StatefulSession) -> Call:
        filled(session, category_id="cookware", cents=(6000, 40000))
        executed(session, "apply_coupon", code=first)
        return "apply_coupon", {"code": second}

    return call


def _min_spend_at_checkout(session: StatefulSession) -> Call:
    dear, cheap = filled(session, cents=(5000, 40000)), filled(session, cents=(0, 2500))
    assert dear.id != cheap.id
    executed(session, "set_shipping_address", address_id="A00001")
    executed(session, "apply_coupon", code="TAKE5")
    line = next(one for one in executed(session, "view_cart")["items"] if one["variant_id"] == dear.id)
    executed(session, "remove_from_cart", cart_item_id=line["cart_item_id"])
    return "checkout", {"payment_method_id": "PM00001", "cvv": "123"}


def _expired_at_checkout(session: StatefulSession) -> Call:
    call = _checkout("PM00001", "123", cents=(5000, 40000))(session)
    executed(session, "apply_coupon", code="SPRING10")
    pass_time(session, 8 * DAY)
    return call


def _used_at_checkout(session: StatefulSession) -> Call:
    filled(session, cents=(5000, 40000))
    executed(session, "set_shipping_address", address_id="A00001")
    executed(session, "apply_coupon", code="TAKE5")
    executed(session, "checkout", payment_method_id="PM00001", cvv="123")
    filled(session, cents=(5000, 40000))
    return "apply_coupon", {"code": "TAKE5"}


def _late(days: int, **wanted: Any) -> Callable[[StatefulSession], Call]:
    """A return ``days`` after delivery, which is four days after the order."""

    def call(session: StatefulSession) -> Call:
        order = bought(session, **wanted)
        pass_time(session, (4 + days) * DAY + 1)
        return "request_return", _return_of(order)

    return call


def _return_of(order: dict[str, Any], quantity: int = 1, reason: str = "changed_mind") -> dict[str, Any]:
    item = order["items"][0]["order_item_id"]
    return {"order_id": order["order_id"], "order_item_id": item, "quantity": quantity, "reason": reason}


def _too_many_back(session: StatefulSession) -> Call:
    order = bought(session, 2, category_id="cookware")
    pass_time(session, 5 * DAY)
    executed(session, "request_return", **_return_of(order, 1))
    return "request_return", _return_of(order, 2)


def _shipped(session: StatefulSession) -> Call:
    order = bought(session)
    pass_time(session, DAY)
    return "cancel_order", {"order_id": order["order_id"]}


def _cancelled_twice(session: StatefulSession) -> Call:
    order = bought(session)
    executed(session, "cancel_order", order_id=order["order_id"])
    return "cancel_order", {"order_id": order["order_id"]}


def _limit(session: StatefulSession) -> Call:
    """Over two variants of one product together."""
    for product in session.world.rows(shop.Product):
        first, *rest = session.world.find(shop.Variant, product_id=product.id)
        if not product.discontinued and rest and min(first.stock, rest[0].stock) >= product.order_limit:
            executed(session, "add_to_cart", variant_id=first.id, quantity=product.order_limit)
            return "add_to_cart", {"variant_id": rest[0].id, "quantity": 1}
    raise AssertionError


def _sold_out(session: StatefulSession) -> Call:
    empty = next(one for one in session.world.rows(shop.Variant) if not one.stock)
    return "add_to_cart", {"variant_id": empty.id}


def _discontinued(session: StatefulSession) -> Call:
    gone = next(one for one in session.world.rows(shop.Product) if one.discontinued)
    return "add_to_cart", {"variant_id": session.world.find(shop.Variant, product_id=gone.id)[0].id}


FAILURES: list[tuple[str, Callable[[StatefulSession], Call]]] = [
    ("COUPON_EXPIRED", _coupon("WINTER15")),
    ("COUPON_EXPIRED", _expired_at_checkout),
    ("COUPON_NOT_STARTED", _coupon("EASTER10")),
    ("COUPON_USED", _coupon("WELCOME", cents=(2000, 9000))),
    ("COUPON_USED", _used_at_checkout),
    ("NOT_ELIGIBLE", _coupon("BOOKWORM", category_id="cookware")),
    ("MIN_SPEND", _coupon("SPRING10", cents=(0, 2999))),
    ("MIN_SPEND", _min_spend_at_checkout),
    ("NOT_STACKABLE", _stacked("SPRING10", "HOME20")),
    ("NOT_STACKABLE", _stacked("HOME20", "SPRING10")),
    ("ALREADY_APPLIED", _stacked("SPRING10", "spring10 ")),
    ("NOT_APPLIED", lambda session: ("remove_coupon", {"code": "SPRING10"})),
    ("EMPTY_CART", lambda session: ("checkout", {"payment_method_id": "PM00005"})),
    ("EMPTY_CART", lambda session: ("apply_coupon", {"code": "SPRING10"})),
    ("OUT_OF_STOCK", _sold_out),
    ("OUT_OF_STOCK", _discontinued),
    ("QUANTITY_LIMIT", _limit),
    ("QUANTITY_LIMIT", _too_many_back),
    ("ADDRESS_REQUIRED", lambda session: (filled(session), ("checkout", {"payment_method_id": "PM00005"}))[1]),
    ("ADDRESS_UNSHIPPABLE", lambda session: ("set_shipping_address", {"address_id": "A00005"})),
    ("ADDRESS_UNSHIPPABLE", _unshippable),
    ("ADDRESS_UNSHIPPABLE", _unshippable_later),
    ("BAD_CVV", _checkout("PM00001", "321")),
    ("BAD_CVV", _checkout("PM00001")),
    ("CARD_DECLINED", _checkout("PM00003", "789")),
    ("CARD_DECLINED", _checkout("PM00004", "1234")),
    ("CARD_DECLINED", _checkout("PM00005", cents=(5001, 40000))),
    ("ORDER_SHIPPED", _shipped),
    ("INVALID_STATE", _cancelled_twice),
    ("NOT_DELIVERED", lambda session: ("request_return", _return_of(bought(session)))),
    ("NOT_RETURNABLE", _late(0, category_id="underwear")),
    ("RETURN_WINDOW_CLOSED", _late(30, category_id="cookware")),
    ("RETURN_WINDOW_CLOSED", _late(14, category_id="audio")),
    ("NOT_FOUND", lambda session: ("get_product", {"product_id": "P99999"})),
    ("NOT_FOUND", lambda session: ("get_stock", {"product_id": "P00001", "variant_id": "V00750"})),
    ("NOT_FOUND", lambda session: ("update_cart_item", {"cart_item_id": "CI00009", "quantity": 1})),
    ("NOT_FOUND", lambda session: ("list_categories", {"parent_id": "gardens"})),
    ("NOT_FOUND", lambda session: ("compare_products", {"product_ids": ["P00001", "P99999"]})),
    ("SAME_PRODUCT", lambda session: ("compare_products", {"product_ids": ["P00001", "P00001"]})),
    ("BAD_RANGE", lambda session: ("search_products", {"min_price_cents": 2, "max_price_cents": 1})),
    ("BAD_CURSOR", lambda session: ("list_orders", {"cursor": "nonsense"})),
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
    folder = Path(str(shop.__file__)).parent
    found = {
        node.value
        for name in ("catalogue", "cart", "ordering", "pricing")
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", node.value)
    }
    assert found <= {code for code, _ in FAILURES}


def test_stock_that_fell_since_the_cart_was_filled_stops_the_checkout() -> None:
    session = ENV.open("adversarial")
    view = executed(session, "view_cart")
    assert [line["available"] for line in view["items"]] == [True, False]
    assert view["items"][0]["price_changed_from_cents"] == 1999
    before = session.digest()
    outcome = session.call("checkout", {"payment_method_id": "PM00004", "cvv": "231"})
    assert (outcome.code, session.digest()) == ("OUT_OF_STOCK", before)
    executed(session, "update_cart_item", cart_item_id=view["items"][1]["cart_item_id"], quantity=1)
    assert session.call("checkout", {"payment_method_id": "PM00004", "cvv": "231"}).code == "COUPON_EXPIRED"
    executed(session, "remove_coupon", code="WINTER15")
    assert executed(session, "checkout", payment_method_id="PM00004", cvv="231")["subtotal_cents"] == 2199 + 1999


# Paths ----------------------------------------------------------------------------------------------------------------


def test_from_search_to_delivery() -> None:
    session = ENV.open()
    found = executed(
        session, "search_products", query="headphones", in_stock_only=True, min_price_cents=4000, sort="price_asc"
    )["items"]
    assert found == sorted(found, key=lambda one: one["price_from_cents"])
    stock = {
        one["variant_id"]: one["stock"] for one in executed(session, "get_stock", product_id=found[0]["product_id"])
    }
    chosen = next(name for name in found[0]["variant_ids"] if stock[name])
    assert session.call("apply_coupon", {"code": "SPRING10"}).code == "EMPTY_CART"
    full = executed(session, "add_to_cart", variant_id=chosen)["total_cents"]
    reduced = executed(session, "apply_coupon", code="SPRING10")["total_cents"]
    assert reduced == full - min(full // 10, 2000)
    assert session.call("checkout", {"payment_method_id": "PM00001", "cvv": "123"}).code == "ADDRESS_REQUIRED"
    executed(session, "set_shipping_address", address_id="A00001")
    charged = executed(session, "view_cart", shipping_method="express")["total_cents"]
    order = executed(session, "checkout", payment_method_id="PM00001", cvv="123", shipping_method="express")
    assert order["total_cents"] == charged == reduced + 1290
    assert (
        executed(session, "get_stock", product_id=found[0]["product_id"], variant_id=chosen)[0]["stock"]
        == stock[chosen] - 1
    )
    assert executed(session, "view_cart")["items"] == []
    seen = []
    for seconds in (4 * 3600 - 1, 1, 20 * 3600 - 1, 1, DAY - 1, 1):
        pass_time(session, seconds)
        track = executed(session, "track_order", order_id=order["order_id"])
        assert track["status"] == track["events"][-1]["status"]
        assert (track["tracking_number"] is None) == (track["status"] in ("placed", "packed"))
        seen.append(track["status"])
    assert seen == ["placed", "packed", "packed", "shipped", "shipped", "delivered"]


@pytest.mark.parametrize(("wait", "postage_kept"), [(0, False), (4 * 3600 - 1, False), (4 * 3600, True)])
def test_cancelling_gives_everything_back_but_postage_once_packed(wait: int, postage_kept: bool) -> None:
    session = ENV.open()
    card = session.world.need(shop.PaymentMethod, "PM00001").available_cents
    item = filled(session, cents=(1500, 4000))
    stock = session.world.need(shop.Variant, item.id).stock
    executed(session, "set_shipping_address", address_id="A00001")
    order = executed(session, "checkout", payment_method_id="PM00001", cvv="123")
    assert order["shipping_cents"] == 490
    pass_time(session, wait)
    refund = executed(session, "cancel_order", order_id=order["order_id"])["refund_cents"]
    assert refund == order["total_cents"] - (490 if postage_kept else 0)
    assert session.world.need(shop.PaymentMethod, "PM00001").available_cents == card - order["total_cents"]
    assert session.world.need(shop.Variant, item.id).stock == stock
    assert executed(session, "get_order", order_id=order["order_id"])["refunded_cents"] == refund
    later = session.fork()
    later.keep_time(ClockPolicy())
    later.elapse(3 * DAY - 1)
    assert later.world.need(shop.PaymentMethod, "PM00001").available_cents == card - order["total_cents"]
    before = later.digest()
    assert later.live_until(later.now + 1) == (
        f"The refund of {refund} cents for cancelled order {order['order_id']} has arrived on Visa 4242.",
    )
    assert later.digest() != before
    assert later.world.need(shop.PaymentMethod, "PM00001").available_cents == card - order["total_cents"] + refund
    assert executed(session, "track_order", order_id=order["order_id"])["events"][-1]["status"] == "cancelled"


def test_a_cancelled_orders_coupon_can_be_used_again() -> None:
    session = ENV.open()
    filled(session, cents=(5000, 40000))
    executed(session, "set_shipping_address", address_id="A00001")
    executed(session, "apply_coupon", code="TAKE5")
    order = executed(session, "checkout", payment_method_id="PM00001", cvv="123")
    executed(session, "cancel_order", order_id=order["order_id"])
    filled(session, cents=(5000, 40000))
    assert executed(session, "apply_coupon", code="TAKE5")["discount_cents"] == 500


@pytest.mark.parametrize(
    ("category", "reason", "fee_percent", "restocked"),
    [
        ("audio", "changed_mind", 15, True),
        ("audio", "wrong_size", 15, True),
        ("audio", "wrong_item", 0, True),
        ("audio", "damaged", 0, False),
        ("cookware", "changed_mind", 0, True),
        ("underwear", "defective", 0, False),
    ],
)
def test_returns(category: str, reason: str, fee_percent: int, restocked: bool) -> None:
    session = ENV.open()
    order = bought(session, 2, category_id=category)
    sold = session.world.need(shop.Variant, order["items"][0]["variant_id"]).stock
    pass_time(session, 4 * DAY)
    made = executed(session, "request_return", **_return_of(order, 2, reason))
    paid = order["items"][0]["paid_cents"]
    assert made["fee_cents"] == paid * fee_percent // 100
    assert made["refund_cents"] == paid - made["fee_cents"]
    assert made["restocked"] is restocked
    assert session.world.need(shop.Variant, order["items"][0]["variant_id"]).stock == sold + (2 if restocked else 0)
    assert executed(session, "get_order", order_id=order["order_id"])["refunded_cents"] == made["refund_cents"]


def test_a_gift_card_has_a_refund_when_it_arrives_and_pays_with_it_then_though_nobody_tells() -> None:
    session = ENV.open()
    card = next(one for one in session.world.rows(shop.PaymentMethod) if one.kind == "gift_card")

    def balance() -> int:
        listed = executed(session, "list_payment_methods")["items"]
        return int(next(one["balance_cents"] for one in listed if one["payment_method_id"] == card.id))

    filled(session, cents=(500, 2000))
    executed(session, "set_shipping_address", address_id="A00001")
    order = executed(session, "checkout", payment_method_id=card.id)
    spent = card.available_cents - order["total_cents"]
    executed(session, "cancel_order", order_id=order["order_id"])
    assert balance() == spent
    pass_time(session, 3 * DAY - 1)
    assert balance() == spent
    pass_time(session, 1)
    assert balance() == card.available_cents
    assert session.world.need(shop.PaymentMethod, card.id).available_cents == spent, "reading changes nothing"
    filled(session, cents=(500, 2000))
    again = executed(session, "checkout", payment_method_id=card.id)
    assert balance() == card.available_cents - again["total_cents"]


def test_returned_one_by_one_the_refunds_add_up_to_the_price() -> None:
    session = ENV.open()
    filled(session, 3, category_id="cookware", order_limit=5, cents=(1300, 40000))
    executed(session, "apply_coupon", code="SPRING10")
    executed(session, "set_shipping_address", address_id="A00001")
    order = executed(session, "checkout", payment_method_id="PM00001", cvv="123")
    paid = order["items"][0]["paid_cents"]
    assert paid % 3  # else rounding would not show
    pass_time(session, 5 * DAY)
    assert sum(executed(session, "request_return", **_return_of(order))["refund_cents"] for _ in range(3)) == paid


def test_a_discount_is_never_more_than_the_goods() -> None:
    session = ENV.open()
    filled(session, cents=(500, 4000))
    session.world.begin(read_only=False)
    session.world.put(shop.Coupon("HUGE", "fixed", 10**6, "", 0, None, True, NOW - DAY, NOW + DAY, 1))
    session.world.end()
    executed(session, "set_shipping_address", address_id="A00001")
    view = executed(session, "apply_coupon", code="HUGE")
    assert view["discount_cents"] == view["subtotal_cents"]
    assert view["total_cents"] == view["shipping_cents"] == 490


@pytest.mark.parametrize("seconds", [0, 30 * DAY])
def test_the_window_of_returns_includes_its_ends(seconds: int) -> None:
    session = ENV.open()
    order = bought(session, category_id="cookware")
    pass_time(session, 4 * DAY + seconds)
    executed(session, "request_return", **_return_of(order))


def test_a_comparison_leaves_out_what_does_not_exist() -> None:
    outcome = ENV.open().call("compare_products", {"product_ids": ["P00001", "P99999", "P00002"]})
    assert (outcome.kind, outcome.code) == ("partial", "NOT_FOUND")
    assert [one["product_id"] for one in outcome.value["products"]] == ["P00001", "P00002"]


def test_secrets_are_never_shown() -> None:
    session = ENV.open()
    shown = str(executed(session, "list_payment_methods"))
    assert "cvv" not in shown
    assert executed(session, "list_payment_methods")["items"][0]["balance_cents"] is None


# Prices against another way of working them out -----------------------------------------------------------------------


def expected_price(session: StatefulSession) -> tuple[int, dict[str, int]]:
    """What the goods cost and each coupon takes off, from the dump of the state: exact fractions, one rounding each."""
    tables = session.world.dump()["tables"]
    by_id = {name: {row["id"]: row for row in tables[name]} for name in ("products", "variants", "categories")}
    coupons = {row["code"]: row for row in tables["coupons"]}
    lines = []
    for item in tables.get("cart_items", []):
        one = by_id["variants"][item["variant_id"]]
        category = by_id["categories"][by_id["products"][one["product_id"]]["category_id"]]
        full = one["price_cents"] * item["quantity"]
        lines.append({"kinds": {"", category["id"], category["parent_id"]}, "full": full, "left": Fraction(full)})
    off = {}
    for code in tables["carts"][0]["coupons"]:
        coupon = coupons[code]
        mine = [line for line in lines if coupon["category_id"] in line["kinds"]]
        if not mine or sum(line["full"] for line in mine) < coupon["min_spend_cents"]:
            continue
        left = sum(line["left"] for line in mine)
        worth = {"percent": left * coupon["value"] / 100, "fixed": coupon["value"], "free_shipping": 0}[coupon["kind"]]
        worth = int(min(worth, left, coupon["max_discount_cents"] or left))
        off[code] = worth
        for line in mine:
            line["left"] -= Fraction(worth) * line["left"] / left if left else 0
        # Whole cents are charged, so what a later category coupon sees may differ by a cent for each line.
    return sum(line["full"] for line in lines) - sum(off.values()), off


@settings(max_examples=60)
@given(
    picks=st.lists(st.tuples(st.integers(0, 700), st.integers(1, 3)), min_size=1, max_size=5),
    codes=st.permutations(["SPRING10", "TAKE5", "FREESHIP", "BOOKWORM"]),
)
def test_a_cart_costs_what_fractions_say(picks: list[tuple[int, int]], codes: list[str]) -> None:
    session = ENV.open()
    variants = list(session.world.rows(shop.Variant))
    for number, quantity in picks:
        session.call("add_to_cart", {"variant_id": variants[number].id, "quantity": quantity})
    for code in codes:
        session.call("apply_coupon", {"code": code})
    view = executed(session, "view_cart")
    goods, off = expected_price(session)
    cents = len(view["items"]) * len(codes)
    assert abs(view["total_cents"] - goods) <= cents
    assert {one["code"] for one in view["coupons"] if one["counts"]} == set(off)
    assert view["total_cents"] == view["subtotal_cents"] - sum(one["discount_cents"] for one in view["coupons"])
    for one in view["coupons"]:
        assert abs(one["discount_cents"] - off.get(one["code"], 0)) <= cents


@given(weights=st.lists(st.integers(0, 10**6), min_size=1, max_size=8), data=st.data())
def test_shares_add_up_and_none_exceeds_its_line(weights: list[int], data: st.DataObject) -> None:
    from callwright_plugins.mcp_environments.shopping.pricing import shares

    amount = data.draw(st.integers(0, sum(weights)))
    parts = shares(amount, weights)
    assert sum(parts) == amount
    assert all(0 <= part <= weight for part, weight in zip(parts, weights, strict=True))


# Whatever is called: goods and money are kept -------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("add_to_cart"), st.integers(0, 40), st.integers(1, 5)),
    st.tuples(st.just("update_cart_item"), st.integers(0, 4), st.integers(1, 6)),
    st.tuples(st.just("remove_from_cart"), st.integers(0, 4), st.just(0)),
    st.tuples(st.just("apply_coupon"), st.integers(0, 8), st.just(0)),
    st.tuples(st.just("set_shipping_address"), st.integers(1, 5), st.just(0)),
    st.tuples(st.just("checkout"), st.integers(0, 4), st.integers(0, 1)),
    st.tuples(st.just("checkout"), st.integers(0, 1), st.integers(0, 1)),
    st.tuples(st.just("cancel_order"), st.integers(0, 40), st.just(0)),
    st.tuples(st.just("request_return"), st.integers(0, 40), st.integers(1, 2)),
    st.tuples(st.just("_time"), st.sampled_from([3600, 4 * 3600, DAY, 5 * DAY]), st.just(0)),
)
CVVS = ("123", "456", "789", "1234", "")


def arguments_of(session: StatefulSession, tool: str, a: int, b: int) -> dict[str, Any]:
    world = session.world
    items = list(world.rows(shop.CartItem))
    orders = sorted(world.rows(shop.Order), key=lambda order: -order.placed_at)
    order = orders[a % len(orders)]
    line = world.find(shop.OrderItem, order_id=order.id)[0]
    codes = [coupon.code for coupon in world.rows(shop.Coupon)]
    made: dict[str, dict[str, Any]] = {
        "add_to_cart": {"variant_id": f"V{a + 1:05d}", "quantity": b},
        "update_cart_item": {"cart_item_id": items[a % len(items)].id if items else "CI1", "quantity": b or 1},
        "remove_from_cart": {"cart_item_id": items[a % len(items)].id if items else "CI1"},
        "apply_coupon": {"code": codes[a % len(codes)]},
        "set_shipping_address": {"address_id": f"A{a:05d}"},
        "checkout": {
            "payment_method_id": f"PM{a % 5 + 1:05d}",
            "cvv": CVVS[a % 5],
            "shipping_method": ("standard", "express")[b % 2],
        },
        "cancel_order": {"order_id": order.id},
        "request_return": {
            "order_id": order.id,
            "order_item_id": line.id,
            "quantity": b or 1,
            "reason": ("changed_mind", "damaged")[b % 2],
        },
    }
    return made[tool]


def money(session: StatefulSession) -> int:
    """What the customer has and what the shop keeps, or what is on its way."""
    world = session.world
    return sum(method.available_cents for method in world.rows(shop.PaymentMethod)) + sum(
        order.total_cents - order.arrived_cents for order in world.rows(shop.Order)
    )


def goods(session: StatefulSession) -> int:
    """Units in stock, with customers, and thrown away because they came back damaged."""
    world = session.world
    cancelled = {order.id for order in world.rows(shop.Order) if order.cancelled_at is not None}
    kept = sum(one.quantity - one.returned for one in world.rows(shop.OrderItem) if one.order_id not in cancelled)
    lost = sum(one.quantity for one in world.rows(shop.Return) if not one.restocked)
    return sum(one.stock for one in world.rows(shop.Variant)) + kept + lost


@settings(max_examples=80)
@given(steps=st.lists(STEPS, min_size=5, max_size=30))
def test_goods_and_money_are_kept(steps: list[tuple[str, int, int]]) -> None:
    session = ENV.open()
    whole = money(session), goods(session)
    # Begin with a full cart, so that many of the runs get as far as an order.
    executed(session, "set_shipping_address", address_id="A00001")
    filled(session, 2, cents=(3000, 9000))
    for tool, a, b in steps:
        if tool == "_time":
            pass_time(session, a)
            continue
        before = session.digest()
        outcome = session.call(tool, arguments_of(session, tool, a, b))
        if not outcome.executed:
            assert session.digest() == before
        assert (money(session), goods(session)) == whole
    world = session.world
    assert all(one.stock >= 0 for one in world.rows(shop.Variant))
    assert all(one.available_cents >= 0 for one in world.rows(shop.PaymentMethod))
    assert all(one.uses_left >= 0 for one in world.rows(shop.Coupon))
    for order in world.rows(shop.Order):
        lines = world.find(shop.OrderItem, order_id=order.id)
        assert order.total_cents == sum(line.paid_cents for line in lines) + order.shipping_cents
        assert order.subtotal_cents - order.discount_cents == sum(line.paid_cents for line in lines)
        assert 0 <= order.arrived_cents <= order.refunded_cents <= order.total_cents
        assert all(0 <= line.returned <= line.quantity and line.refunded_cents <= line.paid_cents for line in lines)


# Scenarios ------------------------------------------------------------------------------------------------------------

WORKING: list[Call] = [
    ("list_categories", {"parent_id": "home"}),
    ("search_products", {"category_id": "electronics", "max_price_cents": 30000, "min_rating": 1, "sort": "rating"}),
    ("get_product", {"product_id": "P00001"}),
    ("get_stock", {"product_id": "P00001"}),
    ("compare_products", {"product_ids": ["P00001", "P00014"]}),
    ("list_reviews", {"product_id": "P00001", "min_stars": 3}),
    ("list_coupons", {"valid_now": True}),
    ("list_addresses", {}),
    ("list_payment_methods", {}),
    ("list_orders", {"status": "delivered"}),
    ("get_order", {"order_id": "O00001"}),
    ("track_order", {"order_id": "O00002"}),
    ("set_shipping_address", {"address_id": "A00002"}),
    ("add_to_cart", {"variant_id": "@", "quantity": 1}),
    ("update_cart_item", {"cart_item_id": "CI00001", "quantity": 2}),
    ("apply_coupon", {"code": "SPRING10"}),
    ("remove_coupon", {"code": "SPRING10"}),
    ("view_cart", {}),
    ("checkout", {"payment_method_id": "PM00001", "cvv": "123"}),
    ("cancel_order", {"order_id": "O00025"}),
    ("add_to_cart", {"variant_id": "@", "quantity": 1}),
    ("remove_from_cart", {"cart_item_id": "CI00002"}),
    ("clear_cart", {}),
    ("request_return", {"order_id": "O00005", "order_item_id": "@", "quantity": 1, "reason": "damaged"}),
]


def test_every_tool_works_in_the_typical_scenario() -> None:
    session = ENV.open()
    one = variant(session, 2, cents=(4000, 20000)).id
    line = session.world.find(shop.OrderItem, order_id="O00004")[0].id
    for tool, arguments in WORKING:
        if tool == "request_return":
            arguments = {**arguments, "order_id": "O00004", "order_item_id": line}
        outcome = session.call(tool, {name: one if value == "@" else value for name, value in arguments.items()})
        assert outcome.executed, (tool, outcome)
    assert {tool for tool, _ in WORKING} == set(ENV.tools)


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_references_lead_somewhere(scenario: str, scale: float) -> None:
    scaled = environment(scale=scale)
    world = scaled.open(scenario, 7).world
    assert world.dump() == environment(scale=scale).open(scenario, 7).world.dump()
    assert world.count(shop.Profile) == 1
    for one in world.rows(shop.Product):
        assert world.need(shop.Category, one.category_id).parent_id
    for table, field, kind in (
        (shop.Variant, "product_id", shop.Product),
        (shop.Review, "product_id", shop.Product),
        (shop.Address, "region", shop.Zone),
        (shop.CartItem, "variant_id", shop.Variant),
        (shop.Order, "address_id", shop.Address),
        (shop.Order, "payment_method_id", shop.PaymentMethod),
        (shop.OrderItem, "order_id", shop.Order),
        (shop.OrderItem, "variant_id", shop.Variant),
        (shop.Shipment, "order_id", shop.Order),
    ):
        for row in world.rows(table):
            assert world.get(kind, getattr(row, field)) is not None, row
    for order in world.rows(shop.Order):
        lines = world.find(shop.OrderItem, order_id=order.id)
        assert order.total_cents == sum(line.paid_cents for line in lines) + order.shipping_cents
        assert len(world.find(shop.Shipment, order_id=order.id)) == 1


def test_sizes() -> None:
    assert ENV.open().world.count(shop.Variant) > 500
    assert environment(scale=2).open().world.count(shop.Product) == 2 * ENV.open().world.count(shop.Product)
    assert ENV.open("typical", 1).digest() != ENV.open("typical", 2).digest()
    sparse = ENV.open("sparse")
    assert sparse.call("list_orders", {}).kind == sparse.call("list_coupons", {}).kind == "empty"
    assert sparse.call("search_products", {"query": "zeppelin"}).kind == "empty"


def test_orders_of_the_typical_scenario_are_in_every_state() -> None:
    session = ENV.open()
    for status in ("placed", "packed", "shipped", "delivered"):
        assert session.call("list_orders", {"status": status}).kind == "ok"
