"""A trip is rebooked: another flight, the calendar, and a mail to whoever has to know. Three apps, one session.

Run: python sdk_examples/stories/trip_rebooked.py
"""

from telling import Agent, Story, ask, tell

GOAL = {
    "holds": [
        {"table": "travel_booking.flight_bookings", "where": {"id": "BF00002"}, "has": {"flight_id": "F00007"}},
        {"table": "calendar.events", "where": {"title": "Flight CW587", "start": 1_773_236_400}, "count": 1},
        {"table": "email.messages", "where": {"subject": "Flight CW587", "body": {"contains": "14:35"}}, "count": 1},
    ],
    # What else a change of flight and a mail that is sent write.
    "changed": [
        {"table": "travel_booking.flight_bookings", "where": {"id": "BF00002"}},
        {"table": "travel_booking.fares"},
        {"table": "travel_booking.loyalty", "must": False},
        {"table": "email.message_states"},
        {"table": "email.threads", "must": False},
    ],
}


def agent() -> Agent:
    rules = yield ask("get_fare_rules", booking_id="BF00002")
    found = yield ask(
        "search_flights", origin="VAL", destination="VAC", date="2026-03-11", travelers=3, fare_class="standard"
    )
    flight = found.value["items"][0]
    price = flight["fares"][0]["price_cents"]
    fee = rules.value["booking"]["change_fee_cents"]
    yield f"{flight['number']} leaves at {flight['departs_at']}. It costs {fee} cents and the difference. Shall I?"
    yield ask("change_flight", booking_id="BF00002", new_flight_id=flight["flight_id"], quoted_price_cents=price)
    title = f"Flight {flight['number']}"
    yield ask("create_event", title=title, start=flight["departs_at"], end=flight["arrives_at"])
    address = yield "It is changed, and in your calendar. To whom shall I write?"
    yield ask(
        "send_message",
        to=[address.removeprefix("To ").removesuffix(".")],
        subject=title,
        body=f"We come a day later and land at {flight['arrives_at'][11:16]}.",
    )
    yield "It is sent."


STORY = Story(
    title="A trip rebooked",
    environment="travel_booking+calendar+email",
    query="We cannot take our flight on the 10th (BF00002, VAL to VAC). Is there one a day later?",
    agent=agent,
    user={
        "knows": {"whom": "filip.selby@example.com"},
        "asked": {"whom": ["to whom"]},
        "tells": {"whom": "To {whom}."},
        "confirms": {"words": ["shall i?"], "say": "Yes, please."},
        "satisfied": GOAL,
    },
    goal=GOAL,
)

if __name__ == "__main__":
    tell(STORY)
