"""What the hungry know: the code of the card, what they may not eat, and what they want to spend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.food_delivery.rows import Profile
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the customer is, the security code of their card, diet and allergy, money, and a word for the courier."""
    profile = world.get(Profile, ME)
    if entity != ME or profile is None:
        return None
    rng = wishes(world, "food_delivery")
    return {
        "name": profile.name,
        "phone": profile.phone,
        "cvv": profile.card_cvv,
        "payment": rng.choice(("card", "card", "cash")),
        "vegetarian": rng.random() < 0.4,
        "allergy": rng.choice(("nuts", "sesame", "shellfish", "none")),
        "budget_cents": rng.randrange(18, 60) * 100,
        "people": rng.choice((1, 2, 2, 4)),
        "tip_cents": rng.choice((100, 150, 250)),
        "kitchen_note": rng.choice(("no onions, please", "extra napkins", "mild, please")),
        "food_stars": rng.choice((3, 4, 5)),
        "verdict": rng.choice(("Arrived cold.", "As good as ever.", "The rice was missing.")),
    }
