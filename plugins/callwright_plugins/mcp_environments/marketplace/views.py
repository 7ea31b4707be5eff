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
    price_cents: Annotated[
        int, Field(description="Now: of a fixed one the price, of an auction the highest bid or else the start.")
    ]
    buy_now_cents: Annotated[int | None, Field(description="null: it cannot be bought at once.")]
    quantity: Annotated[int, Field(description="Pieces left.")]
    status: str
    ends_at: str


class BidView(TypedDict):
    """A bid."""

    bid_id: str
    listing_id: str
    bidder_id: str
    amount_cents: Annotated[int, Field(description="For the piece.")]
    status: Annotated[str, Field(description="How it stands in the auction.")]
    at: str


class SaleView(TypedDict):
    """A purchase."""

    sale_id: str
    listing_id: str
    title: str
    seller_id: str
    buyer_id: str
    price_cents: Annotated[int, Field(description="For all pieces.")]
    quantity: Annotated[int, Field(description="Pieces bought.")]
    at: Annotated[str, Field(description="UTC.")]
    status: str
    released_at_latest: Annotated[str, Field(description="When escrow is paid out if no feedback releases it before.")]


class ListingDetails(ListingView):
    """A listing with its auction; ``reserve_cents`` is shown to its seller only."""

    description: str
    start_cents: int
    bids: Annotated[int, Field(description="How many.")]
    leading_bid_id: Annotated[str, Field(description="Empty: no bid.")]
    leading_bidder_id: Annotated[str, Field(description="Empty: no bid.")]
    next_bid_cents: Annotated[int | None, Field(description="The least that a bid must be; null: none can be made.")]
    has_reserve: Annotated[bool, Field(description="A price below which nothing is sold.")]
    reserve_met: Annotated[bool, Field(description="Whether the highest bid reaches the reserve.")]
    reserve_cents: Annotated[int | None, Field(description="To its seller only.")]
    sales: list[SaleView]


class FeedbackView(TypedDict):
    """What one side of a sale says of the other."""

    sale_id: str
    author_id: Annotated[str, Field(description="Who says it.")]
    subject_id: Annotated[str, Field(description="Of whom.")]
    rating: Annotated[int, Field(description="1 to 5.")]
    comment: str
    at: str


class WalletView(TypedDict):
    """Your money."""

    balance_cents: Annotated[int, Field(description="What bids hold is in it.")]
    held_cents: Annotated[int, Field(description="Held by bids that lead.")]
    free_cents: Annotated[int, Field(description="What is not held by bids that lead.")]
    in_escrow_for_you_cents: Annotated[int, Field(description="Prices of your sales that are not released yet.")]


class SellerView(TypedDict):
    """A user as a seller; ``wallet`` is there for yourself only."""

    user_id: str
    name: str
    city: str
    member_since: str
    average_rating: Annotated[float | None, Field(description="1 to 5; null: none.")]
    ratings: Annotated[int, Field(description="How many.")]
    sales: int
    open_listings: int
    suspended: Annotated[bool, Field(description="Nothing can be bought of them.")]
    recent_feedback: list[FeedbackView]
    wallet: Annotated[WalletView | None, Field(description="null: of others.")]


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
