"""One account: what the person pays or gets back in any part is posted in the bank, in a fixed order, or declined."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.money.charges import Charge, Charges, movements
from callwright.environments.world import World
from callwright.errors import UnknownName
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.mcp_environments.banking.card import account_of_the_card
from callwright_plugins.mcp_environments.banking.rows import Account, Card, Transaction
from callwright_plugins.mcp_environments.marketplace.rows import Wallet
from callwright_plugins.mcp_environments.shopping.rows import Order
from callwright_plugins.mcp_environments.times import DAY

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
#: What each does with money in its script, in cents of the person.
MOVED = {
    "food_delivery": [-6967],
    "shopping": [-9018],
    "travel_booking": [-23600, -2500, -30400, 30400],
    "marketplace": [-600],
    "payments": [500, -500],
}
#: The tool that pays in the script, and what it comes to without money.
PAYS = {
    "food_delivery": ("place_order", "CARD_DECLINED"),
    "shopping": ("checkout", "CARD_DECLINED"),
    "travel_booking": ("book_hotel", "CARD_DECLINED"),
    "marketplace": ("buy_now", "INSUFFICIENT_FUNDS"),
}


def script(name: str) -> list[tuple[str, dict[str, Any]]]:
    from environment_speed import scripts

    calls, _ = scripts()[name]
    return calls


def opened(*names: str, seed: int = 0, **more: Any) -> Any:
    return cw.compose(*names, **more).open("typical", seed)


def public(session: Any, part: str, tool: str) -> str:
    for name, (number, original) in session.environment.routes.items():
        if (session.environment.parts[number].name, original) == (part, tool):
            return str(name)
    raise AssertionError(tool)


def account(session: Any) -> Account:
    world: World = session.part("banking").world
    found = account_of_the_card(world)
    assert found is not None
    return world.need(Account, found)


def posted(session: Any) -> list[tuple[str, int]]:
    world = session.part("banking").world
    held = world.find(Transaction, account_id=account(session).id)
    return [(one.counterparty, one.amount_cents) for one in held if one.counterparty in TOOLS]


def empty(session: Any, cents: int = 0) -> None:
    """Leave so much in the account."""
    world = session.part("banking").world
    held = account(session)
    world.update(held, balance_cents=cents + held.held_cents - held.overdraft_cents)


@pytest.mark.parametrize("name", MOVED)
def test_what_each_environment_charges_is_posted_and_what_comes_back_too(name: str) -> None:
    session, alone = opened(name, "banking", people="own"), cw.environment(name).open("typical", 0)
    before = account(session).balance_cents
    for tool, arguments in script(name):
        paid = len(posted(session))
        mine = session.call(public(session, name, tool), arguments)
        alone.wait_until(session.now)  # type: ignore[attr-defined]
        assert mine == alone.call(tool, arguments), "the part itself does as it does alone"
        assert session.environment.tools[public(session, name, tool)].read_only <= (len(posted(session)) == paid)
    assert posted(session) == [(name, cents) for cents in MOVED[name]]
    assert account(session).balance_cents - before == sum(MOVED[name])
    assert session.part(name).digest() == alone.digest()


def test_what_a_shop_gives_back_is_posted_when_it_arrives() -> None:
    session = opened("shopping", "banking", people="own")
    session.keep_time(ClockPolicy(call=0))
    for tool, arguments in script("shopping"):
        session.call(public(session, "shopping", tool), arguments)
    assert [cents for _, cents in posted(session)] == MOVED["shopping"]
    cancelled = next(one for one in session.part("shopping").world.rows(Order) if one.refunded_cents == 9018)
    session.elapse(cancelled.cancelled_at + 3 * DAY - session.now - 1)
    assert [cents for _, cents in posted(session)] == MOVED["shopping"]
    before = session.digest()
    session.elapse(1)
    assert [cents for _, cents in posted(session)] == [*MOVED["shopping"], 9018]
    assert session.digest() != before
    assert [text for text in session.call(public(session, "shopping", "view_cart"), {}).notices if "9018" in text]


@pytest.mark.parametrize("name", PAYS)
def test_without_money_in_the_account_nothing_is_bought(name: str) -> None:
    session = opened(name, "banking", people="own")
    empty(session, 100)
    refused = 0
    for tool, arguments in script(name):
        before = session.digest()
        outcome = session.call(public(session, name, tool), arguments)
        if tool == PAYS[name][0] and outcome.code == PAYS[name][1]:
            refused += 1
            assert outcome.kind == "execution_error"
            assert "100 can be spent" in outcome.message
            assert session.digest() == before, "nothing of the call has happened"
    assert refused
    assert posted(session) == []


def test_payments_are_income_and_never_declined() -> None:
    session = opened("payments", "banking", people="own")
    empty(session)
    for tool, arguments in script("payments"):
        session.call(public(session, "payments", tool), arguments)
    assert posted(session) == [("payments", 500), ("payments", -500)]


def test_a_frozen_card_pays_nothing_and_cash_needs_none() -> None:
    environment = cw.compose("food_delivery", "banking", people="own")
    for seed in range(9):
        session: Any = environment.open(f"food_delivery=typical,banking=typical@{seed}")
        world = session.part("banking").world
        cards = world.find(Card, account_id=account(session).id)
        if any(card.status == "active" and card.expires > "2026-03" for card in cards):
            break
    for card in cards:
        world.update(card, status="frozen")
    calls = [(tool, dict(arguments)) for tool, arguments in script("food_delivery")]
    outcomes = [session.call(public(session, "food_delivery", tool), arguments) for tool, arguments in calls[:11]]
    assert outcomes[-1].code == "CARD_DECLINED"
    assert session.call("place_order", {"basket_id": "B00001", "payment": "cash"}).executed
    assert posted(session) == []


def test_what_happens_by_itself_is_posted_though_nobody_can_decline_it() -> None:
    session = opened("marketplace", "banking", people="own")
    market = session.part("marketplace").world
    session.keep_time(ClockPolicy())
    bid = session.call("place_bid", {"listing_id": "L00069", "amount_cents": 1000})
    assert bid.executed
    wallet = market.need(Wallet, "U00001")
    empty(session)
    session.elapse(14 * 86_400)
    session.call("list_my_purchases", {})
    change = market.need(Wallet, "U00001").balance_cents - wallet.balance_cents
    assert sum(cents for _, cents in posted(session)) == change
    assert change


def test_the_order_is_fixed_and_forks_copies_and_digests_know_of_it() -> None:
    names = ("food_delivery", "banking", "shopping")
    sessions = [opened(*names), opened(*names)]
    for session in sessions:
        for part in ("shopping", "food_delivery"):
            for tool, arguments in script(part):
                session.call(public(session, part, tool), arguments)
    assert sessions[0].digest() == sessions[1].digest()
    others = [sessions[0].fork(), pickle.loads(pickle.dumps(sessions[0]))]
    order = {"order_id": "O00025"}
    tool = public(sessions[0], "food_delivery", "cancel_order")
    for session in (sessions[0], *others):
        assert session.call(tool, order).executed
    assert len({session.digest() for session in (sessions[0], *others)}) == 1
    assert posted(sessions[0]) == posted(others[0]) == posted(others[1])
    assert posted(sessions[0])[-1] == ("food_delivery", 6967)
    sessions[0].reset()
    assert sessions[0].digest() == opened(*names).digest()
    assert posted(sessions[0]) == []


def test_own_money_stays_in_the_parts_and_a_bank_is_one() -> None:
    session = opened("food_delivery", "banking", money="own")
    assert session.environment.bank_number is None
    assert "Money of" not in session.briefing()
    assert "declined [CARD_DECLINED]" in opened("food_delivery", "banking").briefing()
    assert opened("email", "banking").environment.bank_number is None
    with pytest.raises(UnknownName, match="bank among the parts"):
        cw.compose("food_delivery", "banking", money="food_delivery")
    named = cw.compose("food_delivery", "banking", money="banking")
    assert isinstance(named, ComposedEnvironment)
    assert named.bank_number == 1


@pytest.mark.parametrize("name", TOOLS)
def test_who_declares_charges_is_known(name: str) -> None:
    environment: Any = cw.environment(name)
    assert (environment.charges is not None) == (name in MOVED)
    assert (environment.bank is not None) == (name == "banking")
    if environment.charges is not None:
        for seed in (0, 1):
            for scenario in environment.scenarios:
                assert movements(environment.open(scenario, seed).world, environment.charges, {}) == []


@cw.row("debts", prefix="D")
class Debt:
    id: str
    cents: int


def owed(world: World, debt: Debt) -> int:
    return debt.cents


def told(world: World, debt: Debt) -> str:
    return f"Debt of {debt.cents}"


def test_movements_are_what_rows_have_become_since_the_scenario() -> None:
    shop = cw.StatefulEnvironment(
        "debts",
        rows=[Debt],
        tools=[],
        scenarios={"one": cw.Scenario(lambda rng, scale: [Debt("D1", 10), Debt("D2", 20)])},
    )
    world, charges = shop.open().world, Charges((Charge(Debt, owed, told),))
    world.update(world.need(Debt, "D2"), cents=25)
    world.drop(world.need(Debt, "D1"))
    world.put(Debt("D3", 7))
    found = movements(world, charges, {})
    assert [(one.item, one.cents, one.text) for one in found] == [
        ((0, "D1"), -10, "Debt of 10"),
        ((0, "D2"), 5, "Debt of 25"),
        ((0, "D3"), 7, "Debt of 7"),
    ]
    assert movements(world, charges, {one.item: one.cents for one in found}) == []
    world.update(world.need(Debt, "D2"), cents=20)
    assert [(one.item, one.cents) for one in movements(world, charges, {one.item: one.cents for one in found})] == [
        ((0, "D2"), -5)
    ]
