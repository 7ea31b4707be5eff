"""The marketplace's worlds: an ordinary day, a quiet one, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import attrs

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.marketplace.auctions import ESCROW, increment
from callwright_plugins.mcp_environments.marketplace.rows import (
    CLOCK,
    ME,
    NEVER,
    PLATFORM,
    AuctionClock,
    Bid,
    Feedback,
    Listing,
    Profile,
    Rival,
    Sale,
    SavedSearch,
    User,
    Wallet,
)
from callwright_plugins.mcp_environments.people import CITIES, full_name
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

_GOODS: Final = {
    "art": ("Oil painting", "Ink drawing", "Bronze figure", "Framed print"),
    "books": ("First edition", "Atlas of 1930", "Comic book", "Cookery book"),
    "electronics": ("Camera", "Radio", "Laptop", "Headphones", "Record player"),
    "furniture": ("Oak table", "Armchair", "Bookshelf", "Desk lamp"),
    "music": ("Violin", "Vinyl record", "Guitar", "Accordion"),
    "sports": ("Racing bicycle", "Tent", "Skis", "Rowing machine"),
    "toys": ("Model train", "Doll's house", "Building blocks", "Teddy bear"),
    "watches": ("Pocket watch", "Diver's watch", "Wrist watch", "Clock"),
}
_MAKERS: Final = ("Aurora", "Birch", "Comet", "Delta", "Falcon", "Lumen", "Onyx", "Quartz")


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """At scale 1, 120 users and 500 listings, of which some 300 are open, with about 900 bids and 300 to come."""
    yield from _market(rng, users=_n(120, scale), count=_n(500, scale), rivals=_n(300, scale), open_share=0.6)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three users, two listings without bids, an empty history."""
    users = [_user(rng, number) for number in range(1, _n(2, scale) + 2)]
    yield from users
    yield Profile(ME, users[0].id)
    yield from (Wallet(user.id, 50_000) for user in users)
    yield Wallet(PLATFORM, 0)
    yield Listing(
        "L00001",
        users[-1].id,
        "Oak table",
        "furniture",
        "used",
        "auction",
        1_000,
        0,
        0,
        1,
        "open",
        NOW - DAY,
        NOW + DAY,
    )
    yield Listing(
        "L00002", users[-1].id, "Clock", "watches", "used", "fixed", 0, 0, 4_500, 2, "open", NOW - DAY, NOW + DAY
    )
    yield AuctionClock(CLOCK, 1, NEVER, NOW + DAY)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """The same few titles again and again, auctions that end in minutes, reserves out of reach, suspended sellers."""
    rows = list(
        _market(rng, users=_n(24, scale), count=_n(150, scale), rivals=_n(200, scale), open_share=0.9, tight=True)
    )
    for row in rows:
        if isinstance(row, User) and int(row.id[1:]) % 6 == 5:
            row = _with(row, suspended=True)
        yield row


def _n(count: int, scale: float) -> int:
    return max(2, round(count * scale))


def _with(row: Any, **changes: Any) -> Any:
    return attrs.evolve(row, **changes)


def _user(rng: Random, number: int) -> User:
    return User(f"U{number:05d}", full_name(rng), rng.choice(CITIES), NOW - rng.randint(100, 3000) * DAY, 0, 0)


