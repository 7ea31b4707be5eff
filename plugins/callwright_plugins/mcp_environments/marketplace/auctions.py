"""How auctions go: increments, holds, the end, sales and their escrow."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.marketplace.rows import (
    CLOCK,
    ME,
    NEVER,
    PLATFORM,
    AuctionClock,
    Bid,
    Listing,
    Profile,
    Rival,
    Sale,
    Wallet,
)
from callwright_plugins.mcp_environments.times import DAY, MINUTE

#: A bid later than this before the end moves the end; money waits this long in escrow; what the platform keeps.
QUIET: Final = 5 * MINUTE
ESCROW: Final = 7 * DAY
FEE_BPS: Final = 500
_INCREMENTS: Final = ((1_000, 50), (10_000, 100), (100_000, 500))


def me(world: World) -> str:
    """The user who is signed in."""
    return world.need(Profile, ME).user_id


def increment(price_cents: int) -> int:
    """How much more than this price a bid must be."""
    return next((step for below, step in _INCREMENTS if price_cents < below), 1_000)


def leading(world: World, listing: Listing) -> Bid | None:
    """The highest bid."""
    return world.get(Bid, listing.leading_bid_id) if listing.leading_bid_id else None


def least_bid(world: World, listing: Listing) -> int:
    """The least that the next bid must be."""
    highest = leading(world, listing)
    return listing.start_cents if highest is None else highest.amount_cents + increment(highest.amount_cents)


def hold(world: World, user_id: str, amount_cents: int) -> None:
    """Set money aside; a negative amount frees it."""
    wallet = world.need(Wallet, user_id)
    world.update(wallet, held_cents=wallet.held_cents + amount_cents)


def enter_bid(world: World, listing: Listing, bidder_id: str, amount_cents: int, at: int) -> Bid:
    """Make a bid the leading one: holds move, and the end if it is near. Everything was checked."""
    before = leading(world, listing)
    if before is not None:
        hold(world, before.bidder_id, -before.amount_cents)
        world.update(before, status="outbid")
    hold(world, bidder_id, amount_cents)
    bid = world.put(Bid(world.new_id(Bid), listing.id, bidder_id, amount_cents, at, "leading"))
    world.update(listing, leading_bid_id=bid.id, end_at=max(listing.end_at, at + QUIET))
    return bid


def could_hold(world: World, listing: Listing, bidder_id: str, amount_cents: int) -> bool:
    """Whether a bidder has the money, counting what is freed if they lead already."""
    before = leading(world, listing)
    freed = before.amount_cents if before is not None and before.bidder_id == bidder_id else 0
    return amount_cents <= world.need(Wallet, bidder_id).free_cents + freed


def try_bid(world: World, listing: Listing, bidder_id: str, most_cents: int, at: int) -> None:
    """Somebody else bids as little as possible, if that is not too much for them."""
    amount = least_bid(world, listing)
    before = leading(world, listing)
    if (
        bidder_id != listing.seller_id
        and (before is None or before.bidder_id != bidder_id)
        and amount <= most_cents
        and could_hold(world, listing, bidder_id, amount)
    ):
        enter_bid(world, listing, bidder_id, amount, at)


def sell(world: World, listing: Listing, buyer_id: str, price_cents: int, quantity: int, at: int) -> Sale:
    """The buyer's money, which is free in their wallet, goes into escrow."""
    wallet = world.need(Wallet, buyer_id)
    world.update(wallet, balance_cents=wallet.balance_cents - price_cents)
    note_due(world, at + ESCROW)
    return world.put(
        Sale(
            id=world.new_id(Sale),
            listing_id=listing.id,
            seller_id=listing.seller_id,
            buyer_id=buyer_id,
            price_cents=price_cents,
            quantity=quantity,
            at=at,
            release_at=at + ESCROW,
            status="escrow",
        )
    )


