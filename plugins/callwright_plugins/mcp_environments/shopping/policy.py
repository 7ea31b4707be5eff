"""The rules of an online shop, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.shopping.rows import Profile

POLICY: Final = Policy(
    "You shop for the customer who is signed in. Money is in cents; nothing is bought or sent back unasked.",
    (
        Rule("Nothing is sold that is not in stock; a cart reserves nothing.", "OUT_OF_STOCK"),
        Rule("An order takes at most as many of a product as its limit, over all variants.", "QUANTITY_LIMIT"),
        Rule("Coupons and checkout need goods in the cart.", "EMPTY_CART"),
        Rule("A cart has a shipping address before checkout.", "ADDRESS_REQUIRED"),
        Rule("The shop does not ship to every region.", "ADDRESS_UNSHIPPABLE"),
        Rule("A card pays with its security code, which only the customer knows.", "BAD_CVV"),
        Rule(
            "Blocked or expired cards, and those with too little, are declined; another one may pay.",
            "CARD_DECLINED",
        ),
        Rule("Coupons count from their start to their end.", "COUPON_EXPIRED"),
        Rule("Many coupons need a spend of goods first.", "MIN_SPEND"),
        Rule("Two coupons go together only if both are stackable.", "NOT_STACKABLE"),
        Rule("Orders can be cancelled until they are shipped.", "ORDER_SHIPPED"),
        Rule("Only what was delivered can be returned.", "NOT_DELIVERED"),
        Rule("Goods are returned within the return days of their category.", "RETURN_WINDOW_CLOSED"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    profile = world.need(Profile, "me")
    return f"{profile.name} ({profile.email})"
