"""A car reaches its charger, is charged, and goes on to a friend.

Run: python sdk_examples/stories/car_charged.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

MINUTE = 60
STOP = (ask("shift_gear", gear="P"), ask("set_parking_brake", engaged=True), ask("stop_engine"))


def drive(destination: str) -> tuple[object, ...]:
    """Off to a destination, from a parked car with its doors locked."""
    return (
        ask("start_engine"),
        ask("start_navigation", destination_id=destination),
        ask("shift_gear", gear="D"),
        ask("set_parking_brake", engaged=False),
        ask("set_cruise_speed", speed_kmh=80),
    )


def agent() -> Agent:
    level = yield ask("get_fuel_level")
    friends = yield ask("list_saved_destinations", query="Zara Park")
    friend = friends.value["items"][0]
    chargers = yield ask("list_saved_destinations", category="charging", limit=1)
    charger = chargers.value["items"][0]
    assert level.value["range_km"] < friend["distance_km"]
    yield (
        f"The battery reaches {level.value['range_km']} km, and it is {friend['distance_km']} km to {friend['name']}. "
        f"Shall I drive to {charger['name']} first? It is {charger['distance_km']} km away."
    )
    yield drive(charger["destination_id"])
    yield "We are on the way."
    yield STOP
    plugged = yield ask("refuel", litres=40, fuel_type="electric")
    yield f"We are there, and plugged in until {plugged.value['charged_at']}. Get yourself a coffee."
    yield drive(friend["destination_id"])
    yield f"The battery is full enough. Off to {friend['name']}."
    yield STOP
    yield "We have arrived. Have a good time."


STORY = Story(
    title="A car that reaches its charger",
    environment="vehicle",
    scenario="electric",
    query="Take me to Zara Park, please. I am sitting in the car; the doors are locked.",
    agent=agent,
    later=("Yes, do.", "Is that the charger?", "Back again. Go on.", "There is the house."),
    clock=ClockPolicy(call=1, user_turn=30, jumps=(0, 10 * MINUTE, 50 * MINUTE, 180 * MINUTE)),
    goal={
        "holds": [
            {"table": "vehicles", "where": {"id": "car"}, "has": {"at": "D00036", "ignition": False}},
            {"table": "refuellings", "where": {"added_nl": 40 * 10**9}, "count": 1},
            {"table": "routes", "where": {"destination": "D00033"}, "has": {"state": "arrived"}, "count": 1},
            {"table": "routes", "where": {"destination": "D00036"}, "has": {"state": "arrived"}, "count": 1},
        ],
    },
)

if __name__ == "__main__":
    tell(STORY)
