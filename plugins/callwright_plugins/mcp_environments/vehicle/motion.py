"""What time does to the car: way, fuel, arrival, and the stall of an empty tank."""

from __future__ import annotations

from typing import Any, Final

import attrs

from callwright.environments.world import World
from callwright_plugins.mcp_environments.vehicle.rows import Route, Vehicle

#: mypy does not see that a row is an attrs class.
_with: Final[Any] = attrs.evolve
#: Nanolitres per second at a standstill, and more for each level of the fan.
IDLE_NL: Final = 222_222
FAN_NL: Final = 20_000
#: Up to this speed the way decides how much is burnt; above it, one per cent more for every km/h.
CALM_KMH: Final = 90
#: Nanokilowatt-hours that a charger of 50 kW gives in a second.
CHARGE_NL: Final = 50 * 10**9 // 3600


def burn(car: Vehicle) -> int:
    """Nanolitres per second of a running engine."""
    moving = car.speed_kmh * car.burn_nl * (100 + max(0, car.speed_kmh - CALM_KMH)) // 100
    return (moving or IDLE_NL) + FAN_NL * car.fan_level


def seconds_of_charging(car: Vehicle) -> int:
    """How long it takes until all is charged that is still to come."""
    return -(-car.charging_nl // CHARGE_NL)


def active_route(world: World) -> Route | None:
    """The route that is being followed, as it was when the car was last settled."""
    return next((route for route in world.rows(Route) if route.state == "active"), None)


def state(world: World) -> tuple[Vehicle, Route | None]:
    """The car and the route that it followed when last settled, as they are now. Nothing is written."""
    car, route = world.need(Vehicle, "car"), active_route(world)
    left = world.now - car.since
    if car.charging_nl and left > 0:
        added = min(car.charging_nl, left * CHARGE_NL)
        car = _with(car, fuel_nl=car.fuel_nl + added, charging_nl=car.charging_nl - added)
    while left > 0 and car.ignition:
        rate = burn(car)
        steps = min(left, car.fuel_nl // rate)
        if route is not None and route.state == "active" and car.speed_kmh:
            steps = min(steps, -(-route.left // car.speed_kmh))
        if steps == 0:  # not a second more: the engine stalls
            car = _with(car, ignition=False, speed_kmh=0, fan_level=0)
            break
        way = steps * car.speed_kmh
        car = _with(car, fuel_nl=car.fuel_nl - steps * rate, odometer=car.odometer + way, at="" if way else car.at)
        if route is not None and route.state == "active" and way:
            route = _with(route, left=max(0, route.left - way))
            if route.left == 0:
                route, car = _with(route, state="arrived"), _with(car, speed_kmh=0, at=route.destination)
        left -= steps
    return _with(car, since=world.now), route


def settled(world: World) -> Vehicle:
    """The car as it is now, written down with its route; every tool that changes something begins with it."""
    car, route = state(world)
    world.put(car)
    if route is not None:
        world.put(route)
    return car
