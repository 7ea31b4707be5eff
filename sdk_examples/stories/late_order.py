"""An order comes too late, is sent back and refunded.

Run: python sdk_examples/stories/late_order.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

DAY = 86_400


def agent() -> Agent:
    on_its_way = yield ask("track_order", order_id="O00003")
    yield f"It is {on_its_way.value['status']} and expected at {on_its_way.value['expected_at']}: after Thursday."
    cancelled = yield ask("cancel_order", order_id="O00003")
    assert cancelled.code == "ORDER_SHIPPED"
    yield "It cannot be cancelled any more. Once it is here I can send it back for you."
    order = yield ask("get_order", order_id="O00003")
    cover = next(one for one in order.value["items"] if "duvet cover" in one["product_name"])
    sent = yield ask(
        "request_return",
        order_id="O00003",
        order_item_id=cover["order_item_id"],
        quantity=cover["quantity"],
        reason="changed_mind",
    )
    yield f"Both covers go back; {sent.value['refund_cents']} cents go to your card. The socks stay."


STORY = Story(
    title="An order that comes late and is refunded",
    environment="shopping",
    query="Where is my order O00003? The duvet covers are a present for Thursday, the 5th of March.",
    agent=agent,
    later=(
        "Then cancel it, please.",
        "It came today, a day late. Send both duvet covers back; the socks I keep.",
    ),
    clock=ClockPolicy(jumps=(0, 4 * DAY)),
    goal={
        "holds": [
            {
                "table": "returns",
                "where": {"order_id": "O00003", "order_item_id": "OI00006"},
                "has": {"quantity": 2, "refund_cents": {"at_least": 40_000}},
                "count": 1,
            },
            {"table": "order_items", "where": {"id": "OI00006"}, "has": {"returned": 2}},
            {"table": "order_items", "where": {"id": "OI00007"}, "has": {"returned": 0, "refunded_cents": 0}},
            {"table": "orders", "where": {"id": "O00003"}, "has": {"refunded_cents": {"at_least": 40_000}}},
        ],
        # The covers are on the shelf again, and the card has its money.
        "changed": [
            {"table": "order_items", "where": {"id": "OI00006"}, "fields": ["refunded_cents"]},
            {"table": "variants", "where": {"id": "V00370"}, "fields": ["stock"], "must": False},
            {"table": "payment_methods", "where": {"id": "PM00001"}, "must": False},
        ],
    },
    tells="O00003",
)

if __name__ == "__main__":
    tell(STORY)
