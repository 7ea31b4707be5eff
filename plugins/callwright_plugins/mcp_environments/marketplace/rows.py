"""Rows of the marketplace. Amounts are cents, times seconds of the Unix clock (UTC)."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: The keys of the only rows of :class:`Profile` and :class:`AuctionClock`, the wallet that gets fees, and no time.
ME: Final = "me"
CLOCK: Final = "clock"
PLATFORM: Final = "platform"
NEVER: Final = 253_402_300_799


@row("profile")
class Profile:
    """Who is signed in."""

    id: str
    user_id: str


@row("users", prefix="U")
class User:
    """Somebody who buys and sells; ``stars`` is the sum of ``ratings`` ratings of 1 to 5."""

    id: str
    name: str
    city: str
    since: int
    stars: int
    ratings: int
    suspended: bool = False


@row("wallets")
class Wallet:
    """A user's money; ``held_cents`` of the balance is behind bids that lead."""

    user_id: str
    balance_cents: int
    held_cents: int = 0

    @property
    def free_cents(self) -> int:
        """What can be spent."""
        return self.balance_cents - self.held_cents


@row("listings", prefix="L", index=("status", "seller_id"), stamps=("created_at",), relative={"end_at": "created_at"})
class Listing:
    """Something for sale; a price of 0 is none. ``leading_bid_id`` is empty without bids."""

    id: str
    seller_id: str
    title: str
    category: str
    condition: str
    kind: str  # auction, fixed
    start_cents: int
    reserve_cents: int
    buy_now_cents: int
    quantity: int
    status: str  # open, sold, unsold, closed
    created_at: int
    end_at: int
    leading_bid_id: str = ""
    description: str = ""


@row("bids", prefix="B", index=("listing_id", "bidder_id"), stamps=("at",))
class Bid:
    """An offer at an auction."""

    id: str
    listing_id: str
    bidder_id: str
    amount_cents: int
    at: int
    status: str  # leading, outbid, withdrawn, won, lost


@row(
    "sales",
    prefix="S",
    index=("buyer_id", "seller_id", "status", "listing_id"),
    stamps=("at",),
    relative={"release_at": "at"},
)
class Sale:
    """A purchase; in ``escrow`` until feedback or ``release_at``, then ``released`` to the seller."""

    id: str
    listing_id: str
    seller_id: str
    buyer_id: str
    price_cents: int
    quantity: int
    at: int
    release_at: int
    status: str


@row("feedback", key=("sale_id", "author_id"), index=("subject_id",), stamps=("at",))
class Feedback:
    """What one side of a sale says of the other."""

    sale_id: str
    author_id: str
    subject_id: str
    rating: int
    comment: str
    at: int


@row("saved_searches", prefix="Q", index=("category",))
class SavedSearch:
    """Bids the least that is possible on every new auction of a category, up to a price."""

    id: str
    user_id: str
    category: str
    most_cents: int


# What others will do.
@row("rivals", bookkeeping=True)
class Rival:
    """A bid that somebody will make at a time, as low as possible, if it is not above ``most_cents``."""

    number: int
    at: int
    listing_id: str
    bidder_id: str
    most_cents: int


# When to look again.
@row("auction_clock", bookkeeping=True)
class AuctionClock:
    """The next rival, and a time before which no listing ends and no escrow is released."""

    id: str
    next_rival: int
    rival_at: int
    due_at: int


ROWS: Final = (
    Profile,
    User,
    Wallet,
    Listing,
    Bid,
    Sale,
    Feedback,
    SavedSearch,
    Rival,
    AuctionClock,
)
