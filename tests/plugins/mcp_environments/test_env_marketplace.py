"""Marketplace: its surface, every failure, golden edges, and money that is held, in escrow, or somebody's."""

from __future__ import annotations

from typing import Any

import pytest
from environment_sessions import fails, need, ok, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, Scenario, StatefulEnvironment, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.marketplace import environment
from callwright_plugins.mcp_environments.marketplace.auctions import increment
from callwright_plugins.mcp_environments.marketplace.rows import (
    CLOCK,
    ME,
    NEVER,
    PLATFORM,
    ROWS,
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
from callwright_plugins.mcp_environments.marketplace.tools import TOOLS

ENV = environment()
DAY, HOUR, MINUTE = 86_400, 3_600, 60
READ = {"search_listings", "get_listing", "list_bids", "get_seller_profile", "list_my_purchases"}
DISCOVERY = {"search_listings", "get_seller_profile", "list_my_purchases"}
DESTRUCTIVE = {"close_listing", "withdraw_bid"}
WRITE = {
    "create_listing",
    "update_listing",
    "close_listing",
    "place_bid",
    "accept_bid",
    "withdraw_bid",
    "buy_now",
    "leave_feedback",
}


def auction(name: str, seller: str, **changes: Any) -> Listing:
    values: dict[str, Any] = {
        "kind": "auction",
        "start_cents": 1_000,
        "reserve_cents": 0,
        "buy_now_cents": 0,
        "quantity": 1,
        "end_at": NOW + DAY,
        **changes,
    }
    return Listing(
        id=name,
        seller_id=seller,
        title=f"Thing {name}",
        category="toys",
        condition="used",
        status="open",
        created_at=NOW - DAY,
        **values,
    )


def small(*rivals: Rival, **changes: Any) -> StatefulSession:
    """U1 is signed in with 100.00; U2 sells L1 (auction), L2 (reserve 50.00), L3 (3 at 30.00); U3 has 60.00."""
    rows = [
        *(User(f"U{n}", f"Name {n}", "Calder", 0, 0, 0, n == 5) for n in range(1, 6)),
        Profile(ME, "U1"),
        *(Wallet(f"U{n}", 6_000 if n == 3 else 10_000) for n in range(1, 6)),
        Wallet(PLATFORM, 0),
        auction("L1", "U2", buy_now_cents=8_000, **changes),
        auction("L2", "U2", reserve_cents=5_000),
        auction("L3", "U2", kind="fixed", start_cents=0, buy_now_cents=3_000, quantity=3),
        auction("L4", "U1"),
        auction("L5", "U5"),
        SavedSearch("Q1", "U3", "music", 2_000),
        SavedSearch("Q2", "U4", "music", 9_000),
        *rivals,
        AuctionClock(CLOCK, 1, rivals[0].at if rivals else NEVER, min(NOW + DAY, changes.get("end_at", NOW + DAY))),
    ]
    return StatefulEnvironment(
        "marketplace", rows=ROWS, tools=TOOLS, scenarios={"small": Scenario(lambda rng, scale: rows)}
    ).open()


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 13
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=tuple(ENV.scenarios))


# Auctions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "step"), [(1, 50), (999, 50), (1_000, 100), (9_999, 100), (10_000, 500), (99_999, 500), (100_000, 1_000)]
)
def test_increments(price: int, step: int) -> None:
    assert increment(price) == step


def test_a_bid_holds_money_until_somebody_bids_more() -> None:
    session = small(Rival(1, NOW + HOUR, "L1", "U3", 5_000))
    fails(session, "BID_TOO_LOW", "place_bid", listing_id="L1", amount_cents=999)
    ok(session, "place_bid", listing_id="L1", amount_cents=1_000)
    fails(session, "BID_TOO_LOW", "place_bid", listing_id="L1", amount_cents=1_099)
    ok(session, "place_bid", listing_id="L1", amount_cents=2_000)
    assert ok(session, "get_seller_profile")["wallet"]["held_cents"] == 2_000
    wait(session, HOUR)
    shown = ok(session, "get_listing", listing_id="L1")
    assert (shown["price_cents"], shown["leading_bidder_id"], shown["next_bid_cents"]) == (2_100, "U3", 2_200)
    assert ok(session, "get_seller_profile")["wallet"]["held_cents"] == 0
    assert [one["status"] for one in ok(session, "list_bids", listing_id="L1")["items"]] == [
        "leading",
        "outbid",
        "outbid",
    ]


