"""Tools for climate and lights."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.vehicle.driving import is_night, running
from callwright_plugins.mcp_environments.vehicle.motion import settled
from callwright_plugins.mcp_environments.vehicle.reading import ClimateView, get_climate_status, get_vehicle_status
from callwright_plugins.mcp_environments.vehicle.rows import Climate
from callwright_plugins.mcp_environments.vehicle.views import StatusView


@tool(idempotent=True)
def set_climate_temperature(
    world: World,
    /,
    temperature_c: Annotated[float, Field(ge=16, le=28, description="Degrees Celsius, in steps of 0.5.")],
    zone: Annotated[Literal["all", "driver", "passenger", "rear"], Field(description="Where.")] = "all",
) -> ClimateView:
    """Set the temperature of a zone or of all. Fails with IGNITION_OFF, and BAD_STEP for a value between the steps."""
    running(settled(world))
    tenths = round(temperature_c * 10)
    if tenths % 5 or abs(temperature_c * 10 - tenths) > 1e-6:
        raise ToolError("BAD_STEP", f"{temperature_c} is not a step of 0.5 degrees")
    for one in list(world.rows(Climate)):
        if zone in ("all", one.zone):
            world.update(one, target_dc=tenths)
    return get_climate_status(world)  # type: ignore[no-any-return]


@tool(idempotent=True)
def set_fan_level(world: World, /, level: Annotated[int, Field(ge=0, le=7, description="0 is off.")]) -> ClimateView:
    """Set the fan of the climate system. Fails with IGNITION_OFF."""
    car = settled(world)
    running(car)
    world.update(car, fan_level=level)
    return get_climate_status(world)  # type: ignore[no-any-return]


@tool(idempotent=True)
def set_headlights(
    world: World,
    /,
    mode: Annotated[Literal["off", "parking", "auto", "low", "high"], Field(description="Which lights.")],
) -> StatusView:
    """Switch the lights. low and high need the ignition on (IGNITION_OFF); while the car moves at night they cannot be
    off or parking (LIGHTS_REQUIRED)."""
    car = settled(world)
    if mode in ("low", "high"):
        running(car)
    if car.speed_kmh and is_night(world.now) and mode in ("off", "parking"):
        raise ToolError("LIGHTS_REQUIRED", f"the car moves at night: {mode} is not enough")
    world.update(car, headlights=mode)
    return get_vehicle_status(world)  # type: ignore[no-any-return]


TOOLS: Final[list[FunctionTool]] = [set_climate_temperature, set_fan_level, set_headlights]
