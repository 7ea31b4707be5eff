"""Trading: its surface, every failure, golden edges, and an order book that a naive one agrees with."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from environment_sessions import fails, need, ok, partial, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import NOW, Scenario, StatefulEnvironment, StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.trading import environment
from callwright_plugins.mcp_environments.trading.hours import HOLIDAYS, is_open, next_close, next_open
from callwright_plugins.mcp_environments.trading.rows import (
    CLOCK,
    NEVER,
    ROWS,
    Account,
    Alert,
    BookOrder,
    Fill,
    Incoming,
    MarketClock,
    Order,
    Position,
    PriceBar,
    Symbol,
)
from callwright_plugins.mcp_environments.trading.tools import TOOLS

ENV = environment()
DAY, HOUR = 86_400, 3_600
READ = {
    "search_symbols",
    "get_quote",
    "get_order_book",
    "get_price_history",
    "get_portfolio",
    "list_orders",
    "get_order",
}
DISCOVERY = {"search_symbols", "get_portfolio", "list_orders"}
DESTRUCTIVE = {"cancel_order"}
WRITE = {
    "deposit_funds",
    "place_market_order",
    "place_limit_order",
    "modify_order",
    "cancel_order",
    "set_price_alert",
}


def symbol(name: str, price: int = 1_000, **changes: Any) -> Symbol:
    values = {"tick_cents": 5, "band_bps": 1_000, "halted": False, **changes}
    return Symbol(
        symbol=name,
        name=f"{name} plc",
        sector="energy",
        prev_close_cents=price,
        open_cents=price,
        high_cents=price,
        low_cents=price,
        last_cents=price,
        volume=0,
        **values,
    )


def small(*incoming: Incoming, now: int = NOW, cash: int = 1_000_000, shares: int = 100) -> StatefulSession:
    """Symbol AAA with two orders a side, at 990, 995 and 1005, 1010; 100 shares of it and 10,000.00 of cash."""
    rows = [
        symbol("AAA"),
        symbol("BBB"),
        symbol("HLT", halted=True),
        *(
            BookOrder(f"B{number:05d}", "AAA", side, price, size, number)
            for number, (side, price, size) in enumerate(
                [("buy", 995, 10), ("buy", 995, 20), ("buy", 990, 50), ("sell", 1_005, 10), ("sell", 1_010, 40)], 1
            )
        ),
        Account("U00001", "Everyday", cash, 0, cash),
        Account("U00002", "Other", cash, 0, cash),
        Position("U00001", "AAA", shares, 0, shares * 900, 0),
        *incoming,
        MarketClock(CLOCK, 1, incoming[0].at if incoming else NEVER, next_close(now), 5),
    ]
    return StatefulEnvironment(
        "trading", rows=ROWS, tools=TOOLS, scenarios={"small": Scenario(lambda rng, scale: rows, now=now)}
    ).open()


def limit(session: StatefulSession, side: str, shares: int, price: int, **more: Any) -> Any:
    return ok(session, "place_limit_order", symbol="AAA", side=side, shares=shares, limit_price_cents=price, **more)


def test_the_surface_is_the_one_of_the_paper() -> None:
    tools = ENV.tools
    assert set(tools) == READ | WRITE
    assert len(tools) == 13
    assert {name for name, spec in tools.items() if spec.read_only} == READ
    assert {name for name, spec in tools.items() if spec.discovery} == DISCOVERY
    assert {name for name, spec in tools.items() if spec.destructive} == DESTRUCTIVE


def test_it_keeps_the_rules_of_environments() -> None:
    check_component("environment", environment(), scenarios=tuple(ENV.scenarios))


# Orders ---------------------------------------------------------------------------------------------------------------


def test_a_market_order_takes_the_best_prices_in_turn() -> None:
    session = small()
    done = ok(session, "place_market_order", symbol="aaa", side="buy", shares=30)
    assert [(one["shares"], one["price_cents"], one["role"]) for one in done["fills"]] == [
        (10, 1_005, "taker"),
        (20, 1_010, "taker"),
    ]
    assert done["status"] == "filled"
    assert done["traded_cents"] == 30_250
    shown = ok(session, "get_portfolio")
    assert shown["cash_cents"] == 1_000_000 - 30_250
    assert shown["positions"][0]["shares"] == 130
    quote = ok(session, "get_quote", symbol="AAA")
    assert (quote["ask_cents"], quote["ask_shares"], quote["last_cents"], quote["volume"]) == (1_010, 20, 1_010, 30)


def test_a_market_order_that_is_too_large_is_filled_in_part() -> None:
    session = small()
    done = partial(session, "PARTIAL_FILL", "place_market_order", symbol="AAA", side="buy", shares=51)
    assert (done["status"], done["filled_shares"]) == ("cancelled", 50)
    fails(session, "NO_LIQUIDITY", "place_market_order", symbol="AAA", side="buy", shares=1)
    done = partial(session, "PARTIAL_FILL", "place_market_order", symbol="AAA", side="sell", shares=100)
    assert done["filled_shares"] == 80
    position = need(session, Position, ("U00001", "AAA"))
    assert (position.shares, position.reserved) == (70, 0)


def test_limit_orders_wait_reserve_and_free() -> None:
    session = small()
    made = limit(session, "buy", 30, 1_005)
    assert (made["status"], made["filled_shares"]) == ("open", 10)
    shown = ok(session, "get_portfolio")
    assert shown["reserved_cents"] == 20 * 1_005
    assert shown["buying_power_cents"] == 1_000_000 - 30 * 1_005
    book = ok(session, "get_order_book", symbol="AAA")
    assert book["bids"][0] == {"price_cents": 1_005, "shares": 20, "orders": 1}
    ended = ok(session, "cancel_order", order_id=made["order_id"])
    assert (ended["status"], ended["filled_shares"]) == ("cancelled", 10)
    assert ok(session, "get_portfolio")["reserved_cents"] == 0


def test_immediate_or_cancel_drops_the_rest() -> None:
    session = small()
    arguments = {"symbol": "AAA", "side": "buy", "shares": 30, "time_in_force": "ioc"}
    done = partial(session, "PARTIAL_FILL", "place_limit_order", **arguments, limit_price_cents=1_005)
    assert (done["filled_shares"], done["status"]) == (10, "cancelled")
    done = partial(session, "PARTIAL_FILL", "place_limit_order", **arguments, limit_price_cents=1_000)
    assert (done["filled_shares"], done["status"]) == (0, "cancelled")
    assert ok(session, "get_portfolio")["reserved_cents"] == 0


def test_who_came_first_is_met_first() -> None:
    later = NOW + 60
    session = small(Incoming(1, later, "AAA", "sell", 995, 25), Incoming(2, later + 60, "AAA", "sell", 995, 10))
    made = limit(session, "buy", 10, 995)["order_id"]
    wait(session, 60)  # 25 shares meet the 10 and 15 of the 20 that were there before
    assert ok(session, "get_order", order_id=made)["filled_shares"] == 0
    wait(session, 60)  # 5 more of them, then 5 of ours
    shown = ok(session, "get_order", order_id=made)
    assert [(one["shares"], one["role"], one["at"]) for one in shown["fills"]] == [(5, "maker", "2026-03-02T09:02:00Z")]


def test_modifying_loses_the_place_unless_it_only_shrinks() -> None:
    coming = Incoming(1, NOW + 60, "AAA", "buy", 1_000, 6)
    for change, first in ((4, True), (12, False)):
        session = small(coming)
        mine = limit(session, "sell", 10, 1_000)["order_id"]
        session.world.put(BookOrder("B00099", "AAA", "sell", 1_000, 10, need(session, MarketClock, CLOCK).seq + 1))
        clock = need(session, MarketClock, CLOCK)
        session.world.update(clock, seq=clock.seq + 1)
        ok(session, "modify_order", order_id=mine, shares=change)
        assert need(session, Position, ("U00001", "AAA")).reserved == change
        wait(session, 60)
        assert ok(session, "get_order", order_id=mine)["filled_shares"] == (min(change, 6) if first else 0)


def test_a_modified_order_can_trade_at_once() -> None:
    session = small()
    made = limit(session, "buy", 30, 990)["order_id"]
    done = ok(session, "modify_order", order_id=made, limit_price_cents=1_010, shares=50)
    assert (done["filled_shares"], done["status"]) == (50, "filled")
    assert done["traded_cents"] == 10 * 1_005 + 40 * 1_010
    account = need(session, Account, "U00001")
    assert (account.reserved_cents, account.cash_cents) == (0, 1_000_000 - 50_450)
    fails(session, "ORDER_NOT_OPEN", "modify_order", order_id=made, shares=60)


def test_day_orders_end_at_the_close_and_others_wait() -> None:
    session = small()
    day = limit(session, "buy", 10, 950)["order_id"]
    gtc = limit(session, "sell", 10, 1_050, time_in_force="gtc")["order_id"]
    wait(session, 7 * HOUR + 1_799)
    assert ok(session, "get_order", order_id=day)["status"] == "open"
    wait(session, 1)
    assert ok(session, "get_order", order_id=day)["status"] == "expired"
    shown = ok(session, "get_portfolio")
    assert (shown["reserved_cents"], shown["positions"][0]["available_shares"]) == (0, 90)
    fails(session, "ORDER_NOT_OPEN", "cancel_order", order_id=day)
    assert ok(session, "get_order", order_id=gtc)["status"] == "open"
    wait(session, 91 * DAY)
    assert ok(session, "get_order", order_id=gtc)["status"] == "expired"


def test_the_close_makes_history_and_moves_the_band() -> None:
    session = small()
    ok(session, "place_market_order", symbol="AAA", side="buy", shares=20)
    assert session.call("get_price_history", {"symbol": "AAA"}).kind == "empty"
    wait(session, 8 * HOUR)
    assert ok(session, "get_price_history", symbol="AAA") == [
        {
            "day": "2026-03-02",
            "open_cents": 1_005,
            "high_cents": 1_010,
            "low_cents": 1_005,
            "close_cents": 1_010,
            "volume": 20,
        }
    ]
    quote = ok(session, "get_quote", symbol="AAA")
    assert (quote["band_low_cents"], quote["band_high_cents"], quote["volume"]) == (909, 1_111, 0)
    assert (quote["market_open"], quote["next_change_at"]) == (False, "2026-03-03T08:00:00Z")


def test_alerts_are_triggered_by_trades() -> None:
    session = small()
    ok(session, "set_price_alert", symbol="AAA", direction="above", price_cents=1_010)
    ok(session, "set_price_alert", symbol="AAA", direction="below", price_cents=995)
    ok(session, "place_market_order", symbol="AAA", side="buy", shares=10)
    assert [one["status"] for one in ok(session, "get_portfolio")["alerts"]] == ["active", "active"]
    ok(session, "place_market_order", symbol="AAA", side="buy", shares=10)
    assert [one["status"] for one in ok(session, "get_portfolio")["alerts"]] == ["triggered", "active"]
    ok(session, "place_market_order", symbol="AAA", side="sell", shares=1)
    assert [one["status"] for one in ok(session, "get_portfolio")["alerts"]] == ["triggered", "triggered"]


# Failures -------------------------------------------------------------------------------------------------------------

BUY: dict[str, Any] = {"symbol": "AAA", "side": "buy"}
FAILURES: list[tuple[str, str, dict[str, Any]]] = [
    ("TICK_SIZE", "place_limit_order", {**BUY, "shares": 1, "limit_price_cents": 1_001}),
    ("PRICE_BAND", "place_limit_order", {**BUY, "shares": 1, "limit_price_cents": 1_105}),
    ("PRICE_BAND", "place_limit_order", {**BUY, "shares": 1, "limit_price_cents": 895}),
    ("INSUFFICIENT_BUYING_POWER", "place_limit_order", {**BUY, "shares": 1_112, "limit_price_cents": 900}),
    ("INSUFFICIENT_SHARES", "place_limit_order", {**BUY, "side": "sell", "shares": 151, "limit_price_cents": 1_050}),
    ("INSUFFICIENT_SHARES", "place_market_order", {"symbol": "BBB", "side": "sell", "shares": 1}),
    ("NO_LIQUIDITY", "place_market_order", {"symbol": "BBB", "side": "buy", "shares": 1}),
    ("SYMBOL_HALTED", "place_market_order", {"symbol": "HLT", "side": "buy", "shares": 1}),
    ("SYMBOL_HALTED", "place_limit_order", {"symbol": "HLT", "side": "buy", "shares": 1, "limit_price_cents": 1_000}),
    ("SELF_TRADE", "place_limit_order", {**BUY, "shares": 70, "limit_price_cents": 1_050}),
    ("SELF_TRADE", "place_market_order", {**BUY, "shares": 52}),
    ("NOT_FOUND", "place_market_order", {"symbol": "ZZZ", "side": "buy", "shares": 1}),
    ("NOT_FOUND", "place_market_order", {**BUY, "shares": 1, "account_id": "U9"}),
    ("NOT_FOUND", "deposit_funds", {"amount_cents": 1, "account_id": "U9"}),
    ("NOT_FOUND", "get_quote", {"symbol": "ZZZ"}),
    ("NOT_FOUND", "get_order", {"order_id": "O9"}),
    ("NOT_FOUND", "get_portfolio", {"account_id": "U9"}),
    ("NOT_FOUND", "list_orders", {"account_id": "U9"}),
    ("NOT_FOUND", "cancel_order", {"order_id": "O9"}),
    ("ORDER_NOT_OPEN", "cancel_order", {"order_id": "O00002"}),
    ("ORDER_NOT_OPEN", "modify_order", {"order_id": "O00002", "shares": 5}),
    ("TICK_SIZE", "modify_order", {"order_id": "O00001", "limit_price_cents": 1_051}),
    ("PRICE_BAND", "modify_order", {"order_id": "O00001", "limit_price_cents": 1_200}),
    ("INSUFFICIENT_SHARES", "modify_order", {"order_id": "O00001", "shares": 161}),
    ("INSUFFICIENT_BUYING_POWER", "modify_order", {"order_id": "O00003", "shares": 2_000}),
    ("SELF_TRADE", "modify_order", {"order_id": "O00001", "limit_price_cents": 900}),
    ("INVALID_STATE", "modify_order", {"order_id": "O00003", "shares": 61}),
    ("ALREADY_EXISTS", "set_price_alert", {"symbol": "AAA", "direction": "above", "price_cents": 1_300}),
    ("INVALID_STATE", "set_price_alert", {"symbol": "AAA", "direction": "above", "price_cents": 900}),
    ("INVALID_STATE", "set_price_alert", {"symbol": "AAA", "direction": "below", "price_cents": 1_900}),
]


@pytest.mark.parametrize(
    ("code", "tool", "arguments"), FAILURES, ids=[f"{case[1]}-{case[0]}-{n}" for n, case in enumerate(FAILURES)]
)
def test_failures_leave_the_state_untouched(code: str, tool: str, arguments: dict[str, Any]) -> None:
    session = small(Incoming(1, NOW + 60, "AAA", "sell", 900, 140))
    assert limit(session, "sell", 10, 1_050, time_in_force="gtc")["order_id"] == "O00001"
    ok(session, "place_market_order", symbol="AAA", side="sell", shares=1)
    assert limit(session, "buy", 90, 900)["order_id"] == "O00003"
    ok(session, "set_price_alert", symbol="AAA", direction="above", price_cents=1_300)
    wait(session, 60)  # 79 shares of others at 990 and 995, then 61 of our 90
    ok(session, "deposit_funds", amount_cents=1)
    assert need(session, Order, "O00003").filled == 61
    session.world.put(BookOrder("B00050", "AAA", "sell", 1_005, 1, 0))
    fails(session, code, tool, **arguments)


def test_a_closed_exchange_takes_no_orders_but_lets_them_go() -> None:
    session = small()
    made = limit(session, "buy", 10, 950, time_in_force="gtc")["order_id"]
    wait(session, 8 * HOUR)
    order = {"symbol": "AAA", "side": "buy", "shares": 1}
    assert "2026-03-03T08:00:00Z" in fails(session, "MARKET_CLOSED", "place_market_order", **order)
    fails(session, "MARKET_CLOSED", "place_limit_order", **order, limit_price_cents=950)
    fails(session, "MARKET_CLOSED", "modify_order", order_id=made, shares=5)
    ok(session, "cancel_order", order_id=made)
    fails(ENV.open("weekend"), "NOT_FOUND", "place_market_order", **order)
    ticker = ok(ENV.open("weekend"), "search_symbols")["items"][0]["symbol"]
    fails(ENV.open("weekend"), "MARKET_CLOSED", "place_market_order", **{**order, "symbol": ticker})


def test_alerts_have_a_limit() -> None:
    session = small()
    for number in range(20):
        ok(session, "set_price_alert", symbol="AAA", direction="above", price_cents=1_001 + number)
    fails(session, "ALERT_LIMIT", "set_price_alert", symbol="AAA", direction="above", price_cents=1_100)


@given(st.integers(0, 366 * DAY))
def test_hours_are_those_of_a_calendar(offset: int) -> None:
    at = NOW + offset
    moment = datetime.fromtimestamp(at, UTC)

    def trading(day: datetime) -> bool:
        return day.weekday() < 5 and day.strftime("%Y-%m-%d") not in HOLIDAYS

    minutes = moment.hour * 60 + moment.minute
    assert is_open(at) == (trading(moment) and 8 * 60 <= minutes < 16 * 60 + 30)
    days = [moment.replace(hour=0, minute=0, second=0) + timedelta(days=n) for n in range(12)]
    closes = [day + timedelta(hours=16, minutes=30) for day in days if trading(day)]
    opens = [day + timedelta(hours=8) for day in days if trading(day)]
    assert next_close(at) == min(close.timestamp() for close in closes if close > moment)
    assert next_open(at) == min(opened.timestamp() for opened in opens if opened > moment)


# Golden edges ---------------------------------------------------------------------------------------------------------


def test_search_quote_order_modify_cancel() -> None:
    session = ENV.open()
    listed = ok(session, "search_symbols", limit=100)["items"]
    ticker = next(one["symbol"] for one in listed if ok(session, "get_quote", symbol=one["symbol"])["bid_cents"])
    fails(session, "NOT_FOUND", "get_quote", symbol="NOSUCH")
    quote = ok(session, "get_quote", symbol=ticker)
    ok(session, "deposit_funds", amount_cents=10**8)
    made = ok(session, "place_limit_order", symbol=ticker, side="buy", shares=7, limit_price_cents=quote["bid_cents"])
    fails(session, "NOT_FOUND", "modify_order", order_id="O99999", shares=3)
    ok(session, "modify_order", order_id=made["order_id"], shares=3)
    assert ok(session, "cancel_order", order_id=made["order_id"])["status"] == "cancelled"
    fails(session, "ORDER_NOT_OPEN", "cancel_order", order_id=made["order_id"])


def test_deposit_lets_a_market_order_pass() -> None:
    session = small(cash=10_000)
    order = {"symbol": "AAA", "side": "buy", "shares": 10}
    fails(session, "INSUFFICIENT_BUYING_POWER", "place_market_order", **order)
    ok(session, "deposit_funds", amount_cents=50)
    assert ok(session, "place_market_order", **order)["status"] == "filled"
    assert ok(session, "get_portfolio")["cash_cents"] == 0


# The order book against a naive one -----------------------------------------------------------------------------------

ACT = st.tuples(
    st.sampled_from(("limit", "limit", "ioc", "market", "cancel", "modify", "other", "other")),
    st.sampled_from(("buy", "sell")),
    st.integers(1, 60),
    st.integers(-4, 4).map(lambda step: 1_000 + 5 * step),
    st.integers(0, 5),
)


class Naive:
    """A book as a list of [owner, side, price, left], always in the order of arrival; best means scanned for."""

    def __init__(self) -> None:
        self.waiting: list[list[Any]] = [
            ["other", "buy", 995, 10],
            ["other", "buy", 995, 20],
            ["other", "buy", 990, 50],
            ["other", "sell", 1_005, 10],
            ["other", "sell", 1_010, 40],
        ]
        self.cash, self.shares, self.filled = 1_000_000, 100, defaultdict[str, int](int)

    def best(self, side: str, price: int | None) -> list[Any] | None:
        found = None
        for one in self.waiting:
            if one[1] == side:
                continue
            if price is not None and (one[2] > price if side == "buy" else one[2] < price):
                continue
            if found is None or (one[2] < found[2] if side == "buy" else one[2] > found[2]):
                found = one
        return found

    def reserved(self, side: str) -> int:
        mine = [one for one in self.waiting if one[0] != "other" and one[1] == side]
        return sum(one[3] * (one[2] if side == "buy" else 1) for one in mine)

    def send(self, owner: str, side: str, shares: int, price: int | None, keep: bool) -> str:
        """The code of the failure, or how it ended."""
        before = ([list(one) for one in self.waiting], self.cash, self.shares, dict(self.filled))
        power, free = self.cash - self.reserved("buy"), self.shares - self.reserved("sell")
        left, paid = shares, 0
        while left and (one := self.best(side, price)):
            if owner != "other" and one[0] != "other":
                self.back(before)
                return "SELF_TRADE"
            met = min(left, one[3])
            left -= met
            one[3] -= met
            paid += met * one[2]
            for who, what in ((owner, side), (one[0], one[1])):
                if who != "other":
                    self.filled[who] += met
                    self.cash += met * one[2] * (-1 if what == "buy" else 1)
                    self.shares += met * (1 if what == "buy" else -1)
            if not one[3]:
                self.waiting.remove(one)
        if owner != "other":
            if side == "sell" and shares > free:
                self.back(before)
                return "INSUFFICIENT_SHARES"
            if side == "buy" and (paid if price is None else price * shares) > power:
                self.back(before)
                return "INSUFFICIENT_BUYING_POWER"
            if price is None and left == shares:
                return "NO_LIQUIDITY"
        if left and keep:
            self.waiting.append([owner, side, price, left])
        return "PARTIAL_FILL" if left and not keep and owner != "other" else ""

    def back(self, before: Any) -> None:
        waiting, self.cash, self.shares, filled = before
        self.waiting, self.filled = waiting, defaultdict(int, filled)


@given(st.lists(ACT, max_size=18))
@settings(max_examples=120)
def test_a_naive_order_book_agrees(acts: list[tuple[str, str, int, int, int]]) -> None:
    others = [(n, act) for n, act in enumerate(acts) if act[0] == "other"]
    coming = [
        Incoming(number, NOW + 60 * (n + 1), "AAA", act[1], act[3], act[2]) for number, (n, act) in enumerate(others, 1)
    ]
    session, naive = small(*coming, cash=100_000), Naive()
    naive.cash = 100_000
    made: list[str] = []
    sides: dict[str, str] = {}
    for what, side, shares, price, nth in acts:
        wait(session, 60)
        arguments: dict[str, Any] = {"symbol": "AAA", "side": side, "shares": shares}
        code = ""
        if what == "other":
            naive.send("other", side, shares, price, True)
            outcome = None
        elif what in ("cancel", "modify"):
            if not made:
                continue
            order_id = made[nth % len(made)]
            mine = next((one for one in naive.waiting if one[0] == order_id), None)
            if what == "cancel":
                outcome = session.call("cancel_order", {"order_id": order_id})
            else:
                outcome = session.call(
                    "modify_order",
                    {"order_id": order_id, "shares": naive.filled[order_id] + shares, "limit_price_cents": price},
                )
            if mine is None:
                code = "ORDER_NOT_OPEN"
            elif what == "cancel":
                naive.waiting.remove(mine)
            elif price == mine[2] and shares <= mine[3]:
                mine[3] = shares
            else:
                before = [list(one) for one in naive.waiting]
                naive.waiting.remove(mine)
                code = naive.send(order_id, sides[order_id], shares, price, True)
                if code:
                    naive.waiting = before
        else:
            name = f"O{len(made) + 1:05d}"
            if what == "market":
                outcome = session.call("place_market_order", arguments)
                code = naive.send(name, side, shares, None, False)
            else:
                arguments |= {"limit_price_cents": price, "time_in_force": "ioc" if what == "ioc" else "day"}
                outcome = session.call("place_limit_order", arguments)
                code = naive.send(name, side, shares, price, what == "limit")
            if code in ("", "PARTIAL_FILL"):
                made.append(name)
                sides[name] = side
        if outcome is not None:
            assert outcome.code == code, (what, outcome)
        shown = ok(session, "get_order_book", symbol="AAA", depth=50)
        for listed, kind, sign in ((shown["bids"], "buy", -1), (shown["asks"], "sell", 1)):
            levels: dict[int, int] = defaultdict(int)
            for one in naive.waiting:
                if one[1] == kind:
                    levels[one[2]] += one[3]
            assert [(one["price_cents"], one["shares"]) for one in listed] == sorted(
                levels.items(), key=lambda pair: sign * pair[0]
            )
        portfolio = ok(session, "get_portfolio")
        assert (portfolio["cash_cents"], portfolio["reserved_cents"]) == (naive.cash, naive.reserved("buy"))
        held = portfolio["positions"][0]
        assert (held["shares"], held["available_shares"]) == (naive.shares, naive.shares - naive.reserved("sell"))
        for order_id in made:
            assert ok(session, "get_order", order_id=order_id)["filled_shares"] == naive.filled[order_id]
        if shown["bids"] and shown["asks"]:
            assert shown["bids"][0]["price_cents"] < shown["asks"][0]["price_cents"]


# Scenarios ------------------------------------------------------------------------------------------------------------


def whole(session: StatefulSession) -> None:
    """Books are not crossed, reserves are those of open orders, and cash and shares are those of fills."""
    world = session.world
    best: dict[tuple[str, str], int] = {}
    for one in [*world.rows(BookOrder), *(row for row in world.rows(Order) if row.status == "open")]:
        row = need(session, Symbol, one.symbol)
        assert one.price_cents % row.tick_cents == 0
        assert one.remaining > 0
        held = best.get((one.symbol, one.side), one.price_cents)
        best[one.symbol, one.side] = (max if one.side == "buy" else min)(held, one.price_cents)
    for row in world.rows(Symbol):
        assert best.get((row.symbol, "buy"), 0) < best.get((row.symbol, "sell"), 10**12)
    orders = {row.id: row for row in world.rows(Order)}
    filled: dict[str, int] = defaultdict(int)
    cash: dict[str, int] = defaultdict(int)
    shares: dict[tuple[str, str], int] = defaultdict(int)
    for fill in world.rows(Fill):
        order = orders[fill.order_id]
        filled[fill.order_id] += fill.shares
        sign = 1 if order.side == "buy" else -1
        cash[order.account_id] -= sign * fill.shares * fill.price_cents
        shares[order.account_id, order.symbol] += sign * fill.shares
    for order in orders.values():
        assert order.filled == filled[order.id]
    for account in world.rows(Account):
        assert account.cash_cents == account.deposited_cents + cash[account.id]
        mine = [row for row in orders.values() if row.account_id == account.id and row.status == "open"]
        assert account.reserved_cents == sum(row.remaining * row.price_cents for row in mine if row.side == "buy")
        assert account.buying_power_cents >= 0
    for position in world.rows(Position):
        assert position.shares == shares[position.account_id, position.symbol]
        open_sells = [
            row.remaining
            for row in orders.values()
            if (row.account_id, row.symbol, row.side, row.status)
            == (position.account_id, position.symbol, "sell", "open")
        ]
        assert position.reserved == sum(open_sells)
        assert position.free >= 0


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 1])
def test_scenarios_are_whole(scenario: str, seed: int) -> None:
    session = ENV.open(scenario, seed)
    assert environment().open(scenario, seed).digest() == session.digest()
    world = session.world
    whole(session)
    times = [one.at for one in world.rows(Incoming)]
    assert times == sorted(times)
    assert [one.number for one in world.rows(Incoming)] == list(range(1, len(times) + 1))
    assert all(at > world.now and is_open(at) for at in times)
    for one in [*world.rows(Alert), *world.rows(PriceBar), *world.rows(Incoming)]:
        assert need(session, Symbol, one.symbol)
    assert is_open(world.now) == (scenario != "weekend")


@pytest.mark.parametrize("scenario", ["typical", "adversarial"])
def test_a_week_passes_and_everything_still_adds_up(scenario: str) -> None:
    looked, slept = ENV.open(scenario), ENV.open(scenario)
    for session in (looked, slept):
        ok(session, "deposit_funds", amount_cents=10**9)
        for row in list(session.world.rows(Symbol))[:15]:
            if not row.halted and row.last_cents // row.tick_cents > 3:
                price = row.last_cents - row.last_cents % row.tick_cents
                session.call(
                    "place_limit_order",
                    {
                        "symbol": row.symbol,
                        "side": "buy",
                        "shares": 40,
                        "limit_price_cents": price,
                        "time_in_force": "gtc",
                    },
                )
    for _ in range(7):
        wait(looked, DAY)
        seen = ok(looked, "list_orders", limit=100)  # settles a copy
        ok(looked, "deposit_funds", amount_cents=1)  # settles
        assert ok(looked, "list_orders", limit=100) == seen
    wait(slept, 7 * DAY)
    ok(slept, "deposit_funds", amount_cents=7)
    assert looked.digest() == slept.digest()
    assert any(row.role == "maker" for row in looked.world.rows(Fill))
    whole(looked)


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
def test_every_tool_works_somewhere(scenario: str) -> None:
    session = ENV.open(scenario)
    ok(session, "deposit_funds", amount_cents=10**9)
    row = next(
        row
        for row in session.world.rows(Symbol)
        if not row.halted and ok(session, "get_quote", symbol=row.symbol)["ask_shares"] > 1
    )
    ok(session, "get_order_book", symbol=row.symbol)
    ok(session, "get_price_history", symbol=row.symbol, days=5)
    bought = ok(session, "place_market_order", symbol=row.symbol, side="buy", shares=1)
    low = -(-row.band[0] // row.tick_cents) * row.tick_cents
    made = ok(session, "place_limit_order", symbol=row.symbol, side="buy", shares=2, limit_price_cents=low)
    ok(session, "modify_order", order_id=made["order_id"], shares=1)
    ok(session, "cancel_order", order_id=made["order_id"])
    ok(session, "get_order", order_id=bought["order_id"])
    ok(session, "list_orders", symbol=row.symbol, status="filled")
    ok(session, "set_price_alert", symbol=row.symbol, direction="below", price_cents=1)
    whole(session)
