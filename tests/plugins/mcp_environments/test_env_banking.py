"""Banking: its surface, every failure, golden edges, and money that is never made or lost."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest
from environment_sessions import fails, need, ok, partial, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.banking import environment
from callwright_plugins.mcp_environments.banking.iban import is_iban, make_iban, own_iban
from callwright_plugins.mcp_environments.banking.rows import (
    Account,
    Card,
    Credential,
    Customer,
    FxRate,
    Payee,
    ScheduledPayment,
    Transaction,
)
from callwright_plugins.mcp_environments.banking.schedule import next_due

ENV = environment()
DAY = 86_400
READ = {"find_customer", "list_accounts", "get_account", "list_transactions", "get_exchange_rate", "list_payees"}
DISCOVERY = {"find_customer", "list_accounts", "list_transactions", "list_payees"}
DESTRUCTIVE = {"remove_payee", "cancel_scheduled_payment"}
WRITE = {
    "verify_identity",
    "open_account",
    "add_payee",
    "deposit_cash",
    "withdraw_cash",
    "transfer_funds",
    "pay_payee",
    "schedule_payment",
    "set_card_status",
} | DESTRUCTIVE
EXTERNAL = make_iban("FR", "20041010050500013M02606")


def refused(session: StatefulSession, code: str, tool: str, **arguments: Any) -> str:
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code, outcome.value) == ("refused", code, None), outcome
    assert session.digest() != before, "the attempt was not counted"
    return outcome.message


def secret(session: StatefulSession, customer_id: str) -> Credential:
    found = session.world.get(Credential, customer_id)
    assert found is not None
    return found


def wrong_pin(session: StatefulSession, customer_id: str) -> str:
    return "0000" if secret(session, customer_id).pin != "0000" else "1111"


def token(session: StatefulSession, customer_id: str) -> str:
    held = secret(session, customer_id)
    otp = {"otp": held.otps[0]} if need(session, Customer, customer_id).two_factor else {}
    return str(ok(session, "verify_identity", customer_id=customer_id, pin=held.pin, **otp)["auth_token"])


def make(session: StatefulSession, customer_id: str, number: int, balance: int, **changes: Any) -> str:
    """Put an account of our own making beside those of the scenario."""
    row = Account(
        id=f"A9{number:04d}",
        customer_id=customer_id,
        kind=changes.pop("kind", "checking"),
        currency=changes.pop("currency", "EUR"),
        nickname=f"made {number}",
        iban=own_iban(9_000_000 + number),
        balance_cents=balance,
        held_cents=changes.pop("held", 0),
        overdraft_cents=changes.pop("overdraft", 0),
        daily_limit_cents=changes.pop("limit", 100_000),
        status=changes.pop("status", "active"),
        opened_at=0,
    )
    assert not changes
    session.world.put(row)
    return row.id


@pytest.fixture
def session() -> StatefulSession:
    """Customers C00001 (one factor) and C00002 (two factors), with accounts of known content."""
    opened = ENV.open()
    for customer_id, two_factor in (("C00001", False), ("C00002", True)):
        opened.world.update(need(opened, Customer, customer_id), two_factor=two_factor)
    make(opened, "C00001", 1, 50_000, held=5_000, overdraft=1_000)
    make(opened, "C00001", 2, 20_000, kind="savings")
    make(opened, "C00001", 3, 10_000, currency="USD")
    make(opened, "C00001", 4, 10_000, status="frozen")
    make(opened, "C00001", 5, 10_000, status="closed")
    make(opened, "C00002", 6, 500_000, limit=300_000)
    return opened


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 17
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_secrets_are_marked() -> None:
    assert {name for name, spec in ENV.tools.items() if spec.sensitive} == WRITE
    for name in WRITE:
        for parameter, schema in ENV.tools[name].parameters["properties"].items():
            assert bool(schema.get("x-sensitive")) == (parameter in ("pin", "otp", "auth_token")), (name, parameter)


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=("typical", "sparse", "adversarial"))


# Identity -------------------------------------------------------------------------------------------------------------


def test_every_change_needs_a_token(session: StatefulSession) -> None:
    calls: dict[str, dict[str, Any]] = {
        "open_account": {"kind": "checking", "currency": "EUR"},
        "set_card_status": {"card_id": "K00001", "status": "frozen"},
        "deposit_cash": {"account_id": "A90001", "amount_cents": 100, "currency": "EUR"},
        "withdraw_cash": {"account_id": "A90001", "amount_cents": 500},
        "transfer_funds": {"from_account_id": "A90001", "to_account_id": "A90002", "amount_cents": 1},
        "pay_payee": {"from_account_id": "A90001", "payee_id": "P00001", "amount_cents": 1},
        "add_payee": {"name": "x", "iban": EXTERNAL},
        "remove_payee": {"payee_id": "P00001"},
        "schedule_payment": {
            "from_account_id": "A90001",
            "payee_id": "P00001",
            "amount_cents": 1,
            "pay_at": "2026-04-01",
        },
        "cancel_scheduled_payment": {"scheduled_payment_id": "S00001"},
    }
    assert set(calls) == WRITE - {"verify_identity"}
    good = token(session, "C00001")
    for name, arguments in calls.items():
        fails(session, "AUTH_REQUIRED", name, auth_token="tok_0", **arguments)
    wait(session, 15 * 60)
    for name, arguments in calls.items():
        fails(session, "TOKEN_EXPIRED", name, auth_token=good, **arguments)


def test_a_token_is_good_until_the_last_second(session: StatefulSession) -> None:
    good = token(session, "C00001")
    wait(session, 15 * 60 - 1)
    ok(session, "deposit_cash", auth_token=good, account_id="A90001", amount_cents=1, currency="EUR")


def test_three_wrong_pins_lock_for_a_day(session: StatefulSession) -> None:
    good, pin, wrong = token(session, "C00001"), secret(session, "C00001").pin, wrong_pin(session, "C00001")
    for left in (2, 1, 0):
        said = refused(session, "BAD_PIN", "verify_identity", customer_id="C00001", pin=wrong)
        assert f"{left} of 3 attempts left" in said
        assert ("locked for a day" in said) == (left == 0)
    fails(session, "LOCKED", "verify_identity", customer_id="C00001", pin=pin)
    fails(session, "LOCKED", "withdraw_cash", auth_token=good, account_id="A90001", amount_cents=500)
    wait(session, DAY)
    refused(session, "BAD_PIN", "verify_identity", customer_id="C00001", pin=wrong)
    ok(session, "verify_identity", customer_id="C00001", pin=pin)


def test_the_right_pin_forgets_the_wrong_ones(session: StatefulSession) -> None:
    pin, wrong = secret(session, "C00001").pin, wrong_pin(session, "C00001")
    for _ in range(3):
        for left in (2, 1):
            said = refused(session, "BAD_PIN", "verify_identity", customer_id="C00001", pin=wrong)
            assert f"{left} of 3 attempts left" in said
        ok(session, "verify_identity", customer_id="C00001", pin=pin)


def test_two_factors_need_a_password_that_works_once(session: StatefulSession) -> None:
    held = secret(session, "C00002")
    fails(session, "OTP_REQUIRED", "verify_identity", customer_id="C00002", pin=held.pin)
    ok(session, "verify_identity", customer_id="C00002", pin=held.pin, otp=held.otps[1])
    refused(session, "BAD_OTP", "verify_identity", customer_id="C00002", pin=held.pin, otp=held.otps[1])
    assert secret(session, "C00002").otps == (held.otps[0], *held.otps[2:])
    ok(session, "verify_identity", customer_id="C00002", pin=held.pin, otp=held.otps[0])


# Failures -------------------------------------------------------------------------------------------------------------

FAILURES: list[tuple[str, str, dict[str, Any]]] = [
    ("INSUFFICIENT_FUNDS", "withdraw_cash", {"account_id": "A90001", "amount_cents": 46_500}),
    ("DAILY_LIMIT", "withdraw_cash", {"account_id": "A90001", "amount_cents": 100_500}),
    ("INVALID_AMOUNT", "withdraw_cash", {"account_id": "A90001", "amount_cents": 501}),
    ("ACCOUNT_FROZEN", "withdraw_cash", {"account_id": "A90004", "amount_cents": 500}),
    ("ACCOUNT_FROZEN", "deposit_cash", {"account_id": "A90004", "amount_cents": 5, "currency": "EUR"}),
    ("INVALID_STATE", "deposit_cash", {"account_id": "A90005", "amount_cents": 5, "currency": "EUR"}),
    ("CURRENCY_MISMATCH", "deposit_cash", {"account_id": "A90003", "amount_cents": 5, "currency": "EUR"}),
    ("PERMISSION_DENIED", "deposit_cash", {"account_id": "A90006", "amount_cents": 5, "currency": "EUR"}),
    ("NOT_FOUND", "deposit_cash", {"account_id": "A", "amount_cents": 5, "currency": "EUR"}),
    (
        "CURRENCY_MISMATCH",
        "transfer_funds",
        {"from_account_id": "A90001", "to_account_id": "A90003", "amount_cents": 5},
    ),
    (
        "INVALID_AMOUNT",
        "transfer_funds",
        {"from_account_id": "A90003", "to_account_id": "A90001", "amount_cents": 1, "convert": True},
    ),
    ("ACCOUNT_FROZEN", "transfer_funds", {"from_account_id": "A90001", "to_account_id": "A90004", "amount_cents": 5}),
    ("INVALID_STATE", "transfer_funds", {"from_account_id": "A90002", "to_account_id": "A90006", "amount_cents": 5}),
    ("SAME_ACCOUNT", "transfer_funds", {"from_account_id": "A90001", "to_account_id": "A90001", "amount_cents": 5}),
    (
        "INSUFFICIENT_FUNDS",
        "transfer_funds",
        {"from_account_id": "A90002", "to_account_id": "A90001", "amount_cents": 20_001},
    ),
    (
        "DAILY_LIMIT",
        "transfer_funds",
        {"from_account_id": "A90001", "to_account_id": "A90006", "amount_cents": 100_001},
    ),
    ("INVALID_IBAN", "add_payee", {"name": "x", "iban": EXTERNAL[:-1] + "7"}),
    ("NOT_FOUND", "add_payee", {"name": "x", "iban": own_iban(123_456_789)}),
    ("CURRENCY_MISMATCH", "add_payee", {"name": "x", "iban": own_iban(9_000_003)}),
    ("PERMISSION_DENIED", "remove_payee", {"payee_id": "@other"}),
    ("NOT_FOUND", "remove_payee", {"payee_id": "P"}),
    ("PERMISSION_DENIED", "set_card_status", {"card_id": "@other", "status": "frozen"}),
    ("NOT_FOUND", "cancel_scheduled_payment", {"scheduled_payment_id": "S"}),
    ("PERMISSION_DENIED", "cancel_scheduled_payment", {"scheduled_payment_id": "@other"}),
]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"), FAILURES, ids=[f"{case[1]}-{case[0]}-{nth}" for nth, case in enumerate(FAILURES)]
)
def test_failures_leave_the_state_untouched(
    session: StatefulSession, code: str, tool: str, arguments: dict[str, Any]
) -> None:
    others: dict[str, Any] = {"payee_id": Payee, "card_id": Card, "scheduled_payment_id": ScheduledPayment}
    arguments = {
        name: next(row.id for row in session.world.rows(others[name]) if row.customer_id != "C00001")
        if value == "@other"
        else value
        for name, value in arguments.items()
    }
    fails(session, code, tool, auth_token=token(session, "C00001"), **arguments)


def test_lookups_of_what_is_not_there_fail(session: StatefulSession) -> None:
    fails(session, "NOT_FOUND", "get_account", account_id="A")
    fails(session, "NOT_FOUND", "list_accounts", customer_id="C")
    fails(session, "NOT_FOUND", "list_payees", customer_id="C")
    fails(session, "NOT_FOUND", "list_transactions", account_id="A")
    fails(session, "NOT_FOUND", "verify_identity", customer_id="C", pin="0000")
    fails(session, "BAD_TIME", "list_transactions", since="yesterday")
    fails(session, "BAD_TIME", "list_transactions", since="2026-03-02", until="2026-03-01")
    fails(session, "BAD_CURSOR", "find_customer", cursor="x")
    assert session.call("find_customer", {"query": "nobody at all"}).kind == "empty"
    fails(ENV.open("sparse"), "NOT_FOUND", "get_exchange_rate", base="GBP", quote="EUR")


def test_accounts_have_limits_of_their_own(session: StatefulSession) -> None:
    good = token(session, "C00001")
    fails(
        session,
        "ALREADY_EXISTS",
        "open_account",
        auth_token=good,
        kind="savings",
        currency="EUR",
        nickname="made 1",
    )
    while sum(row.status != "closed" for row in session.world.find(Account, customer_id="C00001")) < 8:
        ok(session, "open_account", auth_token=good, kind="savings", currency="CHF")
    fails(session, "ACCOUNT_LIMIT", "open_account", auth_token=good, kind="savings", currency="CHF")


def test_what_is_available_is_spent_to_the_last_cent(session: StatefulSession) -> None:
    good = token(session, "C00001")
    ok(session, "withdraw_cash", auth_token=good, account_id="A90001", amount_cents=46_000)
    shown = ok(session, "get_account", account_id="A90001")
    assert (shown["balance_cents"], shown["available_cents"]) == (4_000, 0)
    assert shown["daily_limit_left_cents"] == 54_000
    fails(session, "INSUFFICIENT_FUNDS", "withdraw_cash", auth_token=good, account_id="A90001", amount_cents=500)


def test_the_daily_limit_is_new_at_midnight_and_own_transfers_are_free(session: StatefulSession) -> None:
    good = token(session, "C00002")
    other = ok(session, "open_account", auth_token=good, kind="savings", currency="EUR")["account_id"]
    ok(session, "transfer_funds", auth_token=good, from_account_id="A90006", to_account_id=other, amount_cents=100_000)
    ok(session, "withdraw_cash", auth_token=good, account_id="A90006", amount_cents=300_000)
    fails(session, "DAILY_LIMIT", "withdraw_cash", auth_token=good, account_id="A90006", amount_cents=500)
    wait(session, 15 * 3600 - 1)
    good = token(session, "C00002")
    fails(session, "DAILY_LIMIT", "withdraw_cash", auth_token=good, account_id="A90006", amount_cents=500)
    wait(session, 1)
    ok(session, "withdraw_cash", auth_token=good, account_id="A90006", amount_cents=500)


def test_cards_that_are_lost_stay_lost(session: StatefulSession) -> None:
    card = next(row for row in session.world.rows(Card) if row.status == "active")
    session.world.update(need(session, Customer, card.customer_id), two_factor=False)
    session.world.update(card, expires="2026-03")
    good = token(session, card.customer_id)
    call = {"auth_token": good, "card_id": card.id}
    ok(session, "set_card_status", **call, status="frozen")
    before = session.digest()
    ok(session, "set_card_status", **call, status="frozen")
    assert session.digest() == before
    ok(session, "set_card_status", **call, status="active")
    ok(session, "set_card_status", **call, status="frozen")
    wait(session, 30 * DAY)
    call["auth_token"] = token(session, card.customer_id)
    fails(session, "INVALID_STATE", "set_card_status", **call, status="active")
    ok(session, "set_card_status", **call, status="stolen")
    fails(session, "INVALID_STATE", "set_card_status", **call, status="active")
    fails(session, "NOT_FOUND", "set_card_status", auth_token=call["auth_token"], card_id="K", status="lost")


# Payees and golden edges ----------------------------------------------------------------------------------------------


def test_list_accounts_feeds_transfer_funds(session: StatefulSession) -> None:
    good = token(session, "C00001")
    listed = [one["account_id"] for one in ok(session, "list_accounts", customer_id="C00001", limit=100)["items"]]
    assert {"A90001", "A90002"} <= set(listed)
    sent = ok(
        session, "transfer_funds", auth_token=good, from_account_id="A90001", to_account_id="A90002", amount_cents=700
    )
    assert sent["transaction"]["amount_cents"] == -700
    newest = ok(session, "list_transactions", account_id="A90002")["items"][0]
    assert (newest["amount_cents"], newest["balance_after_cents"]) == (700, 20_700)


def test_add_payee_feeds_pay_payee(session: StatefulSession) -> None:
    good = token(session, "C00001")
    call = {"auth_token": good, "from_account_id": "A90001", "amount_cents": 1_000}
    fails(session, "NOT_FOUND", "pay_payee", **call, payee_id="P99999")
    owner = need(session, Customer, "C00002").name
    added = ok(session, "add_payee", auth_token=good, name=f" {owner.upper()} ", iban=own_iban(9_000_006))
    assert added["status"] == "verified"
    ok(session, "pay_payee", **call, payee_id=added["payee_id"])
    assert need(session, Account, "A90006").balance_cents == 501_000
    fails(session, "ALREADY_EXISTS", "add_payee", auth_token=good, name=owner, iban=own_iban(9_000_006))
    fails(session, "INVALID_STATE", "pay_payee", **{**call, "from_account_id": "A90002"}, payee_id=added["payee_id"])


def test_payees_are_verified_by_name_password_or_time(session: StatefulSession) -> None:
    good = token(session, "C00001")
    call = {"auth_token": good, "from_account_id": "A90001", "amount_cents": 1_000}
    wrong = partial(session, "NAME_MISMATCH", "add_payee", auth_token=good, name="Not They", iban=own_iban(9_000_006))
    assert wrong["status"] == "mismatch"
    assert "name" in fails(session, "PAYEE_UNVERIFIED", "pay_payee", **call, payee_id=wrong["payee_id"])
    slow = ok(session, "add_payee", auth_token=good, name="Cobalt", iban=f"{EXTERNAL[:4].lower()} {EXTERNAL[4:]}")
    assert slow["status"] == "pending"
    fails(session, "PAYEE_UNVERIFIED", "pay_payee", **call, payee_id=slow["payee_id"])
    otp = secret(session, "C00001").otps[0]
    quick = ok(session, "add_payee", auth_token=good, name="Birch", iban=make_iban("DE", "5" * 18), otp=otp)
    assert quick["status"] == "verified"
    ok(session, "pay_payee", **call, payee_id=quick["payee_id"])
    again = {"auth_token": good, "name": "B", "iban": make_iban("DE", "6" * 18)}
    assert "verified in a day" in refused(session, "BAD_OTP", "add_payee", **again, otp=otp)
    assert secret(session, "C00001").failed == 1
    assert ok(session, "add_payee", **again)["status"] == "pending", "the refused call added it"
    wait(session, DAY)
    call["auth_token"] = token(session, "C00001")
    ok(session, "pay_payee", **call, payee_id=slow["payee_id"])
    fails(session, "PAYEE_UNVERIFIED", "pay_payee", **call, payee_id=wrong["payee_id"])


def test_schedule_payment_feeds_cancel_scheduled_payment(session: StatefulSession) -> None:
    good = token(session, "C00001")
    payee = _payee(session, "C00001")
    call = {"auth_token": good, "from_account_id": "A90001", "payee_id": payee, "amount_cents": 1_000}
    made = ok(session, "schedule_payment", **call, pay_at="2026-03-03T10:00:00Z")
    assert made["next_at"] == "2026-03-03T10:00:00Z"
    fails(session, "PAYEE_IN_USE", "remove_payee", auth_token=good, payee_id=payee)
    kept = session.fork()
    stop = {"auth_token": good, "scheduled_payment_id": made["scheduled_payment_id"]}
    assert ok(session, "cancel_scheduled_payment", **stop)["status"] == "cancelled"
    fails(session, "INVALID_STATE", "cancel_scheduled_payment", **stop)
    ok(session, "remove_payee", auth_token=good, payee_id=payee)
    for one, balance in ((session, 50_000), (kept, 49_000)):
        wait(one, 2 * DAY)
        assert ok(one, "get_account", account_id="A90001")["balance_cents"] == balance


def test_what_cannot_be_scheduled(session: StatefulSession) -> None:
    good = token(session, "C00001")
    call = {"auth_token": good, "from_account_id": "A90001", "payee_id": _payee(session, "C00001"), "amount_cents": 5}
    fails(session, "INVALID_TIME", "schedule_payment", **call, pay_at="2026-03-02T09:00:00Z")
    fails(session, "INVALID_TIME", "schedule_payment", **call, pay_at="2036-03-02")
    fails(session, "BAD_TIME", "schedule_payment", **call, pay_at="soon")
    fails(session, "INVALID_STATE", "schedule_payment", **call, pay_at="2026-03-05", times=2)
    fails(session, "INVALID_STATE", "schedule_payment", **call, pay_at="2026-03-05", repeat="weekly")
    fails(session, "INVALID_STATE", "schedule_payment", **{**call, "from_account_id": "A90002"}, pay_at="2026-03-05")
    fails(session, "ACCOUNT_FROZEN", "schedule_payment", **{**call, "from_account_id": "A90004"}, pay_at="2026-03-05")
    fails(
        session, "CURRENCY_MISMATCH", "schedule_payment", **{**call, "from_account_id": "A90003"}, pay_at="2026-03-05"
    )
    slow = ok(session, "add_payee", auth_token=good, name="Slow", iban=make_iban("DE", "7" * 18))["payee_id"]
    partial(
        session, "PAYEE_UNVERIFIED", "schedule_payment", **{**call, "payee_id": slow}, pay_at="2026-03-02T20:00:00Z"
    )


def _payee(session: StatefulSession, customer_id: str) -> str:
    row = Payee("P90001", customer_id, "Orchid Foods", EXTERNAL, "EUR", 0, 0)
    return session.world.put(row).id


def test_scheduled_payments_run_in_order_and_fail_for_lack_of_money(session: StatefulSession) -> None:
    good, payee = token(session, "C00001"), _payee(session, "C00001")
    call = {"auth_token": good, "from_account_id": "A90001", "payee_id": payee}
    late = ok(session, "schedule_payment", **call, amount_cents=30_000, pay_at="2026-03-10T08:00:00Z")
    soon = ok(session, "schedule_payment", **call, amount_cents=20_000, pay_at="2026-03-09T08:00:00Z")
    often = ok(session, "schedule_payment", **call, amount_cents=100, pay_at="2026-03-05", repeat="weekly", times=3)
    wait(session, 20 * DAY)
    shown = {
        one["scheduled_payment_id"]: one
        for one in ok(session, "get_account", account_id="A90001")["scheduled_payments"]
    }
    assert shown[soon["scheduled_payment_id"]]["status"] == "done"
    assert shown[late["scheduled_payment_id"]]["status"] == "failed"
    assert shown[late["scheduled_payment_id"]]["last_failure"] == "INSUFFICIENT_FUNDS"
    assert shown[often["scheduled_payment_id"]]["runs_made"] == 3
    moved = ok(session, "list_transactions", account_id="A90001")["items"]
    assert [(one["at"], one["amount_cents"]) for one in moved] == [
        ("2026-03-19T00:00:00Z", -100),
        ("2026-03-12T00:00:00Z", -100),
        ("2026-03-09T08:00:00Z", -20_000),
        ("2026-03-05T00:00:00Z", -100),
    ]


@given(st.integers(0, 20), st.integers(1, 31), st.integers(1, 30))
def test_months_are_stepped_as_a_calendar_does(year: int, day: int, steps: int) -> None:
    start = datetime(2026 + year, 1, day, 6, 30, tzinfo=UTC)
    at = int(start.timestamp())
    for step in range(1, steps + 1):
        at = next_due(at, "monthly", day)
        moment = datetime.fromtimestamp(at, UTC)
        assert (moment.year * 12 + moment.month - 1) == (start.year * 12 + step)
        tomorrow = datetime.fromtimestamp(at + DAY, UTC)
        assert moment.day == day or (moment.day < day and tomorrow.day == 1)
        assert (moment.hour, moment.minute) == (6, 30)


@given(st.lists(st.integers(1, 12 * DAY), min_size=1, max_size=6), st.integers(0, 3))
@settings(max_examples=25)
def test_when_somebody_looks_makes_no_difference(waits: list[int], seed: int) -> None:
    looked, slept = ENV.open("typical", seed), ENV.open("typical", seed)
    for one in (looked, slept):
        one.world.update(need(one, Customer, "C00001"), two_factor=False)
    for seconds in waits:
        wait(looked, seconds)
        seen = ok(looked, "list_transactions")  # this settles a copy
        token(looked, "C00001")  # and this the state itself
        assert ok(looked, "list_transactions") == seen
    wait(slept, sum(waits))
    for tool in ("list_transactions", "list_accounts", "list_payees"):
        assert looked.call(tool, {"limit": 100}) == slept.call(tool, {"limit": 100})
    token(slept, "C00001")
    for table in (Account, Transaction, ScheduledPayment):
        assert list(looked.world.rows(table)) == list(slept.world.rows(table))


# Money ----------------------------------------------------------------------------------------------------------------

STEP = st.tuples(
    st.sampled_from(("deposit", "withdraw", "transfer", "wait")),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from((500, 1_000, 4_500, 20_000, 46_000, 50_000, 100_000)),
)


@given(st.lists(STEP, max_size=14))
@settings(max_examples=60)
def test_a_bank_of_plain_numbers_agrees(steps: list[tuple[str, int, int, int]]) -> None:
    """The oracle keeps balances in a list: no rows, no tools, no transactions."""
    session = ENV.open()
    session.world.update(need(session, Customer, "C00001"), two_factor=False)
    kinds = [
        {"held": 5_000, "overdraft": 1_000, "limit": 50_000},
        {"kind": "savings"},
        {"limit": 20_000},
        {"overdraft": 500, "limit": 10**7},
    ]
    owners = ["C00001", "C00001", "C00001", "C00003"]
    balance = [50_000, 20_000, 4_500, 100_000]
    ids = [make(session, owners[n], n, balance[n], **kinds[n]) for n in range(4)]
    room = [one.get("overdraft", 0) - one.get("held", 0) for one in kinds]  # type: ignore[operator]
    limit: list[Any] = [one.get("limit", 100_000) for one in kinds]
    spent = [0] * 4
    good = token(session, "C00001")
    for what, source, target, amount in steps:
        if what == "wait":
            wait(session, DAY)
            spent, good = [0] * 4, token(session, "C00001")
            continue
        mine = owners[source] == "C00001"
        counts = what == "withdraw" or (what == "transfer" and owners[target] != owners[source])
        if what == "deposit":
            code = "" if mine else "PERMISSION_DENIED"
            outcome = session.call(
                "deposit_cash",
                {"auth_token": good, "account_id": ids[source], "amount_cents": amount, "currency": "EUR"},
            )
        else:
            if not mine:
                code = "PERMISSION_DENIED"
            elif what == "transfer" and source == target:
                code = "SAME_ACCOUNT"
            elif what == "transfer" and source == 1 and target == 3:
                code = "INVALID_STATE"
            elif counts and spent[source] + amount > limit[source]:
                code = "DAILY_LIMIT"
            elif amount > balance[source] + room[source]:
                code = "INSUFFICIENT_FUNDS"
            else:
                code = ""
            arguments = {"auth_token": good, "amount_cents": amount}
            outcome = (
                session.call("withdraw_cash", {**arguments, "account_id": ids[source]})
                if what == "withdraw"
                else session.call(
                    "transfer_funds", {**arguments, "from_account_id": ids[source], "to_account_id": ids[target]}
                )
            )
        assert outcome.code == code, outcome
        if not code:
            balance[source] += amount if what == "deposit" else -amount
            spent[source] += amount if counts else 0
            balance[target] += amount if what == "transfer" else 0
        assert [need(session, Account, one).balance_cents for one in ids] == balance


@given(
    st.integers(1, 10**9), st.sampled_from(["EUR", "USD", "GBP", "CHF"]), st.sampled_from(["EUR", "USD", "GBP", "CHF"])
)
def test_exchanging_to_and_fro_never_gains(amount: int, base: str, quote: str) -> None:
    session = ENV.open()
    there = ok(session, "get_exchange_rate", base=base, quote=quote, amount_cents=amount)["converted_cents"]
    if there:
        back = ok(session, "get_exchange_rate", base=quote, quote=base, amount_cents=there)["converted_cents"]
        assert back <= amount if base != quote else back == amount


def test_converted_money_arrives_at_the_quoted_rate(session: StatefulSession) -> None:
    good = token(session, "C00001")
    quoted = ok(session, "get_exchange_rate", base="EUR", quote="USD", amount_cents=10_000)["converted_cents"]
    rate = need(session, FxRate, "EUR/USD")
    assert quoted == int(10_000 * rate.mid_e6 * 0.995 / 1e6)
    sent = ok(
        session,
        "transfer_funds",
        auth_token=good,
        from_account_id="A90001",
        to_account_id="A90003",
        amount_cents=10_000,
        convert=True,
    )
    assert (sent["received_cents"], sent["received_currency"]) == (quoted, "USD")
    assert need(session, Account, "A90003").balance_cents == 10_000 + quoted


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    assert environment().open(scenario, seed).digest() == ENV.open(scenario, seed).digest()
    world = ENV.open(scenario, seed).world
    sums: dict[str, int] = defaultdict(int)
    times: dict[str, int] = {}
    for moved in world.rows(Transaction):
        sums[moved.account_id] += moved.amount_cents
        assert sums[moved.account_id] == moved.balance_after_cents
        assert times.get(moved.account_id, 0) <= moved.at < world.now
        times[moved.account_id] = moved.at
    for account in world.rows(Account):
        assert account.balance_cents == sums[account.id]
        assert world.get(Customer, account.customer_id) is not None
        assert is_iban(account.iban)
    for card in world.rows(Card):
        owner = world.get(Account, card.account_id)
        assert owner is not None
        assert owner.customer_id == card.customer_id
    for payee in world.rows(Payee):
        assert world.get(Customer, payee.customer_id) is not None
        assert is_iban(payee.iban)
    for one in world.rows(ScheduledPayment):
        payer, paid = world.get(Account, one.account_id), world.get(Payee, one.payee_id)
        assert payer is not None
        assert paid is not None
        assert payer.customer_id == paid.customer_id == one.customer_id
        assert one.due_at > world.now
    assert all(world.get(Credential, one.id) for one in world.rows(Customer))


def test_scale_multiplies() -> None:
    assert environment(scale=0.1).open().world.count(Customer) == 12
    assert environment(scale=2).open().world.count(Customer) == 240


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_every_kind_of_call_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    customer = next(
        row
        for row in world.rows(Customer)
        if secret(session, row.id).locked_until <= world.now
        and any(one.status == "active" and one.kind != "savings" for one in world.find(Account, customer_id=row.id))
        and any(one.status == "active" for one in world.rows(Card) if one.customer_id == row.id)
    )
    account = next(
        one for one in world.find(Account, customer_id=customer.id) if one.status == "active" and one.kind != "savings"
    )
    good = token(session, customer.id)
    ok(session, "find_customer", query=customer.last)
    ok(session, "get_account", account_id=account.id)
    ok(session, "list_payees", customer_id=customer.id)
    ok(session, "list_transactions", account_id=account.id, since="2026-01-01", kind="card")
    ok(session, "get_exchange_rate", base="EUR", quote="USD")
    ok(session, "deposit_cash", auth_token=good, account_id=account.id, amount_cents=10**7, currency=account.currency)
    session.world.update(need(session, Account, account.id), daily_limit_cents=10**6, spent_cents=0)
    ok(session, "withdraw_cash", auth_token=good, account_id=account.id, amount_cents=500)
    other = ok(session, "open_account", auth_token=good, kind="savings", currency=account.currency, nickname="New one")
    ok(
        session,
        "transfer_funds",
        auth_token=good,
        from_account_id=account.id,
        to_account_id=other["account_id"],
        amount_cents=1,
    )
    card = next(one for one in world.rows(Card) if one.customer_id == customer.id)
    ok(session, "set_card_status", auth_token=good, card_id=card.id, status=card.status)
    payee = ok(
        session,
        "add_payee",
        auth_token=good,
        name="Birch",
        iban=EXTERNAL,
        currency=account.currency,
        otp=secret(session, customer.id).otps[0],
    )["payee_id"]
    pay = {"auth_token": good, "from_account_id": account.id, "payee_id": payee, "amount_cents": 100}
    ok(session, "pay_payee", **pay)
    later = ok(session, "schedule_payment", **pay, pay_at="2026-03-20", repeat="monthly", times=3)
    ok(session, "cancel_scheduled_payment", auth_token=good, scheduled_payment_id=later["scheduled_payment_id"])
    ok(session, "remove_payee", auth_token=good, payee_id=payee)
