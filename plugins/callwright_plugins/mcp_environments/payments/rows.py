"""Rows of the merchant. Amounts are cents of the invoice's currency, times seconds of the Unix clock (UTC)."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row


@row("customers", prefix="C")
class Customer:
    """Who is invoiced; a card of limit 0 is no card."""

    id: str
    name: str
    email: str
    card_last4: str
    card_limit_cents: int
    archived: bool = False


@row(
    "invoices", prefix="I", index=("customer_id",), stamps=("created_at", "sent_at"), relative={"due_at": "created_at"}
)
class Invoice:
    """What a customer owes: ``total_cents`` with tax, and what was captured of it."""

    id: str
    customer_id: str
    currency: str
    net_cents: int
    tax_cents: int
    total_cents: int
    captured_cents: int
    status: str  # draft, sent, partially_paid, paid, void
    created_at: int
    sent_at: int
    due_at: int
    memo: str


@row("line_items", key=("invoice_id", "position"), index=("invoice_id",))
class LineItem:
    """One line of an invoice; its tax is rounded half up."""

    invoice_id: str
    position: int
    description: str
    quantity: int
    unit_price_cents: int
    tax_bps: int

    @property
    def net_cents(self) -> int:
        """Without tax."""
        return self.quantity * self.unit_price_cents

    @property
    def tax_cents(self) -> int:
        """The tax."""
        return (self.net_cents * self.tax_bps + 5_000) // 10_000


@row(
    "payments",
    prefix="P",
    index=("invoice_id", "customer_id"),
    stamps=("created_at", "captured_at"),
    relative={"expires_at": "created_at"},
)
class Payment:
    """An authorisation of a card, good before ``expires_at``, and what was captured and refunded of it."""

    id: str
    invoice_id: str
    customer_id: str
    currency: str
    authorized_cents: int
    captured_cents: int
    refunded_cents: int
    created_at: int
    expires_at: int
    captured_at: int = 0
    declined: bool = False
    released: bool = False

    def open_cents(self, now: int) -> int:
        """What can still be captured."""
        if self.declined or self.released or now >= self.expires_at:
            return 0
        return self.authorized_cents - self.captured_cents


@row("refunds", prefix="R", index=("payment_id",), stamps=("created_at",), relative={"settles_at": "created_at"})
class Refund:
    """Money given back; it is with the customer from ``settles_at`` on."""

    id: str
    payment_id: str
    amount_cents: int
    reason: str
    created_at: int
    settles_at: int


@row("webhooks", prefix="W", stamps=("created_at",), unordered=("events",))
class Webhook:
    """Where events are delivered."""

    id: str
    url: str
    events: tuple[str, ...]
    created_at: int


@row("receivers")
class Receiver:
    """A host that does not answer before ``up_from``; hosts without a row always answer."""

    host: str
    up_from: int


# The log of events follows from what was done to invoices and payments.
@row("deliveries", prefix="D", index=("webhook_id",), bookkeeping=True)
class Delivery:
    """An event on its way to a webhook; how it fares follows from the clock and the receiver."""

    id: str
    webhook_id: str
    event: str
    object_id: str
    created_at: int


# How a request was protected, and its answer once more.
@row("idempotency_keys", bookkeeping=True)
class IdempotencyKey:
    """A request that was made under a key, and its answer, both as JSON."""

    key: str
    request: str
    answer: str
    created_at: int


ROWS: Final = (Customer, Invoice, LineItem, Payment, Refund, Webhook, Receiver, Delivery, IdempotencyKey)
