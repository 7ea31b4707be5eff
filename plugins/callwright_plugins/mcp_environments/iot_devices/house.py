"""How devices obey: commands with their conditions, what they draw, what sensors say, and what automations do.

Every command checks all of its conditions before it changes anything, so that a scene can leave out what fails.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.iot_devices.rows import (
    ALARM,
    Alarm,
    Automation,
    Capability,
    Command,
    Device,
    Event,
    Lock,
    LockEntry,
    Mode,
    Profile,
    Scene,
    Series,
    State,
    Step,
    Usage,
)
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE, iso

#: Least and most target in tenths of a degree.
RANGES: Final[dict[Mode, tuple[int, int]]] = {"heat": (50, 300), "cool": (180, 300), "auto": (160, 260)}
STRONG_WIND: Final = 500  # tenths of km/h
WRONG_CODES: Final = 3
LOCK_OUT: Final = 10 * MINUTE


# Devices --------------------------------------------------------------------------------------------------------------


def need_device(world: World, device_id: str) -> Device:
    """The device; fails with ``NOT_FOUND``."""
    return world.need(Device, device_id, message=f"there is no device {device_id!r}; use list_devices")


def able(world: World, device_id: str, capability: Capability) -> tuple[Device, State]:
    """A device that can do something and answers; fails with ``CAPABILITY_MISSING`` or ``DEVICE_OFFLINE``."""
    device = need_device(world, device_id)
    if capability not in device.capabilities:
        can = ", ".join(device.capabilities)
        raise ToolError("CAPABILITY_MISSING", f"{device.name} ({device.id}) has no {capability}; it has {can}")
    if not device.online:
        raise ToolError("DEVICE_OFFLINE", f"{device.name} ({device.id}) does not answer")
    return device, world.need(State, device.id)


def need_on(device: Device, state: State) -> None:
    """Fails with ``DEVICE_OFF``."""
    if not state.on:
        raise ToolError("DEVICE_OFF", f"{device.name} ({device.id}) is off; use turn_on first")


def draws(device: Device, state: State) -> int:
    """The watts that a device draws as it is set."""
    if device.type == "thermostat":
        return device.watts if state.mode in RANGES else 0
    if not state.on:
        return 0
    if "brightness" in device.capabilities:
        return device.watts * state.brightness // 100
    return device.watts * state.speed // device.max_speed if device.max_speed else device.watts


def change(world: World, device: Device, state: State, at: int, **changes: Any) -> State:
    """Set a device, and open and close the records of what it draws. Nothing happens if it is set so already."""
    if all(getattr(state, name) == value for name, value in changes.items()):
        return state
    before = draws(device, state)
    state = world.update(state, **changes, changed_at=at)
    after = draws(device, state)
    if before != after:
        if state.usage_id:
            world.update(world.need(Usage, state.usage_id), end=at)
        usage = ""
        if after:
            usage = world.put(Usage(world.new_id(Usage), device.id, at, None, after)).id
        state = world.update(state, usage_id=usage)
    return state


def turn(world: World, device_id: str, on: bool, at: int) -> State:
    """Switch a device on or off."""
    device, state = able(world, device_id, "switch")
    return change(world, device, state, at, on=on)


def dim(world: World, device_id: str, percent: int, at: int) -> State:
    """Set the brightness of a light that is on."""
    device, state = able(world, device_id, "brightness")
    need_on(device, state)
    if not device.min_brightness <= percent <= 100:
        raise ToolError(
            "OUT_OF_RANGE",
            f"{device.name} ({device.id}) dims from {device.min_brightness} to 100 percent, not {percent}",
        )
    return change(world, device, state, at, brightness=percent)


def spin(world: World, device_id: str, speed: int, at: int) -> State:
    """Set the speed of a fan that is on."""
    device, state = able(world, device_id, "speed")
    need_on(device, state)
    if not 1 <= speed <= device.max_speed:
        raise ToolError("OUT_OF_RANGE", f"{device.name} ({device.id}) has speeds 1 to {device.max_speed}, not {speed}")
    return change(world, device, state, at, speed=speed)


def set_mode(world: World, device_id: str, mode: Mode, at: int) -> State:
    """Set the mode of a thermostat; its target is moved into the range of the mode."""
    device, state = able(world, device_id, "mode")
    if mode not in device.modes:
        raise ToolError(
            "CAPABILITY_MISSING", f"{device.name} ({device.id}) has the modes {', '.join(device.modes)}, not {mode}"
        )
    low, high = RANGES.get(mode, (0, 1000))
    return change(world, device, state, at, mode=mode, target_tenths=min(max(state.target_tenths, low), high))


def set_target(world: World, device_id: str, tenths: int, at: int) -> State:
    """Set the target of a thermostat whose mode has one."""
    device, state = able(world, device_id, "mode")
    if state.mode not in RANGES:
        raise ToolError(
            "MODE_GATED",
            f"{device.name} ({device.id}) is in the mode {state.mode}, which has no target: use set_thermostat_mode",
        )
    low, high = RANGES[state.mode]
    if not low <= tenths <= high:
        raise ToolError(
            "OUT_OF_RANGE", f"in the mode {state.mode} the target is {low / 10} to {high / 10} °C, not {tenths / 10}"
        )
    return change(world, device, state, at, target_tenths=tenths)


def move(world: World, device_id: str, position: int, at: int) -> tuple[State, bool]:
    """Move a cover to a position (100 is open), and whether an obstacle stopped it before."""
    device, state = able(world, device_id, "position")
    if device.awning and position > state.position:
        wind = next((one for one in world.rows(Series) if one.quantity == "wind"), None)
        if wind is not None and reading(wind, at) >= STRONG_WIND:
            raise ToolError(
                "WIND_LOCK", f"{device.name} ({device.id}) stays in: the wind has {reading(wind, at) / 10} km/h"
            )
    down = position < state.position and state.position > device.obstacle
    reached = max(position, device.obstacle) if down else position
    return change(world, device, state, at, position=reached), reached != position


def lock(world: World, device_id: str, at: int, by: str) -> Lock:
    """Lock a door."""
    device, _ = able(world, device_id, "lock")
    one = world.need(Lock, device.id)
    if one.jammed:
        raise ToolError("JAMMED", f"{device.name} ({device.id}) is jammed; somebody must free it by hand")
    if one.locked:
        return one
    if one.contact_id and is_open(world, one.contact_id, at):
        raise ToolError("DOOR_OPEN", f"the door of {device.name} ({device.id}) stands open; close it first")
    world.put(LockEntry(world.new_id(LockEntry), device.id, at, "locked", by))
    return world.update(one, locked=True)


def obey(world: World, step: Step, at: int, by: str) -> list[tuple[str, Event]]:
    """Do a step of a scene; what happened by it. Fails as the tool for the command does."""
    device_id, command, value = step
    number = value if isinstance(value, int) else 0
    if command in ("turn_on", "turn_off"):
        before, on = world.need(State, need_device(world, device_id).id).on, command == "turn_on"
        turn(world, device_id, on, at)
        return [] if before == on else [(device_id, "turned_on" if on else "turned_off")]
    if command == "set_brightness":
        dim(world, device_id, number, at)
    elif command == "set_fan_speed":
        spin(world, device_id, number, at)
    elif command == "set_thermostat_mode":
        modes: dict[str, Mode] = {mode: mode for mode in need_device(world, device_id).modes}
        set_mode(world, device_id, modes.get(str(value), "off"), at)
    elif command == "set_temperature":
        set_target(world, device_id, number, at)
    elif command == "set_position":
        start = world.need(State, need_device(world, device_id).id).position
        state, _ = move(world, device_id, number, at)
        return [] if state.position == start else [(device_id, "opened" if state.position > start else "closed")]
    else:
        locked = world.get(Lock, device_id)
        lock(world, device_id, at, by)
        return [] if locked is not None and locked.locked else [(device_id, "locked")]
    return []


def perform(
    world: World, steps: tuple[Step, ...], at: int, by: str
) -> tuple[list[str], list[tuple[str, Command, str]], list[tuple[str, Event]]]:
    """Do the steps that can be done.

    The devices that obeyed; device, command and code of what was left out; and device and event of what happened.
    """
    done: list[str] = []
    skipped: list[tuple[str, Command, str]] = []
    happened: list[tuple[str, Event]] = []
    for step in steps:
        try:
            happened += obey(world, step, at, by)
            done.append(step[0])
        except ToolError as error:
            skipped.append((step[0], step[1], error.code))
    return list(dict.fromkeys(done)), skipped, happened


# Sensors --------------------------------------------------------------------------------------------------------------


def reading(series: Series, at: int) -> int:
    """The value of a sensor at a time, in tenths of its unit; it changes every five minutes."""
    bucket = at // (5 * MINUTE)
    noise = zlib.crc32(f"{series.id}/{bucket}".encode()) % (2 * series.noise + 1) - series.noise if series.noise else 0
    hours = abs((at % DAY - series.peak_hour * HOUR + DAY // 2) % DAY - DAY // 2) / HOUR  # 0 at the peak, 12 opposite
    value = series.base + round(series.swing * (1 - hours / 6)) + noise
    if series.quantity == "motion":
        return 10 if value > 0 else 0
    return value if series.quantity == "temperature" else max(value, 0)


def is_open(world: World, contact_id: str, at: int) -> bool:
    """Whether a contact sensor says that its door or window is open."""
    return reading(world.need(Series, contact_id), at) > 0


def open_windows(world: World, room_id: str, at: int) -> list[Device]:
    """The windows of a room that stand open, as far as its sensors answer."""
    return [
        device
        for device in world.find(Device, room_id=room_id, type="sensor")
        if device.online
        and world.need(Series, device.id).quantity == "contact"
        and "window" in device.name
        and is_open(world, device.id, at)
    ]


# Codes ----------------------------------------------------------------------------------------------------------------


def check_code(world: World, holder: Lock | Alarm, code: str, what: str) -> str:
    """Why a code is refused; empty for the right one. Wrong ones are counted; fails with ``LOCKED_OUT`` after three."""
    if world.now < holder.locked_out_until:
        raise ToolError("LOCKED_OUT", f"{what} takes no code until {iso(holder.locked_out_until)}: too many were wrong")
    if code == holder.code:
        if holder.wrong:
            world.update(holder, wrong=0)
        return ""
    wrong = holder.wrong + 1
    out = wrong >= WRONG_CODES
    world.update(
        holder, wrong=0 if out else wrong, locked_out_until=world.now + LOCK_OUT if out else holder.locked_out_until
    )
    left = f"{WRONG_CODES - wrong} attempts are left" if not out else "it takes no code for ten minutes now"
    return f"the code for {what} is wrong; {left}"


def codes_left(world: World, holder: Lock | Alarm) -> int:
    """How many wrong codes may still be given before none is taken."""
    return 0 if world.now < holder.locked_out_until else WRONG_CODES - holder.wrong


# Automations ----------------------------------------------------------------------------------------------------------


def steps_of(world: World, automation: Automation) -> tuple[Step, ...]:
    """What an automation does."""
    return world.need(Scene, automation.scene_id).steps if automation.scene_id else automation.steps


def run(world: World, automation: Automation, at: int) -> None:
    """Run an automation; what it cannot do is left out and counted."""
    _, skipped, _ = perform(world, steps_of(world, automation), at, automation.name)
    world.update(automation, last_run_at=at, last_skipped=len(skipped))


def emit(world: World, source_id: str, event: Event) -> list[str]:
    """Run the automations that wait for an event; their ids. What they do starts no others."""
    kind = "alarm" if source_id == ALARM else "device"
    waiting = [
        one for one in world.find(Automation, trigger=kind) if one.event == event and one.source_id in ("", source_id)
    ]
    for one in waiting:
        run(world, one, world.now)
    return [one.id for one in waiting]


def due(world: World) -> list[tuple[int, Automation]]:
    """The runs by the clock that have not been made yet, in order of time."""
    settled = world.need(Profile, "me").settled_at
    found = []
    for one in world.find(Automation, trigger="daily"):
        start = max(settled, one.created_at)
        for midnight in range(start - start % DAY, world.now + 1, DAY):
            at = midnight + one.minute * MINUTE
            if start < at <= world.now and (midnight // DAY + 3) % 7 in one.days:
                found.append((at, one))
    return sorted(found, key=lambda pair: (pair[0], pair[1].id))


def settle(world: World) -> None:
    """Make the runs that are due. Tools that write call this first."""
    runs = due(world)
    for at, one in runs:
        run(world, world.need(Automation, one.id), at)
    if runs:
        world.update(world.need(Profile, "me"), settled_at=world.now)


def settled(world: World) -> World:
    """The home as it is now for tools that only read: runs that are due are made in a copy, which is then dropped."""
    if not due(world):
        return world
    return world.ahead(settle)


def next_run(world: World, automation: Automation) -> int | None:
    """When an automation runs next by the clock."""
    if automation.trigger != "daily":
        return None
    midnight = world.now - world.now % DAY
    for day in range(8):
        at = midnight + day * DAY + automation.minute * MINUTE
        if at > world.now and (at // DAY + 3) % 7 in automation.days:
            return at
    return None
