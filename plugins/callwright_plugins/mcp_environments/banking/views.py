"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.banking.ledger import limit_left, payee_status
from callwright_plugins.mcp_environments.banking.rows import (
    Account,
    Card,
    Customer,
    Payee,
    ScheduledPayment,
    Transaction,
)
from callwright_plugins.mcp_environments.times import iso


class CustomerView(TypedDict):
    """A customer."""

    customer_id: str
    name: str
    email: str
    phone: str
    city: str
    birth_date: str
    two_factor: Annotated[bool, Field(description="Whether verify_identity needs otp, too.")]


class AccountView(TypedDict):
    """An account with what it can spend."""

    account_id: str
    customer_id: str
    kind: str
    nickname: str
    iban: str
    currency: str
    balance_cents: Annotated[int, Field(description="Holds not taken off, overdraft not added.")]
    available_cents: Annotated[int, Field(description="What can be spent: balance less holds plus overdraft.")]
    status: Annotated[str, Field(description="Only an active one pays and receives.")]


class CardView(TypedDict):
    """A card."""

    card_id: str
    account_id: str
    last4: str
    status: Annotated[str, Field(description="Lost and stolen are final.")]
    expires: Annotated[str, Field(description="Last month, year first.")]


class ScheduledView(TypedDict):
    """A scheduled payment; ``next_at`` is empty unless it is pending."""

    scheduled_payment_id: str
    account_id: str
    payee_id: str
    amount_cents: Annotated[int, Field(description="Each time.")]
    repeat: str
    next_at: Annotated[str, Field(description="When it is paid next; empty once it is over.")]
    runs_left: Annotated[int, Field(description="Times that it is still to be paid; 0 once it is over.")]
    runs_made: int
    status: str
    last_failure: Annotated[
        str, Field(description="Code of the last payment that could not be made; empty if there is none.")
    ]


class AccountDetails(AccountView):
    """An account with holds, limits, cards and scheduled payments."""

    held_cents: Annotated[int, Field(description="Reserved on the account; it cannot be spent.")]
    overdraft_cents: Annotated[int, Field(description="How far below zero the account may go.")]
    daily_limit_cents: Annotated[int, Field(description="Of cash, payments and transfers to others, each day (UTC).")]
    daily_limit_left_cents: Annotated[int, Field(description="What may still go out today.")]
    opened_at: str
    cards: list[CardView]
    scheduled_payments: list[ScheduledView]


class TransactionView(TypedDict):
    """A movement; negative amounts leave the account."""

    transaction_id: str
    account_id: str
    kind: str
    amount_cents: Annotated[int, Field(description="In the currency of the account; negative: it left the account.")]
    balance_after_cents: Annotated[int, Field(description="Of the account, holds not taken off.")]
    at: Annotated[str, Field(description="UTC.")]
    description: str
    counterparty: Annotated[str, Field(description="Who or what is on the other side.")]


class PayeeView(TypedDict):
    """A payee; it can be paid when its status is ``verified``."""

    payee_id: str
    customer_id: str
    name: str
    iban: str
    currency: str
    status: Annotated[str, Field(description="Only a verified one can be paid.")]
    verified_from: Annotated[
        str, Field(description="From when on it can be paid; empty if its name is not the account's.")
    ]


def customer_view(row: Customer) -> CustomerView:
    """A customer as tools show it."""
    return {
        "customer_id": row.id,
        "name": row.name,
        "email": row.email,
        "phone": row.phone,
        "city": row.city,
        "birth_date": row.birth_date,
        "two_factor": row.two_factor,
    }


def account_view(row: Account) -> AccountView:
    """An account as tools show it."""
    return {
        "account_id": row.id,
        "customer_id": row.customer_id,
        "kind": row.kind,
        "nickname": row.nickname,
        "iban": row.iban,
        "currency": row.currency,
        "balance_cents": row.balance_cents,
        "available_cents": max(0, row.available_cents),
        "status": row.status,
    }


def account_details(world: World, row: Account) -> AccountDetails:
    """An account with all that belongs to it."""
    return {
        **account_view(row),
        "held_cents": row.held_cents,
        "overdraft_cents": row.overdraft_cents,
        "daily_limit_cents": row.daily_limit_cents,
        "daily_limit_left_cents": limit_left(row, world.now),
        "opened_at": iso(row.opened_at),
        "cards": [card_view(card) for card in world.find(Card, account_id=row.id)],
        "scheduled_payments": [scheduled_view(one) for one in world.find(ScheduledPayment, account_id=row.id)],
    }


def card_view(row: Card) -> CardView:
    """A card as tools show it."""
    return {
        "card_id": row.id,
        "account_id": row.account_id,
        "last4": row.last4,
        "status": row.status,
        "expires": row.expires,
    }


def scheduled_view(row: ScheduledPayment) -> ScheduledView:
    """A scheduled payment as tools show it."""
    return {
        "scheduled_payment_id": row.id,
        "account_id": row.account_id,
        "payee_id": row.payee_id,
        "amount_cents": row.amount_cents,
        "repeat": row.repeat,
        "next_at": iso(row.due_at) if row.status == "pending" else "",
        "runs_left": row.left if row.status == "pending" else 0,
        "runs_made": row.runs,
        "status": row.status,
        "last_failure": row.last_failure,
    }


def transaction_view(row: Transaction) -> TransactionView:
    """A movement as tools show it."""
    return {
        "transaction_id": row.id,
        "account_id": row.account_id,
        "kind": row.kind,
        "amount_cents": row.amount_cents,
        "balance_after_cents": row.balance_after_cents,
        "at": iso(row.at),
        "description": row.description,
        "counterparty": row.counterparty,
    }


def payee_view(row: Payee, now: int) -> PayeeView:
    """A payee as tools show it at a time."""
    status = payee_status(row, now)
    return {
        "payee_id": row.id,
        "customer_id": row.customer_id,
        "name": row.name,
        "iban": row.iban,
        "currency": row.currency,
        "status": status,
        "verified_from": "" if status == "mismatch" else iso(row.verified_at),
    }
