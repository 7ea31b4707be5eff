"""What the customer of the shop knows: the security codes of the cards, and what is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import PaymentMethod, Profile
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """Who the customer is, the card that they pay with, its code, and wishes; of a card, by id: its code."""
    if entity != ME:
        card = world.get(PaymentMethod, entity)
        return None if card is None else {"card_last4": card.last4, "cvv": card.cvv}
    profile = world.get(Profile, ME)
    if profile is None:
        return None
    rng = wishes(world, "shopping")
    facts: dict[str, Any] = {"name": profile.name, "email": profile.email}
    cards = [card for card in world.base.rows(PaymentMethod).values() if card.kind == "card"]
    good = [card for card in cards if not card.blocked and card.expires_at > world.base.now]
    if cards:
        card = max(good or cards, key=lambda one: one.available_cents)
        facts |= {"card_last4": card.last4, "cvv": card.cvv}
    return facts | {
        "budget_cents": rng.randrange(4, 30) * 1000,
        "size": rng.choice(("S", "M", "L")),
        "colour": rng.choice(("black", "blue", "green", "red")),
        "least_rating": rng.choice((3.5, 4.0)),
        "needs_it_fast": rng.random() < 0.3,
    }
