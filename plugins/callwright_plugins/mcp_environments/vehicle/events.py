"""What happens to a car: it arrives, its tank or battery runs empty, or it is charged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from callwright.environments.living.events import EventKind, Moment, Notice
from callwright.environments.world import World
from callwright_plugins.mcp_environments.vehicle.motion import active_route, burn, seconds_of_charging, settled
from callwright_plugins.mcp_environments.vehicle.rows import KM, LITRE, Destination, Route, Vehicle
from callwright_plugins.mcp_environments.vehicle.views import is_electric


def _seconds_of_fuel(car: Vehicle) -> int:
    """For how long the engine runs; it stalls in the second after."""
    return car.fuel_nl // burn(car)


def _arrival(world: World, since: Moment) -> Moment | None:
    car, route = world.need(Vehicle, "car"), active_route(world)
    if route is None or not car.ignition or not car.speed_kmh:
        return None
    seconds = -(-route.left // car.speed_kmh)
    return (car.since + seconds, route.id) if seconds <= _seconds_of_fuel(car) else None


def _stall(world: World, since: Moment) -> Moment | None:
    car = world.need(Vehicle, "car")
    return (car.since + _seconds_of_fuel(car) + 1, car.id) if car.ignition else None


def _charged(world: World, since: Moment) -> Moment | None:
    car = world.need(Vehicle, "car")
    return (car.since + seconds_of_charging(car), car.id) if car.charging_nl else None


def _settle(world: World, key: str) -> None:
    settled(world)


def _state(car: Vehicle) -> str:
    what = "kWh are in the battery" if is_electric(car) else "litres are in the tank"
    return f"The odometer is at {car.odometer // KM} km, and {car.fuel_nl * 10 // LITRE / 10} {what}."


def _tells_arrival(world: World, route_id: str, _: Any) -> Iterable[Notice]:
    target = world.need(Destination, world.need(Route, route_id).destination)
    yield Notice(
        f"You have arrived at {target.name}, {target.address} (route {route_id}). The car stands, and its engine runs. "
        + _state(world.need(Vehicle, "car"))
    )


def _tells_stall(world: World, key: str, _: Any) -> Iterable[Notice]:
    car = world.need(Vehicle, "car")
    store = "battery" if is_electric(car) else "tank"
    yield Notice(f"The {store} is empty: the engine has stalled, and the car stands. " + _state(car))


def _tells_charged(world: World, key: str, _: Any) -> Iterable[Notice]:
    yield Notice("The car is charged and unplugged. " + _state(world.need(Vehicle, "car")))


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind(
        "arrived", "The car reaches the end of its route: the driver is told.", _arrival, _tells_arrival, _settle
    ),
    EventKind("stalled", "The tank is empty: the driver is told.", _stall, _tells_stall, _settle),
    EventKind("charged", "An electric car is charged: the driver is told.", _charged, _tells_charged, _settle),
)
