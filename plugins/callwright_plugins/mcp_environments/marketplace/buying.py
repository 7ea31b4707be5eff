"""Tools of buyers, and feedback."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.marketplace.auctions import (
    could_hold,
    enter_bid,
    hold,
    leading,
    least_bid,
    me,
    refuse_ended,
    release,
    sell,
    settle,
)
from callwright_plugins.mcp_environments.marketplace.lookup import ListingId, need_listing
from callwright_plugins.mcp_environments.marketplace.rows import Bid, Feedback, Listing, Sale, User, Wallet
from callwright_plugins.mcp_environments.marketplace.views import (
    BidView,
    FeedbackView,
    SaleView,
    bid_view,
    feedback_view,
    sale_view,
)
from callwright_plugins.mcp_environments.times import HOUR, iso

WITHDRAWAL: Final = 12 * HOUR
FEEDBACK_WINDOW: Final = 60 * 24 * HOUR

BidId = Annotated[str, Field(description="Id of a bid, such as B00012.", max_length=20)]


class PlacedBid(BidView):
    """A bid, and when the auction ends now."""

    ends_at: str
    reserve_met: Annotated[bool, Field(description="Whether the highest bid reaches the reserve.")]


@tool(latency=1)
def place_bid(
    world: World,
    /,
    listing_id: ListingId,
    amount_cents: Annotated[int, Field(description="What you offer in cents.", ge=1, le=10**10)],
) -> PlacedBid:
    """Bid at an auction. It must reach next_bid_cents of get_listing, and the money must be free in your wallet.

    The money is held while you lead. A bid in the last five minutes makes the auction longer.
    """
    settle(world)
    user = me(world)
    listing = need_listing(world, listing_id)
    _refuse_seller(world, listing, user)
    if listing.kind != "auction":
        raise ToolError("INVALID_STATE", f"the listing {listing_id} has a fixed price; use buy_now")
    least = least_bid(world, listing)
    if amount_cents < least:
        raise ToolError("BID_TOO_LOW", f"a bid on {listing_id} must be {least} cents or more, not {amount_cents}")
    if not could_hold(world, listing, user, amount_cents):
        raise ToolError("INSUFFICIENT_FUNDS", f"{_free(world, user)}, not {amount_cents}")
    bid = enter_bid(world, listing, user, amount_cents, world.now)
    ends_at = world.need(Listing, listing_id).end_at
    return {**bid_view(bid), "ends_at": iso(ends_at), "reserve_met": amount_cents >= listing.reserve_cents}


@tool(destructive=True)
def withdraw_bid(world: World, /, bid_id: BidId) -> BidView:
    """Withdraw your bids at an auction, until twelve hours before its end. Your money is free again.

    All your bids on that listing go, and the next highest bidder leads.
    """
    settle(world)
    user = me(world)
    bid = world.need(Bid, bid_id, message=f"there is no bid {bid_id!r}; list_bids names yours")
    if bid.bidder_id != user:
        raise ToolError("PERMISSION_DENIED", f"the bid {bid_id} is not yours")
    listing = need_listing(world, bid.listing_id)
    refuse_ended(listing)
    if bid.status == "withdrawn":
        raise ToolError("INVALID_STATE", f"the bid {bid_id} is withdrawn already")
    if listing.end_at - world.now < WITHDRAWAL:
        raise ToolError(
            "WITHDRAWAL_CLOSED",
            f"{listing.id} ends at {iso(listing.end_at)}, in less than twelve hours; the bid stands",
        )
    before = leading(world, listing)
    for one in world.find(Bid, listing_id=listing.id, bidder_id=user):
        world.update(one, status="withdrawn")
    if before is not None and before.bidder_id == user:
        hold(world, user, -before.amount_cents)
        _promote(world, listing)
    return bid_view(world.need(Bid, bid_id))


@tool(latency=3, irreversible=True)
def buy_now(
    world: World,
    /,
    listing_id: ListingId,
    quantity: Annotated[int, Field(description="How many; auctions sell one.", ge=1, le=1000)] = 1,
) -> SaleView:
    """Buy at the buy-now price. Of an auction that is possible until the first bid. The money goes into escrow."""
    settle(world)
    user = me(world)
    listing = need_listing(world, listing_id)
    _refuse_seller(world, listing, user)
    if not listing.buy_now_cents:
        raise ToolError("BUY_NOW_UNAVAILABLE", f"the auction {listing_id} has no buy-now price; use place_bid")
    if listing.leading_bid_id:
        raise ToolError("BUY_NOW_UNAVAILABLE", f"the auction {listing_id} has bids, so its buy-now price is gone")
    if quantity > listing.quantity:
        raise ToolError("OUT_OF_STOCK", f"{listing.quantity} of {listing_id} are left, not {quantity}")
    price = quantity * listing.buy_now_cents
    if price > world.need(Wallet, user).free_cents:
        raise ToolError("INSUFFICIENT_FUNDS", f"{_free(world, user)}, not {price}")
    left = listing.quantity - quantity
    world.update(listing, quantity=left, status="open" if left else "sold")
    return sale_view(world, sell(world, listing, user, price, quantity, world.now))


@tool(irreversible=True)
def leave_feedback(
    world: World,
    /,
    sale_id: Annotated[str, Field(description="Id of a sale, such as S00012.", max_length=20)],
    rating: Annotated[int, Field(description="1 (bad) to 5 (good).", ge=1, le=5)],
    comment: Annotated[str, Field(description="What others should know.", max_length=500)] = "",
) -> FeedbackView:
    """Rate the other side of a sale of yours, once, within 60 days. A buyer's feedback releases the escrow."""
    settle(world)
    user = me(world)
    sale = world.need(Sale, sale_id, message=f"there is no sale {sale_id!r}; list_my_purchases names yours")
    if user not in (sale.buyer_id, sale.seller_id):
        raise ToolError("PERMISSION_DENIED", f"you are neither buyer nor seller of {sale_id}")
    if world.get(Feedback, (sale_id, user)) is not None:
        raise ToolError("FEEDBACK_EXISTS", f"you have left feedback on {sale_id} already")
    if world.now >= sale.at + FEEDBACK_WINDOW:
        raise ToolError("FEEDBACK_CLOSED", f"{sale_id} was on {iso(sale.at)}, more than 60 days ago")
    other = world.need(User, sale.seller_id if user == sale.buyer_id else sale.buyer_id)
    world.update(other, stars=other.stars + rating, ratings=other.ratings + 1)
    if user == sale.buyer_id and sale.status == "escrow":
        release(world, sale)
    return feedback_view(world.put(Feedback(sale_id, user, other.id, rating, comment, world.now)))


