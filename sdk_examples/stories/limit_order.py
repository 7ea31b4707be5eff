"""A limit order waits in the book overnight and is filled the next day.

Run: python sdk_examples/stories/limit_order.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

DAY = 86_400


def agent() -> Agent:
    quote = yield ask("get_quote", symbol="NIAO")
    limit = quote.value["bid_cents"] - quote.value["tick_cents"]
    placed = yield ask(
        "place_limit_order",
        symbol="NIAO",
        side="buy",
        shares=20,
        limit_price_cents=limit,
        time_in_force="gtc",
    )
    order = placed.value["order_id"]
    yield f"It is {quote.value['ask_cents']} cents now. Your order {order} waits at {limit} cents."
    waiting = yield ask("get_order", order_id=order)
    assert waiting.value["status"] == "open"
    yield "Nobody has sold at that price today. The order stays in the book until it is filled or you cancel it."
    filled = yield ask("get_order", order_id=order)
    yield f"All {filled.value['filled_shares']} shares are yours at {filled.value['average_price_cents']:.0f} cents."


STORY = Story(
    title="A limit order filled the next day",
    environment="trading",
    query="Buy me 20 shares of NIAO, but below what people bid now; I can wait.",
    agent=agent,
    later=("The market closes soon. Anything?", "Good afternoon, the day after. And now?"),
    clock=ClockPolicy(jumps=(7 * 3600, 22 * 3600)),
    goal={
        "holds": [
            {
                "table": "orders",
                "where": {"account_id": "U00001", "symbol": "NIAO", "shares": 20, "side": "buy"},
                "has": {"status": "filled", "price_cents": {"at_most": 36_261}},
                "count": 1,
            },
            {"table": "positions", "where": {"account_id": "U00001", "symbol": "NIAO"}, "has": {"shares": 42}},
        ],
        # What else a filled order writes; day orders of others expire meanwhile.
        "changed": [
            {"table": "fills"},
            {"table": "accounts"},
            {"table": "positions", "where": {"symbol": "NIAO"}, "fields": ["cost_cents"]},
            {"table": "orders", "must": False},
        ],
    },
    tells="NIAO",
)

if __name__ == "__main__":
    tell(STORY)
