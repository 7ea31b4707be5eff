"""What the marketplace does by itself: others bid, auctions and listings end, escrow is released."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from callwright.environments.living.events import EventKind, Moment, Notice
from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.auctions import leading, me, settle
from callwright_plugins.mcp_environments.marketplace.rows import CLOCK, AuctionClock, Bid, Listing, Sale

#: Bids that led, open listings of the user, and sales in escrow of which the user is a side.
_Before: TypeAlias = tuple[list[Bid], list[Listing], list[Sale]]


def _due(world: World, since: Moment) -> Moment | None:
    clock = world.need(AuctionClock, CLOCK)
    return min(clock.rival_at, clock.due_at), CLOCK


def _run(world: World, key: str) -> _Before:
    """What the user had in it before."""
    user = me(world)
    bids = [bid for bid in world.find(Bid, bidder_id=user) if bid.status in ("leading", "outbid")]
    listings = world.find(Listing, seller_id=user, status="open")
    escrow = [sale for sale in world.find(Sale, status="escrow") if user in (sale.seller_id, sale.buyer_id)]
    settle(world)
    return bids, listings, escrow


def _tells(world: World, key: str, before: _Before) -> Iterable[Notice]:
    user, (bids, listings, escrow) = me(world), before
    for was in bids:
        bid = world.need(Bid, was.id)
        if bid.status != was.status:
            title = world.need(Listing, bid.listing_id)
            what = f"{title.title!r} ({title.id})"
            if bid.status == "outbid":
                yield Notice(f"You have been outbid on {what}; your bid {bid.id} was {bid.amount_cents} cents.")
            elif bid.status == "won":
                yield Notice(f"You have won {what} for {bid.amount_cents} cents, which are in escrow.")
            elif not any(other.status == "won" for other in world.find(Bid, listing_id=bid.listing_id, bidder_id=user)):
                yield Notice(f"The auction of {what} is over; your bid {bid.id} did not win.")
    for had in listings:
        listing = world.need(Listing, had.id)
        what = f"your listing {listing.title!r} ({listing.id})"
        highest = leading(world, listing)
        if listing.status == "sold" and highest is not None:
            yield Notice(f"The auction of {what} is over: sold for {highest.amount_cents} cents, which are in escrow.")
        elif listing.status != "open":
            yield Notice(f"The time of {what} is over: nothing was sold.")
        elif highest is not None and listing.leading_bid_id != had.leading_bid_id:
            yield Notice(f"There is a bid of {highest.amount_cents} cents on {what}.")
    for sale in escrow:
        if world.need(Sale, sale.id).status == "released":
            side = "you" if sale.seller_id == user else "the seller"
            yield Notice(f"The escrow of sale {sale.id} is released: {side} got the money.")


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind(
        "auctions",
        "Somebody else bids, a listing ends, or escrow is released: bidder, seller and buyer are told of their own.",
        _due,
        _tells,
        _run,
    ),
)
