"""Tools that set devices: lights, plugs, fans, thermostats, covers."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.iot_devices.house import (
    able,
    change,
    dim,
    emit,
    move,
    need_device,
    need_on,
    open_windows,
    set_mode,
    set_target,
    settle,
    spin,
    turn,
)
from callwright_plugins.mcp_environments.iot_devices.looking import DeviceId
from callwright_plugins.mcp_environments.iot_devices.rows import Mode, State
from callwright_plugins.mcp_environments.iot_devices.views import DeviceView, device_view

_WHITES: Final = (2200, 6500)
Position = Annotated[int, Field(ge=0, le=100, description="How far open in percent.")]


@tool(idempotent=True)
def turn_on(world: World, /, device_id: DeviceId) -> DeviceView:
    """Switch on a light, plug or fan. Fails with DEVICE_OFFLINE or CAPABILITY_MISSING."""
    return _switch(world, device_id, on=True)


@tool(idempotent=True)
def turn_off(world: World, /, device_id: DeviceId) -> DeviceView:
    """Switch off a light, plug or fan. Fails with DEVICE_OFFLINE or CAPABILITY_MISSING."""
    return _switch(world, device_id, on=False)


@tool(idempotent=True)
def set_brightness(
    world: World,
    /,
    device_id: DeviceId,
    percent: Annotated[int, Field(ge=0, le=100, description="Brightness in percent.")],
) -> DeviceView:
    """Dim a light that is on. Fails with DEVICE_OFF, with OUT_OF_RANGE below what the light can do (0 is turn_off),
    with CAPABILITY_MISSING or DEVICE_OFFLINE.
    """
    settle(world)
    dim(world, device_id, percent, world.now)
    return device_view(world, need_device(world, device_id))


@tool(idempotent=True)
def set_color(
    world: World,
    /,
    device_id: DeviceId,
    color: Annotated[
        str, Field(description="Red, green, blue as #rrggbb; empty for a white.", pattern=r"^(#[0-9a-fA-F]{6})?$")
    ] = "",
    temperature_k: Annotated[
        int | None, Field(ge=1000, le=10_000, description="White in kelvin, 2200 warm to 6500 cold; null for a colour.")
    ] = None,
) -> DeviceView:
    """Set a light that is on to a colour or to a white, one of the two (else BAD_COLOR). Fails with DEVICE_OFF,
    OUT_OF_RANGE, CAPABILITY_MISSING or DEVICE_OFFLINE.
    """
    if bool(color) == (temperature_k is not None):
        raise ToolError("BAD_COLOR", "give either color or temperature_k")
    settle(world)
    device, state = able(world, device_id, "color" if color else "color_temperature")
    need_on(device, state)
    if temperature_k is None:
        change(world, device, state, world.now, color=color.lower())
    else:
        low, high = _WHITES
        if not low <= temperature_k <= high:
            raise ToolError("OUT_OF_RANGE", f"whites go from {low} to {high} K, not {temperature_k}")
        change(world, device, state, world.now, color="", color_temperature_k=temperature_k)
    return device_view(world, device)


@tool(idempotent=True)
def set_thermostat_mode(
    world: World, /, device_id: DeviceId, mode: Annotated[Mode, Field(description="The mode.")]
) -> DeviceView:
    """Set the mode of a thermostat; heat, cool and auto have a target for set_temperature. A mode that it does not have
    is CAPABILITY_MISSING. With an open window in the room it works, but warns with WINDOW_OPEN.
    """
    settle(world)
    set_mode(world, device_id, mode, world.now)
    device = need_device(world, device_id)
    windows = open_windows(world, device.room_id, world.now) if mode in ("heat", "cool", "auto") else []
    if windows:
        world.warn("WINDOW_OPEN", f"{device.name} works against an open window: {windows[0].name} ({windows[0].id})")
    return device_view(world, device)


@tool(idempotent=True)
def set_temperature(
    world: World,
    /,
    device_id: DeviceId,
    celsius: Annotated[
        float, Field(ge=-20, le=60, multiple_of=0.5, description="Target in degrees Celsius, in steps of 0.5.")
    ],
) -> DeviceView:
    """Set the target of a thermostat. Fails with MODE_GATED while its mode is off or eco (set_thermostat_mode first),
    and with OUT_OF_RANGE: 5 to 30 for heat, 18 to 30 for cool, 16 to 26 for auto.
    """
    settle(world)
    set_target(world, device_id, round(celsius * 10), world.now)
    return device_view(world, need_device(world, device_id))


@tool(idempotent=True)
def set_fan_speed(
    world: World, /, device_id: DeviceId, speed: Annotated[int, Field(ge=1, le=10, description="Speed, 1 is slowest.")]
) -> DeviceView:
    """Set the speed of a fan that is on. Fails with DEVICE_OFF, OUT_OF_RANGE, CAPABILITY_MISSING or DEVICE_OFFLINE."""
    settle(world)
    spin(world, device_id, speed, world.now)
    return device_view(world, need_device(world, device_id))


@tool(idempotent=True, latency=20)
def open_cover(world: World, /, device_id: DeviceId, position: Position = 100) -> DeviceView:
    """Open a blind, shutter, awning or garage door up to a position. Fails with BAD_POSITION if it is open further
    already, and with WIND_LOCK for an awning in strong wind.
    """
    settle(world)
    device, state = able(world, device_id, "position")
    if position < state.position:
        raise ToolError(
            "BAD_POSITION", f"{device.name} ({device.id}) is {state.position} percent open; use close_cover"
        )
    return _move(world, device_id, position, state.position)


@tool(idempotent=True, latency=20)
def close_cover(world: World, /, device_id: DeviceId, position: Position = 0) -> DeviceView:
    """Close a blind, shutter, awning or garage door down to a position. Fails with BAD_POSITION if it is closed further
    already. An obstacle stops it on the way, with the warning OBSTRUCTED.
    """
    settle(world)
    device, state = able(world, device_id, "position")
    if position > state.position:
        raise ToolError("BAD_POSITION", f"{device.name} ({device.id}) is {state.position} percent open; use open_cover")
    return _move(world, device_id, position, state.position)


def _move(world: World, device_id: str, position: int, before: int) -> DeviceView:
    state, stopped = move(world, device_id, position, world.now)
    device = need_device(world, device_id)
    if stopped:
        world.warn(
            "OBSTRUCTED", f"{device.name} ({device.id}) stopped at {state.position} percent: something is in the way"
        )
    if state.position != before:
        emit(world, device_id, "opened" if state.position > before else "closed")
    return device_view(world, device)


def _switch(world: World, device_id: str, *, on: bool) -> DeviceView:
    settle(world)
    before = world.need(State, need_device(world, device_id).id).on
    turn(world, device_id, on, world.now)
    if before != on:
        emit(world, device_id, "turned_on" if on else "turned_off")
    return device_view(world, need_device(world, device_id))


ACTING: Final[list[FunctionTool]] = [
    turn_on,
    turn_off,
    set_brightness,
    set_color,
    set_thermostat_mode,
    set_temperature,
    set_fan_speed,
    open_cover,
    close_cover,
]