def test_the_highest_bid_wins_and_escrow_pays_the_seller_after_a_week() -> None:
    session = small()
    ok(session, "place_bid", listing_id="L1", amount_cents=4_000)
    wait(session, DAY - 1)
    assert ok(session, "get_listing", listing_id="L1")["status"] == "open"
    wait(session, 1)
    assert ok(session, "get_listing", listing_id="L1")["status"] == "sold"
    fails(session, "AUCTION_ENDED", "place_bid", listing_id="L1", amount_cents=9_000)
    sale = ok(session, "list_my_purchases", status="escrow")["items"][0]
    assert (sale["price_cents"], sale["at"]) == (4_000, "2026-03-03T09:00:00Z")
    wait(session, 7 * DAY)
    assert ok(session, "list_my_purchases")["items"][0]["status"] == "released"
    ok(session, "create_listing", title="Box", category="toys", kind="auction", start_price_cents=5)
    assert [need(session, Wallet, one).balance_cents for one in ("U1", "U2", PLATFORM)] == [6_000, 13_800, 200]


def test_below_the_reserve_nothing_is_sold() -> None:
    session = small()
    placed = ok(session, "place_bid", listing_id="L2", amount_cents=4_999)
    assert placed["reserve_met"] is False
    wait(session, DAY)
    assert ok(session, "get_listing", listing_id="L2")["status"] == "unsold"
    assert ok(session, "get_seller_profile")["wallet"]["free_cents"] == 10_000


def test_nobody_wins_by_being_last() -> None:
    """A rival answers two minutes after a bid in the last second; the end moves with each."""
    session = small(Rival(1, NOW + DAY + 2 * MINUTE, "L1", "U3", 5_000))
    wait(session, DAY - 1)
    placed = ok(session, "place_bid", listing_id="L1", amount_cents=1_000)
    assert placed["ends_at"] == "2026-03-03T09:04:59Z"
    wait(session, 2 * MINUTE + 1)
    shown = ok(session, "get_listing", listing_id="L1")
    assert (shown["status"], shown["leading_bidder_id"], shown["ends_at"]) == ("open", "U3", "2026-03-03T09:07:00Z")
    wait(session, 5 * MINUTE)
    assert ok(session, "get_listing", listing_id="L1")["status"] == "sold"


def test_withdrawing_lets_the_next_covered_bidder_lead() -> None:
    session = small(Rival(1, NOW + 1, "L1", "U3", 5_000), Rival(2, NOW + 2, "L1", "U4", 5_000))
    wait(session, 2)
    ok(session, "place_bid", listing_id="L1", amount_cents=1_200)
    mine = ok(session, "place_bid", listing_id="L1", amount_cents=1_500)["bid_id"]
    session.world.update(need(session, Wallet, "U4"), balance_cents=0)
    assert ok(session, "withdraw_bid", bid_id=mine)["status"] == "withdrawn"
    shown = ok(session, "get_listing", listing_id="L1")
    assert (shown["leading_bidder_id"], shown["price_cents"]) == ("U3", 1_000)
    assert need(session, Wallet, "U3").held_cents == 1_000
    statuses = [one["status"] for one in ok(session, "list_bids", listing_id="L1")["items"]]
    assert statuses == ["withdrawn", "withdrawn", "lost", "leading"]
    fails(session, "INVALID_STATE", "withdraw_bid", bid_id=mine)


def test_bids_stand_in_the_last_twelve_hours() -> None:
    session = small()
    mine = ok(session, "place_bid", listing_id="L1", amount_cents=1_000)["bid_id"]
    wait(session, 12 * HOUR + 1)
    fails(session, "WITHDRAWAL_CLOSED", "withdraw_bid", bid_id=mine)


