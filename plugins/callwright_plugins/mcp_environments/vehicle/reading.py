"""Tools of the vehicle that change nothing."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.closed_sets import none_such
from callwright_plugins.mcp_environments.times import iso
from callwright_plugins.mcp_environments.vehicle.motion import active_route, state
from callwright_plugins.mcp_environments.vehicle.rows import Climate, Destination, Door, Dtc, Route, Tire
from callwright_plugins.mcp_environments.vehicle.views import (
    FuelView,
    RouteView,
    StatusView,
    doors_view,
    fuel_view,
    km,
    route_view,
)


class TireView(TypedDict):
    """A tire; ``low`` below 85 % of the recommended pressure."""

    position: Annotated[str, Field(description="Which tire.")]
    pressure_kpa: int
    recommended_kpa: int
    low: Annotated[bool, Field(description="Less than 85 % of the recommended pressure.")]


class ClimateView(TypedDict):
    """Temperatures that the zones are to have, in degrees Celsius; the system runs with the ignition on only."""

    running: Annotated[bool, Field(description="With the ignition on only.")]
    fan_level: int
    driver_c: Annotated[float, Field(description="What it is to be, in degrees Celsius.")]
    passenger_c: Annotated[float, Field(description="What it is to be, in degrees Celsius.")]
    rear_c: Annotated[float, Field(description="What it is to be, in degrees Celsius.")]


class DestinationView(TypedDict):
    """A saved destination and how far it is by road."""

    destination_id: str
    name: str
    category: str
    address: str
    distance_km: Annotated[float, Field(description="By road, from here.")]


class DtcView(TypedDict):
    """A diagnostic trouble code."""

    id: str
    code: str
    system: str
    severity: str
    text: str
    active: Annotated[bool, Field(description="Whether it is there now.")]
    raised: Annotated[str, Field(description="When the fault was found.")]


@tool(read_only=True, discovery=True)
def get_vehicle_status(world: World, /) -> StatusView:
    """Ignition, gear, parking brake, speed, lights, odometer and doors as they are now."""
    car, _ = state(world)
    return {
        "model": car.model,
        "ignition": car.ignition,
        "gear": car.gear,
        "parking_brake": car.parking_brake,
        "speed_kmh": car.speed_kmh,
        "headlights": car.headlights,
        "odometer_km": km(car.odometer),
        "doors": doors_view(world),
        "all_locked": all(door.locked for door in world.rows(Door)),
        "active_faults": world.count(Dtc, active=True),
    }


@tool(read_only=True)
def get_fuel_level(world: World, /) -> FuelView:
    """Fuel in the tank, its kind, and how far it reaches."""
    return fuel_view(state(world)[0])


@tool(read_only=True)
def get_tire_pressure(world: World, /) -> Page[TireView]:
    """The pressure of all tires in kPa."""
    return page(
        list(world.rows(Tire)),
        lambda tire: {
            "position": tire.position,
            "pressure_kpa": tire.pressure_kpa,
            "recommended_kpa": tire.recommended_kpa,
            "low": tire.pressure_kpa * 100 < tire.recommended_kpa * 85,
        },
    )


@tool(read_only=True)
def get_climate_status(world: World, /) -> ClimateView:
    """The level of the fan and the temperatures that are set."""
    car, _ = state(world)
    wanted = {one.zone: one.target_dc / 10 for one in world.rows(Climate)}
    return {
        "running": car.ignition and car.fan_level > 0,
        "fan_level": car.fan_level,
        "driver_c": wanted["driver"],
        "passenger_c": wanted["passenger"],
        "rear_c": wanted["rear"],
    }


@tool(read_only=True, discovery=True)
def list_saved_destinations(
    world: World,
    /,
    query: Annotated[str, Field(max_length=100, description="Text in the name or address; empty for all.")] = "",
    category: Annotated[
        str, Field(max_length=40, description="home, friend, work, fuel, charging, shop, hotel, doctor or leisure.")
    ] = "",
    within_km: Annotated[int, Field(ge=1, le=10_000, description="Only as near as this by road.")] = 10_000,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[DestinationView]:
    """List saved destinations with their distances by road, the nearest first."""
    wanted = query.casefold()
    found = [
        one
        for one, text in world.prepared(Destination, _with_text, _way)
        if wanted in text and (not category or one.category == category) and km(one.way) <= within_km
    ]
    if not found and (unknown := none_such(world, Destination, "category", category)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(
        found,
        lambda one: {
            "destination_id": one.id,
            "name": one.name,
            "category": one.category,
            "address": one.address,
            "distance_km": km(one.way),
        },
        limit,
        cursor,
    )


def _with_text(one: Destination) -> tuple[Destination, str]:
    return one, f"{one.name} {one.address}".casefold()


def _way(one: Destination) -> int:
    return one.way


@tool(read_only=True)
def get_route_status(
    world: World,
    /,
    route_id: Annotated[str, Field(max_length=20, description="Id of start_navigation; empty: the active one.")] = "",
) -> RouteView:
    """How far a route has come. Fails with NO_ACTIVE_ROUTE, NOT_FOUND."""
    if route_id:
        route = world.need(Route, route_id, message=f"there is no route {route_id!r}; start_navigation gives the id")
    else:
        following = active_route(world)
        if following is None:
            raise ToolError("NO_ACTIVE_ROUTE", "no route is active; start_navigation starts one")
        route = following
    return route_view(world, route, world.need(Destination, route.destination).name)


@tool(read_only=True, discovery=True)
def list_diagnostic_codes(
    world: World,
    /,
    active_only: Annotated[bool, Field(description="Leave out those that were cleared.")] = True,
    severity: Annotated[Literal["any", "info", "warning", "critical"], Field(description="Only of this.")] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[DtcView]:
    """List diagnostic trouble codes, the latest first. Critical active ones keep the engine from starting."""
    found = [one for one in world.rows(Dtc) if (one.active or not active_only) and severity in ("any", one.severity)]
    found.sort(key=lambda one: -one.raised)
    return page(
        found,
        lambda one: {
            "id": one.id,
            "code": one.code,
            "system": one.system,
            "severity": one.severity,
            "text": one.text,
            "active": one.active,
            "raised": iso(one.raised),
        },
        limit,
        cursor,
    )


TOOLS: Final[list[FunctionTool]] = [
    get_vehicle_status,
    get_fuel_level,
    get_tire_pressure,
    get_climate_status,
    list_saved_destinations,
    get_route_status,
    list_diagnostic_codes,
]