def win(world: World, listing: Listing, bid: Bid, at: int) -> Sale:
    """The highest bid wins: the listing is sold, the other bids are lost."""
    hold(world, bid.bidder_id, -bid.amount_cents)
    world.update(bid, status="won")
    for other in world.find(Bid, listing_id=listing.id, status="outbid"):
        world.update(other, status="lost")
    world.update(listing, status="sold", quantity=0, end_at=min(at, listing.end_at))
    return sell(world, listing, bid.bidder_id, bid.amount_cents, 1, at)


def release(world: World, sale: Sale) -> None:
    """Escrow goes to the seller, less the fee."""
    fee = sale.price_cents * FEE_BPS // 10_000
    for user_id, amount in ((sale.seller_id, sale.price_cents - fee), (PLATFORM, fee)):
        wallet = world.need(Wallet, user_id)
        world.update(wallet, balance_cents=wallet.balance_cents + amount)
    world.update(sale, status="released")


def refuse_ended(listing: Listing) -> None:
    """Fails with ``AUCTION_ENDED`` unless the listing is open."""
    if listing.status != "open":
        raise ToolError("AUCTION_ENDED", f"the listing {listing.id} is over ({listing.status})")


def note_due(world: World, at: int) -> None:
    """Remember that something ends or is released at a time."""
    clock = world.need(AuctionClock, CLOCK)
    if at < clock.due_at:
        world.update(clock, due_at=at)


def current(world: World) -> World:
    """The world as it is now, for tools that only read: a copy in which has happened what the clock has passed."""
    clock = world.need(AuctionClock, CLOCK)
    if world.now < clock.due_at and world.now < clock.rival_at:
        return world
    return world.ahead(settle)


def settle(world: World) -> None:
    """Let bids of others, ends of listings and releases of escrow happen in the order of their times."""
    clock = world.need(AuctionClock, CLOCK)
    if world.now < clock.due_at and world.now < clock.rival_at:
        return
    due = [(one.end_at, 0, one.id) for one in world.find(Listing, status="open") if one.end_at <= world.now]
    due += [(one.release_at, 1, one.id) for one in world.find(Sale, status="escrow") if one.release_at <= world.now]
    heapify(due)
    number, rival = clock.next_rival, world.get(Rival, clock.next_rival)
    while True:
        rival_at = NEVER if rival is None else rival.at
        if due and due[0][0] <= rival_at:
            for again in _pass(world, *heappop(due)):
                if again[0] <= world.now:
                    heappush(due, again)
        elif rival is not None and rival.at <= world.now:
            listing = world.get(Listing, rival.listing_id)
            if listing is not None and (listing.status, listing.kind) == ("open", "auction"):
                try_bid(world, listing, rival.bidder_id, rival.most_cents, rival.at)
            number += 1
            rival = world.get(Rival, number)
        else:
            break
    times = [listing.end_at for listing in world.find(Listing, status="open")]
    times += [sale.release_at for sale in world.find(Sale, status="escrow")]
    world.put(AuctionClock(CLOCK, number, rival_at, min(times, default=NEVER)))


def _pass(world: World, at: int, kind: int, key: str) -> list[tuple[int, int, str]]:
    """What is due at a time happens; what follows from it, and when."""
    if kind == 1:
        release(world, world.need(Sale, key))
        return []
    listing = world.need(Listing, key)
    if listing.end_at > at:  # a late bid moved the end
        return [(listing.end_at, 0, key)]
    sale = _end(world, listing)
    return [] if sale is None else [(sale.release_at, 1, sale.id)]


def _end(world: World, listing: Listing) -> Sale | None:
    bid = leading(world, listing)
    if bid is not None and bid.amount_cents >= listing.reserve_cents:
        return win(world, listing, bid, listing.end_at)
    if bid is not None:
        hold(world, bid.bidder_id, -bid.amount_cents)
        for one in world.find(Bid, listing_id=listing.id):
            if one.status in ("leading", "outbid"):
                world.update(one, status="lost")
    world.update(listing, status="unsold")
    return None
