"""What customers of the bank know: who they are, their secrets, and what they came for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.banking.iban import make_iban
from callwright_plugins.mcp_environments.banking.rows import Account, Credential, Customer
from callwright_plugins.mcp_environments.people import COMPANIES
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """What a customer knows, by id or address; ``me`` stands at the counter: the first who could pay at the start.

    ``pin``; ``otp``, the next one-time password, for customers with two factors; and wishes.
    """
    customer = at_the_counter(world) if entity == ME else _customer(world, entity)
    if customer is None:
        return None
    secret = world.get(Credential, customer.id)
    facts: dict[str, Any] = {
        "name": customer.name,
        "birth_date": customer.birth_date,
        "email": customer.email,
        "phone": customer.phone,
    }
    if secret is not None:
        facts["pin"] = secret.pin
        if secret.otps:
            facts["otp"] = secret.otps[0]
    rng = wishes(world, "banking", customer.id)
    digits = f"{rng.randrange(10**8):08d}{rng.randrange(10**10):010d}"
    return facts | {
        "spending_money_cents": rng.randrange(2, 16) * 1000,
        "savings_goal": rng.choice(("Sailing course", "New kitchen", "Grandparents", "Rail pass")),
        "new_payee_name": f"{rng.choice(COMPANIES)} Housing",
        "new_payee_iban": make_iban("DE", digits),
        "rent_cents": rng.randrange(450, 980) * 100,
        "rent_day": day_ahead(world, rng.randrange(3, 20)),
    }


def _customer(world: World, entity: str) -> Customer | None:
    found = world.get(Customer, entity)
    if found is None and "@" in entity:
        found = next((one for one in world.rows(Customer) if one.email == entity.lower()), None)
    return found


def at_the_counter(world: World) -> Customer | None:
    """The first customer who could pay at the start; else the first at all."""
    base = world.base
    for customer in base.rows(Customer).values():
        secret = base.rows(Credential).get(customer.id)
        if secret is None or secret.locked_until > base.now:
            continue
        accounts = base.rows_with(Account, "customer_id", customer.id).values()
        if any(account.status == "active" and account.kind != "savings" for account in accounts):
            return world.get(Customer, customer.id)
    return next(iter(world.rows(Customer)), None)
