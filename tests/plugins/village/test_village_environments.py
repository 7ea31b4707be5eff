"""Bakery and purse: what they do, what they refuse, what time brings, and what their owner knows."""

from __future__ import annotations

from typing import Any

import pytest

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.environments.stateful import StatefulEnvironment, StatefulSession
from callwright_plugins.village import bakery, purse
from callwright_plugins.village.people import ANIMALS, COLOURS, passwords

BAKERY, PURSE = bakery.environment(), purse.environment()
#: Each tool once, with arguments that are right in every scenario but `first` of the purse.
RULES = {"village-bakery": ["NOT_BAKED", "OVER"], "village-purse": ["BAD_PASSWORD", "LOCKED", "TOO_LITTLE"]}


def ok(session: StatefulSession, tool: str, **arguments: Any) -> Any:
    outcome = session.call(tool, arguments)
    assert outcome.executed, outcome
    return outcome.value


def secret(session: StatefulSession) -> str:
    word: str = session.knowledge()["password"]
    return word


def test_there_are_at_most_eight_tools_with_short_listings() -> None:
    tools = {**BAKERY.tools, **PURSE.tools}
    assert len(BAKERY.tools) + len(PURSE.tools) == len(tools) == 7
    assert sum(len(spec.description) for spec in tools.values()) < 700


@pytest.mark.parametrize("environment", [BAKERY, PURSE], ids=lambda one: one.name)
@pytest.mark.parametrize("scenario", ["day", "first", "slow"])
def test_scenarios_are_the_same_for_a_seed_and_differ_by_seed(environment: StatefulEnvironment, scenario: str) -> None:
    assert environment.open(scenario, 3).digest() == environment.open(scenario, 3).digest()
    worlds = {str(environment.open(scenario, seed).world.dump()["tables"]) for seed in range(20)}
    assert len(worlds) > 15


@pytest.mark.parametrize("seed", range(10))
def test_an_order_costs_what_the_list_says_and_is_brought_once_it_is_baked(seed: int) -> None:
    session = BAKERY.open("day", seed)
    session.keep_time(ClockPolicy(call=0, user_turn=0))
    prices = {one["cake"]: one["price"] for one in ok(session, "list_cakes")["items"]}
    assert sorted(prices) == sorted(bakery.CAKES)
    placed = ok(session, "order_cake", cake="plum", number=4)
    assert placed["price"] == 4 * prices["plum"]
    name, wait = placed["order"], 60 * placed["minutes"]
    session.elapse(wait - 1)
    early = session.call("bring_order", {"order": name})
    assert (early.code, early.notices) == ("NOT_BAKED", ())
    session.elapse(1)
    looked = session.call("list_cakes", {})
    assert looked.notices == (f"{name} is baked.",)
    assert ok(session, "bring_order", order=name) == {"order": name, "state": "brought"}
    assert session.call("bring_order", {"order": name}).code == "OVER"
    assert session.call("cancel_order", {"order": name}).code == "OVER"


def test_a_cancelled_order_is_over_and_nobody_hears_of_it() -> None:
    session = BAKERY.open("day", 1)
    session.keep_time(ClockPolicy(call=0, user_turn=0))
    name = ok(session, "order_cake", cake="apple", number=2)["order"]
    assert ok(session, "cancel_order", order=name)["state"] == "cancelled"
    session.elapse(9000)
    outcome = session.call("bring_order", {"order": name})
    assert (outcome.code, outcome.notices) == ("OVER", ())


def test_what_is_not_there_is_not_found_and_nothing_is_written() -> None:
    session = BAKERY.open("day", 1)
    digest = session.digest()
    for tool, arguments in (("order_cake", {"cake": "brick", "number": 2}), ("bring_order", {"order": "O9"})):
        assert session.call(tool, arguments).code == "NOT_FOUND"
    assert session.digest() == digest


def test_the_ids_of_orders_cannot_be_known_before() -> None:
    names = {ok(BAKERY.open("first", seed), "order_cake", cake="plum", number=2)["order"] for seed in range(60)}
    assert len(names) > 25


def test_a_book_that_is_full_takes_no_order() -> None:
    session = BAKERY.open("first", 0)
    placed = {ok(session, "order_cake", cake="plum", number=2)["order"] for _ in bakery.IDS}
    assert len(placed) == len(bakery.IDS)
    assert session.call("order_cake", {"cake": "plum", "number": 2}).code == "FULL"


@pytest.mark.parametrize("tool", ["pay", "put_by"])
def test_the_purse_opens_with_the_password_alone(tool: str) -> None:
    session = PURSE.open("day", 5)
    before = ok(session, "get_balance")["balance"]
    digest = session.digest()
    refused = session.call(tool, {"amount": 10, "password": "wrong word"})
    assert (refused.kind, refused.code) == ("refused", "BAD_PASSWORD")
    assert session.digest() != digest
    assert session.call(tool, {"amount": 10, "password": secret(session)}).value == {"balance": before - 10}
    assert session.call(tool, {"amount": 500, "password": secret(session)}).code == "TOO_LITTLE"
    for code in ("BAD_PASSWORD",) * 3 + ("LOCKED",):
        assert session.call(tool, {"amount": 10, "password": "wrong word"}).code == code
    assert session.call(tool, {"amount": 10, "password": secret(session)}).code == "LOCKED"


def test_what_is_put_by_stays_the_owners() -> None:
    session = PURSE.open("day", 5)
    mine = session.world.need(purse.Purse, "me")
    ok(session, "put_by", amount=30, password=secret(session))
    now = session.world.need(purse.Purse, "me")
    assert (now.balance, now.saved) == (mine.balance - 30, mine.saved + 30)
    assert session.world.count(purse.Payment) == PURSE.open("day", 5).world.count(purse.Payment)


def test_a_guess_that_failed_is_no_goal_of_anybodys() -> None:
    session = PURSE.open("day", 5)
    session.call("pay", {"amount": 10, "password": "wrong word"})
    assert session.check_goal({}).equal
    ok(session, "pay", amount=10, password=secret(session))
    assert not session.check_goal({}).equal


def test_no_tool_tells_the_password() -> None:
    session = PURSE.open("day", 5)
    word = secret(session)
    said = [session.call(tool, {"amount": 3, "password": "wrong word"}) for tool in ("pay", "put_by", "get_balance")]
    assert not any(word in str(outcome) for outcome in said)
    assert word not in PURSE.briefing(session)
    assert session.knowledge("somebody else") == {}


@pytest.mark.parametrize("environment", [BAKERY, PURSE], ids=lambda one: one.name)
def test_rules_name_codes_that_come_of_breaking_them(environment: StatefulEnvironment) -> None:
    assert environment.policy is not None
    assert [rule.code for rule in environment.policy.rules] == RULES[environment.name]


def test_passwords_of_the_two_sides_share_every_word_and_no_pair() -> None:
    train, evaluation = (set(passwords(for_evaluation=side)) for side in (False, True))
    assert not train & evaluation
    assert len(train | evaluation) == len(COLOURS) * len(ANIMALS)
    assert 0.15 < len(evaluation) / len(train | evaluation) < 0.35
    for side in (train, evaluation):
        assert {word for pair in side for word in pair.split()} == {*COLOURS, *ANIMALS}


def test_an_agent_is_never_offered_the_helpers() -> None:
    assert isinstance(PURSE.open("day", 5).call("_dump_state", {}), cw.Outcome)
    assert PURSE.open("day", 5).call("_dump_state", {}).kind == "unknown_tool"
