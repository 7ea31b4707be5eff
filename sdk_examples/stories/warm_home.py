"""The house is warm when the car arrives, and the door opens. Two apps, one clock.

Run: python sdk_examples/stories/warm_home.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

MINUTE = 60
GOAL = {
    "holds": [
        {"table": "vehicle.vehicles", "where": {"id": "car"}, "has": {"at": "D00001", "ignition": False}},
        {"table": "vehicle.routes", "where": {"destination": "D00001", "state": "arrived", "id": "R00021"}, "count": 1},
        {"table": "iot_devices.locks", "where": {"id": "D00110"}, "has": {"locked": False}},
        {"table": "iot_devices.device_state", "where": {"id": "D00004"}, "has": {"mode": "heat", "target_tenths": 220}},
    ],
    # A lamp goes on where somebody comes in.
    "changed": [
        {"table": "iot_devices.device_state", "where": {"id": "D00001"}, "must": False},
        {"table": "vehicle.doors", "fields": ["locked"]},
    ],
}


def agent() -> Agent:
    yield (
        ask("lock_doors"),
        ask("start_engine"),
        ask("start_navigation", destination_id="D00001"),
        ask("shift_gear", gear="D"),
        ask("set_parking_brake", engaged=False),
        ask("set_cruise_speed", speed_kmh=60),
    )
    yield (
        ask("set_thermostat_mode", device_id="D00004", mode="heat"),
        ask("set_temperature", device_id="D00004", celsius=22),
    )
    route = yield ask("get_route_status")
    yield f"The hall is being heated. We are home in {route.value['eta_minutes']:.0f} minutes."
    yield ask("shift_gear", gear="P"), ask("set_parking_brake", engaged=True), ask("stop_engine")
    code = yield "Here we are. What is the code of the front door?"
    yield ask("unlock_door", device_id="D00110", lock_code=code.split()[-1].rstrip("."))
    yield "Welcome home."


STORY = Story(
    title="A warm home",
    environment="vehicle+iot_devices",
    query="Take me home (D00001), and have the hall at 22 degrees by then (its thermostat is D00004).",
    agent=agent,
    user={
        "knows": {"code": "1379"},
        "tells": {"code": "The code is {code}."},
        "then": ["I see our house. Park the car, and unlock the front door (D00110) for me."],
        "satisfied": GOAL,
    },
    clock=ClockPolicy(jumps=(20 * MINUTE,)),
    goal=GOAL,
    tells="You have arrived",
)

if __name__ == "__main__":
    tell(STORY)
