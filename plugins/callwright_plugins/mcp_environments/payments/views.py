"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.payments.rows import (
    Customer,
    Delivery,
    Invoice,
    LineItem,
    Payment,
    Refund,
    Webhook,
)
from callwright_plugins.mcp_environments.payments.webhooks import fate
from callwright_plugins.mcp_environments.times import iso


class InvoiceView(TypedDict):
    """An invoice; ``overdue`` says that it is sent, not paid, and past its due day."""

    invoice_id: str
    customer_id: str
    customer_name: str
    status: str
    currency: str
    total_cents: Annotated[int, Field(description="With tax.")]
    captured_cents: Annotated[int, Field(description="Of the total; what is refunded is not taken off.")]
    due_at: str
    overdue: Annotated[bool, Field(description="Sent, not paid, and past due_at.")]


class LineView(TypedDict):
    """A line of an invoice."""

    description: str
    quantity: int
    unit_price_cents: Annotated[int, Field(description="Without tax.")]
    tax_bps: Annotated[int, Field(description="Tax in hundredths of a percent: 1900 is 19 %.")]
    net_cents: Annotated[int, Field(description="Before tax.")]
    tax_cents: Annotated[int, Field(description="Of the whole line.")]


class RefundView(TypedDict):
    """A refund; it is ``pending`` for an hour."""

    refund_id: str
    payment_id: str
    amount_cents: Annotated[int, Field(description="In the currency of the payment.")]
    reason: str
    status: Annotated[str, Field(description="pending for an hour.")]
    created_at: str


class PaymentView(TypedDict):
    """A payment; ``capturable_cents`` is what can still be captured, until ``expires_at``."""

    payment_id: str
    invoice_id: str
    customer_id: str
    status: str
    currency: str
    authorized_cents: Annotated[int, Field(description="What may be captured in all, until expires_at.")]
    captured_cents: Annotated[int, Field(description="What is refunded is not taken off.")]
    refunded_cents: Annotated[int, Field(description="Pending refunds counted.")]
    capturable_cents: Annotated[int, Field(description="What can still be captured of the authorisation.")]
    refundable_cents: Annotated[int, Field(description="What was captured and not given back.")]
    created_at: str
    expires_at: Annotated[str, Field(description="When what is not captured lapses.")]


class InvoiceDetails(InvoiceView):
    """An invoice with lines, payments and refunds."""

    memo: str
    net_cents: Annotated[int, Field(description="Before tax.")]
    tax_cents: Annotated[int, Field(description="Of all lines.")]
    refunded_cents: Annotated[int, Field(description="Pending refunds counted.")]
    created_at: str
    sent_at: str
    lines: list[LineView]
    payments: list[PaymentView]
    refunds: list[RefundView]


class WebhookView(TypedDict):
    """A webhook."""

    webhook_id: str
    url: str
    events: list[str]
    created_at: str


class DeliveryView(TypedDict):
    """An event on its way; ``next_attempt_at`` is empty unless it is tried again."""

    delivery_id: str
    webhook_id: str
    url: str
    event: str
    object_id: Annotated[str, Field(description="Id of the invoice or payment that the event is about.")]
    status: str
    attempts: Annotated[int, Field(description="Made so far.")]
    created_at: str
    next_attempt_at: Annotated[str, Field(description="Empty: there is none.")]


def payment_status(row: Payment, now: int) -> str:
    """One word for a payment."""
    if row.declined:
        return "declined"
    if row.captured_cents:
        if row.refunded_cents == row.captured_cents:
            return "refunded"
        if row.refunded_cents:
            return "partially_refunded"
        return "captured" if row.captured_cents == row.authorized_cents else "partially_captured"
    if row.released:
        return "released"
    return "authorized" if now < row.expires_at else "expired"


def invoice_view(world: World, row: Invoice) -> InvoiceView:
    """An invoice as lists show it."""
    return {
        "invoice_id": row.id,
        "customer_id": row.customer_id,
        "customer_name": world.need(Customer, row.customer_id).name,
        "status": row.status,
        "currency": row.currency,
        "total_cents": row.total_cents,
        "captured_cents": row.captured_cents,
        "due_at": iso(row.due_at),
        "overdue": row.status in ("sent", "partially_paid") and world.now > row.due_at,
    }


def invoice_details(world: World, row: Invoice) -> InvoiceDetails:
    """An invoice with all that belongs to it."""
    payments = world.find(Payment, invoice_id=row.id)
    return {
        **invoice_view(world, row),
        "memo": row.memo,
        "net_cents": row.net_cents,
        "tax_cents": row.tax_cents,
        "refunded_cents": sum(one.refunded_cents for one in payments),
        "created_at": iso(row.created_at),
        "sent_at": iso(row.sent_at) if row.sent_at else "",
        "lines": [line_view(one) for one in world.find(LineItem, invoice_id=row.id)],
        "payments": [payment_view(one, world.now) for one in payments],
        "refunds": [
            refund_view(one, world.now) for payment in payments for one in world.find(Refund, payment_id=payment.id)
        ],
    }


def line_view(row: LineItem) -> LineView:
    """A line as tools show it."""
    return {
        "description": row.description,
        "quantity": row.quantity,
        "unit_price_cents": row.unit_price_cents,
        "tax_bps": row.tax_bps,
        "net_cents": row.net_cents,
        "tax_cents": row.tax_cents,
    }


def payment_view(row: Payment, now: int) -> PaymentView:
    """A payment as tools show it at a time."""
    return {
        "payment_id": row.id,
        "invoice_id": row.invoice_id,
        "customer_id": row.customer_id,
        "status": payment_status(row, now),
        "currency": row.currency,
        "authorized_cents": row.authorized_cents,
        "captured_cents": row.captured_cents,
        "refunded_cents": row.refunded_cents,
        "capturable_cents": row.open_cents(now),
        "refundable_cents": row.captured_cents - row.refunded_cents,
        "created_at": iso(row.created_at),
        "expires_at": iso(row.expires_at),
    }


def refund_view(row: Refund, now: int) -> RefundView:
    """A refund as tools show it at a time."""
    return {
        "refund_id": row.id,
        "payment_id": row.payment_id,
        "amount_cents": row.amount_cents,
        "reason": row.reason,
        "status": "settled" if now >= row.settles_at else "pending",
        "created_at": iso(row.created_at),
    }


def webhook_view(row: Webhook) -> WebhookView:
    """A webhook as tools show it."""
    return {"webhook_id": row.id, "url": row.url, "events": list(row.events), "created_at": iso(row.created_at)}


def delivery_view(world: World, row: Delivery) -> DeliveryView:
    """A delivery as it stands now."""
    status, attempts, following = fate(world, row)
    return {
        "delivery_id": row.id,
        "webhook_id": row.webhook_id,
        "url": world.need(Webhook, row.webhook_id).url,
        "event": row.event,
        "object_id": row.object_id,
        "status": status,
        "attempts": attempts,
        "created_at": iso(row.created_at),
        "next_attempt_at": "" if following is None else iso(following),
    }