def test_buying_now() -> None:
    session = small()
    fails(session, "OUT_OF_STOCK", "buy_now", listing_id="L3", quantity=4)
    ok(session, "buy_now", listing_id="L3", quantity=2)
    fails(session, "INSUFFICIENT_FUNDS", "buy_now", listing_id="L1")
    session.world.update(need(session, Wallet, "U1"), balance_cents=11_000)
    ok(session, "buy_now", listing_id="L3")
    assert ok(session, "get_listing", listing_id="L3")["status"] == "sold"
    fails(session, "AUCTION_ENDED", "buy_now", listing_id="L3")
    fails(session, "BUY_NOW_UNAVAILABLE", "buy_now", listing_id="L2")
    other = session.fork()
    ok(session, "buy_now", listing_id="L1")
    ok(other, "place_bid", listing_id="L1", amount_cents=1_000)
    fails(other, "BUY_NOW_UNAVAILABLE", "buy_now", listing_id="L1")


FAILURES: list[tuple[str, str, dict[str, Any]]] = [
    ("SELF_BID", "place_bid", {"listing_id": "L4", "amount_cents": 5_000}),
    ("SELF_BID", "buy_now", {"listing_id": "L4"}),
    ("SELLER_SUSPENDED", "place_bid", {"listing_id": "L5", "amount_cents": 5_000}),
    ("INSUFFICIENT_FUNDS", "place_bid", {"listing_id": "L1", "amount_cents": 10_001}),
    ("INVALID_STATE", "place_bid", {"listing_id": "L3", "amount_cents": 5_000}),
    ("NOT_FOUND", "place_bid", {"listing_id": "L", "amount_cents": 5_000}),
    ("NOT_FOUND", "get_listing", {"listing_id": "L"}),
    ("NOT_FOUND", "get_seller_profile", {"user_id": "U"}),
    ("NOT_FOUND", "list_bids", {"listing_id": "L"}),
    ("NOT_FOUND", "withdraw_bid", {"bid_id": "B"}),
    ("NOT_FOUND", "leave_feedback", {"sale_id": "S", "rating": 5}),
    ("NOT_FOUND", "accept_bid", {"listing_id": "L4", "bid_id": "B"}),
    ("NOT_SELLER", "close_listing", {"listing_id": "L1"}),
    ("NOT_SELLER", "update_listing", {"listing_id": "L1", "title": "Other"}),
    ("NOT_SELLER", "accept_bid", {"listing_id": "L1", "bid_id": "B"}),
    ("INVALID_PRICE", "update_listing", {"listing_id": "L4", "reserve_cents": 900}),
    ("INVALID_PRICE", "create_listing", {"kind": "auction"}),
    ("INVALID_PRICE", "create_listing", {"kind": "fixed"}),
    ("INVALID_PRICE", "create_listing", {"kind": "fixed", "buy_now_cents": 5, "reserve_cents": 4}),
    ("INVALID_PRICE", "create_listing", {"kind": "auction", "start_price_cents": 9, "reserve_cents": 8}),
    ("INVALID_PRICE", "create_listing", {"kind": "auction", "start_price_cents": 9, "buy_now_cents": 9}),
    ("INVALID_STATE", "create_listing", {"kind": "auction", "start_price_cents": 9, "quantity": 2}),
]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"), FAILURES, ids=[f"{case[1]}-{case[0]}-{n}" for n, case in enumerate(FAILURES)]
)
def test_failures_leave_the_state_untouched(code: str, tool: str, arguments: dict[str, Any]) -> None:
    if tool == "create_listing":
        arguments = {"title": "Box", "category": "toys", **arguments}
    fails(small(), code, tool, **arguments)


# Selling, and golden edges --------------------------------------------------------------------------------------------


