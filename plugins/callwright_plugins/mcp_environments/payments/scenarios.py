"""The merchant's worlds: an ordinary shop, a new one, and one full of expired, declined and half-refunded things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
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
from callwright_plugins.mcp_environments.people import company, email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

_GOODS: Final = (
    "Consulting hour",
    "Design draft",
    "Hosting, one month",
    "Licence, one seat",
    "Server rack",
    "Shipping",
    "Support contract",
    "Training day",
)
_STATES: Final = ("draft", "authorized", "expired", "declined", "partial", "paid", "paid", "paid", "refunded", "void")


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """At scale 1, 80 customers, 400 invoices with some 1,000 lines, three webhooks with their deliveries."""
    customers = [_customer(rng, number) for number in range(1, _n(80, scale) + 1)]
    yield from customers
    hooks = _hooks()
    yield from hooks
    yield Receiver("slow.example.net", NOW + 40 * MINUTE)
    yield from _invoices(rng, customers, _n(400, scale), hooks, _STATES)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three customers, of whom one has no card; one draft; no webhook, no payment."""
    customers = [_customer(rng, number) for number in range(1, _n(3, scale) + 1)]
    yield _with(customers[0], card_limit_cents=0, card_last4="")
    yield from customers[1:]
    yield from _invoices(rng, customers[-1:], 1, (), ("draft",))


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Namesakes, cards at their limit, equal amounts, authorisations that end in a minute, receivers that are down."""
    customers: list[Customer] = []
    for _ in range(_n(15, scale)):
        one = _customer(rng, len(customers) + 1)
        number = len(customers)
        customers += [
            one,
            _with(one, id=f"C{number + 2:05d}", email=f"billing+{one.email}", card_limit_cents=0, card_last4=""),
            _with(one, id=f"C{number + 3:05d}", archived=True),
        ]
    yield from customers
    hooks = _hooks()
    yield from hooks
    yield Receiver("slow.example.net", NOW + 3 * DAY)
    yield Receiver("shop.example.com", NOW + 5 * MINUTE)
    states = ("edge", "expired", "declined", "partial", "refunded", "half_refunded", "old", "void", "draft", "paid")
    for row in _invoices(rng, [one for one in customers if one.card_limit_cents], _n(150, scale), hooks, states):
        if isinstance(row, Invoice) and int(row.id[1:]) % 3 == 0:
            row = _with(row, memo="Order 1001")
        yield row


def _n(count: int, scale: float) -> int:
    return max(1, round(count * scale))


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _customer(rng: Random, number: int) -> Customer:
    first, last = person(rng)
    private = rng.random() < 0.4
    return Customer(
        id=f"C{number:05d}",
        name=f"{first} {last}" if private else company(rng),
        email=email_of(first, last, number),
        card_last4=f"{rng.randrange(10_000):04d}",
        card_limit_cents=rng.choice((50_000, 500_000, 2_000_000, 5_000_000)),
    )


def _hooks() -> tuple[Webhook, ...]:
    since = NOW - 200 * DAY
    return (
        Webhook("W00001", "https://shop.example.com/hooks/payments", ("payment.captured", "payment.refunded"), since),
        Webhook("W00002", "https://books.example.org/events", ("invoice.created", "invoice.paid"), since),
        Webhook("W00003", "https://slow.example.net/in", ("payment.declined", "payment.authorized"), since),
    )


def _invoices(
    rng: Random, customers: Sequence[Customer], count: int, hooks: Sequence[Webhook], states: Sequence[str]
) -> Iterator[Any]:
    """Invoices in the order of their days, each in one of the states, and all that led there."""
    ages = sorted((rng.randint(10, 160) * DAY + rng.randrange(DAY) for _ in range(count)), reverse=True)
    payments: list[Payment] = []
    refunds: list[Refund] = []
    events: list[tuple[int, str, str]] = []
    for number, age in enumerate(ages, 1):
        state, customer = rng.choice(states), rng.choice(customers)
        invoice_id = f"I{number:05d}"
        lines = [
            LineItem(
                invoice_id,
                position,
                rng.choice(_GOODS),
                rng.randint(1, 9),
                rng.randint(5, 400) * 100 - rng.choice((0, 1)),
                rng.choice((0, 700, 1900)),
            )
            for position in range(1, rng.randint(1, 4) + 1)
        ]
        yield from lines
        net, tax = sum(one.net_cents for one in lines), sum(one.tax_cents for one in lines)
        total = net + tax
        created = NOW - age
        if state == "authorized":
            created = max(created, NOW - 5 * DAY + rng.randrange(DAY))
        sent = created + rng.randint(1, 40) * HOUR if state != "draft" else 0
        if state == "edge":
            sent = NOW - 7 * DAY + MINUTE
        if state == "old":
            created = NOW - 200 * DAY
            sent = created + HOUR
        events.append((created, "invoice.created", invoice_id))
        captured = 0
        if sent and not (state == "void" and rng.random() < 0.5):
            payment_id = f"P{len(payments) + 1:05d}"
            declined = state == "declined"
            captured = {"partial": total // 3, "paid": total, "refunded": total}.get(state, 0)
            captured = total if state in ("half_refunded", "old") else captured
            refunded = {"refunded": captured, "half_refunded": captured // 2}.get(state, 0)
            taken = sent + rng.randint(1, 100) * HOUR if captured else 0
            payments.append(
                Payment(
                    id=payment_id,
                    invoice_id=invoice_id,
                    customer_id=customer.id,
                    currency="EUR",
                    authorized_cents=total,
                    captured_cents=captured,
                    refunded_cents=refunded,
                    created_at=sent,
                    expires_at=sent + 7 * DAY,
                    captured_at=taken,
                    declined=declined,
                    released=state == "void",
                )
            )
            events.append((sent, "payment.declined" if declined else "payment.authorized", payment_id))
            if captured:
                events.append((taken, "payment.captured", payment_id))
                if captured == total:
                    events.append((taken, "invoice.paid", invoice_id))
            if refunded:
                back = taken + rng.randint(1, 48) * HOUR
                reason = rng.choice(("requested_by_customer", "duplicate", "other"))
                refunds.append(Refund(f"R{len(refunds) + 1:05d}", payment_id, refunded, reason, back, back + HOUR))
                events.append((back, "payment.refunded", payment_id))
        status = {"draft": "draft", "void": "void", "partial": "partially_paid"}.get(
            state, "paid" if captured == total else "sent"
        )
        yield Invoice(
            id=invoice_id,
            customer_id=customer.id,
            currency="EUR",
            net_cents=net,
            tax_cents=tax,
            total_cents=total,
            captured_cents=captured,
            status=status,
            created_at=created,
            sent_at=sent,
            due_at=created + rng.choice((14, 30)) * DAY,
            memo=rng.choice(("", "", "Thank you", "Order 1001", "As agreed on the phone")),
        )
    yield from payments
    yield from refunds
    number = 0
    for at, event, object_id in sorted(events):
        for hook in hooks:
            if event in hook.events and at > NOW - 30 * DAY:
                number += 1
                yield Delivery(f"D{number:05d}", hook.id, event, object_id, at)


SCENARIOS: Final = {
    "typical": Scenario(typical, "a merchant with 80 customers and 400 invoices"),
    "sparse": Scenario(sparse, "a merchant on the first day: one draft, no payment, no webhook"),
    "adversarial": Scenario(adversarial, "declined cards, expiring authorisations, receivers that are down"),
}
