"""Tools that only read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.marketplace.auctions import current, me
from callwright_plugins.mcp_environments.marketplace.rows import Bid, Feedback, Listing, Sale, User, Wallet
from callwright_plugins.mcp_environments.marketplace.views import (
    BidView,
    ListingDetails,
    ListingView,
    SaleView,
    SellerView,
    bid_view,
    feedback_view,
    listing_details,
    listing_view,
    rating,
    sale_view,
)
from callwright_plugins.mcp_environments.times import iso

Category = Literal["art", "books", "electronics", "furniture", "music", "sports", "toys", "watches"]
ListingId = Annotated[str, Field(description="Id of a listing, such as L00012.", max_length=20)]


def need_listing(world: World, listing_id: str) -> Listing:
    """The listing, or ``NOT_FOUND``."""
    return world.need(Listing, listing_id, message=f"there is no listing {listing_id!r}; search_listings finds them")


@tool(read_only=True, discovery=True)
def search_listings(
    world: World,
    /,
    query: Annotated[str, Field(description="Part of the title; empty for all.", max_length=80)] = "",
    category: Annotated[Category | None, Field(description="Only of this category.")] = None,
    kind: Annotated[Literal["any", "auction", "fixed"], Field(description="Auctions or fixed prices.")] = "any",
    max_price_cents: Annotated[int | None, Field(description="Not dearer than this in cents.", ge=0, le=10**10)] = None,
    seller_id: Annotated[str, Field(description="Only of this seller; empty for all.", max_length=20)] = "",
    status: Annotated[
        Literal["open", "sold", "unsold", "closed", "any"], Field(description="Only listings in this status.")
    ] = "open",
    sort: Annotated[
        Literal["ending_soonest", "cheapest", "listed"], Field(description="Which come first.")
    ] = "ending_soonest",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ListingView]:
    """Find listings by title, category, price and seller; without arguments all open ones, those ending first first."""
    world = current(world)
    wanted = query.strip().casefold()
    equals: dict[str, str] = {} if status == "any" else {"status": status}
    if seller_id:
        equals["seller_id"] = seller_id
    rows = [
        row
        for row in (world.find(Listing, **equals) if equals else world.rows(Listing))
        if (category is None or row.category == category)
        and kind in ("any", row.kind)
        and (not wanted or wanted in row.title.casefold())
    ]
    if max_price_cents is not None or sort == "cheapest":
        prices = {row.id: listing_view(world, row)["price_cents"] for row in rows}
        if max_price_cents is not None:
            rows = [row for row in rows if prices[row.id] <= max_price_cents]
        if sort == "cheapest":
            rows.sort(key=lambda row: prices[row.id])
    if sort == "ending_soonest":
        rows.sort(key=lambda row: row.end_at)
    return page(rows, lambda row: listing_view(world, row), limit, cursor)


@tool(read_only=True)
def get_listing(world: World, /, listing_id: ListingId) -> ListingDetails:
    """A listing with its price, its auction, and what the next bid must be. Your own also shows reserve and sales."""
    world = current(world)
    return listing_details(world, need_listing(world, listing_id), me(world))


@tool(read_only=True)
def list_bids(
    world: World,
    /,
    listing_id: Annotated[
        str, Field(description="Bids on this listing; empty for all that you made.", max_length=20)
    ] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[BidView]:
    """List the bids on a listing, or all of yours, the newest first."""
    world = current(world)
    if listing_id:
        found = world.find(Bid, listing_id=need_listing(world, listing_id).id)
    else:
        found = world.find(Bid, bidder_id=me(world))
    found.reverse()
    return page(found, bid_view, limit, cursor)


@tool(read_only=True, discovery=True)
def get_seller_profile(
    world: World,
    /,
    user_id: Annotated[str, Field(description="Id of a user, such as U00012; empty for yourself.", max_length=20)] = "",
) -> SellerView:
    """A user's ratings, sales and latest feedback; for yourself also your wallet."""
    world = current(world)
    signed_in = me(world)
    user = world.need(
        User,
        user_id or signed_in,
        message=f"there is no user {user_id!r}; search_listings shows who sells",
    )
    sales = world.find(Sale, seller_id=user.id)
    wallet = world.need(Wallet, user.id)
    return {
        "user_id": user.id,
        "name": user.name,
        "city": user.city,
        "member_since": iso(user.since),
        "average_rating": rating(user),
        "ratings": user.ratings,
        "sales": len(sales),
        "open_listings": len(world.find(Listing, seller_id=user.id, status="open")),
        "suspended": user.suspended,
        "recent_feedback": [feedback_view(row) for row in world.find(Feedback, subject_id=user.id)[-5:][::-1]],
        "wallet": {
            "balance_cents": wallet.balance_cents,
            "held_cents": wallet.held_cents,
            "free_cents": wallet.free_cents,
            "in_escrow_for_you_cents": sum(sale.price_cents for sale in sales if sale.status == "escrow"),
        }
        if user.id == signed_in
        else None,
    }


@tool(read_only=True, discovery=True)
def list_my_purchases(
    world: World,
    /,
    role: Annotated[Literal["bought", "sold"], Field(description="What you bought, or what you sold.")] = "bought",
    status: Annotated[
        Literal["any", "escrow", "released"], Field(description="Whether the seller has the money yet.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[SaleView]:
    """List what you bought or sold, the newest first. The sale_id is what leave_feedback needs."""
    world = current(world)
    user = me(world)
    found = world.find(Sale, buyer_id=user) if role == "bought" else world.find(Sale, seller_id=user)
    found = [row for row in reversed(found) if status in ("any", row.status)]
    return page(found, lambda row: sale_view(world, row), limit, cursor)


LOOKUP: Final = (search_listings, get_listing, list_bids, get_seller_profile, list_my_purchases)