def _refuse_seller(world: World, listing: Listing, user: str) -> None:
    refuse_ended(listing)
    if listing.seller_id == user:
        raise ToolError("SELF_BID", f"{listing.id} is your own listing")
    if world.need(User, listing.seller_id).suspended:
        raise ToolError("SELLER_SUSPENDED", f"the seller of {listing.id}, {listing.seller_id}, is suspended")


def _free(world: World, user: str) -> str:
    wallet = world.need(Wallet, user)
    return f"your wallet has {wallet.free_cents} cents free ({wallet.balance_cents} less {wallet.held_cents} held)"


def _promote(world: World, listing: Listing) -> None:
    """Let the highest bid that is still covered lead; those above it that are not are lost."""
    waiting = sorted(world.find(Bid, listing_id=listing.id, status="outbid"), key=lambda one: -one.amount_cents)
    for bid in waiting:
        if bid.amount_cents <= world.need(Wallet, bid.bidder_id).free_cents:
            hold(world, bid.bidder_id, bid.amount_cents)
            world.update(bid, status="leading")
            world.update(listing, leading_bid_id=bid.id)
            return
        world.update(bid, status="lost")
    world.update(listing, leading_bid_id="")


BUYING: Final = (place_bid, withdraw_bid, buy_now, leave_feedback)
