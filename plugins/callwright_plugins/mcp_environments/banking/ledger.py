"""Moving money: what must hold before, and the rows that change."""

from __future__ import annotations

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.banking.iban import is_own
from callwright_plugins.mcp_environments.banking.rows import Account, FxRate, Payee, Transaction
from callwright_plugins.mcp_environments.times import DAY, iso


def limit_left(account: Account, at: int) -> int:
    """What may still be spent on the day of ``at``, in cents."""
    spent = account.spent_cents if account.spent_day == at // DAY else 0
    return max(0, account.daily_limit_cents - spent)


def refuse_unusable(account: Account) -> None:
    """Fails with ``ACCOUNT_FROZEN`` or, for a closed account, ``INVALID_STATE``."""
    if account.status == "frozen":
        raise ToolError("ACCOUNT_FROZEN", f"the account {account.id} is frozen: it neither pays nor receives")
    if account.status != "active":
        raise ToolError("INVALID_STATE", f"the account {account.id} is {account.status}")


def check_debit(account: Account, amount_cents: int, at: int, *, limited: bool) -> None:
    """Fails unless the account can pay: ``DAILY_LIMIT``, ``INSUFFICIENT_FUNDS``, and as :func:`refuse_unusable`."""
    refuse_unusable(account)
    left = limit_left(account, at)
    if limited and amount_cents > left:
        raise ToolError(
            "DAILY_LIMIT",
            f"the account {account.id} may spend {left} more cents today (limit {account.daily_limit_cents}), "
            f"not {amount_cents}",
        )
    if amount_cents > account.available_cents:
        raise ToolError(
            "INSUFFICIENT_FUNDS",
            f"the account {account.id} has {max(0, account.available_cents)} cents available (balance "
            f"{account.balance_cents}, held {account.held_cents}, overdraft {account.overdraft_cents}), "
            f"not {amount_cents}",
        )


def post(world: World, account: Account, kind: str, amount_cents: int, at: int, text: str, other: str) -> Transaction:
    """Write a movement and the new balance."""
    changed = world.update(account, balance_cents=account.balance_cents + amount_cents)
    return world.put(
        Transaction(
            id=world.new_id(Transaction),
            account_id=account.id,
            kind=kind,
            amount_cents=amount_cents,
            balance_after_cents=changed.balance_cents,
            at=at,
            description=text,
            counterparty=other,
        )
    )


def spend(
    world: World, account: Account, kind: str, amount_cents: int, at: int, text: str, other: str, *, limited: bool
) -> Transaction:
    """Check, count against the limit, and write."""
    check_debit(account, amount_cents, at, limited=limited)
    if limited:
        before = account.spent_cents if account.spent_day == at // DAY else 0
        account = world.update(account, spent_day=at // DAY, spent_cents=before + amount_cents)
    return post(world, account, kind, -amount_cents, at, text, other)


def converted(world: World, amount_cents: int, base: str, quote: str, convert: bool) -> int:
    """What the other side gets. Fails with ``CURRENCY_MISMATCH``, or ``NOT_FOUND`` where the bank has no rate."""
    if base == quote:
        return amount_cents
    if not convert:
        raise ToolError(
            "CURRENCY_MISMATCH", f"the money is {base}, the other side takes {quote}; set convert to exchange it"
        )
    received = amount_cents * need_rate(world, base, quote).customer_e6 // 1_000_000
    if received == 0:
        raise ToolError("INVALID_AMOUNT", f"{amount_cents} cents of {base} are less than one cent of {quote}")
    return received


def need_rate(world: World, base: str, quote: str) -> FxRate:
    """The rate, or ``NOT_FOUND``."""
    return world.need(FxRate, f"{base}/{quote}", message=f"the bank does not exchange {base} for {quote}")


def payee_status(payee: Payee, at: int) -> str:
    """``verified``, ``pending`` or ``mismatch``."""
    if not payee.matches:
        return "mismatch"
    return "verified" if at >= payee.verified_at else "pending"


def house_account(world: World, iban: str) -> Account | None:
    """The account of this bank with this number."""
    return next(iter(world.find(Account, iban=iban)), None) if is_own(iban) else None


def pay(
    world: World, account: Account, payee: Payee, amount_cents: int, at: int, text: str, *, convert: bool
) -> tuple[Transaction, int]:
    """Pay a payee at a time; the movement and what the payee gets. Fails as :func:`check_debit`, and more.

    ``PAYEE_UNVERIFIED``, ``CURRENCY_MISMATCH``, and ``INVALID_STATE`` for savings accounts.
    """
    if account.kind == "savings":
        raise ToolError(
            "INVALID_STATE", f"the savings account {account.id} pays no payees; transfer_funds to an own account first"
        )
    if payee_status(payee, at) == "mismatch":
        raise ToolError(
            "PAYEE_UNVERIFIED",
            f"the account of payee {payee.id} is not in the name of {payee.name!r}; remove it and add the right one",
        )
    if payee_status(payee, at) == "pending":
        raise ToolError(
            "PAYEE_UNVERIFIED", f"the payee {payee.id} is verified from {iso(payee.verified_at)} on; pay after that"
        )
    received = converted(world, amount_cents, account.currency, payee.currency, convert)
    target = house_account(world, payee.iban)
    if target is not None:
        refuse_unusable(target)
        if target.id == account.id:
            raise ToolError("INVALID_STATE", f"payee {payee.id} is the account {account.id} itself")
    paid = spend(world, account, "payment", amount_cents, at, text, payee.name, limited=True)
    if target is not None:
        post(world, target, "transfer_in", received, at, text, account.iban)
    return paid, received
