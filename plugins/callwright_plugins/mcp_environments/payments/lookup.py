"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.payments.rows import Customer, Delivery, Invoice, Payment, Webhook
from callwright_plugins.mcp_environments.payments.views import (
    DeliveryView,
    InvoiceDetails,
    InvoiceView,
    PaymentView,
    delivery_view,
    invoice_details,
    invoice_view,
    payment_status,
    payment_view,
)
from callwright_plugins.mcp_environments.payments.webhooks import fate

InvoiceId = Annotated[str, Field(description="Id of an invoice, such as I00012.", max_length=20)]
SomeCustomer = Annotated[str, Field(description="Only of this customer; empty for all.", max_length=20)]


def need_customer(world: World, customer_id: str) -> Customer:
    """The customer, or ``NOT_FOUND``."""
    return world.need(
        Customer, customer_id, message=f"there is no customer {customer_id!r}; list_invoices shows whom there are"
    )


def need_invoice(world: World, invoice_id: str) -> Invoice:
    """The invoice, or ``NOT_FOUND``."""
    return world.need(Invoice, invoice_id, message=f"there is no invoice {invoice_id!r}; list_invoices names them")


@tool(read_only=True, discovery=True)
def list_invoices(
    world: World,
    /,
    customer_id: SomeCustomer = "",
    status: Annotated[
        Literal["any", "draft", "sent", "partially_paid", "paid", "void", "overdue"],
        Field(description="Only invoices in this status; overdue: sent, not paid, past their due day."),
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[InvoiceView]:
    """List invoices with customer, status and amounts, the newest first."""
    if customer_id:
        need_customer(world, customer_id)
    found = world.find(Invoice, customer_id=customer_id) if customer_id else list(world.rows(Invoice))
    if status == "overdue":
        found = [row for row in found if row.status in ("sent", "partially_paid") and world.now > row.due_at]
    elif status != "any":
        found = [row for row in found if row.status == status]
    found.sort(key=lambda row: (row.created_at, row.id), reverse=True)
    return page(found, lambda row: invoice_view(world, row), limit, cursor)


@tool(read_only=True)
def get_invoice(world: World, /, invoice_id: InvoiceId) -> InvoiceDetails:
    """An invoice with its lines, payments and refunds."""
    return invoice_details(world, need_invoice(world, invoice_id))


@tool(read_only=True, discovery=True)
def list_payments(
    world: World,
    /,
    invoice_id: Annotated[str, Field(description="Only of this invoice; empty for all.", max_length=20)] = "",
    customer_id: SomeCustomer = "",
    status: Annotated[
        Literal[
            "any",
            "authorized",
            "expired",
            "declined",
            "released",
            "partially_captured",
            "captured",
            "partially_refunded",
            "refunded",
        ],
        Field(description="Only payments in this status."),
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[PaymentView]:
    """List payments, the newest first: what was authorised, until when, and what was captured and refunded."""
    if invoice_id:
        need_invoice(world, invoice_id)
        found = world.find(Payment, invoice_id=invoice_id)
    else:
        found = list(world.rows(Payment))
    if customer_id:
        need_customer(world, customer_id)
        found = [row for row in found if row.customer_id == customer_id]
    now = world.now
    if status != "any":
        found = [row for row in found if payment_status(row, now) == status]
    found.sort(key=lambda row: (row.created_at, row.id), reverse=True)
    return page(found, lambda row: payment_view(row, now), limit, cursor)


@tool(read_only=True)
def list_webhook_deliveries(
    world: World,
    /,
    webhook_id: Annotated[str, Field(description="Only to this webhook; empty for all.", max_length=20)] = "",
    object_id: Annotated[
        str, Field(description="Only about this invoice or payment; empty for all.", max_length=20)
    ] = "",
    status: Annotated[
        Literal["any", "delivered", "retrying", "failed"], Field(description="Only deliveries in this status.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[DeliveryView]:
    """List events and how their delivery to webhooks stands, the newest first."""
    if webhook_id:
        world.need(Webhook, webhook_id, message=f"there is no webhook {webhook_id!r}; register_webhook makes one")
    found = world.find(Delivery, webhook_id=webhook_id) if webhook_id else list(world.rows(Delivery))
    found = [
        row
        for row in reversed(found)
        if object_id in ("", row.object_id) and (status == "any" or fate(world, row)[0] == status)
    ]
    return page(found, lambda row: delivery_view(world, row), limit, cursor)


LOOKUP: Final = (list_invoices, get_invoice, list_payments, list_webhook_deliveries)