def test_create_list_bids_accept_feedback() -> None:
    session = small()
    new = {"title": "Violin", "category": "music", "kind": "auction", "start_price_cents": 1_950}
    made = ok(session, "create_listing", **new, reserve_cents=5_000)
    listing = made["listing_id"]
    bids = ok(session, "list_bids", listing_id=listing)["items"]
    assert [(one["bidder_id"], one["amount_cents"]) for one in bids] == [("U4", 2_050), ("U3", 1_950)]
    for change in (
        {"title": "Cello"},
        {"reserve_cents": 5_001},
        {"start_price_cents": 1_000},
        {"buy_now_cents": 9_000},
    ):
        fails(session, "HAS_BIDS", "update_listing", listing_id=listing, **change)
    fails(session, "HAS_BIDS", "close_listing", listing_id=listing)
    fails(session, "INVALID_STATE", "accept_bid", listing_id=listing, bid_id=bids[1]["bid_id"])
    fails(session, "NOT_FOUND", "accept_bid", listing_id="L4", bid_id=bids[0]["bid_id"])
    fails(session, "RESERVE_NOT_MET", "accept_bid", listing_id=listing, bid_id=bids[0]["bid_id"])
    ok(session, "update_listing", listing_id=listing, reserve_cents=2_050)
    fails(session, "NOT_FOUND", "leave_feedback", sale_id="S00001", rating=5)
    sale = ok(session, "accept_bid", listing_id=listing, bid_id=bids[0]["bid_id"])
    fails(session, "AUCTION_ENDED", "accept_bid", listing_id=listing, bid_id=bids[0]["bid_id"])
    fails(session, "AUCTION_ENDED", "close_listing", listing_id=listing)
    assert ok(session, "list_my_purchases", role="sold")["items"] == [sale]
    ok(session, "leave_feedback", sale_id=sale["sale_id"], rating=4, comment="Quick")
    fails(session, "FEEDBACK_EXISTS", "leave_feedback", sale_id=sale["sale_id"], rating=5)
    assert ok(session, "get_seller_profile", user_id="U4")["average_rating"] == 4.0
    assert ok(session, "list_my_purchases", role="sold")["items"][0]["status"] == "escrow"


def test_the_buyers_feedback_releases_escrow() -> None:
    session = small()
    sale = ok(session, "buy_now", listing_id="L3")
    other = session.fork()
    ok(session, "leave_feedback", sale_id=sale["sale_id"], rating=5)
    assert need(session, Wallet, "U2").balance_cents == 10_000 + 2_850
    wait(session, 30 * DAY)
    ok(session, "close_listing", listing_id=ok(session, "create_listing", **NEW)["listing_id"])
    assert need(session, Wallet, "U2").balance_cents == 10_000 + 2_850
    wait(other, 60 * DAY)
    fails(other, "FEEDBACK_CLOSED", "leave_feedback", sale_id=sale["sale_id"], rating=5)
    session.world.put(Sale("S9", "L1", "U2", "U3", 1, 1, NOW, NOW, "released"))
    fails(session, "PERMISSION_DENIED", "leave_feedback", sale_id="S9", rating=5)


NEW = {"title": "Box", "category": "toys", "kind": "auction", "start_price_cents": 500}


def test_search_bid_withdraw() -> None:
    session = ENV.open()
    found = ok(session, "search_listings", kind="auction", max_price_cents=100_000, limit=100)["items"]
    one = next(
        row
        for row in found
        if row["seller_id"] != "U00001" and row["ends_at"] > "2026-03-03" and not row["buy_now_cents"]
    )
    fails(session, "NOT_FOUND", "place_bid", listing_id="L99999", amount_cents=5)
    least = ok(session, "get_listing", listing_id=one["listing_id"])["next_bid_cents"]
    bid = ok(session, "place_bid", listing_id=one["listing_id"], amount_cents=least)
    assert bid["bid_id"] in [row["bid_id"] for row in ok(session, "list_bids")["items"]]
    other = next(row for row in session.world.rows(Bid) if row.bidder_id != "U00001")
    fails(session, "PERMISSION_DENIED", "withdraw_bid", bid_id=other.id)
    ok(session, "withdraw_bid", bid_id=bid["bid_id"])


