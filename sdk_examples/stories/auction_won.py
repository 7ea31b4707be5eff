"""An auction is won: a bid, somebody bids more, another bid, and waiting.

Run: python sdk_examples/stories/auction_won.py
"""

import re

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

DAY = 86_400


def agent() -> Agent:
    found = yield ask("search_listings", query="comet armchair", kind="auction")
    armchair = min(found.value["items"], key=lambda one: one["ends_at"])["listing_id"]
    listing = yield ask("get_listing", listing_id=armchair)
    yield ask("place_bid", listing_id=armchair, amount_cents=listing.value["next_bid_cents"])
    yield f"You lead with {euros(listing.value['next_bid_cents'])}. The auction ends at {listing.value['ends_at']}."
    now = yield ask("get_listing", listing_id=armchair)
    if any(re.search(f"outbid.*{armchair}", notice) for notice in now.notices):
        yield ask("place_bid", listing_id=armchair, amount_cents=now.value["next_bid_cents"])
        yield f"Somebody had bid more; you lead again with {euros(now.value['next_bid_cents'])}."
    bought = yield ask("list_my_purchases", status="escrow")
    sale = next(one for one in bought.value["items"] if one["listing_id"] == armchair)
    yield f"It is yours for {euros(sale['price_cents'])}; the money waits in escrow until you have it."


def euros(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


STORY = Story(
    title="An auction won",
    environment="marketplace",
    query="There is a Comet Armchair at auction that ends soon. Get it for me, for 300.00 at the most.",
    agent=agent,
    later=("Fine. It is the next day: how do we stand?", "And now, a day later?"),
    clock=ClockPolicy(jumps=(DAY, DAY)),
    goal={
        "holds": [
            {
                "table": "sales",
                "where": {"listing_id": "L00083", "buyer_id": "U00001"},
                "has": {"price_cents": {"at_most": 30_000}, "status": "escrow"},
                "count": 1,
            },
            # Two bids for it, and none for anything else: nothing is held behind them.
            {"table": "wallets", "where": {"user_id": "U00001"}, "has": {"held_cents": 0}},
            {"table": "bids", "where": {"bidder_id": "U00001", "listing_id": "L00083"}, "count": 2},
        ],
        "nothing_else": False,  # the market goes on by itself
    },
    tells="Comet Armchair",
)

if __name__ == "__main__":
    tell(STORY)
