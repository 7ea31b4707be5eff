"""Tools that move money now."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.banking.access import authorised, need_account, own_account, own_payee
from callwright_plugins.mcp_environments.banking.ledger import (
    check_debit,
    converted,
    pay,
    post,
    refuse_unusable,
    spend,
)
from callwright_plugins.mcp_environments.banking.parameters import (
    AccountId,
    Amount,
    Convert,
    Currency,
    PayeeId,
    Text,
    Token,
)
from callwright_plugins.mcp_environments.banking.rows import Account
from callwright_plugins.mcp_environments.banking.schedule import settle
from callwright_plugins.mcp_environments.banking.views import TransactionView, transaction_view

#: The smallest note that the counter gives out, in cents.
NOTE: Final = 500


class Sent(TypedDict):
    """A movement of money to somebody: what left, and what arrived in which currency."""

    transaction: TransactionView
    received_cents: Annotated[int, Field(description="What arrives, in received_currency.")]
    received_currency: str


@tool(latency=30)
def deposit_cash(
    world: World,
    /,
    auth_token: Token,
    account_id: AccountId,
    amount_cents: Annotated[int, Field(description="Cash in cents.", ge=1, le=100_000_000)],
    currency: Annotated[Currency, Field(description="Currency of the cash; it must be the account's.")],
) -> TransactionView:
    """Pay cash into an account of the customer, in the account's currency."""
    settle(world)
    account = own_account(world, authorised(world, auth_token), account_id)
    refuse_unusable(account)
    if currency != account.currency:
        raise ToolError("CURRENCY_MISMATCH", f"the account {account_id} takes {account.currency}, not {currency}")
    return transaction_view(post(world, account, "deposit", amount_cents, world.now, "Cash deposit", "counter"))


@tool(latency=20)
def withdraw_cash(
    world: World,
    /,
    auth_token: Token,
    account_id: AccountId,
    amount_cents: Annotated[int, Field(description="Cash in cents, a multiple of 500.", ge=NOTE, le=100_000_000)],
) -> TransactionView:
    """Take cash in notes (multiples of 500 cents) from an account of the customer, within its daily limit."""
    settle(world)
    account = own_account(world, authorised(world, auth_token), account_id)
    if amount_cents % NOTE:
        raise ToolError("INVALID_AMOUNT", f"cash comes in multiples of {NOTE} cents, not {amount_cents}")
    return transaction_view(
        spend(world, account, "withdrawal", amount_cents, world.now, "Cash withdrawal", "counter", limited=True)
    )


@tool(latency=2, irreversible=True)
def transfer_funds(
    world: World,
    /,
    auth_token: Token,
    from_account_id: AccountId,
    to_account_id: Annotated[str, Field(description="Id of any account of this bank.", max_length=20)],
    amount_cents: Amount,
    description: Text = "",
    convert: Convert = False,
) -> Sent:
    """Move money from an account of the customer to any account of this bank, at once.

    Transfers to other people count against the daily limit and cannot come from savings accounts. Between two
    currencies convert must be true.
    """
    settle(world)
    customer = authorised(world, auth_token)
    source = own_account(world, customer, from_account_id)
    if from_account_id == to_account_id:
        raise ToolError("SAME_ACCOUNT", f"{from_account_id} cannot pay itself")
    target = need_account(world, to_account_id)
    own = target.customer_id == customer.id
    if source.kind == "savings" and not own:
        raise ToolError("INVALID_STATE", f"the savings account {source.id} pays only into accounts of its owner")
    received = converted(world, amount_cents, source.currency, target.currency, convert)
    check_debit(source, amount_cents, world.now, limited=not own)
    refuse_unusable(target)
    sent = spend(world, source, "transfer_out", amount_cents, world.now, description, target.iban, limited=not own)
    post(world, world.need(Account, target.id), "transfer_in", received, world.now, description, source.iban)
    return {
        "transaction": transaction_view(sent),
        "received_cents": received,
        "received_currency": target.currency,
    }


@tool(latency=2, irreversible=True)
def pay_payee(
    world: World,
    /,
    auth_token: Token,
    from_account_id: AccountId,
    payee_id: PayeeId,
    amount_cents: Amount,
    description: Text = "",
    convert: Convert = False,
) -> Sent:
    """Pay one of the customer's verified payees at once. It counts against the daily limit."""
    settle(world)
    customer = authorised(world, auth_token)
    source = own_account(world, customer, from_account_id)
    payee = own_payee(world, customer, payee_id)
    paid, received = pay(world, source, payee, amount_cents, world.now, description, convert=convert)
    return {
        "transaction": transaction_view(paid),
        "received_cents": received,
        "received_currency": payee.currency,
    }


MONEY: Final = (deposit_cash, withdraw_cash, transfer_funds, pay_payee)
