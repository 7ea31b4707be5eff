"""Programs that break the rules of shops, of travel, of a car and of a home, one for each rule."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

DAY = 86_400


# food_delivery --------------------------------------------------------------------------------------------------------


def wrong(secret: str) -> str:
    return "000" if secret != "000" else "111"


def basket(p: Any, minimum: int = 0, **promo: Any) -> tuple[str, Any]:
    """A basket at a restaurant that is open, delivers, and has a dish without options that costs a bit."""
    for restaurant in p.rows("restaurants"):
        for address in p.rows("addresses"):
            for zone in p.rows("delivery_zones", restaurant_id=restaurant.id, district_id=address.district_id):
                p.edit(zone, min_order_cents=minimum)
                began = p.call("start_basket", restaurant_id=restaurant.id, address_id=address.id)
                if not began.executed:
                    continue
                for item in p.rows("items", restaurant_id=restaurant.id, sold_out=False):
                    added = p.call("add_item", basket_id=began.value["basket_id"], item_id=item.id, quantity=1)
                    if added.executed:
                        return began.value["basket_id"], item
    raise AssertionError("no restaurant is open")


def undelivered(p: Any) -> Any:
    zones = {(one.restaurant_id, one.district_id) for one in p.rows("delivery_zones")}
    for restaurant in p.rows("restaurants"):
        for address in p.rows("addresses"):
            if (restaurant.id, address.district_id) not in zones:
                return p.call("start_basket", restaurant_id=restaurant.id, address_id=address.id)
    raise AssertionError


def at_a_closed_restaurant(p: Any) -> Any:
    basket(p)
    restaurant = p.need("restaurants", p.row("baskets").restaurant_id)
    p.edit(restaurant, paused_until=p.world.now + DAY)
    return p.call("place_order", basket_id=p.row("baskets").id, payment="cash")


def second_basket(p: Any) -> Any:
    basket(p)
    open_one = p.row("baskets")
    return p.call("start_basket", restaurant_id=open_one.restaurant_id, address_id=open_one.address_id)


def dish_of_another(p: Any) -> Any:
    made, item = basket(p)
    other = p.row("items", lambda one: one.restaurant_id != item.restaurant_id)
    return p.call("add_item", basket_id=made, item_id=other.id)


def twenty_more(p: Any) -> Any:
    made, item = basket(p)
    return p.call("add_item", basket_id=made, item_id=item.id, quantity=20)


def sold_out_dish(p: Any) -> Any:
    made, item = basket(p)
    p.edit(item, sold_out=True)
    return p.call("add_item", basket_id=made, item_id=item.id)


def without_option(p: Any) -> Any:
    made, item = basket(p)
    group = p.row("option_groups")
    p.edit(group, item_id=item.id, min_choices=1, max_choices=1)
    return p.call("add_item", basket_id=made, item_id=item.id)


def promo(p: Any, **changes: Any) -> Any:
    made, _ = basket(p)
    plain = {"restaurant_id": None, "first_order_only": False, "min_spend_cents": 0, "used": False}
    code = p.edit(p.row("promos"), **{**plain, "expires_at": p.world.now + DAY, **changes}).code
    return p.call("apply_promo", basket_id=made, code=code)


def ordered(p: Any) -> str:
    made, _ = basket(p)
    return str(p.ok("place_order", basket_id=made, payment="cash")["order_id"])


def cancels_late(p: Any) -> Any:
    order = ordered(p)
    while p.ok("track_order", order_id=order)["status"] in ("placed", "confirmed"):
        p.wait(60)
    return p.call("cancel_order", order_id=order)


def tips_twice(p: Any) -> Any:
    order = ordered(p)
    p.ok("tip_courier", order_id=order, amount_cents=100)
    return p.call("tip_courier", order_id=order, amount_cents=100)


# shopping -------------------------------------------------------------------------------------------------------------


def goods(p: Any, **changes: Any) -> Any:
    fine = p.row("products", lambda one: not (one.hazardous or one.bulky or one.discontinued) and one.order_limit >= 2)
    return p.edit(p.row("variants", product_id=fine.id), **{"stock": 50, **changes})


def cart(p: Any) -> Any:
    variant = goods(p)
    p.ok("add_to_cart", variant_id=variant.id)
    return variant


def shipped_to(p: Any) -> None:
    served = {one.region for one in p.rows("shipping_zones", served=True)}
    p.ok("set_shipping_address", address_id=p.row("addresses", lambda one: one.region in served).id)


def card(p: Any, **changes: Any) -> Any:
    found = p.row("payment_methods", kind="card")
    return p.edit(found, **{"blocked": False, "expires_at": 4_000_000_000, "available_cents": 10**9, **changes})


def pays(p: Any, cvv: str = "", **changes: Any) -> Any:
    cart(p)
    shipped_to(p)
    method = card(p, **changes)
    return p.call("checkout", payment_method_id=method.id, cvv=cvv or method.cvv)


def pays_nowhere(p: Any) -> Any:
    cart(p)
    p.edit(p.row("carts"), address_id=None)
    return p.call("checkout", payment_method_id=card(p).id, cvv=card(p).cvv)


def wrong_cvv(p: Any) -> Any:
    return pays(p, wrong(card(p).cvv))


def unserved(p: Any) -> Any:
    served = {one.region for one in p.rows("shipping_zones", served=True)}
    return p.call("set_shipping_address", address_id=p.row("addresses", lambda one: one.region not in served).id)


def coupon(p: Any, number: int = 0, **changes: Any) -> Any:
    found = list(p.rows("coupons"))[number]
    plain = {"category_id": None, "min_spend_cents": 0, "starts_at": 0, "expires_at": p.world.now + DAY, "uses_left": 5}
    return p.call("apply_coupon", code=p.edit(found, **{**plain, "stackable": True, **changes}).code)


def coupon_on_goods(p: Any, **changes: Any) -> Any:
    cart(p)
    return coupon(p, **changes)


def two_coupons(p: Any) -> Any:
    assert coupon_on_goods(p).executed
    return coupon(p, 1, stackable=False)


def bought(p: Any) -> tuple[str, str]:
    outcome = pays(p)
    assert outcome.executed, outcome
    order = outcome.value["order_id"]
    return order, p.row("order_items", order_id=order).id


def cancels_shipped(p: Any) -> Any:
    order, _ = bought(p)
    p.wait(p.row("shipments", order_id=order).shipped_at - p.world.now)
    return p.call("cancel_order", order_id=order)


def returns(p: Any, late: int | None) -> Any:
    order, item = bought(p)
    if late is not None:
        p.wait(p.row("shipments", order_id=order).delivered_at - p.world.now + late)
    return p.call("request_return", order_id=order, order_item_id=item, quantity=1, reason="defective")


# marketplace ----------------------------------------------------------------------------------------------------------


def auction(p: Any, mine: bool = False, bids: bool = False, **changes: Any) -> Any:
    """An auction that goes on for a week, with a wallet that could buy everything."""
    me = p.need("profile", "me").user_id
    p.edit(p.need("wallets", me), balance_cents=10**8, held_cents=0)
    found = p.row(
        "listings",
        lambda one: bool(one.leading_bid_id) == bids and one.seller_id != me and not suspended(p, one),
        kind="auction" if bids else "fixed",
        status="open",
    )
    if not bids:
        found = p.edit(found, kind="auction", quantity=1, start_cents=500, buy_now_cents=0)
    plain = {"end_at": p.world.now + 7 * DAY, "seller_id": me if mine else found.seller_id}
    return p.edit(found, **{**plain, **changes})


def suspended(p: Any, listing: Any) -> bool:
    return bool(p.need("users", listing.seller_id).suspended)


def bids(p: Any, amount: int = 10**7, **changes: Any) -> Any:
    return p.call("place_bid", listing_id=auction(p, **changes).id, amount_cents=amount)


def bids_poor(p: Any) -> Any:
    listing = auction(p)
    p.edit(p.need("wallets", p.need("profile", "me").user_id), balance_cents=0)
    return p.call("place_bid", listing_id=listing.id, amount_cents=10**7)


def bids_of_suspended(p: Any) -> Any:
    listing = auction(p)
    p.edit(p.need("users", listing.seller_id), suspended=True)
    return p.call("place_bid", listing_id=listing.id, amount_cents=10**7)


def buys_after_bid(p: Any) -> Any:
    return p.call("buy_now", listing_id=auction(p, bids=True).id)


def withdraws_late(p: Any) -> Any:
    listing = auction(p)
    p.ok("place_bid", listing_id=listing.id, amount_cents=10**6)
    me = p.need("profile", "me").user_id
    bid = p.row("bids", listing_id=listing.id, bidder_id=me)
    p.edit(p.need("listings", listing.id), end_at=p.world.now + 3600)
    return p.call("withdraw_bid", bid_id=bid.id)


def withdraws_anothers(p: Any) -> Any:
    return p.call("withdraw_bid", bid_id=auction(p, bids=True).leading_bid_id)


def accepts_too_little(p: Any) -> Any:
    listing = auction(p, mine=True, bids=True, reserve_cents=10**8)
    return p.call("accept_bid", listing_id=listing.id, bid_id=listing.leading_bid_id)


def feedback_twice(p: Any) -> Any:
    me = p.need("profile", "me").user_id
    given = {one.sale_id for one in p.rows("feedback", author_id=me)}
    sale = p.row("sales", lambda one: one.id not in given)
    p.edit(sale, buyer_id=me, at=p.world.now - DAY)
    first = p.call("leave_feedback", sale_id=sale.id, rating=5)
    assert first.executed, first
    return p.call("leave_feedback", sale_id=sale.id, rating=5)


# retail_chain ---------------------------------------------------------------------------------------------------------


def stocked(p: Any, **changes: Any) -> tuple[Any, Any]:
    """Stock of an item in an open shop and in another store that could take more of it."""
    shops = [one.id for one in p.rows("stores", kind="shop", status="active")]
    first = p.row("stock", lambda one: one.store_id in shops)
    other = p.row("stock", lambda one: one.store_id in shops and one.store_id != first.store_id, item_id=first.item_id)
    p.edit(p.need("stores", first.store_id), opens_hour=0, closes_hour=24)
    return p.edit(first, **{"on_hand": 500, "capacity": 1000, **changes}), p.edit(other, on_hand=0, capacity=1000)


def sends(p: Any, quantity: int = 5, to: str = "", carrier: str = "lorry", **changes: Any) -> Any:
    here, there = stocked(p, **changes)
    ends = {"from_store_id": here.store_id, "to_store_id": to or there.store_id}
    return p.call("transfer_stock", item_id=here.item_id, **ends, quantity=quantity, carrier=carrier)


def sends_to_itself(p: Any) -> Any:
    return sends(p, to=stocked(p)[0].store_id)


def sends_where_it_is_not_carried(p: Any) -> Any:
    here, _ = stocked(p)
    carrying = {one.store_id for one in p.rows("stock", item_id=here.item_id)}
    return sends(p, to=p.row("stores", lambda one: one.id not in carrying, status="active").id)


def receives(p: Any, wait: bool, **more: Any) -> Any:
    outcome = sends(p)
    assert outcome.executed, outcome
    transfer = outcome.value["transfer_id"]
    there = p.need("stores", p.need("transfers", transfer).to_store_id)
    p.edit(there, opens_hour=0, closes_hour=24)
    if wait:
        p.wait(5 * DAY)
    return p.call("receive_shipment", transfer_id=transfer, **more)


def reserves(p: Any, quantity: int = 1, **store: Any) -> Any:
    here, _ = stocked(p)
    p.edit(p.need("stores", here.store_id), **store) if store else None
    reserved = {"store_id": here.store_id, "item_id": here.item_id, "quantity": quantity}
    return p.call("reserve_item", **reserved, customer="Ada Berg", hours=2)


def releases_late(p: Any) -> Any:
    outcome = reserves(p)
    assert outcome.executed, outcome
    p.wait(DAY)
    return p.call("release_reservation", reservation_id=outcome.value["reservation_id"])


def adjusts(p: Any, change: int, **more: Any) -> Any:
    here, _ = stocked(p)
    adjusted = {"store_id": here.store_id, "item_id": here.item_id, "change": change}
    return p.call("adjust_inventory", **adjusted, reason="damage", **more)


# travel_booking -------------------------------------------------------------------------------------------------------


def flight(p: Any, abroad: bool = False) -> Any:
    country = {one.code: one.country for one in p.rows("airports")}
    return p.row(
        "flights",
        lambda one: (
            (country[one.origin] != country[one.destination]) == abroad
            and one.departs_at > p.world.now + 10 * DAY
            and p.need("fares", (one.id, "standard")).seats_left == 6
        ),
        cancelled=False,
    )


def price(p: Any, chosen: Any, fare: str = "standard", seats: int = 1) -> int:
    found = p.ok("get_flight", flight_id=chosen.id)["fares"]
    return int(next(one["price_cents"] for one in found if one["fare_class"] == fare))


def holds(p: Any, seats: int = 1, fare: str = "standard", abroad: bool = False, chosen: Any = None) -> str:
    chosen = chosen or flight(p, abroad)
    p.edit(p.need("fares", (chosen.id, fare)), seats_left=6)
    held = {"flight_id": chosen.id, "fare_class": fare, "quoted_price_cents": price(p, chosen, fare)}
    return str(p.ok("hold_flight", **held, seats=seats)["hold_id"])


def travelers(p: Any, adult: bool = True) -> list[Any]:
    ages = list(p.rows("travelers", lambda one: (one.birth_date < "2008") == adult))
    return [one.id for one in ages]


def books(p: Any, fare: str = "standard", **more: Any) -> Any:
    return p.call("book_flight", **{"hold_id": holds(p, fare=fare), "traveler_ids": travelers(p)[:1], **more})


def booked(p: Any, fare: str = "standard") -> str:
    outcome = books(p, fare)
    assert outcome.executed, outcome
    return str(outcome.value["booking_id"])


def books_late(p: Any) -> Any:
    hold = holds(p)
    p.wait(31 * 60)
    return p.call("book_flight", hold_id=hold, traveler_ids=travelers(p)[:1])


def without_passport(p: Any) -> Any:
    who = travelers(p)[0]
    p.edit(p.need("travelers", who), passport_no="", passport_expires=None)
    return p.call("book_flight", hold_id=holds(p, abroad=True), traveler_ids=[who])


def in_two_places(p: Any) -> Any:
    chosen, who = flight(p), travelers(p)[:1]
    p.ok("book_flight", hold_id=holds(p, chosen=chosen), traveler_ids=who)
    return p.call("book_flight", hold_id=holds(p, chosen=chosen), traveler_ids=who)


def changes_basic(p: Any) -> Any:
    booking = booked(p, "basic")
    old = p.need("flights", p.need("flight_bookings", booking).flight_id)
    other = p.row("flights", lambda one: one.id != old.id and one.departs_at > old.departs_at, route=old.route)
    p.wait(2 * DAY)
    return p.call("change_flight", booking_id=booking, new_flight_id=other.id, quoted_price_cents=price(p, other))


def cancels_for_nothing(p: Any) -> Any:
    booking = booked(p)
    p.wait(2 * DAY)
    return p.call("cancel_flight", booking_id=booking, accepted_fee_cents=0)


def seats(p: Any, exit_row: bool) -> Any:
    adult, child = travelers(p)[0], travelers(p, adult=False)[0]
    hold = holds(p, seats=2)
    booking = p.ok("book_flight", hold_id=hold, traveler_ids=[adult, child])["booking_id"]
    chosen = p.need("flight_bookings", booking).flight_id
    cabin = "economy" if exit_row else "business"
    free = p.ok("get_seat_map", flight_id=chosen, cabin=cabin, available_only=True)["seats"]
    seat = next(one["seat"] for one in free if one["exit_row"] == exit_row)
    return p.call("select_seat", booking_id=booking, traveler_id=child, seat=seat)


def stays(p: Any, nights: int, guests: int = 1, **night: Any) -> Any:
    room = p.row("room_types")
    day = next(one.day for one in p.rows("room_nights", room_type_id=room.id))
    for one in p.rows("room_nights", room_type_id=room.id):
        p.edit(one, **{"rooms_left": 5, "min_stay": 1, **night})
    first = date.fromisoformat(day)
    ends = [(first + timedelta(days=more)).isoformat() for more in (5, 5 + nights)]
    guest_ids = [one.id for one in p.rows("travelers")][:guests]
    return p.call("book_hotel", room_type_id=room.id, check_in=ends[0], check_out=ends[1], guest_ids=guest_ids)


def crowded(p: Any) -> Any:
    p.edit(p.row("room_types"), sleeps=1)
    return stays(p, 1, guests=2)


# vehicle --------------------------------------------------------------------------------------------------------------


def parked(p: Any, **changes: Any) -> Any:
    car = p.row("vehicles")
    plain = {"ignition": False, "gear": "P", "parking_brake": True, "speed_kmh": 0, "fuel_nl": car.tank_nl // 2}
    for one in p.rows("doors"):
        p.edit(one, locked=True, open=False)
    for one in p.rows("dtcs", active=True):
        p.edit(one, active=False)
    for one in p.rows("tires"):
        p.edit(one, pressure_kpa=one.recommended_kpa)
    return p.edit(p.row("vehicles"), **{**plain, **changes})


def starts(p: Any, **changes: Any) -> Any:
    parked(p, **changes)
    return p.call("start_engine")


def ready(p: Any) -> None:
    assert starts(p).executed
    p.ok("set_parking_brake", engaged=False)
    p.ok("shift_gear", gear="D")


def cruises(p: Any, speed: int, gear: str = "D", brake: bool = False) -> Any:
    ready(p)
    p.edit(p.row("vehicles"), gear=gear, parking_brake=brake)
    return p.call("set_cruise_speed", speed_kmh=speed)


def unlocks_moving(p: Any) -> Any:
    assert cruises(p, 50).executed
    return p.call("unlock_doors")


def charges_anywhere(p: Any) -> Any:
    parked(p, fuel_type="electric")
    return p.call("refuel", litres=5, fuel_type="electric")


def starts_unlocked(p: Any) -> Any:
    parked(p)
    p.edit(p.row("doors"), locked=False)
    return p.call("start_engine")


def locks_open(p: Any) -> Any:
    parked(p)
    door = p.edit(p.row("doors"), locked=False, open=True)
    return p.call("lock_doors", doors=[door.name])


def starts_broken(p: Any) -> Any:
    parked(p)
    p.edit(p.row("dtcs", severity="critical"), active=True)
    return p.call("start_engine")


def too_far(p: Any) -> Any:
    parked(p, fuel_nl=1_000_000_000)
    p.ok("start_engine")
    far = max(p.rows("destinations"), key=lambda one: one.way)
    return p.call("start_navigation", destination_id=far.id)


def two_routes(p: Any) -> Any:
    ready(p)
    near = sorted(p.rows("destinations"), key=lambda one: one.way)
    for one in p.rows("routes", state="active"):
        p.edit(one, state="cancelled")
    p.ok("start_navigation", destination_id=near[0].id)
    return p.call("start_navigation", destination_id=near[1].id)


def fills(p: Any, litres: float, right: bool) -> Any:
    kind = parked(p).fuel_type
    other = "diesel" if kind != "diesel" else "petrol"
    return p.call("refuel", litres=litres, fuel_type=kind if right else other)


# maps -----------------------------------------------------------------------------------------------------------------


def far_apart(p: Any) -> Any:
    place = p.row("places")
    for one in p.rows("edges"):
        if place.node in (one.source, one.target):
            p.edit(one, modes=("walk",))
    other = p.row("places", lambda one: one.node != place.node)
    return p.call("compute_route", origin=place.id, destination=other.id, mode="drive")


def arrives_yesterday(p: Any) -> Any:
    first = p.row("places")
    other = p.row("places", lambda one: one.node != first.node and one.city == first.city)
    code = p.ok("compute_route", origin=first.id, destination=other.id)["route_code"]
    return p.call("estimate_arrival", route_code=code, depart_at="2026-03-01T09:00:00Z")


def two_of_a_label(p: Any) -> Any:
    p.ok("save_place", location=p.row("places").id, label="Here")
    return p.call("save_place", location=p.row("places").id, label="Here")


def drops_home(p: Any) -> Any:
    saved = p.row("saved_places").id
    p.ok("set_home", location=saved)
    return p.call("delete_saved_place", saved_id=saved)


def ambiguous(p: Any) -> Any:
    places = list(p.rows("places"))
    first = places[0]
    for other in places[1:3]:
        p.edit(other, street=first.street, number=first.number)
    return p.call("geocode", address=f"{first.number} {first.street}")


# iot_devices ----------------------------------------------------------------------------------------------------------


def device(p: Any, capability: str, **state: Any) -> str:
    found = p.edit(p.row("devices", lambda one: capability in one.capabilities), online=True)
    if state:
        p.edit(p.need("device_state", found.id), **state)
    return str(found.id)


def lock(p: Any, **changes: Any) -> Any:
    found = p.row("locks")
    p.edit(p.need("devices", found.id), online=True)
    return p.edit(found, **{"locked": True, "jammed": False, "wrong": 0, "locked_out_until": 0, **changes})


def guesses(p: Any, times: int = 1) -> Any:
    found = lock(p)
    p.edit(p.row("alarm"), mode="disarmed")
    wrong = "0000" if found.code != "0000" else "1111"
    return [p.call("unlock_door", device_id=found.id, lock_code=wrong) for _ in range(times)][-1]


def unlocks_armed(p: Any) -> Any:
    found = lock(p, exterior=True)
    p.edit(p.row("alarm"), mode="armed_home")
    return p.call("unlock_door", device_id=found.id, lock_code=found.code)


def arms(p: Any, unlocked: bool) -> Any:
    p.edit(p.row("alarm"), mode="disarmed")
    for one in p.rows("locks"):
        p.edit(one, locked=not unlocked, jammed=False)
    return p.call("arm_alarm", mode="armed_away")


def arms_open(p: Any) -> Any:
    for one in p.rows("devices", type="sensor"):
        p.edit(one, online=True)
    window = p.row("sensor_series", quantity="contact")
    p.edit(window, base=1, swing=0, noise=0)
    return arms(p, unlocked=False)


def in_the_wind(p: Any) -> Any:
    awning = p.edit(p.row("devices", awning=True), online=True)
    for one in p.rows("sensor_series", quantity="wind"):
        p.edit(one, base=2000)
    p.edit(p.need("device_state", awning.id), position=0)
    return p.call("open_cover", device_id=awning.id, position=100)


def half_a_scene(p: Any) -> Any:
    scene = p.row("scenes", lambda one: len(one.steps) > 1)
    for one in p.rows("devices"):
        p.edit(one, online=True)
    p.edit(p.need("devices", scene.steps[0][0]), online=False)
    return p.call("activate_scene", scene_id=scene.id)


def same_name(p: Any) -> Any:
    name = p.row("automations").name
    return p.call("create_automation", name=name, trigger="daily", time="07:00", scene_id=p.row("scenes").id)


BREAKING: dict[str, list[tuple[str, Any]]] = {
    "food_delivery": [
        ("OUT_OF_ZONE", undelivered),
        ("RESTAURANT_CLOSED", at_a_closed_restaurant),
        ("BASKET_OPEN", second_basket),
        ("WRONG_RESTAURANT", dish_of_another),
        ("ITEM_UNAVAILABLE", sold_out_dish),
        ("REQUIRED_OPTION_MISSING", without_option),
        ("QUANTITY_LIMIT", twenty_more),
        ("BELOW_MINIMUM", lambda p: p.call("place_order", basket_id=basket(p, minimum=10**6)[0], payment="cash")),
        ("PROMO_EXPIRED", lambda p: promo(p, expires_at=p.world.now - DAY)),
        ("PROMO_MIN_SPEND", lambda p: promo(p, min_spend_cents=10**6)),
        (
            "BAD_CVV",
            lambda p: p.call(
                "place_order", basket_id=basket(p)[0], payment="card", cvv=wrong(p.need("profile", "me").card_cvv)
            ),
        ),
        ("ORDER_PREPARING", cancels_late),
        ("ALREADY_TIPPED", tips_twice),
        ("NOT_DELIVERED", lambda p: p.call("rate_order", order_id=ordered(p), food_stars=5)),
    ],
    "shopping": [
        ("OUT_OF_STOCK", lambda p: p.call("add_to_cart", variant_id=goods(p, stock=0).id)),
        ("QUANTITY_LIMIT", lambda p: p.call("add_to_cart", variant_id=goods(p, stock=500).id, quantity=50)),
        ("EMPTY_CART", coupon),
        ("ADDRESS_REQUIRED", pays_nowhere),
        ("ADDRESS_UNSHIPPABLE", unserved),
        ("BAD_CVV", wrong_cvv),
        ("CARD_DECLINED", lambda p: pays(p, blocked=True)),
        ("COUPON_EXPIRED", lambda p: coupon_on_goods(p, expires_at=p.world.now - DAY)),
        ("MIN_SPEND", lambda p: coupon_on_goods(p, min_spend_cents=10**8)),
        ("NOT_STACKABLE", two_coupons),
        ("ORDER_SHIPPED", cancels_shipped),
        ("NOT_DELIVERED", lambda p: returns(p, None)),
        ("RETURN_WINDOW_CLOSED", lambda p: returns(p, 365 * DAY)),
    ],
    "marketplace": [
        ("BID_TOO_LOW", lambda p: bids(p, 1, start_cents=500)),
        ("SELF_BID", lambda p: bids(p, mine=True)),
        ("INSUFFICIENT_FUNDS", bids_poor),
        ("AUCTION_ENDED", lambda p: bids(p, status="sold")),
        ("BUY_NOW_UNAVAILABLE", buys_after_bid),
        ("WITHDRAWAL_CLOSED", withdraws_late),
        ("PERMISSION_DENIED", withdraws_anothers),
        ("NOT_SELLER", lambda p: p.call("close_listing", listing_id=auction(p).id)),
        ("HAS_BIDS", lambda p: p.call("close_listing", listing_id=auction(p, mine=True, bids=True).id)),
        ("RESERVE_NOT_MET", accepts_too_little),
        ("SELLER_SUSPENDED", bids_of_suspended),
        ("FEEDBACK_EXISTS", feedback_twice),
    ],
    "retail_chain": [
        ("INSUFFICIENT_STOCK", lambda p: sends(p, on_hand=0)),
        ("ITEM_NOT_CARRIED", sends_where_it_is_not_carried),
        ("NO_ROOM", lambda p: sends(p, 5000, on_hand=9000, capacity=9000)),
        ("SAME_STORE", sends_to_itself),
        ("INVALID_QUANTITY", lambda p: sends(p, 11, carrier="courier")),
        ("NOT_ARRIVED", lambda p: receives(p, wait=False)),
        ("SHORT_RECEIPT", lambda p: receives(p, wait=True, received_quantity=1)),
        ("STORE_CLOSED", lambda p: reserves(p, opens_hour=20, closes_hour=22)),
        ("RESERVATION_EXPIRED", releases_late),
        ("NEGATIVE_ADJUSTMENT", lambda p: adjusts(p, -5000, note="all gone")),
        ("NOTE_REQUIRED", lambda p: adjusts(p, -60)),
    ],
    "travel_booking": [
        (
            "OUTSIDE_SCHEDULE",
            lambda p: p.call(
                "search_flights", origin=flight(p).origin, destination=flight(p).destination, date="2026-11-25"
            ),
        ),
        (
            "FARE_CHANGED",
            lambda p: p.call(
                "hold_flight", flight_id=flight(p).id, fare_class="standard", seats=1, quoted_price_cents=1
            ),
        ),
        (
            "SOLD_OUT",
            lambda p: p.call(
                "hold_flight",
                flight_id=flight(p).id,
                fare_class="standard",
                seats=9,
                quoted_price_cents=price(p, flight(p)),
            ),
        ),
        ("HOLD_EXPIRED", books_late),
        ("TRAVELER_COUNT", lambda p: p.call("book_flight", hold_id=holds(p, 2), traveler_ids=travelers(p)[:1])),
        ("ADULT_REQUIRED", lambda p: books(p, traveler_ids=travelers(p, adult=False)[:1])),
        ("TRAVELER_DOC_MISSING", without_passport),
        ("TRAVELER_CONFLICT", in_two_places),
        ("NOT_CHANGEABLE", changes_basic),
        ("FEE_NOT_ACCEPTED", cancels_for_nothing),
        ("SEAT_RESTRICTED", lambda p: seats(p, exit_row=True)),
        ("WRONG_CABIN", lambda p: seats(p, exit_row=False)),
        ("MIN_STAY", lambda p: stays(p, 1, min_stay=3)),
        ("ROOM_TOO_SMALL", crowded),
        ("INSUFFICIENT_POINTS", lambda p: books(p, points_to_use=10**6)),
    ],
    "vehicle": [
        ("DOORS_UNLOCKED", starts_unlocked),
        ("DOORS_OPEN", locks_open),
        ("BRAKE_NOT_SET", lambda p: starts(p, parking_brake=False)),
        ("NO_FUEL", lambda p: starts(p, fuel_nl=0)),
        ("FAULT_ACTIVE", starts_broken),
        ("IGNITION_OFF", lambda p: (parked(p), p.call("shift_gear", gear="D"))[1]),
        ("GEAR_NOT_DRIVE", lambda p: cruises(p, 50, gear="N")),
        ("BRAKE_ENGAGED", lambda p: cruises(p, 50, brake=True)),
        ("CRUISE_MIN_SPEED", lambda p: cruises(p, 20)),
        ("CRUISE_MAX_SPEED", lambda p: cruises(p, 190)),
        ("MOVING", unlocks_moving),
        ("OUT_OF_RANGE_FUEL", too_far),
        ("WRONG_FUEL", lambda p: fills(p, 5, right=False)),
        ("TANK_OVERFLOW", lambda p: fills(p, 90, right=True)),
        ("NOT_AT_CHARGER", charges_anywhere),
        ("CHARGING", lambda p: starts(p, charging_nl=10**9)),
        ("NAVIGATION_ACTIVE", two_routes),
    ],
    "maps": [
        ("AMBIGUOUS", ambiguous),
        ("ADDRESS_NOT_FOUND", lambda p: p.call("geocode", address="9999 Nowhere Lane")),
        ("OUT_OF_COVERAGE", lambda p: p.call("get_elevation", location="10.0,10.0")),
        ("BAD_LOCATION", lambda p: p.call("get_elevation", location="91,0")),
        ("NO_ROUTE", far_apart),
        ("PAST_TIME", arrives_yesterday),
        (
            "MATRIX_TOO_LARGE",
            lambda p: p.call(
                "compute_route_matrix",
                origins=[one.id for one in p.rows("places")][:11],
                destinations=[one.id for one in p.rows("places")][11:22],
            ),
        ),
        ("LABEL_TAKEN", two_of_a_label),
        ("IN_USE", drops_home),
    ],
    "iot_devices": [
        ("CAPABILITY_MISSING", lambda p: p.call("set_fan_speed", device_id=device(p, "lock"), speed=1)),
        (
            "DEVICE_OFFLINE",
            lambda p: p.call("turn_on", device_id=p.edit(p.need("devices", device(p, "switch")), online=False).id),
        ),
        ("DEVICE_OFF", lambda p: p.call("set_brightness", device_id=device(p, "brightness", on=False), percent=50)),
        ("MODE_GATED", lambda p: p.call("set_temperature", device_id=device(p, "mode", mode="off"), celsius=20)),
        ("OUT_OF_RANGE", lambda p: p.call("set_temperature", device_id=device(p, "mode", mode="heat"), celsius=60)),
        ("BAD_CODE", guesses),
        ("LOCKED_OUT", lambda p: guesses(p, 4)),
        ("JAMMED", lambda p: p.call("lock_door", device_id=lock(p, jammed=True, locked=False).id)),
        ("ALARM_ARMED", unlocks_armed),
        ("DOORS_UNLOCKED", lambda p: arms(p, unlocked=True)),
        ("WINDOW_OPEN", arms_open),
        ("WIND_LOCK", in_the_wind),
        ("SCENE_PARTIAL", half_a_scene),
        ("NAME_TAKEN", same_name),
    ],
}