def test_own_listings_can_be_changed_and_closed_without_bids() -> None:
    session = small()
    assert ok(session, "update_listing", listing_id="L4", title="Better", reserve_cents=2_000)["reserve_cents"] == 2_000
    assert ok(session, "get_listing", listing_id="L2")["reserve_cents"] is None
    assert ok(session, "close_listing", listing_id="L4")["status"] == "closed"
    for _ in range(50):
        ok(session, "create_listing", **NEW)
    fails(session, "LISTING_LIMIT", "create_listing", **NEW)


# Money ----------------------------------------------------------------------------------------------------------------


def whole(session: StatefulSession) -> int:
    """All the money there is; wallets hold what leading bids are, and auctions are what their bids say."""
    world = session.world
    held: dict[str, int] = {}
    for listing in world.rows(Listing):
        bids = world.find(Bid, listing_id=listing.id)
        leading = [bid for bid in bids if bid.status == "leading"]
        assert len(leading) <= (listing.status == "open")
        if listing.status == "open":
            assert listing.leading_bid_id == (leading[0].id if leading else "")
            assert all(bid.amount_cents < leading[0].amount_cents for bid in bids if bid.status == "outbid")
        won = [bid for bid in bids if bid.status == "won"]
        if listing.kind == "auction" and won:
            assert won[0].amount_cents >= listing.reserve_cents
            assert [one.buyer_id for one in world.find(Sale, listing_id=listing.id)] == [won[0].bidder_id]
        for bid in bids:
            assert bid.bidder_id != listing.seller_id
        for bid in leading:
            held[bid.bidder_id] = held.get(bid.bidder_id, 0) + bid.amount_cents
    for wallet in world.rows(Wallet):
        assert wallet.held_cents == held.get(wallet.user_id, 0)
        assert wallet.free_cents >= 0
    escrow = sum(sale.price_cents for sale in world.rows(Sale) if sale.status == "escrow")
    return escrow + sum(wallet.balance_cents for wallet in world.rows(Wallet))


STEP = st.tuples(
    st.sampled_from(("bid", "bid", "bid", "buy", "withdraw", "create", "accept", "feedback", "wait", "wait")),
    st.integers(0, 9),
    st.integers(0, 3),
)


@given(st.lists(STEP, max_size=15), st.integers(0, 2))
@settings(max_examples=20)
def test_money_is_conserved(steps: list[tuple[str, int, int]], seed: int) -> None:
    session = ENV.open("adversarial", seed)
    session.world.update(need(session, Wallet, "U00001"), balance_cents=2_000_000)
    total = whole(session)
    for what, nth, much in steps:
        if what == "wait":
            wait(session, (MINUTE, HOUR, DAY, 4 * DAY)[much])
        elif what == "create":
            ok(session, "create_listing", **{**NEW, "category": "music"})
        elif what in ("bid", "buy"):
            rows = session.call("search_listings", {"limit": 100}).value["items"]
            if rows:
                one = rows[nth * 7 % len(rows)]["listing_id"]
                amount = (ok(session, "get_listing", listing_id=one)["next_bid_cents"] or 1) + much * 100
                call: dict[str, Any] = {"listing_id": one}
                session.call(*(("place_bid", {**call, "amount_cents": amount}) if what == "bid" else ("buy_now", call)))
        elif what == "withdraw":
            mine = session.call("list_bids", {"limit": 100}).value["items"]
            if mine:
                session.call("withdraw_bid", {"bid_id": mine[nth % len(mine)]["bid_id"]})
        elif what == "accept":
            rows = session.call("search_listings", {"seller_id": "U00001", "kind": "auction"}).value["items"]
            for row in rows[nth : nth + 1]:
                bid = ok(session, "get_listing", listing_id=row["listing_id"])["leading_bid_id"]
                session.call("accept_bid", {"listing_id": row["listing_id"], "bid_id": bid})
        else:
            sales = session.call("list_my_purchases", {}).value["items"]
            if sales:
                session.call("leave_feedback", {"sale_id": sales[nth % len(sales)]["sale_id"], "rating": 5})
        assert whole(session) == total


