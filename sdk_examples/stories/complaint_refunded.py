"""A customer complains, gets half of the money back, and is told when it has arrived. Two apps of a merchant.

Run: python sdk_examples/stories/complaint_refunded.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

HOUR = 3600
GOAL = {
    "holds": [
        {"table": "payments.refunds", "where": {"payment_id": "P00331", "amount_cents": 31_589}, "count": 1},
        {"table": "email.messages", "where": {"subject": "Your refund", "body": {"contains": "315.89"}}, "count": 1},
    ],
    "changed": [
        {"table": "payments.payments", "where": {"id": "P00331"}},
        {"table": "payments.invoices", "where": {"id": "I00395"}, "must": False},
        # What time brings to others: authorisations that expire, refunds that settle.
        {"table": "payments.payments", "must": False},
        {"table": "payments.refunds", "must": False},
        {"table": "email.message_states"},
        {"table": "email.threads", "must": False},
    ],
}


def agent() -> Agent:
    invoice = yield ask("get_invoice", invoice_id="I00395")
    (payment,) = invoice.value["payments"]
    half = payment["captured_cents"] // 2
    yield f"{invoice.value['customer_name']} paid {payment['captured_cents']} cents. Shall I give {half} back?"
    yield ask("refund_payment", payment_id=payment["payment_id"], amount_cents=half, reason="requested_by_customer")
    yield "It is on its way and arrives within the hour."
    payments = yield ask("list_payments", invoice_id="I00395")
    assert payments.value["items"][0]["refunded_cents"] == half
    assert any("is with the customer" in notice for notice in payments.notices)
    address = yield "It has arrived. What is the customer's address?"
    yield ask(
        "send_message",
        to=[address.split()[-1].removesuffix(".")],
        subject="Your refund",
        body=f"We are sorry about the shipping. {half // 100}.{half % 100:02d} are back on your card.",
    )
    yield "I have written the mail."


STORY = Story(
    title="A complaint, and a refund that arrives",
    environment="email+payments",
    query="The shipping of invoice I00395 took weeks, and the customer complains. Give half of it back.",
    agent=agent,
    user={
        "knows": {"address": "ugo.whitlock@example.com"},
        "tells": {"address": "Write to {address}."},
        "confirms": {"words": ["shall i"], "say": "Yes, do."},
        "then": ["It is two hours later. Is the money there? Then tell the customer."],
        "satisfied": GOAL,
    },
    clock=ClockPolicy(jumps=(0, 2 * HOUR)),
    goal=GOAL,
    tells="P00331",
)

if __name__ == "__main__":
    tell(STORY)
