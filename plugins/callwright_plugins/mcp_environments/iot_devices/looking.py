"""Tools that read the home: rooms, devices, sensors, energy, scenes, automations, locks."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.iot_devices.house import (
    need_device,
    next_run,
    reading,
    settled,
    steps_of,
)
from callwright_plugins.mcp_environments.iot_devices.rows import (
    ALARM,
    Alarm,
    AlarmMode,
    Automation,
    Capability,
    Command,
    Device,
    Event,
    Kind,
    Lock,
    LockEntry,
    Quantity,
    Room,
    Scene,
    Series,
    Step,
    Trigger,
    Usage,
)
from callwright_plugins.mcp_environments.iot_devices.views import (
    DeviceSummary,
    DeviceView,
    Reading,
    device_summary,
    device_view,
    reading_view,
)
from callwright_plugins.mcp_environments.recorded_times import outside_of_column
from callwright_plugins.mcp_environments.times import HOUR, MINUTE, iso, parse_time

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

DeviceId = Annotated[str, Field(description="Device id, such as D00012, from list_devices.", max_length=40)]
RoomFilter = Annotated[str, Field(description="Only this room, such as RM00002; empty for all.", max_length=40)]


class RoomView(TypedDict):
    """A room with how many devices are in it, and how the alarm of the home is set."""

    room_id: str
    name: str
    floor: int
    device_count: int
    alarm_mode: Annotated[AlarmMode, Field(description="Of the whole home.")]


class StepView(TypedDict):
    """A step: a command for a device, with its value. Temperatures are in degrees Celsius."""

    device_id: str
    command: Command
    value: float | str | None


class SceneView(TypedDict):
    """A scene."""

    scene_id: str
    name: str
    steps: list[StepView]


class AutomationView(TypedDict):
    """An automation: what starts it, what it does, and when it did so last."""

    automation_id: str
    name: str
    trigger: Trigger
    time: Annotated[str | None, Field(description="UTC; of those that run daily.")]
    days: Annotated[list[str], Field(description="Of those that run daily.")]
    source_device_id: Annotated[str | None, Field(description="Whose event starts it; null: none.")]
    event: Event | None
    scene_id: str | None
    steps: list[StepView]
    next_run_at: str | None
    last_run_at: str | None
    last_skipped: Annotated[int, Field(description="Steps that could not be done when it last ran.")]


class Sample(TypedDict):
    """A value at a time."""

    at: Annotated[str, Field(description="UTC.")]
    value: float


class DeviceEnergy(TypedDict):
    """What a device used."""

    device_id: str
    name: str
    room_id: str
    on_minutes: Annotated[int, Field(description="In the time asked for.")]
    energy_wh: Annotated[int, Field(description="In the time asked for.")]


class Energy(TypedDict):
    """What devices used between two times, most first."""

    start: str
    end: str
    total_wh: Annotated[int, Field(description="Of the devices listed.")]
    devices: list[DeviceEnergy]


class LockEntryView(TypedDict):
    """What happened to a lock."""

    at: str
    event: Literal["locked", "unlocked", "wrong_code"]
    by: Annotated[str, Field(description="Who did it, or what.")]


@tool(read_only=True, discovery=True)
def list_rooms(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[RoomView]:
    """List the rooms of the home, and how the alarm is set."""
    world = settled(world)
    mode = world.need(Alarm, ALARM).mode
    return page(
        list(world.rows(Room)),
        lambda room: {
            "room_id": room.id,
            "name": room.name,
            "floor": room.floor,
            "device_count": len(world.find(Device, room_id=room.id)),
            "alarm_mode": mode,
        },
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True)
def list_devices(
    world: World,
    /,
    room_id: RoomFilter = "",
    kind: Annotated[Kind | None, Field(description="Only this kind; null for all.")] = None,
    capability: Annotated[Capability | None, Field(description="Only devices that can do this; null for all.")] = None,
    name: Annotated[str, Field(description="Part of a name; empty for all.", max_length=60)] = "",
    online: Annotated[bool | None, Field(description="Only devices that answer (or do not); null for all.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[DeviceSummary]:
    """List devices with their ids, capabilities, and whether they answer and are on."""
    if room_id:
        world.need(Room, room_id, message=f"there is no room {room_id!r}; use list_rooms")
    world = settled(world)
    wanted = name.lower().strip()
    devices = [
        one
        for one in (world.find(Device, room_id=room_id) if room_id else world.rows(Device))
        if kind in (None, one.type)
        and (capability is None or capability in one.capabilities)
        and online in (None, one.online)
        and wanted in one.name.lower()
    ]
    return page(devices, lambda one: device_summary(world, one), limit, cursor)


@tool(read_only=True)
def get_device(world: World, /, device_id: DeviceId) -> DeviceView:
    """How a device is set, what it can do and what it draws. One that is offline shows what was known last."""
    world = settled(world)
    return device_view(world, need_device(world, device_id))


@tool(read_only=True, discovery=True)
def read_sensor(
    world: World,
    /,
    device_id: Annotated[str, Field(description="One sensor, such as D00040; empty for all.", max_length=40)] = "",
    room_id: RoomFilter = "",
    quantity: Annotated[Quantity | None, Field(description="Only sensors of this quantity; null for all.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[Reading]:
    """What sensors say now, by id, room or quantity. Fails with DEVICE_OFFLINE if the one that is asked for does not
    answer; in lists such a value is null.
    """
    if device_id:
        _sensor(world, device_id, must_answer=True)
    if room_id:
        world.need(Room, room_id, message=f"there is no room {room_id!r}; use list_rooms")
    sensors = [
        one
        for one in world.find(Device, type="sensor")
        if device_id in ("", one.id)
        and room_id in ("", one.room_id)
        and quantity in (None, world.need(Series, one.id).quantity)
    ]
    return page(sensors, lambda one: reading_view(world, one, world.now), limit, cursor)


@tool(read_only=True)
def get_sensor_history(
    world: World,
    /,
    device_id: DeviceId,
    hours: Annotated[int, Field(ge=1, le=168, description="How many hours back from now.")] = 24,
    every_minutes: Annotated[int, Field(ge=5, le=1440, description="Minutes between values.")] = 60,
    limit: Limit = 50,
    cursor: Cursor = "",
) -> Page[Sample]:
    """The values of a sensor up to now, oldest first. Also for a sensor that is offline: the hub keeps them."""
    series = _sensor(world, device_id, must_answer=False)
    times = range(world.now - hours * HOUR, world.now + 1, every_minutes * MINUTE)
    return page(times, lambda at: {"at": iso(at), "value": reading(series, at) / 10}, limit, cursor)


@tool(read_only=True)
def get_energy_usage(
    world: World,
    /,
    start: Annotated[
        str, Field(description="From this time on, such as 2026-03-01T00:00:00Z; empty for a day ago.")
    ] = "",
    end: Annotated[str, Field(description="Up to this time; empty for now.")] = "",
    device_id: Annotated[str, Field(description="Only this device; empty for all.", max_length=40)] = "",
    room_id: RoomFilter = "",
) -> Energy:
    """What devices used between two times in watt-hours, from when they were on and what they drew. Fails with
    BAD_PERIOD if the times are in the wrong order or ahead. Warns with OUTSIDE_RECORDS if they are before the records.
    """
    last = parse_time(end) if end else world.now
    first = parse_time(start) if start else last - 24 * HOUR
    if not first < last <= world.now:
        raise ToolError(
            "BAD_PERIOD", f"{iso(first)} to {iso(last)} is no time that has been; it is {iso(world.now)} now"
        )
    world = settled(world)
    if device_id:
        need_device(world, device_id)
    if room_id:
        world.need(Room, room_id, message=f"there is no room {room_id!r}; use list_rooms")
    if why := outside_of_column(world, Usage, "start", "records", first, last):
        world.warn("OUTSIDE_RECORDS", why)
    used: dict[str, tuple[int, int]] = {}
    usages = world.find(Usage, device_id=device_id) if device_id else world.rows(Usage)
    for usage in [one for one in usages if one.start < last and (one.end is None or one.end > first)]:
        seconds = min(world.now if usage.end is None else usage.end, last) - max(usage.start, first)
        if seconds > 0:
            on, joules = used.get(usage.device_id, (0, 0))
            used[usage.device_id] = (on + seconds, joules + seconds * usage.watts)
    devices: list[DeviceEnergy] = []
    for name, (on, joules) in used.items():
        device = world.need(Device, name)
        if room_id in ("", device.room_id):
            devices.append(
                {
                    "device_id": device.id,
                    "name": device.name,
                    "room_id": device.room_id,
                    "on_minutes": on // MINUTE,
                    "energy_wh": joules // HOUR,
                }
            )
    devices.sort(key=lambda one: (-one["energy_wh"], one["device_id"]))
    total = sum(one["energy_wh"] for one in devices)
    return {"start": iso(first), "end": iso(last), "total_wh": total, "devices": devices}


@tool(read_only=True, discovery=True)
def list_scenes(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[SceneView]:
    """List the scenes and what each sets."""
    return page(
        list(world.rows(Scene)),
        lambda scene: {"scene_id": scene.id, "name": scene.name, "steps": [step_view(step) for step in scene.steps]},
        limit,
        cursor,
    )


@tool(read_only=True, discovery=True)
def list_automations(
    world: World,
    /,
    trigger: Annotated[Trigger | None, Field(description="Only those that are started so; null for all.")] = None,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[AutomationView]:
    """List the automations: what starts each, what it does, when it ran last and when it runs next."""
    world = settled(world)
    found = list(world.rows(Automation)) if trigger is None else world.find(Automation, trigger=trigger)
    return page(found, lambda one: automation_view(world, one), limit, cursor)


@tool(read_only=True)
def get_lock_log(world: World, /, device_id: DeviceId, limit: Limit = 20, cursor: Cursor = "") -> Page[LockEntryView]:
    """What happened to a lock, newest first, also wrong codes. Fails with CAPABILITY_MISSING for another device."""
    world = settled(world)
    device = need_device(world, device_id)
    if world.get(Lock, device.id) is None:
        raise ToolError("CAPABILITY_MISSING", f"{device.name} ({device.id}) is a {device.type}, not a lock")
    entries = sorted(world.find(LockEntry, lock_id=device.id), key=lambda one: (one.at, one.id), reverse=True)
    return page(entries, lambda one: {"at": iso(one.at), "event": one.event, "by": one.by}, limit, cursor)


def step_view(step: Step) -> StepView:
    """A step of a scene."""
    device_id, command, value = step
    shown = value / 10 if command == "set_temperature" and isinstance(value, int) else value
    return {"device_id": device_id, "command": command, "value": shown}


def automation_view(world: World, one: Automation) -> AutomationView:
    """An automation."""
    at = next_run(world, one)
    return {
        "automation_id": one.id,
        "name": one.name,
        "trigger": one.trigger,
        "time": f"{one.minute // 60:02d}:{one.minute % 60:02d}" if one.trigger == "daily" else None,
        "days": [DAY_NAMES[day] for day in one.days],
        "source_device_id": one.source_id if one.trigger == "device" else None,
        "event": one.event,
        "scene_id": one.scene_id or None,
        "steps": [step_view(step) for step in steps_of(world, one)],
        "next_run_at": iso(at) if at is not None else None,
        "last_run_at": iso(one.last_run_at) if one.last_run_at is not None else None,
        "last_skipped": one.last_skipped,
    }


def _sensor(world: World, device_id: str, *, must_answer: bool) -> Series:
    device = need_device(world, device_id)
    if device.type != "sensor":
        raise ToolError("CAPABILITY_MISSING", f"{device.name} ({device.id}) is a {device.type}, not a sensor")
    if must_answer and not device.online:
        raise ToolError(
            "DEVICE_OFFLINE", f"{device.name} ({device.id}) does not answer; get_sensor_history has old values"
        )
    return world.need(Series, device.id)


LOOKING: Final[list[FunctionTool]] = [
    list_rooms,
    list_devices,
    get_device,
    read_sensor,
    get_sensor_history,
    get_energy_usage,
    list_scenes,
    list_automations,
    get_lock_log,
]
