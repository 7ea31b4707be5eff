"""The vehicle environment: its surface, every failure, its golden edges, and a state machine against a naive model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from environment_sessions import all_executed
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from callwright.environments.stateful import StatefulSession
from callwright_plugins.mcp_environments.vehicle import environment
from callwright_plugins.mcp_environments.vehicle.rows import (
    DOORS,
    KM,
    LITRE,
    ZONES,
    Climate,
    Destination,
    Door,
    Dtc,
    Route,
    Tire,
    Vehicle,
)

READ_ONLY = (
    "get_vehicle_status get_fuel_level get_tire_pressure get_climate_status list_saved_destinations get_route_status "
    "list_diagnostic_codes"
).split()
DISCOVERY = "get_vehicle_status list_saved_destinations list_diagnostic_codes".split()
MUTATING = (
    "lock_doors unlock_doors set_parking_brake start_engine stop_engine shift_gear set_cruise_speed "
    "set_climate_temperature set_fan_level set_headlights start_navigation cancel_navigation refuel"
).split()
ENV = environment()

Call = tuple[str, dict[str, Any]]


def test_surface() -> None:
    assert len(ENV.tools) == 20
    assert sorted(ENV.tools) == sorted(READ_ONLY + MUTATING)
    for mark, names in (("read_only", READ_ONLY), ("discovery", DISCOVERY), ("destructive", ["cancel_navigation"])):
        assert sorted(name for name, spec in ENV.tools.items() if getattr(spec, mark)) == sorted(names), mark


LOCK: Call = ("lock_doors", {})
START: list[Call] = [LOCK, ("set_parking_brake", {"engaged": True}), ("start_engine", {})]
READY: list[Call] = [*START, ("shift_gear", {"gear": "D"}), ("set_parking_brake", {"engaged": False})]
DRIVE: list[Call] = [*READY, ("set_headlights", {"mode": "low"}), ("set_cruise_speed", {"speed_kmh": 60})]

#: The scenario, calls before, the call and its code.
FAILURES: list[tuple[str, list[Call], Call, str]] = [
    ("typical", [], ("start_engine", {}), "DOORS_UNLOCKED"),
    ("broken", [], ("start_engine", {}), "DOORS_OPEN"),
    ("broken", [], ("lock_doors", {"doors": ["trunk"]}), "DOORS_OPEN"),
    ("adversarial", [LOCK], ("start_engine", {}), "BRAKE_NOT_SET"),
    ("typical", START, ("start_engine", {}), "ALREADY_RUNNING"),
    ("typical", [], ("shift_gear", {"gear": "D"}), "IGNITION_OFF"),
    ("typical", [], ("set_cruise_speed", {"speed_kmh": 50}), "IGNITION_OFF"),
    ("typical", [], ("set_climate_temperature", {"temperature_c": 20}), "IGNITION_OFF"),
    ("typical", [], ("set_fan_level", {"level": 1}), "IGNITION_OFF"),
    ("typical", [], ("set_headlights", {"mode": "low"}), "IGNITION_OFF"),
    ("typical", [], ("start_navigation", {"destination_id": "D00001"}), "IGNITION_OFF"),
    ("typical", [], ("stop_engine", {}), "IGNITION_OFF"),
    ("typical", READY, ("stop_engine", {}), "GEAR_NOT_PARK"),
    ("typical", [*START, ("set_parking_brake", {"engaged": False})], ("stop_engine", {}), "BRAKE_NOT_SET"),
    ("typical", DRIVE, ("stop_engine", {}), "MOVING"),
    ("typical", DRIVE, ("unlock_doors", {}), "MOVING"),
    ("typical", DRIVE, ("set_parking_brake", {"engaged": True}), "MOVING"),
    ("typical", DRIVE, ("shift_gear", {"gear": "P"}), "MOVING"),
    ("typical", DRIVE, ("refuel", {"litres": 1, "fuel_type": "petrol"}), "MOVING"),
    ("typical", READY, ("set_cruise_speed", {"speed_kmh": 29}), "CRUISE_MIN_SPEED"),
    ("typical", READY, ("set_cruise_speed", {"speed_kmh": 181}), "CRUISE_MAX_SPEED"),
    ("typical", START, ("set_cruise_speed", {"speed_kmh": 50}), "GEAR_NOT_DRIVE"),
    ("typical", [*START, ("shift_gear", {"gear": "D"})], ("set_cruise_speed", {"speed_kmh": 50}), "BRAKE_ENGAGED"),
    ("typical", [*READY, ("unlock_doors", {"doors": ["trunk"]})], ("set_cruise_speed", {"speed_kmh": 50}),
     "DOORS_UNLOCKED"),
    ("adversarial", DRIVE, ("set_cruise_speed", {"speed_kmh": 81}), "TIRE_PRESSURE_LOW"),
    ("adversarial", READY, ("set_cruise_speed", {"speed_kmh": 50}), "LIGHTS_REQUIRED"),
    ("adversarial", DRIVE, ("set_headlights", {"mode": "parking"}), "LIGHTS_REQUIRED"),
    ("typical", START, ("refuel", {"litres": 1, "fuel_type": "petrol"}), "ENGINE_RUNNING"),
    ("typical", [], ("refuel", {"litres": 1, "fuel_type": "diesel"}), "WRONG_FUEL"),
    ("typical", [], ("refuel", {"litres": 52, "fuel_type": "petrol"}), "TANK_OVERFLOW"),
    ("adversarial", START, ("start_navigation", {"destination_id": "D00080"}), "OUT_OF_RANGE_FUEL"),
    ("typical", START, ("start_navigation", {"destination_id": "D99999"}), "NOT_FOUND"),
    ("typical", [*START, ("start_navigation", {"destination_id": "D00001"})],
     ("start_navigation", {"destination_id": "D00002"}), "NAVIGATION_ACTIVE"),
    ("typical", [], ("get_route_status", {}), "NO_ACTIVE_ROUTE"),
    ("typical", [], ("get_route_status", {"route_id": "R99999"}), "NOT_FOUND"),
    ("typical", [], ("cancel_navigation", {"route_id": "R99999"}), "NOT_FOUND"),
    ("typical", [], ("cancel_navigation", {"route_id": "R00001"}), "INVALID_STATE"),
    ("typical", START, ("set_climate_temperature", {"temperature_c": 20.3}), "BAD_STEP"),
    ("typical", [], ("list_saved_destinations", {"cursor": "x"}), "BAD_CURSOR"),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "before", "call", "code"), FAILURES)
def test_failures_leave_the_state_untouched(scenario: str, before: list[Call], call: Call, code: str) -> None:
    session = ENV.open(scenario)
    all_executed(session, *before)
    digest = session.digest()
    outcome = session.call(*call)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert session.digest() == digest


def changed(session: StatefulSession, row: Any, **fields: Any) -> None:
    session.world.begin(False)
    session.world.update(row, **fields)
    session.world.end()


def test_failures_of_a_broken_car_one_after_another() -> None:
    session = ENV.open("broken")
    world = session.world
    changed(session, world.need(Door, "trunk"), open=False, locked=True)
    assert session.call("start_engine", {}).code == "FAULT_ACTIVE"
    changed(session, next(iter(world.rows(Dtc))), active=False)
    assert session.call("start_engine", {}).code == "NO_FUEL"
    all_executed(session, ("refuel", {"litres": 2.5, "fuel_type": "petrol"}))
    changed(session, world.need(Vehicle, "car"), gear="D")
    assert session.call("start_engine", {}).code == "GEAR_NOT_PARK"
    changed(session, world.need(Vehicle, "car"), gear="N")
    assert session.call("set_parking_brake", {"engaged": False}).code == "ROLL_AWAY"
    all_executed(session, ("start_engine", {}))


def test_open_doors_are_left_out_of_locking() -> None:
    session = ENV.open("broken")
    all_executed(session, ("unlock_doors", {}))
    outcome = session.call(*LOCK)
    assert (outcome.kind, outcome.code) == ("partial", "DOORS_OPEN")
    assert {door["door"]: door["locked"] for door in outcome.value["doors"]} == {
        name: name != "trunk" for name in DOORS
    }


def test_edges_lock_start_shift_cruise() -> None:
    session = ENV.open("typical")
    steps: list[tuple[Call, str]] = [
        (("start_engine", {}), "DOORS_UNLOCKED"),
        (("shift_gear", {"gear": "D"}), "IGNITION_OFF"),
        (("set_climate_temperature", {"temperature_c": 22.5, "zone": "rear"}), "IGNITION_OFF"),
    ]
    for call, code in steps:
        assert session.call(*call).code == code
    all_executed(session, *START)
    assert all_executed(session, steps[2][0])["rear_c"] == 22.5
    assert session.call("set_cruise_speed", {"speed_kmh": 90}).code == "GEAR_NOT_DRIVE"
    all_executed(session, *READY[3:])
    assert all_executed(session, ("set_cruise_speed", {"speed_kmh": 90}))["speed_kmh"] == 90


def test_edge_navigation_from_start_to_arrival_or_cancel() -> None:
    session = ENV.open("typical")
    all_executed(session, *READY)
    route = all_executed(session, ("start_navigation", {"destination_id": "D00001"}))
    assert (route["distance_km"], route["state"], route["eta_minutes"]) == (14.0, "active", None)
    fork = session.fork()
    assert all_executed(fork, ("cancel_navigation", {"route_id": route["route_id"]}))["state"] == "cancelled"
    assert fork.call("get_route_status", {}).code == "NO_ACTIVE_ROUTE"
    all_executed(session, ("set_cruise_speed", {"speed_kmh": 70}))
    session.helper("_advance_clock", {"seconds": 360})
    half = all_executed(session, ("get_route_status", {}))
    assert (half["left_km"], half["eta_minutes"]) == (7.0, 6.0)
    session.helper("_advance_clock", {"seconds": 360})
    there = all_executed(session, ("get_route_status", {"route_id": route["route_id"]}))
    assert (there["state"], there["left_km"]) == ("arrived", 0.0)
    assert all_executed(session, ("get_vehicle_status", {}))["speed_kmh"] == 0
    all_executed(session, ("set_parking_brake", {"engaged": True}), ("shift_gear", {"gear": "P"}), ("stop_engine", {}))


def test_an_empty_tank_stalls_the_car_and_it_can_be_started_again() -> None:
    session = ENV.open("sparse")
    all_executed(session, *READY, ("set_cruise_speed", {"speed_kmh": 120}), ("set_fan_level", {"level": 7}))
    session.helper("_advance_clock", {"seconds": 20_000})
    status = all_executed(session, ("get_vehicle_status", {}))
    assert (status["ignition"], status["speed_kmh"], status["gear"]) == (False, 0, "D")
    assert all_executed(session, ("get_fuel_level", {}))["litres"] == 0
    assert session.call("start_engine", {}).code == "BRAKE_NOT_SET"
    all_executed(session, ("set_parking_brake", {"engaged": True}), ("shift_gear", {"gear": "P"}))
    assert session.call("start_engine", {}).code == "NO_FUEL"
    all_executed(session, ("refuel", {"litres": 10, "fuel_type": "diesel"}), ("start_engine", {}))


def test_reading_often_or_seldom_gives_the_same_car() -> None:
    once, often = (ENV.open("typical") for _ in range(2))
    for session in (once, often):
        all_executed(session, *READY, ("start_navigation", {"destination_id": "D00002"}))
        all_executed(session, ("set_cruise_speed", {"speed_kmh": 97}))
    for _ in range(50):
        often.helper("_advance_clock", {"seconds": 31})
        all_executed(often, ("set_headlights", {"mode": "auto"}))
    once.helper("_advance_clock", {"seconds": 50 * 31})
    all_executed(once, ("set_headlights", {"mode": "auto"}))
    assert once.digest() == often.digest()


# The state machine ----------------------------------------------------------------------------------------------------


class Car(RuleBasedStateMachine):
    """Random calls on the adversarial car, against a model that lives second by second and knows nothing of rows."""

    @initialize(fuel=st.sampled_from([1, 6, 30]))
    def begin(self, fuel: int) -> None:
        self.session = ENV.open("adversarial")
        world = self.session.world
        changed(self.session, world.need(Vehicle, "car"), fuel_nl=fuel * LITRE // 10 if fuel == 1 else fuel * LITRE)
        self.on, self.gear, self.brake, self.speed, self.fan = False, "P", False, 0, 0
        self.lights, self.locked = "off", {name: name not in ("rear_left", "trunk") for name in DOORS}
        self.fuel = world.need(Vehicle, "car").fuel_nl
        self.driven, self.left, self.active = 0, 0, ""
        self.seconds = 21 * 3600

    def expect(self, tool: str, arguments: dict[str, Any], code: str) -> Any:
        before = self.session.digest()
        outcome = self.session.call(tool, arguments)
        assert outcome.code == code, (tool, arguments, outcome, code)
        if code:
            assert outcome.kind == "execution_error"
            assert self.session.digest() == before
        return outcome.value

    @property
    def night(self) -> bool:
        return not 6 <= self.seconds // 3600 % 24 < 18

    @rule(names=st.lists(st.sampled_from(DOORS), max_size=3))
    def lock(self, names: list[str]) -> None:
        self.expect("lock_doors", {"doors": names}, "")
        self.locked.update(dict.fromkeys(names or DOORS, True))

    @rule(names=st.lists(st.sampled_from(DOORS), max_size=1))
    def unlock(self, names: list[str]) -> None:
        self.expect("unlock_doors", {"doors": names}, "MOVING" if self.speed else "")
        if not self.speed:
            self.locked.update(dict.fromkeys(names or DOORS, False))

    @rule(engaged=st.booleans())
    def parking_brake(self, engaged: bool) -> None:
        code = "MOVING" if self.speed else "ROLL_AWAY" if not (engaged or self.on or self.gear == "P") else ""
        self.expect("set_parking_brake", {"engaged": engaged}, code)
        self.brake = self.brake if code else engaged

    @rule()
    def start(self) -> None:
        code = ""
        if self.on:
            code = "ALREADY_RUNNING"
        elif not all(self.locked.values()):
            code = "DOORS_UNLOCKED"
        elif not self.brake:
            code = "BRAKE_NOT_SET"
        elif self.gear in "RD":
            code = "GEAR_NOT_PARK"
        elif self.fuel < LITRE // 100:
            code = "NO_FUEL"
        self.expect("start_engine", {}, code)
        self.on = self.on or not code

    @rule()
    def begin_to_drive(self) -> None:
        """The usual way, because chance seldom finds it."""
        if not self.on:
            self.lock([])
            self.parking_brake(True)
            if self.gear != "P":
                self.shift("P")
            self.start()
        self.shift("D")
        self.parking_brake(False)
        self.headlights("auto")

    @rule(speed=st.sampled_from([60, 80]), seconds=st.sampled_from([2200, 2999, 3600]))
    def journey(self, speed: int, seconds: int) -> None:
        """A drive to a destination or nearly so, because chance seldom finds that either."""
        self.begin_to_drive()
        self.navigate(40)
        self.cruise(speed)
        self.wait(seconds)

    @rule()
    def stop(self) -> None:
        code = ""
        if not self.on:
            code = "IGNITION_OFF"
        elif self.speed:
            code = "MOVING"
        elif self.gear != "P":
            code = "GEAR_NOT_PARK"
        elif not self.brake:
            code = "BRAKE_NOT_SET"
        self.expect("stop_engine", {}, code)
        if not code:
            self.on, self.fan = False, 0
            self.lights = "off" if self.lights in ("low", "high") else self.lights

    @rule(gear=st.sampled_from("PRND"))
    def shift(self, gear: str) -> None:
        code = ""
        if not self.on:
            code = "" if gear == "P" and self.gear != "P" and self.brake else "IGNITION_OFF"
        elif self.speed and gear != "D":
            code = "MOVING"
        self.expect("shift_gear", {"gear": gear}, code)
        self.gear = self.gear if code else gear

    @rule(speed=st.sampled_from([0, 10, 30, 60, 80, 81, 120, 200]))
    def cruise(self, speed: int) -> None:
        code = ""
        if not self.on:
            code = "IGNITION_OFF"
        elif speed == 0:
            code = ""
        elif not 30 <= speed <= 180:
            code = "CRUISE_MIN_SPEED" if speed < 30 else "CRUISE_MAX_SPEED"
        elif self.gear != "D":
            code = "GEAR_NOT_DRIVE"
        elif self.brake:
            code = "BRAKE_ENGAGED"
        elif not all(self.locked.values()):
            code = "DOORS_UNLOCKED"
        elif speed > 80:
            code = "TIRE_PRESSURE_LOW"
        elif self.night and self.lights in ("off", "parking"):
            code = "LIGHTS_REQUIRED"
        self.expect("set_cruise_speed", {"speed_kmh": speed}, code)
        self.speed = self.speed if code else speed

    @rule(level=st.integers(0, 7))
    def fan_level(self, level: int) -> None:
        self.expect("set_fan_level", {"level": level}, "" if self.on else "IGNITION_OFF")
        self.fan = level if self.on else self.fan

    @rule(mode=st.sampled_from(["off", "parking", "auto", "low", "high"]))
    def headlights(self, mode: str) -> None:
        code = ""
        if mode in ("low", "high") and not self.on:
            code = "IGNITION_OFF"
        elif self.speed and self.night and mode in ("off", "parking"):
            code = "LIGHTS_REQUIRED"
        self.expect("set_headlights", {"mode": mode}, code)
        self.lights = self.lights if code else mode

    @rule(number=st.sampled_from([1, 2, 40, 80]))
    def navigate(self, number: int) -> None:
        code = ""
        way = round((49 + number / 100) * KM)
        if not self.on:
            code = "IGNITION_OFF"
        elif self.active:
            code = "NAVIGATION_ACTIVE"
        elif (way + 30 * KM) * 21_000 > self.fuel:
            code = "OUT_OF_RANGE_FUEL"
        value = self.expect("start_navigation", {"destination_id": f"D{number:05d}"}, code)
        if not code:
            self.active, self.left = value["route_id"], way

    @rule()
    def cancel(self) -> None:
        self.expect("cancel_navigation", {"route_id": self.active or "R99999"}, "" if self.active else "NOT_FOUND")
        self.active = ""

    @rule(litres=st.sampled_from([0.5, 20.0, 55.0]))
    def refuel(self, litres: float) -> None:
        code = ""
        if self.speed:
            code = "MOVING"
        elif self.on:
            code = "ENGINE_RUNNING"
        elif self.fuel + int(litres * LITRE) > 60 * LITRE:
            code = "TANK_OVERFLOW"
        self.expect("refuel", {"litres": litres, "fuel_type": "diesel"}, code)
        self.fuel += 0 if code else int(litres * LITRE)

    @rule(seconds=st.sampled_from([1, 7, 600, 3600]))
    def wait(self, seconds: int) -> None:
        self.session.helper("_advance_clock", {"seconds": seconds})
        self.seconds += seconds
        for _ in range(seconds):
            if not self.on:
                break
            rate = (self.speed * 21_000 * (100 + max(0, self.speed - 90)) // 100 or 222_222) + 20_000 * self.fan
            if self.fuel < rate:
                self.on, self.speed, self.fan = False, 0, 0
                break
            self.fuel -= rate
            self.driven += self.speed
            if self.active and self.speed:
                self.left = max(0, self.left - self.speed)
                if not self.left:
                    self.active, self.speed = "", 0

    @invariant()
    def the_car_is_as_the_model_says(self) -> None:
        if not hasattr(self, "session"):
            return
        status = self.session.call("get_vehicle_status", {}).value
        assert {key: status[key] for key in ("ignition", "gear", "parking_brake", "speed_kmh", "headlights")} == {
            "ignition": self.on,
            "gear": self.gear,
            "parking_brake": self.brake,
            "speed_kmh": self.speed,
            "headlights": self.lights,
        }
        assert {door["door"]: door["locked"] for door in status["doors"]} == self.locked
        assert status["odometer_km"] == round((199_999 * KM + self.driven) / KM, 3)
        assert self.session.call("get_fuel_level", {}).value["litres"] == round(self.fuel / LITRE, 2)
        assert self.session.call("get_climate_status", {}).value["fan_level"] == self.fan
        if self.active:
            left = self.session.call("get_route_status", {"route_id": self.active}).value["left_km"]
            assert left == round(self.left / KM, 3)
        if self.speed:
            assert self.on
            assert self.gear == "D"
            assert not self.brake
            assert all(self.locked.values())


Car.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestCar = Car.TestCase


# Electric ----------------------------------------------------------------------------------------------------------


def charger(session: StatefulSession) -> Destination:
    near = (one for one in session.world.rows(Destination) if one.category == "charging" and one.way < 20 * KM)
    return min(near, key=lambda one: one.way)


def to_the_charger(session: StatefulSession) -> Destination:
    """Drive there, and stop as one does to be plugged in."""
    target = charger(session)
    all_executed(session, *DRIVE, ("start_navigation", {"destination_id": target.id}))
    session.helper("_advance_clock", {"seconds": target.way // 60 + 1})
    all_executed(
        session,
        ("shift_gear", {"gear": "P"}),
        ("set_parking_brake", {"engaged": True}),
        ("stop_engine", {}),
    )
    return target


def plugged(session: StatefulSession) -> tuple[str, str]:
    outcome = session.call("refuel", {"litres": 10, "fuel_type": "electric"})
    return outcome.kind, outcome.code


@pytest.mark.parametrize("seed", range(5))
def test_an_electric_car_is_charged_at_the_charger_that_it_reached_and_nowhere_else(seed: int) -> None:
    session = ENV.open("electric", seed)
    assert plugged(session) == ("execution_error", "NOT_AT_CHARGER")
    assert session.call("refuel", {"litres": 1, "fuel_type": "petrol"}).code == "WRONG_FUEL"
    target = to_the_charger(session)
    assert session.world.need(Vehicle, "car").at == target.id
    assert plugged(session) == ("ok", "")
    assert plugged(session) == ("execution_error", "CHARGING")
    assert session.call("start_engine", {}).code == "CHARGING"
    session.helper("_advance_clock", {"seconds": 3600})
    all_executed(session, *DRIVE)
    session.helper("_advance_clock", {"seconds": 60})
    all_executed(
        session,
        ("set_cruise_speed", {"speed_kmh": 0}),
        ("shift_gear", {"gear": "P"}),
        ("set_parking_brake", {"engaged": True}),
        ("stop_engine", {}),
    )
    assert session.world.need(Vehicle, "car").at == ""
    assert plugged(session) == ("execution_error", "NOT_AT_CHARGER")


def test_another_destination_is_no_charger() -> None:
    session = ENV.open("electric", 0)
    home = session.world.need(Destination, "D00001")
    all_executed(session, *DRIVE, ("start_navigation", {"destination_id": home.id}))
    session.helper("_advance_clock", {"seconds": home.way})
    all_executed(session, ("shift_gear", {"gear": "P"}), ("set_parking_brake", {"engaged": True}), ("stop_engine", {}))
    assert session.world.need(Vehicle, "car").at == home.id
    assert plugged(session) == ("execution_error", "NOT_AT_CHARGER")


def test_charging_is_50_kw_second_by_second_and_ends_with_what_was_asked_for() -> None:
    session = ENV.open("electric", 0)
    to_the_charger(session)
    before = session.world.need(Vehicle, "car").fuel_nl
    all_executed(session, ("refuel", {"litres": 2.5, "fuel_type": "electric"}))
    begun = session.call("get_fuel_level", {}).value
    assert begun["litres"] == round(before / LITRE, 2)
    for second in range(1, 200):
        session.helper("_advance_clock", {"seconds": 1})
        level = session.call("get_fuel_level", {}).value
        added = min(2.5, second * (50 * 10**9 // 3600) / LITRE)
        assert level["litres"] == pytest.approx(before / LITRE + added, abs=0.006)
        assert level["charged_at"] == (begun["charged_at"] if second < 181 else None)
    all_executed(session, *START)
    assert session.world.need(Vehicle, "car").fuel_nl == before + 25 * LITRE // 10
    assert session.call("refuel", {"litres": 60, "fuel_type": "electric"}).code == "ENGINE_RUNNING"


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial", "broken", "electric"])
@pytest.mark.parametrize("scale", [0.3, 1, 3])
def test_scenarios_are_sound_and_the_same_for_a_seed(scenario: str, scale: float) -> None:
    first, second = (environment(scale=scale).open(scenario, 4) for _ in range(2))
    assert first.digest() == second.digest()
    other = environment(scale=scale).open(scenario, 5)
    assert first.world.dump()["tables"] != other.world.dump()["tables"]
    world = first.world
    car = world.need(Vehicle, "car")
    assert 0 <= car.fuel_nl <= car.tank_nl
    assert car.since == world.now
    assert {door.name for door in world.rows(Door)} == set(DOORS)
    assert {one.zone for one in world.rows(Climate)} == set(ZONES)
    assert world.count(Tire) == 4
    assert all(one.way > 0 for one in world.rows(Destination))
    for route in world.rows(Route):
        assert world.get(Destination, route.destination)
        assert route.state in ("arrived", "cancelled")


def test_every_tool_works_in_every_scenario_that_can_start() -> None:
    for scenario in ("typical", "sparse", "adversarial"):
        session = ENV.open(scenario)
        fuel = all_executed(session, ("get_fuel_level", {}))["fuel_type"]
        nearest = all_executed(session, ("list_saved_destinations", {}))["items"][0]["destination_id"]
        script: list[Call] = [
            ("get_vehicle_status", {}), ("get_tire_pressure", {}), ("get_climate_status", {}),
            ("refuel", {"litres": 20, "fuel_type": fuel}), ("unlock_doors", {}), *DRIVE,
            ("set_climate_temperature", {"temperature_c": 21}), ("set_fan_level", {"level": 3}),
            ("start_navigation", {"destination_id": nearest}), ("get_route_status", {}),
        ]  # fmt: skip
        value = all_executed(session, *script)
        all_executed(
            session,
            ("cancel_navigation", {"route_id": value["route_id"]}),
            ("set_cruise_speed", {"speed_kmh": 0}),
            ("set_parking_brake", {"engaged": True}),
            ("shift_gear", {"gear": "P"}),
            ("stop_engine", {}),
        )
        assert session.call("list_diagnostic_codes", {"active_only": False}).kind in ("ok", "empty")
        json.dumps(session.snapshot())
    assert all_executed(ENV.open("broken"), ("list_diagnostic_codes", {"severity": "critical"}))["total"] == 1
