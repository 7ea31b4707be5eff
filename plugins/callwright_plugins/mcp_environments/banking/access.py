"""Who may do what: secrets, tokens, locks, and whose account it is."""

from __future__ import annotations

from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.banking.rows import Account, AuthToken, Credential, Customer, Payee
from callwright_plugins.mcp_environments.times import DAY, MINUTE, iso

TOKEN_LIFE: Final = 15 * MINUTE
LOCK: Final = DAY
ATTEMPTS: Final = 3


def need_customer(world: World, customer_id: str) -> Customer:
    """The customer, or ``NOT_FOUND``."""
    return world.need(Customer, customer_id, message=f"there is no customer {customer_id!r}; find_customer finds them")


def need_account(world: World, account_id: str) -> Account:
    """The account, or ``NOT_FOUND``."""
    return world.need(Account, account_id, message=f"there is no account {account_id!r}; list_accounts names them")


def authorised(world: World, auth_token: str) -> Customer:
    """The customer who was given this token. Fails with ``AUTH_REQUIRED``, ``TOKEN_EXPIRED`` or ``LOCKED``."""
    token = world.get(AuthToken, auth_token)
    if token is None:
        raise ToolError("AUTH_REQUIRED", "this is no token of the bank; verify_identity gives one")
    if world.now >= token.expires_at:
        raise ToolError("TOKEN_EXPIRED", f"the token expired at {iso(token.expires_at)}; call verify_identity again")
    refuse_locked(world, need_credential(world, token.customer_id))
    return need_customer(world, token.customer_id)


def own_account(world: World, customer: Customer, account_id: str) -> Account:
    """An account of the customer. Fails with ``NOT_FOUND`` or ``PERMISSION_DENIED``."""
    account = need_account(world, account_id)
    if account.customer_id != customer.id:
        raise ToolError("PERMISSION_DENIED", f"the account {account_id} is not one of customer {customer.id}")
    return account


def own_payee(world: World, customer: Customer, payee_id: str) -> Payee:
    """A payee of the customer. Fails with ``NOT_FOUND`` or ``PERMISSION_DENIED``."""
    payee = world.need(Payee, payee_id, message=f"there is no payee {payee_id!r}; list_payees names them")
    if payee.customer_id != customer.id:
        raise ToolError("PERMISSION_DENIED", f"the payee {payee_id} is not one of customer {customer.id}")
    return payee


def need_credential(world: World, customer_id: str) -> Credential:
    """The secrets of a customer, or ``NOT_FOUND``."""
    return world.need(
        Credential, customer_id, message=f"customer {customer_id} has no PIN yet and must come to a branch"
    )


def refuse_locked(world: World, credential: Credential) -> None:
    """Fails with ``LOCKED`` while too many wrong secrets are remembered."""
    if world.now < credential.locked_until:
        raise ToolError(
            "LOCKED",
            f"customer {credential.customer_id} is locked until {iso(credential.locked_until)} after {ATTEMPTS} wrong "
            "secrets; nothing can be done before",
        )


def count_wrong(world: World, credential: Credential) -> Credential:
    """Remember a wrong secret; the last one that is allowed locks."""
    failed = credential.failed + 1
    if failed >= ATTEMPTS:
        return world.update(credential, failed=0, locked_until=world.now + LOCK)
    return world.update(credential, failed=failed)


def attempts_left(world: World, credential: Credential) -> int:
    """How many wrong secrets are still allowed."""
    return 0 if world.now < credential.locked_until else ATTEMPTS - credential.failed
