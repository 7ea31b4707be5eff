"""A subscription is cancelled before it renews.

Run: python sdk_examples/stories/subscription_cancelled.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

DAY = 86_400


def agent() -> Agent:
    account = yield ask("get_account", account_id="A00035")
    (gym,) = account.value["scheduled_payments"]
    yield f"{gym['amount_cents']} cents go out at {gym['next_at']}. To cancel that I need your PIN and a code."
    proved = yield ask("verify_identity", customer_id="C00019", pin="8122", otp="010136")
    yield ask(
        "cancel_scheduled_payment",
        auth_token=proved.value["auth_token"],
        scheduled_payment_id=gym["scheduled_payment_id"],
    )
    yield "It is cancelled: nothing more goes out."
    since = yield ask("list_transactions", account_id="A00035", since="2026-03-02", kind="payment")
    assert not since.value["items"]
    yield "Nothing has left your account."


STORY = Story(
    title="A subscription cancelled before it renews",
    environment="banking",
    query="I am C00019, my account is A00035. I am leaving my gym. When does it get its money next?",
    agent=agent,
    later=("My PIN is 8122 and the code says 010136.", "It is the 6th of March. Did it take anything?"),
    clock=ClockPolicy(jumps=(0, 4 * DAY)),
    goal={
        "holds": [
            {"table": "scheduled_payments", "where": {"id": "S00007"}, "has": {"status": "cancelled", "runs": 0}},
            {"table": "accounts", "where": {"id": "A00035"}, "has": {"balance_cents": 1_225_397}},
        ],
        # Payments of other customers are made meanwhile.
        "changed": [
            {"table": "scheduled_payments", "must": False},
            {"table": "accounts", "must": False},
            {"table": "transactions", "must": False},
        ],
    },
    tells="C00019",
)

if __name__ == "__main__":
    tell(STORY)
