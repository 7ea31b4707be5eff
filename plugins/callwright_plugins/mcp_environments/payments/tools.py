"""The ten tools of payments; here are those that write."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.payments.lookup import LOOKUP, InvoiceId, need_customer, need_invoice
from callwright_plugins.mcp_environments.payments.once import once
from callwright_plugins.mcp_environments.payments.rows import Customer, Invoice, LineItem, Payment, Refund, Webhook
from callwright_plugins.mcp_environments.payments.views import (
    InvoiceDetails,
    PaymentView,
    RefundView,
    WebhookView,
    invoice_details,
    payment_view,
    refund_view,
    webhook_view,
)
from callwright_plugins.mcp_environments.payments.webhooks import Event, emit, host_of
from callwright_plugins.mcp_environments.times import DAY, HOUR, iso

AUTH_WINDOW: Final = 7 * DAY
REFUND_WINDOW: Final = 180 * DAY
SETTLING: Final = HOUR
MOST_WEBHOOKS: Final = 10
LARGEST: Final = 10**10

Key = Annotated[
    str,
    Field(
        description="A key of your choice; repeating the same request under it within a day does nothing more.",
        max_length=80,
    ),
]


class Line(TypedDict):
    """One line of a new invoice."""

    description: Annotated[str, Field(description="What is sold.", min_length=1, max_length=200)]
    quantity: Annotated[int, Field(description="How many.", ge=1, le=100_000)]
    unit_price_cents: Annotated[int, Field(description="Price of one without tax, in cents.", ge=0, le=10**8)]
    tax_bps: Annotated[int, Field(description="Tax in hundredths of a percent: 1900 is 19 %.", ge=0, le=10_000)]


@tool
def create_invoice(
    world: World,
    /,
    customer_id: Annotated[str, Field(description="Id of the customer, such as C00012.", max_length=20)],
    lines: Annotated[list[Line], Field(description="What is sold.", min_length=1, max_length=50)],
    currency: Annotated[Literal["EUR", "USD", "GBP"], Field(description="Currency of the invoice.")] = "EUR",
    due_in_days: Annotated[int, Field(description="Days until it must be paid.", ge=0, le=365)] = 14,
    memo: Annotated[str, Field(description="A note to the customer.", max_length=500)] = "",
    idempotency_key: Key = "",
) -> InvoiceDetails:
    """Make a draft of an invoice. It must be sent before money can be captured. Tax is rounded for each line."""

    def create() -> InvoiceDetails:
        customer = need_customer(world, customer_id)
        if customer.archived:
            raise ToolError("INVALID_STATE", f"the customer {customer_id} is archived and cannot be invoiced")
        invoice_id = world.new_id(Invoice)
        items = [
            LineItem(invoice_id, position, one["description"], one["quantity"], one["unit_price_cents"], one["tax_bps"])
            for position, one in enumerate(lines, 1)
        ]
        net, tax = sum(one.net_cents for one in items), sum(one.tax_cents for one in items)
        if not 0 < net + tax <= LARGEST:
            raise ToolError("INVALID_AMOUNT", f"an invoice is of 1 to {LARGEST} cents, not {net + tax}")
        for one in items:
            world.put(one)
        invoice = world.put(
            Invoice(
                id=invoice_id,
                customer_id=customer_id,
                currency=currency,
                net_cents=net,
                tax_cents=tax,
                total_cents=net + tax,
                captured_cents=0,
                status="draft",
                created_at=world.now,
                sent_at=0,
                due_at=world.now + due_in_days * DAY,
                memo=memo,
            )
        )
        emit(world, "invoice.created", invoice_id)
        return invoice_details(world, invoice)

    request = ["create_invoice", customer_id, [dict(one) for one in lines], currency, due_in_days, memo]
    return once(world, idempotency_key, request, create)


@tool(latency=3, irreversible=True)
def send_invoice(world: World, /, invoice_id: InvoiceId) -> InvoiceDetails:
    """Send an invoice, and ask the customer's card to authorise what is still to be paid, for seven days.

    Also used to ask again after an authorisation expired or was declined. A declined card is a partial success
    (CARD_DECLINED): the invoice is sent, but nothing can be captured.
    """
    invoice = need_invoice(world, invoice_id)
    _refuse_done(invoice)
    active = [one for one in world.find(Payment, invoice_id=invoice_id) if one.open_cents(world.now)]
    if active:
        raise ToolError(
            "INVALID_STATE",
            f"the invoice {invoice_id} is sent, and {active[0].id} authorised until {iso(active[0].expires_at)}; "
            "capture_payment takes the money",
        )
    customer = need_customer(world, invoice.customer_id)
    amount = invoice.total_cents - invoice.captured_cents
    held = sum(one.open_cents(world.now) for one in world.find(Payment, customer_id=customer.id))
    declined = amount + held > customer.card_limit_cents
    payment = world.put(
        Payment(
            id=world.new_id(Payment),
            invoice_id=invoice_id,
            customer_id=customer.id,
            currency=invoice.currency,
            authorized_cents=amount,
            captured_cents=0,
            refunded_cents=0,
            created_at=world.now,
            expires_at=world.now + AUTH_WINDOW,
            declined=declined,
        )
    )
    status = "sent" if invoice.status == "draft" else invoice.status
    invoice = world.update(invoice, status=status, sent_at=world.now)
    emit(world, "invoice.sent", invoice_id)
    emit(world, "payment.declined" if declined else "payment.authorized", payment.id)
    if declined:
        world.warn("CARD_DECLINED", _declined(customer, amount, invoice.currency))
    return invoice_details(world, invoice)


@tool(latency=2)
def capture_payment(
    world: World,
    /,
    invoice_id: InvoiceId,
    amount_cents: Annotated[
        int | None, Field(description="How much to capture; left out, all that is authorised.", ge=1, le=LARGEST)
    ] = None,
    idempotency_key: Key = "",
) -> PaymentView:
    """Take authorised money for a sent invoice, all or a part of it. The payment_id of the result can be refunded.

    Fails with INVALID_STATE before send_invoice, and with AUTH_WINDOW_EXPIRED seven days after it.
    """

    def capture() -> PaymentView:
        invoice = need_invoice(world, invoice_id)
        _refuse_done(invoice)
        if invoice.status == "draft":
            raise ToolError("INVALID_STATE", f"the invoice {invoice_id} is a draft; send_invoice comes first")
        payment = _newest(world, invoice_id)
        if payment.declined:
            raise ToolError("CARD_DECLINED", f"the card declined {payment.id}; send_invoice asks it again")
        if world.now >= payment.expires_at:
            raise ToolError(
                "AUTH_WINDOW_EXPIRED",
                f"the authorisation {payment.id} expired at {iso(payment.expires_at)}; send_invoice asks for a new one",
            )
        left = payment.open_cents(world.now)
        amount = left if amount_cents is None else amount_cents
        if amount > left:
            raise ToolError(
                "CAPTURE_EXCEEDS_AUTHORIZATION", f"{left} cents of {payment.id} can still be captured, not {amount}"
            )
        payment = world.update(payment, captured_cents=payment.captured_cents + amount, captured_at=world.now)
        captured = invoice.captured_cents + amount
        paid = captured == invoice.total_cents
        world.update(invoice, captured_cents=captured, status="paid" if paid else "partially_paid")
        emit(world, "payment.captured", payment.id)
        if paid:
            emit(world, "invoice.paid", invoice_id)
        return payment_view(payment, world.now)

    return once(world, idempotency_key, ["capture_payment", invoice_id, amount_cents], capture)


@tool(latency=2, irreversible=True)
def refund_payment(
    world: World,
    /,
    payment_id: Annotated[str, Field(description="Id of a payment, such as P00012.", max_length=20)],
    amount_cents: Annotated[
        int | None, Field(description="How much to give back; left out, all that is left.", ge=1, le=LARGEST)
    ] = None,
    reason: Annotated[
        Literal["requested_by_customer", "duplicate", "fraudulent", "other"], Field(description="Why.")
    ] = "requested_by_customer",
    idempotency_key: Key = "",
) -> RefundView:
    """Give captured money back, all or a part of it, within 180 days of its capture. It arrives an hour later."""

    def refund() -> RefundView:
        payment = world.need(
            Payment, payment_id, message=f"there is no payment {payment_id!r}; list_payments names them"
        )
        if not payment.captured_cents:
            raise ToolError("INVALID_STATE", f"nothing of {payment_id} is captured; void_invoice releases it")
        left = payment.captured_cents - payment.refunded_cents
        amount = left if amount_cents is None else amount_cents
        if amount > left or not left:
            raise ToolError(
                "REFUND_EXCEEDS_CAPTURE",
                f"{payment.captured_cents} cents of {payment_id} were captured and {payment.refunded_cents} refunded; "
                f"{left} can be refunded, not {amount or 'more'}",
            )
        if world.now >= payment.captured_at + REFUND_WINDOW:
            raise ToolError(
                "REFUND_WINDOW_CLOSED", f"{payment_id} was captured at {iso(payment.captured_at)}, too long ago"
            )
        world.update(payment, refunded_cents=payment.refunded_cents + amount)
        made = world.put(Refund(world.new_id(Refund), payment_id, amount, reason, world.now, world.now + SETTLING))
        emit(world, "payment.refunded", payment_id)
        return refund_view(made, world.now)

    return once(world, idempotency_key, ["refund_payment", payment_id, amount_cents, reason], refund)


@tool(destructive=True, irreversible=True)
def void_invoice(world: World, /, invoice_id: InvoiceId) -> InvoiceDetails:
    """Void a draft or an invoice of which nothing is captured, and release its authorisation. This is final."""
    invoice = need_invoice(world, invoice_id)
    _refuse_done(invoice)
    if invoice.captured_cents:
        raise ToolError(
            "INVALID_STATE",
            f"{invoice.captured_cents} cents of {invoice_id} are captured; it cannot be voided any more",
        )
    for payment in world.find(Payment, invoice_id=invoice_id):
        if payment.open_cents(world.now):
            world.update(payment, released=True)
    invoice = world.update(invoice, status="void")
    emit(world, "invoice.voided", invoice_id)
    return invoice_details(world, invoice)


@tool(irreversible=True)
def register_webhook(
    world: World,
    /,
    url: Annotated[str, Field(description="Where to deliver events: https and a public host.", max_length=300)],
    events: Annotated[list[Event], Field(description="Which events to deliver.", min_length=1, max_length=8)],
) -> WebhookView:
    """Have events from now on delivered to an address. list_webhook_deliveries shows how deliveries fare."""
    host_of(url)
    known = list(world.rows(Webhook))
    same = next((one for one in known if one.url == url), None)
    if same is not None:
        raise ToolError("ALREADY_EXISTS", f"the webhook {same.id} delivers to that address already")
    if len(known) >= MOST_WEBHOOKS:
        raise ToolError("WEBHOOK_LIMIT", f"there are {MOST_WEBHOOKS} webhooks, the most there can be")
    return webhook_view(world.put(Webhook(world.new_id(Webhook), url, tuple(dict.fromkeys(events)), world.now)))


def _refuse_done(invoice: Invoice) -> None:
    if invoice.status == "void":
        raise ToolError("INVOICE_VOID", f"the invoice {invoice.id} is void; create_invoice makes a new one")
    if invoice.status == "paid":
        raise ToolError("ALREADY_PAID", f"all {invoice.total_cents} cents of the invoice {invoice.id} are captured")


def _newest(world: World, invoice_id: str) -> Payment:
    return world.find(Payment, invoice_id=invoice_id)[-1]  # a sent invoice has one


def _declined(customer: Customer, amount: int, currency: str) -> str:
    if not customer.card_limit_cents:
        return f"the customer {customer.id} has no card; the invoice is sent, but nothing can be captured"
    return f"the card {customer.card_last4} of {customer.id} declined {amount} cents of {currency}; the invoice is sent"


TOOLS: Final = [
    *LOOKUP,
    create_invoice,
    send_invoice,
    capture_payment,
    refund_payment,
    void_invoice,
    register_webhook,
]
