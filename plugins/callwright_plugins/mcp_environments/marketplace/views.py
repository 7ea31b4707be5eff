"""What tools show of rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.marketplace.auctions import leading, least_bid
from callwright_plugins.mcp_environments.marketplace.rows import Bid, Feedback, Listing, Sale, User
from callwright_plugins.mcp_environments.times import iso


class ListingView(TypedDict):
    """Something for sale; a price of ``None`` is none."""

    listing_id: str
    seller_id: str
    title: str
    category: str
    condition: str
    kind: str
    price_cents: int
    buy_now_cents: int | None
    quantity: int
    status: str
    ends_at: str


class BidView(TypedDict):
    """A bid."""

    bid_id: str
    listing_id: str
    bidder_id: str
    amount_cents: int
    status: str
    at: str


class SaleView(TypedDict):
    """A purchase."""

    sale_id: str
    listing_id: str
    title: str
    seller_id: str
    buyer_id: str
    price_cents: int
    quantity: int
    at: str
    status: str
    released_at_latest: Annotated[str, Field(description="When escrow is paid out if no feedback releases it before.")]


class ListingDetails(ListingView):
    """A listing with its auction; ``reserve_cents`` is shown to its seller only."""

    description: str
    start_cents: int
    bids: int
    leading_bid_id: str
    leading_bidder_id: str
    next_bid_cents: int | None
    has_reserve: bool
    reserve_met: Annotated[bool, Field(description="Whether the highest bid reaches the reserve.")]
    reserve_cents: int | None
    sales: list[SaleView]


class FeedbackView(TypedDict):
    """What one side of a sale says of the other."""

    sale_id: str
    author_id: str
    subject_id: str
    rating: int
    comment: str
    at: str


class WalletView(TypedDict):
    """Your money."""

    balance_cents: int
    held_cents: Annotated[int, Field(description="Held by bids that lead.")]
    free_cents: Annotated[int, Field(description="What is not held by bids that lead.")]
    in_escrow_for_you_cents: Annotated[int, Field(description="Prices of your sales that are not released yet.")]


class SellerView(TypedDict):
    """A user as a seller; ``wallet`` is there for yourself only."""

    user_id: str
    name: str
    city: str
    member_since: str
    average_rating: float | None
    ratings: int
    sales: int
    open_listings: int
    suspended: bool
    recent_feedback: list[FeedbackView]
    wallet: WalletView | None


def listing_view(world: World, row: Listing) -> ListingView:
    """A listing as lists show it."""
    highest = leading(world, row)
    price = row.buy_now_cents if row.kind == "fixed" else highest.amount_cents if highest else row.start_cents
    return {
        "listing_id": row.id,
        "seller_id": row.seller_id,
        "title": row.title,
        "category": row.category,
        "condition": row.condition,
        "kind": row.kind,
        "price_cents": price,
        "buy_now_cents": row.buy_now_cents if row.buy_now_cents and highest is None else None,
        "quantity": row.quantity,
        "status": row.status,
        "ends_at": iso(row.end_at),
    }


def listing_details(world: World, row: Listing, viewer: str) -> ListingDetails:
    """A listing as ``viewer`` sees it."""
    highest = leading(world, row)
    mine = viewer == row.seller_id
    sales = world.find(Sale, listing_id=row.id)
    return {
        **listing_view(world, row),
        "description": row.description,
        "start_cents": row.start_cents,
        "bids": len(world.find(Bid, listing_id=row.id)),
        "leading_bid_id": row.leading_bid_id,
        "leading_bidder_id": highest.bidder_id if highest else "",
        "next_bid_cents": least_bid(world, row) if row.kind == "auction" and row.status == "open" else None,
        "has_reserve": row.reserve_cents > 0,
        "reserve_met": highest is not None and highest.amount_cents >= row.reserve_cents,
        "reserve_cents": row.reserve_cents if mine and row.reserve_cents else None,
        "sales": [sale_view(world, sale) for sale in sales if mine or viewer == sale.buyer_id],
    }


def bid_view(row: Bid) -> BidView:
    """A bid as tools show it."""
    return {
        "bid_id": row.id,
        "listing_id": row.listing_id,
        "bidder_id": row.bidder_id,
        "amount_cents": row.amount_cents,
        "status": row.status,
        "at": iso(row.at),
    }


def sale_view(world: World, row: Sale) -> SaleView:
    """A sale as tools show it."""
    return {
        "sale_id": row.id,
        "listing_id": row.listing_id,
        "title": world.need(Listing, row.listing_id).title,
        "seller_id": row.seller_id,
        "buyer_id": row.buyer_id,
        "price_cents": row.price_cents,
        "quantity": row.quantity,
        "at": iso(row.at),
        "status": row.status,
        "released_at_latest": iso(row.release_at),
    }


def feedback_view(row: Feedback) -> FeedbackView:
    """Feedback as tools show it."""
    return {
        "sale_id": row.sale_id,
        "author_id": row.author_id,
        "subject_id": row.subject_id,
        "rating": row.rating,
        "comment": row.comment,
        "at": iso(row.at),
    }


def rating(row: User) -> float | None:
    """The average of 1 to 5, or ``None`` without any."""
    return round(row.stars / row.ratings, 2) if row.ratings else None
