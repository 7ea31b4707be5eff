"""The thirteen tools of the marketplace; here are those of sellers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.marketplace.auctions import (
    leading,
    me,
    note_due,
    refuse_ended,
    settle,
    try_bid,
    win,
)
from callwright_plugins.mcp_environments.marketplace.buying import BUYING, BidId
from callwright_plugins.mcp_environments.marketplace.lookup import LOOKUP, Category, ListingId, need_listing
from callwright_plugins.mcp_environments.marketplace.rows import Bid, Listing, SavedSearch
from callwright_plugins.mcp_environments.marketplace.views import ListingDetails, SaleView, listing_details, sale_view
from callwright_plugins.mcp_environments.times import HOUR

MOST_LISTINGS: Final = 50
#: How many saved searches bid on one new auction.
QUICK: Final = 3

Price = Annotated[int | None, Field(description="Price in cents; left out, none or as it is.", ge=1, le=10**9)]
Title = Annotated[str, Field(description="What it is.", min_length=3, max_length=100)]
Description = Annotated[str, Field(description="More about it.", max_length=2000)]


@tool
def create_listing(
    world: World,
    /,
    title: Title,
    category: Annotated[Category, Field(description="Its category.")],
    kind: Annotated[Literal["auction", "fixed"], Field(description="auction, or fixed for a buy-now price only.")],
    start_price_cents: Price = None,
    reserve_cents: Price = None,
    buy_now_cents: Price = None,
    duration_hours: Annotated[int, Field(description="How long it is open.", ge=1, le=240)] = 168,
    quantity: Annotated[int, Field(description="How many; 1 for an auction.", ge=1, le=1000)] = 1,
    condition: Annotated[Literal["new", "like_new", "used", "for_parts"], Field(description="Its state.")] = "used",
    description: Description = "",
) -> ListingDetails:
    """Offer something for sale.

    An auction needs a start price, a fixed listing a buy-now price. A reserve is at least the start price, a buy-now
    price of an auction above both. Saved searches of others may bid at once.
    """
    settle(world)
    user = me(world)
    _check_prices(kind, start_price_cents or 0, reserve_cents or 0, buy_now_cents or 0, quantity)
    if len(world.find(Listing, seller_id=user, status="open")) >= MOST_LISTINGS:
        raise ToolError("LISTING_LIMIT", f"you have {MOST_LISTINGS} open listings, the most there can be")
    listing = world.put(
        Listing(
            id=world.new_id(Listing),
            seller_id=user,
            title=title,
            category=category,
            condition=condition,
            kind=kind,
            start_cents=start_price_cents or 0,
            reserve_cents=reserve_cents or 0,
            buy_now_cents=buy_now_cents or 0,
            quantity=quantity,
            status="open",
            created_at=world.now,
            end_at=world.now + duration_hours * HOUR,
            description=description,
        )
    )
    note_due(world, listing.end_at)
    if kind == "auction":
        for search in world.find(SavedSearch, category=category)[:QUICK]:
            try_bid(world, world.need(Listing, listing.id), search.user_id, search.most_cents, world.now)
    return listing_details(world, world.need(Listing, listing.id), user)


@tool(idempotent=True)
def update_listing(
    world: World,
    /,
    listing_id: ListingId,
    title: Annotated[
        str | None, Field(description="New title; left out, it stays.", min_length=3, max_length=100)
    ] = None,
    description: Annotated[str | None, Field(description="New text; left out, it stays.", max_length=2000)] = None,
    start_price_cents: Price = None,
    reserve_cents: Annotated[
        int | None, Field(description="New reserve in cents, 0 for none; left out, it stays.", ge=0, le=10**9)
    ] = None,
    buy_now_cents: Price = None,
) -> ListingDetails:
    """Change an open listing of yours. Once it has bids only its reserve can be lowered (else HAS_BIDS)."""
    settle(world)
    listing = _own_listing(world, listing_id)
    reserve = listing.reserve_cents if reserve_cents is None else reserve_cents
    start = listing.start_cents if start_price_cents is None else start_price_cents
    buy = listing.buy_now_cents if buy_now_cents is None else buy_now_cents
    title = listing.title if title is None else title
    text = listing.description if description is None else description
    edited = (title, text, start, buy) != (
        listing.title,
        listing.description,
        listing.start_cents,
        listing.buy_now_cents,
    )
    if listing.leading_bid_id and (edited or reserve > listing.reserve_cents):
        raise ToolError("HAS_BIDS", f"{listing_id} has bids: only its reserve can change, and only to less")
    if not listing.leading_bid_id:
        _check_prices(listing.kind, start, reserve, buy, listing.quantity)
    listing = world.update(
        listing, title=title, description=text, start_cents=start, buy_now_cents=buy, reserve_cents=reserve
    )
    return listing_details(world, listing, listing.seller_id)


@tool(destructive=True)
def close_listing(world: World, /, listing_id: ListingId) -> ListingDetails:
    """Take an open listing of yours off the market. With bids that is not possible (HAS_BIDS)."""
    settle(world)
    listing = _own_listing(world, listing_id)
    if listing.leading_bid_id:
        raise ToolError("HAS_BIDS", f"{listing_id} has bids; accept the highest one or wait for the end")
    return listing_details(world, world.update(listing, status="closed"), listing.seller_id)


@tool(latency=2, irreversible=True)
def accept_bid(world: World, /, listing_id: ListingId, bid_id: BidId) -> SaleView:
    """End an auction of yours early by selling to the highest bidder. The bid must reach the reserve.

    Fails with RESERVE_NOT_MET below it; update_listing can lower the reserve.
    """
    settle(world)
    listing = _own_listing(world, listing_id)
    bid = world.need(Bid, bid_id, message=f"there is no bid {bid_id!r}; list_bids names those on a listing")
    if bid.listing_id != listing_id:
        raise ToolError("NOT_FOUND", f"the bid {bid_id} is on {bid.listing_id}, not on {listing_id}")
    highest = leading(world, listing)
    if highest is None or bid.id != highest.id:
        better = f"{highest.id} leads" if highest else "no bid leads"
        raise ToolError("INVALID_STATE", f"the bid {bid_id} is {bid.status}; {better}")
    if bid.amount_cents < listing.reserve_cents:
        raise ToolError(
            "RESERVE_NOT_MET",
            f"the bid of {bid.amount_cents} cents is below your reserve of {listing.reserve_cents}; lower it first",
        )
    return sale_view(world, win(world, listing, bid, world.now))


def _own_listing(world: World, listing_id: str) -> Listing:
    listing = need_listing(world, listing_id)
    if listing.seller_id != me(world):
        raise ToolError("NOT_SELLER", f"{listing_id} is sold by {listing.seller_id}, not by you")
    refuse_ended(listing)
    return listing


def _check_prices(kind: str, start: int, reserve: int, buy_now: int, quantity: int) -> None:
    if kind == "fixed":
        if not buy_now or start or reserve:
            raise ToolError("INVALID_PRICE", "a fixed listing has a buy-now price, and neither start price nor reserve")
        return
    if not start:
        raise ToolError("INVALID_PRICE", "an auction needs a start price")
    if quantity != 1:
        raise ToolError("INVALID_STATE", f"an auction sells one piece, not {quantity}")
    if reserve and reserve < start:
        raise ToolError("INVALID_PRICE", f"the reserve of {reserve} cents is below the start price of {start}")
    if buy_now and buy_now <= max(start, reserve):
        raise ToolError("INVALID_PRICE", f"the buy-now price of {buy_now} cents is not above {max(start, reserve)}")


TOOLS: Final = [*LOOKUP, create_listing, update_listing, close_listing, accept_bid, *BUYING]
