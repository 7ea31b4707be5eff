"""What tools of the vehicle show."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.vehicle.motion import seconds_of_charging, state
from callwright_plugins.mcp_environments.vehicle.rows import KM, LITRE, Door, Route, Vehicle


class DoorView(TypedDict):
    """A door."""

    door: str
    locked: bool
    open: bool


class StatusView(TypedDict):
    """The car as it is now."""

    model: str
    ignition: bool
    gear: str
    parking_brake: bool
    speed_kmh: int
    headlights: str
    odometer_km: float
    doors: list[DoorView]
    all_locked: bool
    active_faults: Annotated[int, Field(description="How many.")]


class FuelView(TypedDict):
    """Fuel in litres, that of an electric car in kWh; ``range_km`` is at up to 90 km/h."""

    fuel_type: str
    litres: Annotated[float, Field(description="Of an electric car kWh.")]
    capacity_litres: Annotated[float, Field(description="Of an electric car kWh.")]
    percent: Annotated[float, Field(description="Of the capacity.")]
    range_km: Annotated[float, Field(description="How far the car can still go.")]
    charged_at: Annotated[str | None, Field(description="When charging ends; null: it does not charge.")]


class RouteView(TypedDict):
    """A route; ``eta_minutes`` only while the car moves."""

    route_id: str
    destination_id: str
    destination: str
    state: str
    distance_km: Annotated[float, Field(description="Of the whole route.")]
    left_km: Annotated[float, Field(description="How far it still is.")]
    eta_minutes: Annotated[float | None, Field(description="null: the car stands.")]


def km(way: int) -> float:
    """Kilometres, to the metre."""
    return round(way / KM, 3)


def doors_view(world: World) -> list[DoorView]:
    """All doors."""
    return [{"door": door.name, "locked": door.locked, "open": door.open} for door in world.rows(Door)]


def is_electric(car: Vehicle) -> bool:
    """Whether the car is charged, and not refuelled."""
    return car.fuel_type == "electric"


def fuel_view(car: Vehicle) -> FuelView:
    """The fuel of a car; ``charged_at`` only while it is charged."""
    return {
        "fuel_type": car.fuel_type,
        "litres": round(car.fuel_nl / LITRE, 2),
        "capacity_litres": round(car.tank_nl / LITRE, 2),
        "percent": round(100 * car.fuel_nl / car.tank_nl, 1),
        "range_km": round(range_of(car) / KM, 1),
        "charged_at": iso(car.since + seconds_of_charging(car)) if car.charging_nl else None,
    }


def range_of(car: Vehicle) -> int:
    """How far the fuel reaches at up to 90 km/h, in 1/3600 km."""
    return car.fuel_nl // car.burn_nl


def route_view(world: World, route: Route, name: str) -> RouteView:
    """The view of a route as it is now."""
    car, following = state(world)
    if following is not None and following.id == route.id:
        route = following
    moving = route.state == "active" and car.speed_kmh > 0
    return {
        "route_id": route.id,
        "destination_id": route.destination,
        "destination": name,
        "state": route.state,
        "distance_km": km(route.way),
        "left_km": km(route.left),
        "eta_minutes": round(route.left / car.speed_kmh / 60, 1) if moving else None,
    }
