"""A meeting is moved to when everybody is free, and the team hears of it. Two apps.

Run: python sdk_examples/stories/meeting_moved.py
"""

from telling import Agent, Story, ask, tell

GOAL = {
    "holds": [
        {"table": "calendar.events", "where": {"id": "E00409"}, "has": {"start": {"at_least": 1_773_010_800}}},
        {"table": "team_chat.messages", "where": {"text": {"contains": "Interview South"}, "channel_id": "C00003"}},
    ],
    "changed": [
        {"table": "calendar.events", "where": {"id": "E00409"}, "fields": ["start", "end"]},
        {"table": "calendar.invitees", "where": {"event_id": "E00409"}, "must": False},
        {"table": "team_chat.channels", "where": {"id": "C00003"}, "must": False},
    ],
}


def agent() -> Agent:
    found = yield ask("search_events", text="Interview South")
    event = found.value["items"][0]
    invited = yield ask("list_invitees", event_id=event["event_id"])
    people = [one["email"] for one in invited.value["items"]]
    free = yield ask("find_free_slots", people=people, duration_minutes=30, start="2026-03-09", end="2026-03-14")
    slot = free.value["items"][0]["start"]
    yield f"All {len(people) + 1} of you are free at {slot}. Shall I move it there?"
    yield ask("move_event", event_id=event["event_id"], new_start=slot)
    channel = yield "It is moved, and everybody is asked again. In which channel shall I announce it?"
    name = channel.rstrip(".").split("#")[1]
    channels = yield ask("list_channels", query=name, only_mine=True)
    yield ask(
        "post_message",
        channel_id=channels.value["items"][0]["channel_id"],
        text=f"Interview South has moved to {slot[:16].replace('T', ' ')} UTC.",
    )
    yield "It is announced."


STORY = Story(
    title="A meeting moved",
    environment="calendar+team_chat",
    query="Friday is bad for Interview South. Move it to next week, when everybody can come.",
    agent=agent,
    user={
        "knows": {"channel": "design"},
        "tells": {"channel": "Say it in #{channel}."},
        "confirms": {"words": ["shall i move"], "say": "Yes, move it."},
        "satisfied": GOAL,
    },
    goal=GOAL,
)

if __name__ == "__main__":
    tell(STORY)
