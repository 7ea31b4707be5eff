"""Tools that lock, start, shift and drive."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.vehicle.motion import seconds_of_charging, settled
from callwright_plugins.mcp_environments.vehicle.reading import get_vehicle_status
from callwright_plugins.mcp_environments.vehicle.rows import Door, Dtc, Tire, Vehicle
from callwright_plugins.mcp_environments.vehicle.views import DoorView, StatusView, doors_view, is_electric

#: Slowest and fastest speed of cruise control, and the fastest with a tire that is low.
CRUISE_KMH: Final = (30, 180)
LOW_TIRE_KMH: Final = 80
#: Below this share of the recommended pressure, in per cent, a tire limits the speed.
LOW_TIRE_PERCENT: Final = 70

DoorNames = Annotated[
    list[Literal["front_left", "front_right", "rear_left", "rear_right", "trunk"]],
    Field(max_length=5, description="Which doors; none named: all."),
]


class DoorsView(TypedDict):
    """All doors."""

    doors: list[DoorView]


def standing(car: Vehicle, what: str) -> None:
    """Fails with MOVING unless the car stands."""
    if car.speed_kmh:
        raise ToolError("MOVING", f"the car moves at {car.speed_kmh} km/h: {what}; set_cruise_speed 0 stops it")


def running(car: Vehicle) -> None:
    """Fails with IGNITION_OFF."""
    if not car.ignition:
        raise ToolError("IGNITION_OFF", "the ignition is off; start_engine turns it on")


def _status(world: World) -> StatusView:
    return get_vehicle_status(world)  # type: ignore[no-any-return]


def _check_doors(world: World) -> None:
    doors = list(world.rows(Door))
    names = [door.name for door in doors if door.open]
    if names:
        raise ToolError("DOORS_OPEN", f"open: {', '.join(names)}; somebody must close them")
    names = [door.name for door in doors if not door.locked]
    if names:
        raise ToolError("DOORS_UNLOCKED", f"not locked: {', '.join(names)}; lock_doors locks them")


@tool(idempotent=True, latency=1)
def lock_doors(world: World, /, doors: DoorNames = []) -> DoorsView:  # noqa: B006 (tools never change their arguments)
    """Lock doors. Open ones cannot be locked and are left out (partial, DOORS_OPEN); if all are open it fails with
    DOORS_OPEN."""
    settled(world)
    chosen = [door for door in world.rows(Door) if not doors or door.name in doors]
    ajar = [door.name for door in chosen if door.open]
    if len(ajar) == len(chosen):
        raise ToolError("DOORS_OPEN", f"open: {', '.join(ajar)}; somebody must close them before they can be locked")
    for door in chosen:
        if not door.open:
            world.update(door, locked=True)
    if ajar:
        world.warn("DOORS_OPEN", f"open and so not locked: {', '.join(ajar)}")
    return {"doors": doors_view(world)}


@tool(idempotent=True, latency=1)
def unlock_doors(world: World, /, doors: DoorNames = []) -> DoorsView:  # noqa: B006
    """Unlock doors. Fails with MOVING while the car moves."""
    standing(settled(world), "doors stay locked")
    for door in list(world.rows(Door)):
        if not doors or door.name in doors:
            world.update(door, locked=False)
    return {"doors": doors_view(world)}


@tool(idempotent=True, latency=1)
def set_parking_brake(
    world: World, /, engaged: Annotated[bool, Field(description="True sets the brake, false releases it.")]
) -> StatusView:
    """Set or release the parking brake. Fails with MOVING while the car moves, and with ROLL_AWAY for a release in N
    with the engine off."""
    car = settled(world)
    standing(car, "the parking brake cannot be used")
    if not engaged and not car.ignition and car.gear != "P":
        raise ToolError("ROLL_AWAY", f"the engine is off and the selector in {car.gear}: the car would roll away")
    world.update(car, parking_brake=engaged)
    return _status(world)


@tool(latency=3)
def start_engine(world: World, /) -> StatusView:
    """Start the engine. All doors must be closed and locked (DOORS_OPEN, DOORS_UNLOCKED), the parking brake set
    (BRAKE_NOT_SET), the selector in P or N (GEAR_NOT_PARK). Fails also with ALREADY_RUNNING, NO_FUEL, FAULT_ACTIVE, and
    with CHARGING until an electric car is charged."""
    car = settled(world)
    if car.ignition:
        raise ToolError("ALREADY_RUNNING", "the engine is running")
    if car.charging_nl:
        ready = iso(car.since + seconds_of_charging(car))
        raise ToolError("CHARGING", f"the car is plugged in and is charged at {ready}")
    _check_doors(world)
    if not car.parking_brake:
        raise ToolError("BRAKE_NOT_SET", "the parking brake is released; set_parking_brake sets it")
    if car.gear not in ("P", "N"):
        raise ToolError("GEAR_NOT_PARK", f"the selector is in {car.gear}; the engine starts in P or N only")
    faults = [one.code for one in world.rows(Dtc) if one.active and one.severity == "critical"]
    if faults:
        raise ToolError("FAULT_ACTIVE", f"critical faults keep the engine off: {', '.join(faults)}; call a workshop")
    if car.fuel_nl < 10**7:
        store = "battery" if is_electric(car) else "tank"
        raise ToolError("NO_FUEL", f"the {store} is empty; refuel first")
    world.update(car, ignition=True)
    return _status(world)


@tool(latency=1)
def stop_engine(world: World, /) -> StatusView:
    """Stop the engine, and with it the fan and full lights. Needs a standing car (MOVING), the selector in P
    (GEAR_NOT_PARK) and the parking brake set (BRAKE_NOT_SET). Fails with IGNITION_OFF if it is off."""
    car = settled(world)
    running(car)
    standing(car, "the engine stays on")
    if car.gear != "P":
        raise ToolError("GEAR_NOT_PARK", f"the selector is in {car.gear}; shift_gear to P first")
    if not car.parking_brake:
        raise ToolError("BRAKE_NOT_SET", "the parking brake is released; set_parking_brake sets it")
    lights = "off" if car.headlights in ("low", "high") else car.headlights
    world.update(car, ignition=False, fan_level=0, headlights=lights)
    return _status(world)


@tool(idempotent=True, latency=1)
def shift_gear(
    world: World, /, gear: Annotated[Literal["P", "R", "N", "D"], Field(description="Position of the selector.")]
) -> StatusView:
    """Move the selector. Fails with IGNITION_OFF, and with MOVING for anything but D while the car moves."""
    car = settled(world)
    if not car.ignition and car.gear != "P" and gear == "P" and car.parking_brake:
        world.update(car, gear="P")  # after a stall, so that the car can be started again
        return _status(world)
    running(car)
    if gear != "D":
        standing(car, f"the selector cannot go to {gear}")
    world.update(car, gear=gear)
    return _status(world)


@tool(idempotent=True)
def set_cruise_speed(
    world: World, /, speed_kmh: Annotated[int, Field(ge=0, le=300, description="Speed in km/h; 0 lets the car stop.")]
) -> StatusView:
    """Drive at a speed from 30 to 180 km/h, or stop. Needs the ignition on (IGNITION_OFF), D (GEAR_NOT_DRIVE), the
    parking brake released (BRAKE_ENGAGED) and doors closed and locked (DOORS_OPEN, DOORS_UNLOCKED). Fails with
    CRUISE_MIN_SPEED, CRUISE_MAX_SPEED, TIRE_PRESSURE_LOW (above 80 km/h), LIGHTS_REQUIRED (18 to 6 o'clock UTC)."""
    car = settled(world)
    running(car)
    if speed_kmh:
        _check_speed(world, car, speed_kmh)
    world.update(car, speed_kmh=speed_kmh)
    return _status(world)


def _check_speed(world: World, car: Vehicle, speed: int) -> None:
    if speed < CRUISE_KMH[0]:
        raise ToolError("CRUISE_MIN_SPEED", f"cruise control holds {CRUISE_KMH[0]} km/h or more, not {speed}")
    if speed > CRUISE_KMH[1]:
        raise ToolError("CRUISE_MAX_SPEED", f"cruise control holds {CRUISE_KMH[1]} km/h at most, not {speed}")
    if car.gear != "D":
        raise ToolError("GEAR_NOT_DRIVE", f"the selector is in {car.gear}; shift_gear to D first")
    if car.parking_brake:
        raise ToolError("BRAKE_ENGAGED", "the parking brake is set; set_parking_brake releases it")
    _check_doors(world)
    low = [
        tire.position for tire in world.rows(Tire) if tire.pressure_kpa * 100 < tire.recommended_kpa * LOW_TIRE_PERCENT
    ]
    if low and speed > LOW_TIRE_KMH:
        raise ToolError("TIRE_PRESSURE_LOW", f"{', '.join(low)} is low: {LOW_TIRE_KMH} km/h at most")
    if is_night(world.now) and car.headlights not in ("low", "high", "auto"):
        raise ToolError("LIGHTS_REQUIRED", "it is night: set_headlights to low, high or auto first")


def is_night(now: int) -> bool:
    """Whether it is from 18 to 6 o'clock (UTC)."""
    return not 6 <= now // 3600 % 24 < 18


TOOLS: Final[list[FunctionTool]] = [
    lock_doors,
    unlock_doors,
    set_parking_brake,
    start_engine,
    stop_engine,
    shift_gear,
    set_cruise_speed,
]
