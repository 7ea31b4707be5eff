"""What the person knows who keeps a budget: receipts in the pocket, and what things may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.budget.rows import Category
from callwright_plugins.mcp_environments.wishes import ME, day_ahead, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """A receipt, a subscription that begins, and what a category shall get in a month."""
    if entity != ME:
        return None
    rng = wishes(world, "budget")
    facts: dict[str, Any] = {}
    names = [row.name for row in world.base.rows(Category).values() if not row.archived]
    if names:
        facts["receipt_category"] = rng.choice(names)
    return facts | {
        "receipt_cents": rng.randrange(350, 6800),
        "receipt_description": rng.choice(("Bicycle tube", "Birthday flowers", "Paint and brushes", "Ferry tickets")),
        "receipt_day": day_ahead(world, -1),
        "monthly_limit_cents": rng.randrange(4, 30) * 1000,
        "subscription_description": rng.choice(("Choir", "Allotment", "Newspaper", "Climbing hall")),
        "subscription_cents": rng.randrange(6, 45) * 100,
        "subscription_first_day": day_ahead(world, rng.randrange(5, 25)),
        "new_category": rng.choice(("Presents", "Dentist", "Moving house", "Instruments")),
    }