def _market(
    rng: Random, *, users: int, count: int, rivals: int, open_share: float, tight: bool = False
) -> Iterator[Any]:
    people = {row.id: row for row in (_user(rng, number) for number in range(1, users + 1))}
    ids = list(people)
    mine = ids[0]
    held = dict.fromkeys(ids, 0)
    listings: list[Listing] = []
    bids: list[tuple[int, str, str, int, str]] = []  # time, listing, bidder, amount, status
    ended: list[tuple[int, Listing, str, int]] = []
    for number in range(1, count + 1):
        category = rng.choice(("watches", "music") if tight else tuple(_GOODS))
        makers, goods = (_MAKERS[:2], _GOODS[category][:2]) if tight else (_MAKERS, _GOODS[category])
        title = f"{rng.choice(makers)} {rng.choice(goods)}"
        seller = mine if number % 12 == 0 else rng.choice(ids)
        is_open = rng.random() < open_share
        created = NOW - (rng.randint(30, 160) * HOUR if is_open else rng.randint(8, 50) * DAY)
        ends = NOW + rng.choice((rng.randint(1, 4) * MINUTE, HOUR) if tight else (rng.randint(2, 160) * HOUR,))
        if tight and number % 3 == 0:
            ends = NOW + rng.randint(11, 14) * HOUR
        if not is_open:
            ends = created + rng.randint(24, 160) * HOUR
        fixed = rng.random() < 0.35
        base = rng.randint(5, 300) * 100
        listing = Listing(
            id=f"L{number:05d}",
            seller_id=seller,
            title=title,
            category=category,
            condition=rng.choice(("new", "like_new", "used", "used", "for_parts")),
            kind="fixed" if fixed else "auction",
            start_cents=0 if fixed else base,
            reserve_cents=0 if fixed else rng.choice((0, 0, base * 3 // 2, base * (20 if tight else 2))),
            buy_now_cents=base if fixed else rng.choice((0, 0, base * 40)),
            quantity=rng.randint(1, 5) if fixed else 1,
            status="open",
            created_at=created,
            end_at=ends,
        )
        if fixed:
            if not is_open:
                sold = rng.random() < 0.6
                listing = _with(listing, status="sold" if sold else "closed", quantity=0 if sold else listing.quantity)
                if sold:
                    buyer = rng.choice([one for one in ids if one != seller])
                    ended.append((ends, listing, buyer, listing.buy_now_cents))
            listings.append(listing)
            continue
        at, price, leader = created, 0, ""
        for _ in range(rng.choice((0, 0, 1, 2, 3, 5))):
            at += max(1, (min(ends, NOW) - at) // 4)
            bidder = rng.choice(ids)
            if bidder in (seller, leader):
                continue
            leader = bidder
            price = base if not price else price + increment(price) * rng.randint(1, 2)
            bids.append((at, listing.id, bidder, price, "outbid" if is_open else "lost"))
        won = bool(leader) and price >= listing.reserve_cents
        if leader:
            bids[-1] = (*bids[-1][:4], "leading" if is_open else "won" if won else "lost")
        if is_open:
            if leader:
                held[leader] += price
        else:
            listing = _with(listing, status="sold" if won else "unsold", quantity=0 if won else 1)
            if won:
                ended.append((ends, listing, leader, price))
        listings.append(listing)
    leads: dict[str, str] = {}
    for number, bid in enumerate(sorted(bids), 1):
        at, listing_id, bidder, price, status = bid
        leads[listing_id] = f"B{number:05d}"
        yield Bid(f"B{number:05d}", listing_id, bidder, price, at, status)
    for listing in listings:
        yield _with(listing, leading_bid_id=leads.get(listing.id, ""))
    yield from _sales(rng, ended, people)
    yield from people.values()
    yield Profile(ME, mine)
    for user_id in ids:
        free = 300_000 if user_id == mine else rng.choice((0, 20_000, 100_000, 400_000))
        if tight and user_id == mine:
            free = 8_000
        yield Wallet(user_id, held[user_id] + free, held[user_id])
    yield Wallet(PLATFORM, 0)
    for number, category in enumerate(("watches", "music", "books", "electronics", "art") * 4, 1):
        if not (tight and number % 2):
            user_id = ids[1 + number % (len(ids) - 1)] if len(ids) > 1 else mine
            yield SavedSearch(f"Q{number:05d}", user_id, category, rng.choice((1_000, 5_000, 20_000)))
    auctions = [row for row in listings if row.status == "open" and row.kind == "auction"]
    coming: list[tuple[int, str, str, int]] = []
    for _ in range(rivals if auctions else 0):
        target = rng.choice(auctions)
        early = NOW + rng.randint(1, max(1, target.end_at - NOW - 1))
        late = max(NOW + 1, target.end_at - rng.randint(1, 600))
        bidder = rng.choice(ids[1:])
        coming.append((rng.choice((early, late)), target.id, bidder, target.start_cents * rng.randint(1, 6)))
    for number, one in enumerate(sorted(coming), 1):
        yield Rival(number, *one)
    due = [row.end_at for row in listings if row.status == "open"]
    due += [at + ESCROW for at, *_ in ended if at + ESCROW > NOW]
    yield AuctionClock(CLOCK, 1, min(coming)[0] if coming else NEVER, min(due, default=NEVER))


def _sales(rng: Random, ended: list[tuple[int, Listing, str, int]], people: dict[str, User]) -> Iterator[Any]:
    """Sales in the order of their times, with feedback; ratings of ``people`` follow."""
    for number, (at, listing, buyer, price) in enumerate(sorted(ended, key=lambda one: (one[0], one[1].id)), 1):
        sale_id = f"S{number:05d}"
        said = rng.random() < 0.6
        status = "released" if said or at + ESCROW <= NOW else "escrow"
        yield Sale(sale_id, listing.id, listing.seller_id, buyer, price, 1, at, at + ESCROW, status)
        for author, subject, speaks in (
            (buyer, listing.seller_id, said),
            (listing.seller_id, buyer, rng.random() < 0.4),
        ):
            if speaks:
                stars = rng.choice((5, 5, 5, 4, 4, 3, 1))
                comment = rng.choice(("As described", "Quick and friendly", "Thank you", "Late", ""))
                yield Feedback(sale_id, author, subject, stars, comment, min(at + 2 * DAY, NOW))
                one = people[subject]
                people[subject] = _with(one, stars=one.stars + stars, ratings=one.ratings + 1)


SCENARIOS: Final = {
    "typical": Scenario(typical, "an ordinary day with 120 users and 500 listings"),
    "sparse": Scenario(sparse, "two listings without bids, no history"),
    "adversarial": Scenario(adversarial, "look-alike listings that end in minutes, reserves out of reach"),
}
