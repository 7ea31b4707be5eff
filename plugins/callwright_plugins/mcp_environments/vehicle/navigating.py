"""Tools for navigation and refuelling."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.vehicle.driving import running, standing
from callwright_plugins.mcp_environments.vehicle.motion import active_route, settled
from callwright_plugins.mcp_environments.vehicle.rows import KM, LITRE, Destination, Refuelling, Route, Vehicle
from callwright_plugins.mcp_environments.vehicle.views import (
    FuelView,
    RouteView,
    fuel_view,
    is_electric,
    km,
    range_of,
    route_view,
)

#: What must be left in the tank at a destination, as a way.
RESERVE: Final = 30 * KM


@tool(latency=2)
def start_navigation(
    world: World,
    /,
    destination_id: Annotated[str, Field(max_length=20, description="Id; see list_saved_destinations.")],
) -> RouteView:
    """Start navigation to a saved destination. The fuel must reach it and 30 km more (OUT_OF_RANGE_FUEL). Fails with
    IGNITION_OFF, NAVIGATION_ACTIVE (cancel it first), NOT_FOUND."""
    car = settled(world)
    running(car)
    target = world.need(
        Destination, destination_id, message=f"there is no destination {destination_id!r}; see list_saved_destinations"
    )
    there = active_route(world)
    if there is not None:
        raise ToolError("NAVIGATION_ACTIVE", f"the route {there.id} is active; cancel_navigation ends it")
    reach = range_of(car)
    if target.way + RESERVE > reach:
        raise ToolError(
            "OUT_OF_RANGE_FUEL",
            f"{target.name} is {km(target.way)} km away, and with a reserve of {RESERVE // KM} km the fuel reaches "
            f"{max(0.0, km(reach - RESERVE))} km; refuel first",
        )
    route = world.put(Route(world.new_id(Route), target.id, world.now, target.way, target.way, "active"))
    return route_view(world, route, target.name)


@tool(destructive=True)
def cancel_navigation(
    world: World, /, route_id: Annotated[str, Field(max_length=20, description="Id that start_navigation gave.")]
) -> RouteView:
    """Cancel a route; the car goes on as it does. Fails with NOT_FOUND, and INVALID_STATE if it is not active."""
    settled(world)
    route = world.need(
        Route, route_id, message=f"there is no route {route_id!r}; get_route_status shows the active one"
    )
    if route.state != "active":
        raise ToolError("INVALID_STATE", f"the route {route_id} is {route.state} and cannot be cancelled")
    route = world.update(route, state="cancelled")
    return route_view(world, route, world.need(Destination, route.destination).name)


def _plugged(world: World, car: Vehicle) -> None:
    if car.charging_nl:
        raise ToolError("CHARGING", "the car is plugged in; it is unplugged when it is charged")
    where = world.get(Destination, car.at)
    if where is None or where.category != "charging":
        raise ToolError(
            "NOT_AT_CHARGER",
            "the car does not stand at a charger; list_saved_destinations with the category charging names some",
        )


@tool(irreversible=True)
def refuel(
    world: World,
    /,
    litres: Annotated[
        float, Field(ge=0.1, le=200, description="How much, to the hundredth of a litre; kWh for an electric car.")
    ],
    fuel_type: Annotated[
        Literal["petrol", "diesel", "electric"], Field(description="What to put in; see get_fuel_level.")
    ],
) -> FuelView:
    """Put fuel into the tank of the standing car. Fails with ENGINE_RUNNING, WRONG_FUEL, TANK_OVERFLOW, MOVING.

    An electric car is plugged in at the charger where its route ended (NOT_AT_CHARGER) and charged with 50 kW; until
    then it does not start (CHARGING)."""
    car = settled(world)
    standing(car, "it cannot be refuelled")
    if car.ignition:
        raise ToolError("ENGINE_RUNNING", "the engine is running; stop_engine before refuelling")
    if fuel_type != car.fuel_type:
        raise ToolError("WRONG_FUEL", f"this car takes {car.fuel_type}, not {fuel_type}")
    if is_electric(car):
        _plugged(world, car)
    added = round(litres * 100) * (LITRE // 100)
    if car.fuel_nl + added > car.tank_nl:
        fits = (car.tank_nl - car.fuel_nl) / LITRE
        unit = "kWh" if is_electric(car) else "litres"
        raise ToolError("TANK_OVERFLOW", f"{litres} {unit} do not fit: there is room for {int(fits * 100) / 100}")
    if is_electric(car):
        car = world.update(car, charging_nl=added)
    else:
        car = world.update(car, fuel_nl=car.fuel_nl + added)
    world.put(Refuelling(world.new_id(Refuelling), world.now, added, car.odometer))
    return fuel_view(car)


TOOLS: Final[list[FunctionTool]] = [start_navigation, cancel_navigation, refuel]
