"""Payments: its surface, every failure, golden edges, and money that is never refunded twice."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from environment_sessions import fails, need, ok, partial, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.payments import environment
from callwright_plugins.mcp_environments.payments.rows import (
    Customer,
    Delivery,
    Invoice,
    LineItem,
    Payment,
    Receiver,
    Refund,
    Webhook,
)

ENV = environment()
DAY, HOUR, MINUTE = 86_400, 3_600, 60
READ = {"list_invoices", "get_invoice", "list_payments", "list_webhook_deliveries"}
DISCOVERY = {"list_invoices", "list_payments"}
DESTRUCTIVE = {"void_invoice"}
WRITE = {"create_invoice", "send_invoice", "capture_payment", "refund_payment", "void_invoice", "register_webhook"}
LINES = [{"description": "Desk", "quantity": 2, "unit_price_cents": 5_000, "tax_bps": 1_900}]
TOTAL = 11_900


@pytest.fixture
def session() -> StatefulSession:
    """C90001 with a card for 500.00, C90002 without a card, C90003 archived."""
    opened = ENV.open("sparse")
    for number, (limit, archived) in enumerate([(50_000, False), (0, False), (50_000, True)], 1):
        opened.world.put(Customer(f"C9000{number}", "Ada Berg", "ada@example.com", "1234", limit, archived))
    return opened


def draft(session: StatefulSession, customer: str = "C90001", **more: Any) -> str:
    return str(ok(session, "create_invoice", customer_id=customer, lines=LINES, **more)["invoice_id"])


def sent(session: StatefulSession) -> str:
    invoice = draft(session)
    ok(session, "send_invoice", invoice_id=invoice)
    return invoice


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 10
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=tuple(ENV.scenarios))


@given(
    st.lists(
        st.tuples(st.integers(1, 1000), st.integers(0, 10**5), st.integers(0, 10_000)), min_size=1, max_size=5
    ).filter(lambda lines: any(quantity * price for quantity, price, _ in lines))
)
def test_tax_is_what_decimal_arithmetic_says(lines: list[tuple[int, int, int]]) -> None:
    session = ENV.open("sparse")
    made = ok(
        session,
        "create_invoice",
        customer_id="C00002",
        lines=[
            {"description": "x", "quantity": quantity, "unit_price_cents": price, "tax_bps": bps}
            for quantity, price, bps in lines
        ],
    )
    net = sum(quantity * price for quantity, price, _ in lines)
    tax = sum(
        int((Decimal(quantity * price * bps) / 10_000).quantize(Decimal(1), ROUND_HALF_UP))
        for quantity, price, bps in lines
    )
    assert (made["net_cents"], made["tax_cents"], made["total_cents"]) == (net, tax, net + tax)


# Golden edges ---------------------------------------------------------------------------------------------------------


def test_create_send_capture_refund(session: StatefulSession) -> None:
    invoice = draft(session)
    fails(session, "INVALID_STATE", "capture_payment", invoice_id=invoice)
    shown = ok(session, "send_invoice", invoice_id=invoice)
    assert shown["payments"][0]["capturable_cents"] == shown["total_cents"] == TOTAL
    paid = ok(session, "capture_payment", invoice_id=invoice)
    assert (paid["status"], paid["captured_cents"]) == ("captured", TOTAL)
    fails(session, "NOT_FOUND", "refund_payment", payment_id="P99999")
    back = ok(session, "refund_payment", payment_id=paid["payment_id"], amount_cents=900)
    assert back["status"] == "pending"
    wait(session, HOUR)
    shown = ok(session, "get_invoice", invoice_id=invoice)
    assert (shown["status"], shown["refunded_cents"], shown["refunds"][0]["status"]) == ("paid", 900, "settled")
    assert shown["payments"][0]["status"] == "partially_refunded"


def test_registered_webhooks_hear_of_what_follows(session: StatefulSession) -> None:
    draft(session)
    assert session.call("list_webhook_deliveries", {}).kind == "empty"
    hook = ok(session, "register_webhook", url="https://a.example.com/x", events=["invoice.created", "invoice.created"])
    assert hook["events"] == ["invoice.created"]
    invoice = sent(session)
    listed = ok(session, "list_webhook_deliveries", webhook_id=hook["webhook_id"])["items"]
    assert [(one["event"], one["object_id"], one["status"], one["attempts"]) for one in listed] == [
        ("invoice.created", invoice, "delivered", 1)
    ]


def test_every_event_is_told_in_order(session: StatefulSession) -> None:
    events = list(ENV.tools["register_webhook"].parameters["properties"]["events"]["items"]["enum"])
    ok(session, "register_webhook", url="https://a.example.com/x", events=events)
    invoice = sent(session)
    payment = ok(session, "capture_payment", invoice_id=invoice)["payment_id"]
    ok(session, "refund_payment", payment_id=payment)
    poor = draft(session, "C90002")
    partial(session, "CARD_DECLINED", "send_invoice", invoice_id=poor)
    ok(session, "void_invoice", invoice_id=poor)
    told = [one["event"] for one in ok(session, "list_webhook_deliveries", limit=100)["items"]]
    assert told[::-1] == [
        "invoice.created",
        "invoice.sent",
        "payment.authorized",
        "payment.captured",
        "invoice.paid",
        "payment.refunded",
        "invoice.created",
        "invoice.sent",
        "payment.declined",
        "invoice.voided",
    ]
    assert set(told) == set(events)


def test_deliveries_are_tried_again_until_the_receiver_is_up(session: StatefulSession) -> None:
    session.world.put(Receiver("b.example.com", NOW + 7 * MINUTE))
    session.world.put(Receiver("c.example.com", NOW + 9 * DAY))
    for host in ("b", "c"):
        ok(session, "register_webhook", url=f"https://{host}.example.com/", events=["invoice.created"])
    draft(session)
    seen = []
    for seconds in (0, MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 719 * MINUTE, MINUTE):
        wait(session, seconds)
        slow, dead = ok(session, "list_webhook_deliveries")["items"][::-1]
        seen.append((slow["status"], slow["attempts"], dead["status"], dead["attempts"]))
    assert seen == [
        ("retrying", 1, "retrying", 1),
        ("retrying", 2, "retrying", 2),
        ("retrying", 3, "retrying", 3),
        ("delivered", 4, "retrying", 4),
        ("delivered", 4, "retrying", 5),
        ("delivered", 4, "retrying", 5),
        ("delivered", 4, "failed", 6),
    ]


# Authorisation, capture, refund ---------------------------------------------------------------------------------------


def test_an_authorisation_ends_after_seven_days_and_is_asked_for_again(session: StatefulSession) -> None:
    invoice = sent(session)
    wait(session, 7 * DAY - 1)
    ok(session, "capture_payment", invoice_id=invoice, amount_cents=1_900)
    fails(session, "INVALID_STATE", "send_invoice", invoice_id=invoice)
    wait(session, 1)
    fails(session, "AUTH_WINDOW_EXPIRED", "capture_payment", invoice_id=invoice)
    shown = ok(session, "send_invoice", invoice_id=invoice)
    assert shown["status"] == "partially_paid"
    assert [one["authorized_cents"] for one in shown["payments"]] == [TOTAL, TOTAL - 1_900]
    ok(session, "capture_payment", invoice_id=invoice)
    assert ok(session, "get_invoice", invoice_id=invoice)["status"] == "paid"


def test_authorisations_of_a_customer_share_the_limit_of_the_card(session: StatefulSession) -> None:
    invoices = [draft(session) for _ in range(5)]
    for invoice in invoices[:4]:
        ok(session, "send_invoice", invoice_id=invoice)
    partial(session, "CARD_DECLINED", "send_invoice", invoice_id=invoices[4])
    fails(session, "CARD_DECLINED", "capture_payment", invoice_id=invoices[4])
    ok(session, "void_invoice", invoice_id=invoices[0])
    ok(session, "send_invoice", invoice_id=invoices[4])
    ok(session, "capture_payment", invoice_id=invoices[4])


def test_refunds_never_exceed_captures(session: StatefulSession) -> None:
    invoice = sent(session)
    payment = ok(session, "list_payments", invoice_id=invoice)["items"][0]["payment_id"]
    fails(session, "INVALID_STATE", "refund_payment", payment_id=payment)
    fails(session, "CAPTURE_EXCEEDS_AUTHORIZATION", "capture_payment", invoice_id=invoice, amount_cents=TOTAL + 1)
    ok(session, "capture_payment", invoice_id=invoice, amount_cents=5_000)
    fails(session, "REFUND_EXCEEDS_CAPTURE", "refund_payment", payment_id=payment, amount_cents=5_001)
    ok(session, "refund_payment", payment_id=payment, amount_cents=4_000)
    fails(session, "REFUND_EXCEEDS_CAPTURE", "refund_payment", payment_id=payment, amount_cents=1_001)
    ok(session, "capture_payment", invoice_id=invoice, amount_cents=1)
    ok(session, "refund_payment", payment_id=payment, amount_cents=1_001)
    fails(session, "REFUND_EXCEEDS_CAPTURE", "refund_payment", payment_id=payment)
    fails(session, "INVALID_STATE", "void_invoice", invoice_id=invoice)


def test_refunds_have_a_window(session: StatefulSession) -> None:
    invoice = sent(session)
    payment = ok(session, "capture_payment", invoice_id=invoice)["payment_id"]
    wait(session, 180 * DAY - 1)
    ok(session, "refund_payment", payment_id=payment, amount_cents=1)
    wait(session, 1)
    fails(session, "REFUND_WINDOW_CLOSED", "refund_payment", payment_id=payment, amount_cents=1)


def test_what_is_done_cannot_be_done_again(session: StatefulSession) -> None:
    paid, void = sent(session), sent(session)
    ok(session, "capture_payment", invoice_id=paid)
    assert ok(session, "void_invoice", invoice_id=void)["payments"][0]["status"] == "released"
    for tool in ("send_invoice", "capture_payment", "void_invoice"):
        fails(session, "ALREADY_PAID", tool, invoice_id=paid)
        fails(session, "INVOICE_VOID", tool, invoice_id=void)
        fails(session, "NOT_FOUND", tool, invoice_id="I")


def test_wrong_requests_fail(session: StatefulSession) -> None:
    fails(session, "NOT_FOUND", "create_invoice", customer_id="C", lines=LINES)
    fails(session, "INVALID_STATE", "create_invoice", customer_id="C90003", lines=LINES)
    fails(
        session, "INVALID_AMOUNT", "create_invoice", customer_id="C90001", lines=[{**LINES[0], "unit_price_cents": 0}]
    )
    dear = {**LINES[0], "quantity": 100_000, "unit_price_cents": 10**8}
    fails(session, "INVALID_AMOUNT", "create_invoice", customer_id="C90001", lines=[dear])
    assert session.call("create_invoice", {"customer_id": "C90001", "lines": []}).kind == "schema_error"
    fails(session, "NOT_FOUND", "get_invoice", invoice_id="I")
    fails(session, "NOT_FOUND", "list_invoices", customer_id="C")
    fails(session, "NOT_FOUND", "list_payments", invoice_id="I")
    fails(session, "NOT_FOUND", "list_payments", customer_id="C")
    fails(session, "NOT_FOUND", "list_webhook_deliveries", webhook_id="W")
    for url in (
        "http://a.example.com/",
        "https://localhost/x",
        "https://10.0.0.1/x",
        "https://[::1]/x",
        "https://a.local/",
        "https://u@a.example.com/",
        "https://a.example.com:8080/",
        "https://a.example.com:x/",
        "https://[",
        "https://127.1/x",
        "https://hooks.local./x",
        "",
    ):
        fails(session, "INVALID_URL", "register_webhook", url=url, events=["invoice.paid"])
    for number in range(10):
        ok(session, "register_webhook", url=f"https://a.example.com/{number}", events=["invoice.paid"])
    fails(session, "ALREADY_EXISTS", "register_webhook", url="https://a.example.com/3", events=["invoice.sent"])
    fails(session, "WEBHOOK_LIMIT", "register_webhook", url="https://a.example.com/10", events=["invoice.paid"])


def test_a_key_makes_a_request_happen_once(session: StatefulSession) -> None:
    invoice = sent(session)
    first = ok(session, "capture_payment", invoice_id=invoice, amount_cents=100, idempotency_key="k1")
    digest = session.digest()
    again = ok(session, "capture_payment", invoice_id=invoice, amount_cents=100, idempotency_key="k1")
    assert again == first
    assert session.digest() == digest
    fails(
        session,
        "DUPLICATE_IDEMPOTENCY_KEY",
        "capture_payment",
        invoice_id=invoice,
        amount_cents=101,
        idempotency_key="k1",
    )
    fails(session, "DUPLICATE_IDEMPOTENCY_KEY", "refund_payment", payment_id=first["payment_id"], idempotency_key="k1")
    refund = {"payment_id": first["payment_id"], "amount_cents": 60, "idempotency_key": "k2"}
    assert ok(session, "refund_payment", **refund) == ok(session, "refund_payment", **refund)
    created = {"customer_id": "C90001", "lines": LINES, "idempotency_key": "k3"}
    assert ok(session, "create_invoice", **created) == ok(session, "create_invoice", **created)
    wait(session, DAY)
    fails(session, "REFUND_EXCEEDS_CAPTURE", "refund_payment", **refund)
    ok(session, "capture_payment", invoice_id=invoice, amount_cents=101, idempotency_key="k1")


def test_a_failure_uses_no_key(session: StatefulSession) -> None:
    invoice = draft(session)
    fails(session, "INVALID_STATE", "capture_payment", invoice_id=invoice, idempotency_key="k")
    ok(session, "send_invoice", invoice_id=invoice)
    ok(session, "capture_payment", invoice_id=invoice, idempotency_key="k")


# A ledger of plain numbers --------------------------------------------------------------------------------------------

STEP = st.tuples(
    st.sampled_from(("create", "send", "capture", "capture", "refund", "refund", "void", "wait")),
    st.integers(0, 3),
    st.one_of(st.none(), st.sampled_from((1, 1_900, 5_000, 6_900, TOTAL, 20_000))),
)


@given(st.lists(STEP, max_size=25))
@settings(max_examples=120)
def test_a_ledger_of_plain_numbers_agrees(steps: list[tuple[str, int, int | None]]) -> None:
    session = ENV.open("sparse")
    session.world.put(Customer("C90001", "Ada Berg", "ada@example.com", "1234", 10**9))
    invoices: list[dict[str, Any]] = []
    day = 0
    for what, nth, amount in steps:
        code, outcome = "", None
        if what == "wait":
            wait(session, 3 * DAY)
            day += 3
            continue
        if what == "create":
            name = draft(session)
            invoices.append({"id": name, "state": "draft", "auths": [], "captured": 0})
            continue
        if not invoices:
            continue
        one = invoices[nth % len(invoices)]
        auth = one["auths"][-1] if one["auths"] else None
        done = {"void": "INVOICE_VOID", "paid": "ALREADY_PAID"}.get(one["state"], "")
        live = auth is not None and day < auth["day"] + 7
        if what == "send":
            outcome = session.call("send_invoice", {"invoice_id": one["id"]})
            code = done or ("INVALID_STATE" if live else "")
            if not code:
                one["auths"].append({"day": day, "amount": TOTAL - one["captured"], "captured": 0, "refunded": 0})
                one["state"] = "sent"
        elif what == "void":
            outcome = session.call("void_invoice", {"invoice_id": one["id"]})
            code = done or ("INVALID_STATE" if one["captured"] else "")
            if not code:
                one["state"] = "void"
        elif what == "capture":
            extra = {} if amount is None else {"amount_cents": amount}
            outcome = session.call("capture_payment", {"invoice_id": one["id"], **extra})
            code = done or ("INVALID_STATE" if auth is None else "" if live else "AUTH_WINDOW_EXPIRED")
            if not code and auth is not None:
                left = auth["amount"] - auth["captured"]
                taken = left if amount is None else amount
                code = "CAPTURE_EXCEEDS_AUTHORIZATION" if taken > left else ""
                if not code:
                    auth["captured"] += taken
                    one["captured"] += taken
                    one["state"] = "paid" if one["captured"] == TOTAL else "sent"
        elif auth is not None:
            listed = ok(session, "get_invoice", invoice_id=one["id"])["payments"]
            extra = {} if amount is None else {"amount_cents": amount}
            outcome = session.call("refund_payment", {"payment_id": listed[-1]["payment_id"], **extra})
            left = auth["captured"] - auth["refunded"]
            back = left if amount is None else amount
            code = (
                "INVALID_STATE" if not auth["captured"] else "REFUND_EXCEEDS_CAPTURE" if back > left or not left else ""
            )
            if not code:
                auth["refunded"] += back
        assert outcome is None or outcome.code == code, outcome
        shown = ok(session, "get_invoice", invoice_id=one["id"])
        assert shown["captured_cents"] == one["captured"] <= TOTAL
        assert [(p["authorized_cents"], p["captured_cents"], p["refunded_cents"]) for p in shown["payments"]] == [
            (a["amount"], a["captured"], a["refunded"]) for a in one["auths"]
        ]
        assert shown["refunded_cents"] == sum(r["amount_cents"] for r in shown["refunds"]) <= shown["captured_cents"]


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    session = ENV.open(scenario, seed)
    assert environment().open(scenario, seed).digest() == session.digest()
    world = session.world
    for invoice in world.rows(Invoice):
        need(session, Customer, invoice.customer_id)
        lines = world.find(LineItem, invoice_id=invoice.id)
        assert invoice.net_cents == sum(one.net_cents for one in lines) > 0
        assert invoice.tax_cents == sum(one.tax_cents for one in lines)
        payments = world.find(Payment, invoice_id=invoice.id)
        assert invoice.captured_cents == sum(one.captured_cents for one in payments) <= invoice.total_cents
        assert (invoice.status == "paid") == (invoice.captured_cents == invoice.total_cents)
        assert (invoice.sent_at == 0) == (invoice.status == "draft")
        assert invoice.created_at <= world.now
        assert invoice.sent_at <= world.now
        if invoice.status == "sent":
            assert payments
    for payment in world.rows(Payment):
        refunds = world.find(Refund, payment_id=payment.id)
        assert payment.refunded_cents == sum(one.amount_cents for one in refunds) <= payment.captured_cents
        assert payment.captured_cents <= payment.authorized_cents
        assert payment.customer_id == need(session, Invoice, payment.invoice_id).customer_id
        assert payment.captured_at < payment.expires_at
    for delivery in world.rows(Delivery):
        assert delivery.event in need(session, Webhook, delivery.webhook_id).events
        assert delivery.created_at <= world.now
        kind: Any = Invoice if delivery.object_id.startswith("I") else Payment
        need(session, kind, delivery.object_id)


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_every_tool_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    customer = max(
        (row for row in session.world.rows(Customer) if not row.archived), key=lambda row: row.card_limit_cents
    )
    session.world.update(customer, card_limit_cents=10**9)
    ok(session, "register_webhook", url="https://new.example.com/x", events=["payment.captured"])
    invoice = draft(session, customer.id, due_in_days=0)
    ok(session, "send_invoice", invoice_id=invoice)
    payment = ok(session, "capture_payment", invoice_id=invoice, amount_cents=500)["payment_id"]
    ok(session, "refund_payment", payment_id=payment, reason="duplicate")
    wait(session, DAY)
    overdue = ok(session, "list_invoices", status="overdue", customer_id=customer.id)["items"]
    assert invoice in [one["invoice_id"] for one in overdue]
    listed = ok(session, "list_invoices", status="draft")
    for one in listed["items"][:1]:
        ok(session, "void_invoice", invoice_id=one["invoice_id"])
    ok(session, "list_payments", customer_id=customer.id, status="refunded")
    ok(session, "get_invoice", invoice_id=invoice)
    ok(session, "list_webhook_deliveries", status="delivered", object_id=payment)
