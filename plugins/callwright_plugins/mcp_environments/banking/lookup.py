"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.banking.access import need_account, need_customer
from callwright_plugins.mcp_environments.banking.ledger import need_rate
from callwright_plugins.mcp_environments.banking.parameters import AccountId, Currency
from callwright_plugins.mcp_environments.banking.rows import Account, Customer, Payee, Transaction
from callwright_plugins.mcp_environments.banking.schedule import current
from callwright_plugins.mcp_environments.banking.views import (
    AccountDetails,
    AccountView,
    CustomerView,
    PayeeView,
    TransactionView,
    account_details,
    account_view,
    customer_view,
    payee_view,
    transaction_view,
)
from callwright_plugins.mcp_environments.recorded_times import outside_of_column
from callwright_plugins.mcp_environments.times import parse_time

SomeCustomer = Annotated[str, Field(description="Only of this customer; empty for everybody's.", max_length=20)]


class RateView(TypedDict):
    """A rate of exchange and what an amount comes to."""

    base: str
    quote: str
    mid_rate: Annotated[float, Field(description="The market's rate, without the bank's margin.")]
    customer_rate: Annotated[float, Field(description="Units of quote that a customer gets for one of base.")]
    amount_cents: Annotated[int, Field(description="In base.")]
    converted_cents: Annotated[
        int, Field(description="What the amount comes to in the quote currency, at customer_rate.")
    ]


@tool(read_only=True, discovery=True)
def find_customer(
    world: World,
    /,
    query: Annotated[
        str, Field(description="Part of a name, email address, phone number or id; empty for all.", max_length=80)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[CustomerView]:
    """Find customers by a part of their name, email address, phone number or id. Several can have the same name."""
    wanted = query.strip().casefold()
    found = [
        row
        for row in world.rows(Customer)
        if wanted in f"{row.first} {row.last}\n{row.email}\n{row.phone}\n{row.id}".casefold()
    ]
    return page(found, customer_view, limit, cursor)


@tool(read_only=True, discovery=True)
def list_accounts(
    world: World,
    /,
    customer_id: SomeCustomer = "",
    status: Annotated[
        Literal["any", "active", "frozen", "closed"], Field(description="Only accounts in this status.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[AccountView]:
    """List accounts with their balances, of one customer or of all. An unknown customer fails with NOT_FOUND."""
    world = current(world)
    if customer_id:
        need_customer(world, customer_id)
    found = world.find(Account, customer_id=customer_id) if customer_id else list(world.rows(Account))
    if status != "any":
        found = [row for row in found if row.status == status]
    return page(found, account_view, limit, cursor)


@tool(read_only=True)
def get_account(world: World, /, account_id: AccountId) -> AccountDetails:
    """An account with balance, holds, what is left of its daily limit, its cards and its scheduled payments."""
    world = current(world)
    return account_details(world, need_account(world, account_id))


@tool(read_only=True, discovery=True)
def list_transactions(
    world: World,
    /,
    account_id: Annotated[str, Field(description="Only of this account; empty for all.", max_length=20)] = "",
    since: Annotated[str, Field(description="Not before this time (ISO 8601); empty: any.", max_length=40)] = "",
    until: Annotated[str, Field(description="Before this time (ISO 8601); empty: any.", max_length=40)] = "",
    kind: Annotated[
        Literal["any", "deposit", "withdrawal", "transfer_in", "transfer_out", "payment", "card"],
        Field(description="Only movements of this kind."),
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[TransactionView]:
    """List movements, the newest first. Negative amounts left the account. Warns with OUTSIDE_RECORDS if there is none
    because the time is before the records or ahead.
    """
    world = current(world)
    if account_id:
        need_account(world, account_id)
    found = world.find(Transaction, account_id=account_id) if account_id else list(world.rows(Transaction))
    if since or until:
        first = parse_time(since) if since else 0
        last = parse_time(until) if until else world.now + 1
        if first >= last:
            raise ToolError("BAD_TIME", f"since {since!r} is not before until {until or 'now'!r}")
        found = [row for row in found if first <= row.at < last]
        if not found and (why := outside_of_column(world, Transaction, "at", "movements", first, last)):
            world.warn("OUTSIDE_RECORDS", why)
    if kind != "any":
        found = [row for row in found if row.kind == kind]
    found.reverse()
    return page(found, transaction_view, limit, cursor)


@tool(read_only=True)
def get_exchange_rate(
    world: World,
    /,
    base: Annotated[Currency, Field(description="The currency that is given.")],
    quote: Annotated[Currency, Field(description="The currency that is received.")],
    amount_cents: Annotated[int, Field(description="An amount of base to convert.", ge=1, le=10**11)] = 10_000,
) -> RateView:
    """The mid rate, the rate that customers get, and what an amount of base comes to in quote."""
    if base == quote:
        return {
            "base": base,
            "quote": quote,
            "mid_rate": 1.0,
            "customer_rate": 1.0,
            "amount_cents": amount_cents,
            "converted_cents": amount_cents,
        }
    rate = need_rate(world, base, quote)
    return {
        "base": base,
        "quote": quote,
        "mid_rate": rate.mid_e6 / 1e6,
        "customer_rate": rate.customer_e6 / 1e6,
        "amount_cents": amount_cents,
        "converted_cents": amount_cents * rate.customer_e6 // 1_000_000,
    }


@tool(read_only=True, discovery=True)
def list_payees(
    world: World, /, customer_id: SomeCustomer = "", limit: Limit = 20, cursor: Cursor = ""
) -> Page[PayeeView]:
    """List whom customers may pay, with the status of each: only verified payees can be paid."""
    if customer_id:
        need_customer(world, customer_id)
    found = world.find(Payee, customer_id=customer_id) if customer_id else list(world.rows(Payee))
    now = world.now
    return page(found, lambda row: payee_view(row, now), limit, cursor)


LOOKUP: Final = (find_customer, list_accounts, get_account, list_transactions, get_exchange_rate, list_payees)
