"""What the tools of the home show of its devices."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.iot_devices.house import RANGES, draws, reading
from callwright_plugins.mcp_environments.iot_devices.rows import (
    Capability,
    Device,
    Kind,
    Lock,
    Mode,
    Quantity,
    Series,
    State,
)
from callwright_plugins.mcp_environments.times import iso


class DeviceSummary(TypedDict):
    """A device in a list; ``on`` is null for devices that are not switched."""

    device_id: str
    name: str
    room_id: str
    kind: Kind
    capabilities: list[Capability]
    online: Annotated[bool, Field(description="Others obey nothing.")]
    on: Annotated[bool | None, Field(description="null: it is not switched.")]


class DeviceView(DeviceSummary):
    """A device in full; fields are there where the device has the capability."""

    changed_at: str
    power_watts: Annotated[int, Field(description="Drawn now.")]
    brightness: NotRequired[Annotated[int, Field(description="Percent.")]]
    min_brightness: NotRequired[Annotated[int, Field(description="Percent.")]]
    color: NotRequired[str]
    color_temperature_k: NotRequired[int]
    speed: NotRequired[Annotated[int, Field(description="0 to max_speed.")]]
    max_speed: NotRequired[int]
    mode: NotRequired[Mode]
    modes: NotRequired[list[Mode]]
    target_c: NotRequired[Annotated[float | None, Field(description="Degrees Celsius; null: none.")]]
    position: NotRequired[Annotated[int, Field(description="Percent open.")]]
    locked: NotRequired[bool]
    jammed: NotRequired[Annotated[bool, Field(description="It can neither be locked nor unlocked.")]]


class Reading(TypedDict):
    """What a sensor says; the value is null if it does not answer. Contact and motion are 1 or 0."""

    device_id: str
    name: str
    room_id: str
    quantity: Quantity
    value: Annotated[float | None, Field(description="null: it does not answer.")]
    unit: str
    at: Annotated[str, Field(description="UTC.")]


def device_summary(world: World, device: Device) -> DeviceSummary:
    """A device in a list."""
    switched = "switch" in device.capabilities
    return {
        "device_id": device.id,
        "name": device.name,
        "room_id": device.room_id,
        "kind": device.type,
        "capabilities": list(device.capabilities),
        "online": device.online,
        "on": world.need(State, device.id).on if switched else None,
    }


def device_view(world: World, device: Device) -> DeviceView:
    """A device in full; of one that is offline, as it was last known."""
    state, can = world.need(State, device.id), device.capabilities
    summary = device_summary(world, device)
    view: DeviceView = {
        "device_id": device.id,
        "name": device.name,
        "room_id": device.room_id,
        "kind": device.type,
        "capabilities": summary["capabilities"],
        "online": device.online,
        "on": summary["on"],
        "changed_at": iso(state.changed_at),
        "power_watts": draws(device, state),
    }
    if "brightness" in can:
        view["brightness"], view["min_brightness"] = state.brightness, device.min_brightness
    if "color" in can:
        view["color"] = state.color
    if "color_temperature" in can:
        view["color_temperature_k"] = state.color_temperature_k
    if "speed" in can:
        view["speed"], view["max_speed"] = state.speed, device.max_speed
    if "mode" in can:
        view["mode"], view["modes"] = state.mode, list(device.modes)
        view["target_c"] = state.target_tenths / 10 if state.mode in RANGES else None
    if "position" in can:
        view["position"] = state.position
    if "lock" in can:
        one = world.need(Lock, device.id)
        view["locked"], view["jammed"] = one.locked, one.jammed
    return view


def reading_view(world: World, device: Device, at: int) -> Reading:
    """What a sensor says at a time."""
    series = world.need(Series, device.id)
    return {
        "device_id": device.id,
        "name": device.name,
        "room_id": device.room_id,
        "quantity": series.quantity,
        "value": reading(series, at) / 10 if device.online else None,
        "unit": series.unit,
        "at": iso(at),
    }