@pytest.mark.parametrize("scenario", ["typical", "adversarial"])
def test_when_somebody_looks_makes_no_difference(scenario: str) -> None:
    looked, slept = ENV.open(scenario), ENV.open(scenario)
    total, waits = whole(looked), (MINUTE, 3 * HOUR, 5 * HOUR, DAY, DAY + 1, 3 * DAY, 3 * DAY)
    mine = ""
    for session in (looked, slept):
        new = {"title": "Box", "category": "toys", "kind": "fixed", "buy_now_cents": 5, "duration_hours": 240}
        mine = ok(session, "create_listing", **new)["listing_id"]
    for number, seconds in enumerate(waits):
        wait(looked, seconds)
        seen = ok(looked, "search_listings", status="any", limit=100)  # this settles a copy
        ok(looked, "update_listing", listing_id=mine, description=str(number))  # and this the state itself
        assert ok(looked, "search_listings", status="any", limit=100) == seen
    wait(slept, sum(waits))
    ok(slept, "update_listing", listing_id=mine, description=str(len(waits) - 1))
    assert looked.digest() == slept.digest()
    assert whole(looked) == total
    assert any(row.status == "sold" and row.kind == "auction" for row in looked.world.rows(Listing))


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    session = ENV.open(scenario, seed)
    assert environment().open(scenario, seed).digest() == session.digest()
    world = session.world
    whole(session)
    for listing in world.rows(Listing):
        need(session, User, listing.seller_id)
        assert (listing.end_at > world.now) or listing.status != "open"
    for row in world.rows(Bid):
        assert need(session, Listing, row.listing_id).created_at < row.at <= world.now
        need(session, User, row.bidder_id)
    for sale in world.rows(Sale):
        assert need(session, Listing, sale.listing_id).seller_id == sale.seller_id != sale.buyer_id
        assert sale.at <= world.now
    stars: dict[str, list[int]] = {}
    for said in world.rows(Feedback):
        sale = need(session, Sale, said.sale_id)
        assert {said.author_id, said.subject_id} == {sale.seller_id, sale.buyer_id}
        stars.setdefault(said.subject_id, []).append(said.rating)
    for user in world.rows(User):
        assert (user.stars, user.ratings) == (sum(stars.get(user.id, [])), len(stars.get(user.id, [])))
    times = [one.at for one in world.rows(Rival)]
    assert times == sorted(times)
    assert all(at > world.now for at in times)


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
def test_every_tool_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    user = need(session, Profile, ME).user_id
    session.world.update(need(session, Wallet, user), balance_cents=10**8)
    rows = [
        row
        for row in ok(session, "search_listings", sort="cheapest", limit=100)["items"]
        if row["seller_id"] != user and not need(session, User, row["seller_id"]).suspended
    ]
    target = next(
        row["listing_id"]
        for row in rows
        if row["kind"] == "auction" and need(session, Listing, row["listing_id"]).end_at > NOW + 12 * HOUR
    )
    least = ok(session, "get_listing", listing_id=target)["next_bid_cents"]
    bid = ok(session, "place_bid", listing_id=target, amount_cents=least)["bid_id"]
    ok(session, "withdraw_bid", bid_id=bid)
    fixed = next(row["listing_id"] for row in rows if row["kind"] == "fixed")
    sale = ok(session, "buy_now", listing_id=fixed)["sale_id"]
    ok(session, "leave_feedback", sale_id=sale, rating=5)
    ok(session, "list_my_purchases")
    ok(session, "get_seller_profile")
    made = ok(session, "create_listing", **NEW)["listing_id"]
    ok(session, "update_listing", listing_id=made, title="Large box")
    ok(session, "close_listing", listing_id=made)
    made = ok(session, "create_listing", **{**NEW, "category": "music"})["listing_id"]
    for one in ok(session, "list_bids", listing_id=made)["items"][:1]:
        ok(session, "accept_bid", listing_id=made, bid_id=one["bid_id"])
