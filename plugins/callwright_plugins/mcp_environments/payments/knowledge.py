"""What the merchant knows: what was agreed with customers, and how it bills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.payments.rows import Customer
from callwright_plugins.mcp_environments.wishes import ME, wishes

_WORK = ("Site survey", "Wiring", "Painting", "Cleaning", "Garden work", "Repairs", "Delivery", "Training")


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """How the merchant bills (``me``), and what was agreed with a customer, by id, name or address."""
    if entity == ME:
        rng = wishes(world, "payments")
        return {
            "currency": rng.choice(("EUR", "EUR", "USD", "GBP")),
            "payment_terms_days": rng.choice((7, 14, 21, 30)),
            "goodwill_cents": rng.randrange(1, 9) * 500,
            "webhook_url": f"https://books.example/hooks/{rng.randrange(1000, 10_000)}",
            "memo": rng.choice(("Thank you for your trust.", "Please name the invoice number.", "Due on receipt.")),
        }
    customer = world.get(Customer, entity)
    if customer is None:
        same = [one for one in world.rows(Customer) if entity in (one.name, one.email)]
        if len(same) != 1:
            return None
        customer = same[0]
    rng = wishes(world, "payments", customer.id)
    lines = [
        {
            "description": text,
            "quantity": rng.randrange(1, 9),
            "unit_price_cents": rng.randrange(20, 160) * 100,
            "tax_bps": rng.choice((0, 700, 1900)),
        }
        for text in rng.sample(_WORK, rng.choice((1, 2, 2)))
    ]
    return {"name": customer.name, "agreed_lines": lines}
