"""Time in the shipped environments: every kind of event is told once, when it happens, and by nothing else.

What time brings while tools are called agrees with what tools find when they look later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
import callwright_plugins.mcp_environments as plugin
from callwright.environments import ClockPolicy
from callwright.environments.living.events import SIGNED_IN
from callwright.environments.stateful import StatefulEnvironment, StatefulSession
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.mcp_environments.banking import rows as bank
from callwright_plugins.mcp_environments.banking import schedule
from callwright_plugins.mcp_environments.budget import recurring
from callwright_plugins.mcp_environments.budget import rows as spending
from callwright_plugins.mcp_environments.food_delivery import rows as food
from callwright_plugins.mcp_environments.food_delivery import service
from callwright_plugins.mcp_environments.iot_devices import house
from callwright_plugins.mcp_environments.iot_devices import rows as home
from callwright_plugins.mcp_environments.marketplace import auctions
from callwright_plugins.mcp_environments.marketplace import rows as market
from callwright_plugins.mcp_environments.payments import rows as pay
from callwright_plugins.mcp_environments.shopping import rows as goods
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.trading import rows as exchange
from callwright_plugins.mcp_environments.trading import session as trading_session
from callwright_plugins.mcp_environments.travel_booking import fares
from callwright_plugins.mcp_environments.travel_booking import rows as travel
from callwright_plugins.mcp_environments.vehicle import motion
from callwright_plugins.mcp_environments.vehicle import rows as car

HOUR, DAY = 3600, 86_400
#: Calls and the user take no time, so that only what a test lets pass does.
STILL: Final = ClockPolicy(call=0, user_turn=0)


@cache
def env(name: str) -> StatefulEnvironment:
    made: StatefulEnvironment = cw.environment(name)
    return made


def opened(name: str, seed: int = 0) -> StatefulSession:
    session = env(name).open("typical", seed)
    session.keep_time(STILL)
    return session


def look(session: StatefulSession) -> tuple[str, ...]:
    """What the next observation tells; of a call that fails, so that nothing else is read."""
    return session.call(next(iter(session.environment.tools)), {"no such argument": 0}).notices


# What happens ---------------------------------------------------------------------------------------------------------


def order_food(session: StatefulSession) -> None:
    world = session.world
    district = world.need(food.Address, "A00001").district_id
    for place in world.rows(food.Restaurant):
        if not service.is_open(place, world.now) or world.get(food.Zone, (place.id, district)) is None:
            continue
        for item in world.find(food.Item, restaurant_id=place.id):
            if service.is_served(world, item) and not world.find(food.OptionGroup, item_id=item.id):
                basket = executed(session, "start_basket", restaurant_id=place.id, address_id="A00001")["basket_id"]
                executed(session, "add_item", basket_id=basket, item_id=item.id, quantity=9)
                executed(session, "place_order", basket_id=basket, payment="cash")
                return
    raise AssertionError


def wait_in_the_book(session: StatefulSession) -> None:
    """Limit orders to buy, one tick above the best bid, of every share that others will sell."""
    account = next(iter(session.world.rows(exchange.Account))).id
    for symbol in dict.fromkeys(one.symbol for one in session.world.rows(exchange.Incoming) if one.side == "sell"):
        row = session.world.need(exchange.Symbol, symbol)
        book = session.call("get_order_book", {"symbol": symbol}).value
        if book and book["bids"]:
            session.call(
                "place_limit_order",
                {
                    "account_id": account,
                    "symbol": symbol,
                    "side": "buy",
                    "shares": 3,
                    "limit_price_cents": book["bids"][0]["price_cents"] + row.tick_cents,
                    "time_in_force": "day",
                },
            )
    assert session.world.find(exchange.Order, status="open")


def watch_a_price(session: StatefulSession) -> None:
    for incoming in list(session.world.rows(exchange.Incoming))[:40]:
        last = session.world.need(exchange.Symbol, incoming.symbol).last_cents
        session.call("set_price_alert", {"symbol": incoming.symbol, "direction": "above", "price_cents": last + 1})
    assert session.world.find(exchange.Alert, triggered_at=0)


def auction_for(session: StatefulSession, *, rivals: bool) -> str:
    world = session.world
    coming = {rival.listing_id: rival.most_cents for rival in world.rows(market.Rival) if rival.at > world.now}
    user = auctions.me(world)
    free = world.need(market.Wallet, user).free_cents
    for listing in world.find(market.Listing, status="open"):
        least = auctions.least_bid(world, listing)
        wanted = listing.id in coming and coming[listing.id] > 2 * least if rivals else listing.id not in coming
        bid = max(least, listing.reserve_cents)
        if listing.kind == "auction" and listing.seller_id != user and wanted and bid < free:
            outcome = session.call("place_bid", {"listing_id": listing.id, "amount_cents": bid})
            if outcome.executed:
                return listing.id
    raise AssertionError


def bid_among_rivals(session: StatefulSession) -> None:
    auction_for(session, rivals=True)


def bid_alone(session: StatefulSession) -> None:
    auction_for(session, rivals=False)


def offer(session: StatefulSession) -> None:
    executed(
        session, "create_listing", title="A lamp", category="toys", kind="fixed", buy_now_cents=10**8, duration_hours=1
    )


def buy(session: StatefulSession) -> None:
    user = auctions.me(session.world)
    free = session.world.need(market.Wallet, user).free_cents
    for listing in session.world.find(market.Listing, status="open"):
        affordable = listing.kind == "fixed" and listing.seller_id != user and listing.buy_now_cents < free
        if affordable and session.call("buy_now", {"listing_id": listing.id}).executed:
            return
    raise AssertionError


def drive(session: StatefulSession) -> None:
    near = min(session.world.rows(car.Destination), key=lambda one: one.way)
    for tool, arguments in (
        ("lock_doors", {}),
        ("set_parking_brake", {"engaged": True}),
        ("start_engine", {}),
        ("shift_gear", {"gear": "D"}),
        ("set_parking_brake", {"engaged": False}),
        ("set_headlights", {"mode": "low"}),
        ("start_navigation", {"destination_id": near.id}),
        ("set_cruise_speed", {"speed_kmh": 60}),
    ):
        executed(session, tool, **arguments)


def plug_in(session: StatefulSession) -> None:
    there = next(one for one in session.world.rows(car.Destination) if one.category == "charging")
    session.world.update(session.world.need(car.Vehicle, "car"), fuel_type="electric", at=there.id)
    executed(session, "refuel", litres=20, fuel_type="electric")


def identify(session: StatefulSession) -> tuple[str, str, str]:
    """A token, an account and a payee of a customer who has money and somebody to pay."""
    world = session.world
    for payee in world.rows(bank.Payee):
        secret = world.get(bank.Credential, payee.customer_id)
        if secret is None or secret.locked_until > world.now or not payee.matches or payee.verified_at > world.now:
            continue
        for account in world.find(bank.Account, customer_id=payee.customer_id):
            if account.status == "active" and account.available_cents > 1000 and account.currency == payee.currency:
                otp = {"otp": secret.otps[0]} if secret.otps else {}
                outcome = session.call("verify_identity", {"customer_id": payee.customer_id, "pin": secret.pin, **otp})
                if outcome.executed:
                    return outcome.value["auth_token"], account.id, payee.id
    raise AssertionError


def schedule_a_payment(session: StatefulSession) -> None:
    token, account, payee = identify(session)
    at = iso(session.world.now + 2 * HOUR)
    given = {"auth_token": token, "from_account_id": account, "payee_id": payee, "amount_cents": 100}
    executed(session, "schedule_payment", **given, pay_at=at)


def hold_a_seat(session: StatefulSession) -> None:
    world = session.world
    for fare in world.rows(travel.Fare):
        given = {"flight_id": fare.flight_id, "fare_class": fare.fare_class, "seats": 1}
        flight = world.need(travel.Flight, fare.flight_id)
        price = fares.quote(world, flight, fare)
        if session.call("hold_flight", {**given, "quoted_price_cents": price}).executed:
            return
    raise AssertionError


def identify_who_has_a_hold(session: StatefulSession) -> None:
    for account in session.world.rows(bank.Account):
        secret = session.world.get(bank.Credential, account.customer_id)
        if not account.held_cents or secret is None:
            continue
        otp = {"otp": secret.otps[0]} if secret.otps else {}
        if session.call("verify_identity", {"customer_id": account.customer_id, "pin": secret.pin, **otp}).executed:
            return
    raise AssertionError


def send_back(session: StatefulSession) -> None:
    for item in session.world.rows(goods.OrderItem):
        given = {"order_id": item.order_id, "order_item_id": item.id, "quantity": 1, "reason": "defective"}
        if session.call("request_return", given).executed:
            return
    raise AssertionError


def cancel(session: StatefulSession) -> None:
    assert any(session.call("cancel_order", {"order_id": one.id}).executed for one in session.world.rows(goods.Order))


def refund(session: StatefulSession) -> None:
    for payment in session.world.rows(pay.Payment):
        if session.call("refund_payment", {"payment_id": payment.id, "amount_cents": 1}).executed:
            return
    raise AssertionError


def message_a_sleeper(session: StatefulSession) -> None:
    """An event for a webhook whose host comes up after the first attempt."""
    customer = next(one.id for one in session.world.rows(pay.Customer) if not one.archived)
    up_from = session.world.now + 90
    session.world.put(pay.Receiver("slow.example.com", up_from))
    executed(session, "register_webhook", url="https://slow.example.com/hook", events=["invoice.created"])
    line = {"description": "tea", "quantity": 1, "unit_price_cents": 100, "tax_bps": 0}
    executed(session, "create_invoice", customer_id=customer, lines=[line])


def message_nobody(session: StatefulSession) -> None:
    """The same, and the host never comes up."""
    message_a_sleeper(session)
    session.world.put(pay.Receiver("slow.example.com", session.world.now + 900 * DAY))


def spend_every_week(session: StatefulSession) -> None:
    day = iso(session.world.now + 2 * DAY)[:10]
    for category in session.world.rows(spending.Category):
        given = {"category_id": category.id, "amount_cents": 1, "first_day": day, "every": "week", "times": 2}
        if not category.hard_cap and session.call("add_recurring_expense", {**given, "description": "Bus"}).executed:
            return
    raise AssertionError


def spend_too_much(session: StatefulSession) -> None:
    day = iso(session.world.now + 2 * DAY)[:10]
    category = next(one.id for one in session.world.rows(spending.Category) if one.hard_cap and not one.archived)
    executed(
        session,
        "add_recurring_expense",
        category_id=category,
        amount_cents=10**8,
        first_day=day,
        description="Yacht",
    )


def nothing_but_time(session: StatefulSession) -> None:
    """What happens has been prepared by the scenario."""


#: Kind of event, environment, what is done, how long it may take, and the words that tell it.
STORIES: Final[list[tuple[str, str, Callable[[StatefulSession], Any], int, str]]] = [
    ("order_confirmed", "food_delivery", order_food, DAY, r"has confirmed your order O\d+"),
    ("order_preparing", "food_delivery", order_food, DAY, r"is preparing your order O\d+"),
    ("order_picked_up", "food_delivery", order_food, DAY, r"has picked up your order O\d+"),
    ("order_delivered", "food_delivery", order_food, DAY, r"has delivered your order O\d+"),
    ("market", "trading", wait_in_the_book, 7 * HOUR, r"Your order O\d+ to buy \w+ is filled"),
    ("market", "trading", wait_in_the_book, 3 * DAY, r"Your order O\d+ to \w+ \w+ has expired"),
    ("market", "trading", watch_a_price, 9 * DAY, r"Alert L\d+: \w+ traded at \d+ cents or above"),
    ("auctions", "marketplace", bid_among_rivals, 9 * DAY, r"You have been outbid"),
    ("auctions", "marketplace", bid_alone, 15 * DAY, r"You have won"),
    ("auctions", "marketplace", offer, DAY, r"The time of your listing 'A lamp'"),
    ("auctions", "marketplace", buy, 8 * DAY, r"The escrow of sale S\d+ is released: the seller got"),
    ("arrived", "vehicle", drive, DAY, r"You have arrived at"),
    ("stalled", "vehicle", drive, 20 * DAY, r"The tank is empty"),
    ("charged", "vehicle", plug_in, DAY, r"The car is charged and unplugged\. .* kWh are in the battery"),
    (
        "scheduled_payment",
        "banking",
        schedule_a_payment,
        DAY,
        r"The scheduled payment S\d+ of 100 cents to .* was made",
    ),
    ("order_packed", "shopping", nothing_but_time, 30 * DAY, r"order O\d+ is packed"),
    ("order_shipped", "shopping", nothing_but_time, 30 * DAY, r"order O\d+ is shipped with .*, expected at"),
    ("order_delivered", "shopping", nothing_but_time, 30 * DAY, r"order O\d+ is delivered"),
    ("hold_lapsed", "travel_booking", hold_a_seat, DAY, r"Your hold HO\d+ of 1 seat on .* has lapsed"),
    ("refund_settled", "payments", refund, 2 * HOUR, r"The refund R\d+ of 1 cents for P\d+ is with the customer"),
    (
        "authorisation_expired",
        "payments",
        nothing_but_time,
        3 * DAY,
        r"The authorisation P\d+ of invoice I\d+ has",
    ),
    ("webhook_attempt", "payments", message_a_sleeper, HOUR, r"did not arrive at attempt 2"),
    ("webhook_attempt", "payments", message_a_sleeper, HOUR, r"invoice\.created .* has arrived, at attempt 3"),
    ("webhook_attempt", "payments", message_nobody, DAY, r"has failed: 6 attempts were made"),
    ("recurring_expense", "budget", spend_every_week, 4 * DAY, r"'Bus' \(Q\d+\) of 1 cents .* was entered"),
    ("recurring_expense", "budget", spend_every_week, 20 * DAY, r"'Bus' .* is over"),
    ("recurring_expense", "budget", spend_too_much, 4 * DAY, r"'Yacht' .* was not entered"),
    ("automation", "iot_devices", nothing_but_time, 2 * DAY, r"The automation 'Night' \(AU\d+\) has run"),
    ("token_expired", "banking", identify, DAY, r"The token of customer C\d+ has expired"),
    ("hold_lapsed", "banking", identify_who_has_a_hold, 7 * DAY, r"A hold of \d+ cents on account A\d+ has lapsed"),
    ("return_refunded", "shopping", send_back, 4 * DAY, r"The refund of \d+ cents for return \w+ has arrived on"),
    ("cancellation_refunded", "shopping", cancel, 4 * DAY, r"The refund of \d+ cents for cancelled order O\d+ has"),
]


@pytest.mark.parametrize(
    ("kind", "name", "prepare", "horizon", "words"), STORIES, ids=[f"{one[1]}-{one[4][:28]}" for one in STORIES]
)
def test_an_event_is_told_once_by_the_observation_after_it_and_by_none_before(
    kind: str, name: str, prepare: Callable[[StatefulSession], Any], horizon: int, words: str
) -> None:
    session = opened(name)
    prepare(session)
    look(session)

    def told_within(seconds: int) -> list[str]:
        later = session.fork()
        later.elapse(seconds)
        return [text for text in look(later) if re.search(words, text)]

    assert told_within(horizon), "it does not happen"
    low, high, before = 0, horizon, session  # the session at `low`, so that no time passes twice
    while high - low > 1:
        middle, later = (low + high) // 2, before.fork()
        later.elapse(middle - low)
        if any(re.search(words, text) for text in look(later)):
            high = middle
        else:
            low, before = middle, later
    assert told_within(high - 1) == []
    assert len(told_within(high)) >= 1

    session.elapse(high - 1)
    look(session)
    session.elapse(1)
    notices = look(session)
    told = [text for text in notices if re.search(words, text)]
    assert told
    assert len(told) == len(set(told))
    assert look(session) == (), "it is told again"


@pytest.mark.parametrize(
    ("kind", "name", "prepare", "horizon", "words"), STORIES, ids=[f"{one[1]}-{one[4][:28]}" for one in STORIES]
)
def test_without_a_clock_policy_nothing_is_told(
    kind: str, name: str, prepare: Callable[[StatefulSession], Any], horizon: int, words: str
) -> None:
    session = env(name).open("typical")
    prepare(session)
    session.helper("_advance_clock", {"seconds": horizon})
    session.user_turn()
    assert look(session) == ()


def test_every_kind_of_every_environment_has_a_story() -> None:
    declared = {(kind.name, name) for name in TOOLS for kind in env(name).events}
    assert declared == {(kind, name) for kind, name, *_ in STORIES}
    for name in TOOLS:
        for kind in env(name).events:
            assert kind.summary.endswith(".")


def test_no_tool_and_no_event_moves_the_clock() -> None:
    folder = Path(plugin.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if ".advance(" in path.read_text(encoding="utf-8")] == []


def test_the_page_lists_every_kind() -> None:
    page = Path(__file__).parents[3] / "docs" / "environments.md"
    section = page.read_text(encoding="utf-8").split("\n## Time\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    assert [one for one in listed if one[0] in TOOLS] == [
        (name, kind.name, kind.summary.removesuffix(".")) for name in TOOLS for kind in env(name).events
    ]


def test_customers_who_have_not_identified_themselves_are_not_told() -> None:
    session = opened("banking")
    schedule_a_payment(session)
    (kind,) = (kind for kind in env("banking").events if kind.name == "scheduled_payment")
    payments = session.world.find(bank.ScheduledPayment, status="pending")
    mine = [
        one.customer_id
        for one in payments
        for notice in kind.tells(session.world, "", [one.id])
        if notice.to == SIGNED_IN
    ]
    assert len(set(mine)) == 1
    assert len({one.customer_id for one in payments}) > 1
    session.elapse(90 * DAY)
    told = re.findall(r"scheduled payment (S\d+) of", " ".join(look(session)))
    assert {session.world.need(bank.ScheduledPayment, one).customer_id for one in told} == set(mine)


# Both ways ------------------------------------------------------------------------------------------------------------

#: What a tool does first that finds time to have passed.
SETTLES: Final[dict[str, Callable[[cw.World], Any]]] = {
    "trading": trading_session.settle,
    "marketplace": auctions.settle,
    "banking": schedule.settle,
    "vehicle": motion.settled,
    "budget": recurring.settle,
    "iot_devices": house.settle,
}
PREPARED: Final = {
    "trading": wait_in_the_book,
    "marketplace": bid_among_rivals,
    "banking": schedule_a_payment,
    "vehicle": drive,
    "budget": spend_every_week,
    "iot_devices": nothing_but_time,
}


@pytest.mark.parametrize("name", SETTLES)
@settings(max_examples=6, deadline=None)
@given(stretches=st.lists(st.integers(0, 2 * DAY), min_size=1, max_size=4), seed=st.integers(0, 3))
def test_what_happens_by_and_by_is_what_a_tool_finds_that_looks_later(
    name: str, stretches: list[int], seed: int
) -> None:
    living, lazy = opened(name, seed), env(name).open("typical", seed)
    clock = living.clock
    living.keep_time(None)  # what is prepared takes its time where that moves
    for session in (living, lazy):
        PREPARED[name](session)
    living.keep_time(clock)
    for seconds in stretches:
        living.elapse(seconds)
    lazy.helper("_advance_clock", {"seconds": sum(stretches)})
    if name == "banking":  # holds lapse where time moves, and nowhere else
        lazy.world.begin(False)
        while (hold := schedule.next_lapse(lazy.world)) and hold[0] <= lazy.world.now:
            schedule.lapse(lazy.world)
        lazy.world.end()
    for session in (living, lazy):
        session.world.begin(False)
        SETTLES[name](session.world)
        session.world.end()
    if name == "iot_devices":  # which notes when its automations were last run, however that came
        until = lazy.world.need(home.Profile, "me").settled_at
        living.world.update(living.world.need(home.Profile, "me"), settled_at=until)
    assert living.diff(lazy) == {}
    assert living.digest() == lazy.digest()


@pytest.mark.parametrize("name", SETTLES)
def test_forks_and_resets_go_the_same_way(name: str) -> None:
    session = env(name).open("typical", 1)
    session.keep_time(ClockPolicy(call=600, call_spread=300, seed=4))
    PREPARED[name](session)
    fork = session.fork()
    seen = []
    for one in (session, fork):
        seen.append([(look(one), one.digest()) for _ in range(12)])
    assert seen[0] == seen[1]
    session.reset()
    PREPARED[name](session)
    assert [(look(session), session.digest()) for _ in range(12)] == seen[0]
