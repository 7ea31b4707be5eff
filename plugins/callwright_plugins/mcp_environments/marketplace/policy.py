"""The rules of a marketplace, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.rows import Profile, User

POLICY: Final = Policy(
    "You buy and sell on a marketplace for the person who is signed in. Money is in cents; bids bind.",
    (
        Rule(
            "A bid exceeds the highest one by the increment of its price; the first reaches the start price.",
            "BID_TOO_LOW",
        ),
        Rule("Nobody bids on or buys what they sell.", "SELF_BID"),
        Rule(
            "The highest bid is held in the wallet; nobody bids or buys beyond what is free there.",
            "INSUFFICIENT_FUNDS",
        ),
        Rule("After the end of an auction there are no bids.", "AUCTION_ENDED"),
        Rule("With the first bid the buy-now price of an auction is gone.", "BUY_NOW_UNAVAILABLE"),
        Rule("Bids are withdrawn until twelve hours before the end.", "WITHDRAWAL_CLOSED"),
        Rule("Everybody withdraws their own bids only.", "PERMISSION_DENIED"),
        Rule("Only the seller changes or closes a listing.", "NOT_SELLER"),
        Rule("With bids a listing is neither closed nor edited, except that its reserve may be lowered.", "HAS_BIDS"),
        Rule("A bid is accepted before the end only from the reserve on.", "RESERVE_NOT_MET"),
        Rule("Nothing is bought of a seller who is suspended.", "SELLER_SUSPENDED"),
        Rule("A sale gets one feedback of each side, within 60 days.", "FEEDBACK_EXISTS"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    user = world.need(User, world.need(Profile, "me").user_id)
    return f"{user.name} from {user.city}, user {user.id}"
