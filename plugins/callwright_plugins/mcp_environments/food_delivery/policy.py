"""The rules of a food delivery service, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.food_delivery.rows import Profile

POLICY: Final = Policy(
    "You order food for the customer who is signed in. Money is in cents; nothing is ordered, tipped or rated unasked.",
    (
        Rule("A restaurant delivers to the districts of its zones only.", "OUT_OF_ZONE"),
        Rule("Baskets are begun and ordered while the restaurant is open and not paused.", "RESTAURANT_CLOSED"),
        Rule("There is one open basket; another one replaces it only if the call says so.", "BASKET_OPEN"),
        Rule("A basket holds dishes of its own restaurant only.", "WRONG_RESTAURANT"),
        Rule("What is sold out, or on a menu that is not served at this hour, cannot be ordered.", "ITEM_UNAVAILABLE"),
        Rule("Options that a dish requires are chosen by the customer.", "REQUIRED_OPTION_MISSING"),
        Rule("One line takes at most 20 of a dish.", "QUANTITY_LIMIT"),
        Rule("The food of a basket reaches the minimum order of the zone.", "BELOW_MINIMUM"),
        Rule("Promo codes count until they expire.", "PROMO_EXPIRED"),
        Rule("Many promo codes need a spend of food first.", "PROMO_MIN_SPEND"),
        Rule("Card payments need the security code, which only the customer knows.", "BAD_CVV"),
        Rule("Orders can be cancelled until the kitchen begins.", "ORDER_PREPARING"),
        Rule("The courier is tipped once, until a day after delivery.", "ALREADY_TIPPED"),
        Rule("Orders are rated once, after delivery and within 14 days.", "NOT_DELIVERED"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    profile = world.need(Profile, "me")
    return f"{profile.name}, card ending in {profile.card_last4}"
