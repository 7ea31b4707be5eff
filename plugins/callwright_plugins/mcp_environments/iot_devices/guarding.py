"""Tools of locks, alarm, scenes and automations."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, Refused, ToolError, tool
from callwright_plugins.mcp_environments.iot_devices.house import (
    able,
    check_code,
    codes_left,
    emit,
    is_open,
    need_device,
    perform,
    settle,
)
from callwright_plugins.mcp_environments.iot_devices.house import lock as lock_it
from callwright_plugins.mcp_environments.iot_devices.looking import (
    DAY_NAMES,
    AutomationView,
    DeviceId,
    automation_view,
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
    Lock,
    LockEntry,
    Profile,
    Scene,
    Series,
    Step,
    Trigger,
)

#: What a device must be able to do to obey a command.
_NEEDS: Final[dict[Command, Capability]] = {
    "turn_on": "switch",
    "turn_off": "switch",
    "set_brightness": "brightness",
    "set_thermostat_mode": "mode",
    "set_temperature": "mode",
    "set_fan_speed": "speed",
    "set_position": "position",
    "lock": "lock",
}
_ALARM_EVENTS: Final = ("armed_home", "armed_away", "disarmed")
MOST_AUTOMATIONS: Final = 40

Code = Annotated[
    str,
    Field(
        description="Code of four to eight digits; ask the person for it.",
        pattern=r"^[0-9]{4,8}$",
        json_schema_extra={"x-sensitive": True},
    ),
]


class LockView(TypedDict):
    """A lock; ``attempts_left`` is how many wrong codes are before it locks out."""

    device_id: str
    locked: bool
    verified: Annotated[bool, Field(description="Whether the code was right.")]
    attempts_left: Annotated[int, Field(description="Wrong codes that may still be given before it takes none.")]


class AlarmView(TypedDict):
    """The alarm; ``attempts_left`` is how many wrong codes are before it locks out."""

    mode: AlarmMode
    verified: Annotated[bool, Field(description="Whether the code was right.")]
    attempts_left: Annotated[int, Field(description="Wrong codes that may still be given before it takes none.")]
    bypassed: Annotated[list[str], Field(description="Ids of devices that it does not watch.")]


class Skipped(TypedDict):
    """A step that was left out."""

    device_id: str
    command: Command
    code: Annotated[str, Field(description="Why, as a failure code.")]


class Activation(TypedDict):
    """Which devices obeyed a scene, and what was left out."""

    scene_id: str
    applied: list[str]
    skipped: list[Skipped]


class StepIn(TypedDict):
    """A step of an automation: what a device is told. ``value`` is percent, degrees, speed or mode, if any."""

    device_id: str
    command: Command
    value: float | str | None


@tool(idempotent=True, latency=2)
def lock_door(world: World, /, device_id: DeviceId) -> LockView:
    """Lock a door. Fails with JAMMED, DOOR_OPEN, DEVICE_OFFLINE or CAPABILITY_MISSING."""
    settle(world)
    device, _ = able(world, device_id, "lock")
    before = world.need(Lock, device.id)
    after = lock_it(world, device_id, world.now, world.need(Profile, "me").name)
    if not before.locked:
        emit(world, device_id, "locked")
    return {"device_id": device.id, "locked": after.locked, "verified": True, "attempts_left": codes_left(world, after)}


@tool(latency=2)
def unlock_door(world: World, /, device_id: DeviceId, lock_code: Code) -> LockView:
    """Unlock a door with its code. While the alarm is armed_home the doors to the outside stay locked, and all doors
    while it is armed_away: ALARM_ARMED (disarm_alarm first). Fails also with JAMMED, LOCKED_OUT, DEVICE_OFFLINE. A
    wrong code is refused (BAD_CODE) and counted: after three the lock takes none for ten minutes.
    """
    settle(world)
    device, _ = able(world, device_id, "lock")
    one, alarm = world.need(Lock, device.id), world.need(Alarm, ALARM)
    if alarm.mode == "armed_away" or (alarm.mode == "armed_home" and one.exterior):
        raise ToolError("ALARM_ARMED", f"{device.name} ({device.id}) stays locked while the alarm is {alarm.mode}")
    if one.jammed:
        raise ToolError("JAMMED", f"{device.name} ({device.id}) is jammed; somebody must free it by hand")
    me = world.need(Profile, "me").name
    refusal = check_code(world, one, lock_code, f"{device.name} ({device.id})")
    if refusal:
        world.put(LockEntry(world.new_id(LockEntry), device.id, world.now, "wrong_code", me))
        raise Refused("BAD_CODE", refusal)
    one = world.need(Lock, device.id)
    if one.locked:
        one = world.update(one, locked=False)
        world.put(LockEntry(world.new_id(LockEntry), device.id, world.now, "unlocked", me))
        emit(world, device_id, "unlocked")
    return {"device_id": device.id, "locked": one.locked, "verified": True, "attempts_left": codes_left(world, one)}


@tool(idempotent=True, latency=1)
def arm_alarm(
    world: World,
    /,
    mode: Annotated[
        Literal["armed_home", "armed_away"], Field(description="armed_home with somebody at home, else armed_away.")
    ],
    bypass: Annotated[
        list[str] | None, Field(max_length=20, description="Window and door sensors to leave out; null for none.")
    ] = None,
) -> AlarmView:
    """Arm the alarm. Doors to the outside must be locked for armed_home, all doors for armed_away (DOORS_UNLOCKED);
    armed_away also needs every window closed (WINDOW_OPEN) and its sensors to answer (DEVICE_OFFLINE) unless they are
    bypassed. An alarm that is armed otherwise is INVALID_STATE: disarm it first.
    """
    settle(world)
    alarm, left_out = world.need(Alarm, ALARM), tuple(sorted(set(bypass or ())))
    if alarm.mode not in ("disarmed", mode):
        raise ToolError("INVALID_STATE", f"the alarm is {alarm.mode}; disarm it before it is {mode}")
    for name in left_out:
        series = world.get(Series, name)
        if series is None or series.quantity != "contact":
            raise ToolError("NOT_FOUND", f"{name!r} is no contact sensor; read_sensor lists them")
    if alarm.mode == mode and alarm.bypassed != left_out:  # what an armed alarm watches takes its code to change
        without = ", ".join(alarm.bypassed) or "nothing"
        raise ToolError("INVALID_STATE", f"the alarm is {mode} with {without} left out; disarm it to change that")
    for one in world.rows(Lock):
        if not one.locked and (one.exterior or mode == "armed_away"):
            name = need_device(world, one.id).name
            raise ToolError("DOORS_UNLOCKED", f"{name} ({one.id}) is unlocked; use lock_door before {mode}")
    if mode == "armed_away":
        for device in world.find(Device, type="sensor"):
            if world.need(Series, device.id).quantity != "contact" or device.id in left_out:
                continue
            if not device.online:
                raise ToolError(
                    "DEVICE_OFFLINE", f"{device.name} ({device.id}) does not answer; bypass it or repair it"
                )
            if is_open(world, device.id, world.now):
                raise ToolError("WINDOW_OPEN", f"{device.name} ({device.id}) is open; close it or bypass it")
    if alarm.mode != mode:
        alarm = world.update(alarm, mode=mode, changed_at=world.now, bypassed=left_out)
        emit(world, ALARM, mode)
    return {
        "mode": alarm.mode,
        "verified": True,
        "attempts_left": codes_left(world, alarm),
        "bypassed": list(alarm.bypassed),
    }


@tool(latency=1)
def disarm_alarm(world: World, /, alarm_code: Code) -> AlarmView:
    """Disarm the alarm with its code. A wrong code is refused (BAD_CODE) and counted: after three the alarm takes none
    for ten minutes (LOCKED_OUT). Fails with INVALID_STATE if it is not armed.
    """
    settle(world)
    alarm = world.need(Alarm, ALARM)
    if alarm.mode == "disarmed":
        raise ToolError("INVALID_STATE", "the alarm is not armed")
    refusal = check_code(world, alarm, alarm_code, "the alarm")
    if refusal:
        raise Refused("BAD_CODE", refusal)
    alarm = world.update(world.need(Alarm, ALARM), mode="disarmed", changed_at=world.now, bypassed=())
    emit(world, ALARM, "disarmed")
    return {
        "mode": alarm.mode,
        "verified": True,
        "attempts_left": codes_left(world, alarm),
        "bypassed": list(alarm.bypassed),
    }


@tool(latency=3)
def activate_scene(
    world: World,
    /,
    scene_id: Annotated[str, Field(description="Scene id, such as S00002, from list_scenes.", max_length=40)],
) -> Activation:
    """Set the devices of a scene. Steps that a device cannot obey (offline, off, jammed …) are left out with the
    warning SCENE_PARTIAL; if none can be done the call fails with SCENE_FAILED.
    """
    settle(world)
    scene = world.need(Scene, scene_id, message=f"there is no scene {scene_id!r}; use list_scenes")
    done, skipped, happened = perform(world, scene.steps, world.now, scene.name)
    left = ", ".join(f"{name} {command}: {code}" for name, command, code in skipped)
    if not done:
        raise ToolError("SCENE_FAILED", f"nothing of {scene.name!r} ({scene.id}) could be done: {left}"[:400])
    for source, event in happened:
        emit(world, source, event)
    if skipped:
        world.warn("SCENE_PARTIAL", f"left out of {scene.name!r}: {left}"[:400])
    return {
        "scene_id": scene.id,
        "applied": done,
        "skipped": [{"device_id": name, "command": command, "code": code} for name, command, code in skipped],
    }


@tool
def create_automation(
    world: World,
    /,
    name: Annotated[str, Field(min_length=1, max_length=60, description="A name that no other automation has.")],
    trigger: Annotated[Trigger, Field(description="daily at a time, after an event of a device, or of the alarm.")],
    scene_id: Annotated[str, Field(description="Scene to activate; empty if steps are given.", max_length=40)] = "",
    steps: Annotated[
        list[StepIn] | None, Field(max_length=20, description="What devices are told; null if a scene is given.")
    ] = None,
    time: Annotated[
        str,
        Field(
            description="For daily: time of the day in UTC, such as 07:30.",
            pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9])?$",
        ),
    ] = "",
    days: Annotated[
        list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] | None,
        Field(min_length=1, max_length=7, description="For daily: weekdays; null for all."),
    ] = None,
    source_device_id: Annotated[str, Field(description="For device: the device to watch.", max_length=40)] = "",
    event: Annotated[Event | None, Field(description="For device and alarm: what has to happen.")] = None,
) -> AutomationView:
    """Let a scene or steps happen by themselves. Needs a time for daily, a device and event for device, an event for
    alarm (else BAD_TRIGGER), and either a scene or steps (BAD_STEPS). Fails with NAME_TAKEN, AUTOMATION_LIMIT,
    NOT_FOUND, or CAPABILITY_MISSING for a step that its device can never obey.
    """
    settle(world)
    if any(one.name.lower() == name.strip().lower() for one in world.rows(Automation)):
        raise ToolError("NAME_TAKEN", f"there is an automation named {name.strip()!r}; choose another name")
    if world.count(Automation) >= MOST_AUTOMATIONS:
        raise ToolError("AUTOMATION_LIMIT", f"a home has at most {MOST_AUTOMATIONS} automations; delete one first")
    _check_trigger(world, trigger, time, source_device_id, event)
    if bool(scene_id) == bool(steps):
        raise ToolError("BAD_STEPS", "give either scene_id or steps")
    if scene_id:
        world.need(Scene, scene_id, message=f"there is no scene {scene_id!r}; use list_scenes")
    daily = trigger == "daily"
    made = Automation(
        id=world.new_id(Automation),
        name=name.strip(),
        trigger=trigger,
        minute=int(time[:2]) * 60 + int(time[3:]) if daily else 0,
        days=tuple(n for n, day in enumerate(DAY_NAMES) if days is None or day in days) if daily else (),
        source_id=source_device_id if trigger == "device" else "",
        event=None if daily else event,
        scene_id=scene_id,
        steps=tuple(_step(world, step) for step in steps or ()),
        created_at=world.now,
        last_run_at=None,
        last_skipped=0,
    )
    return automation_view(world, world.put(made))


@tool(destructive=True)
def delete_automation(
    world: World,
    /,
    automation_id: Annotated[
        str, Field(description="Automation id, such as AU00003: list_automations.", max_length=40)
    ],
) -> AutomationView:
    """Delete an automation for good; the answer shows what it was."""
    settle(world)
    one = world.need(
        Automation, automation_id, message=f"there is no automation {automation_id!r}; use list_automations"
    )
    view = automation_view(world, one)
    world.drop(one)
    return view


def _check_trigger(world: World, trigger: Trigger, time: str, source: str, event: Event | None) -> None:
    if trigger == "daily":
        fits = bool(time) and not source and event is None
    elif trigger == "alarm":
        fits = event in _ALARM_EVENTS and not time and not source
    else:
        fits = event is not None and event not in _ALARM_EVENTS and bool(source) and not time
    if not fits:
        raise ToolError(
            "BAD_TRIGGER",
            "daily needs time alone, device needs source_device_id and an event of devices, alarm needs armed_home, "
            "armed_away or disarmed alone",
        )
    if source:
        device = need_device(world, source)
        needed: dict[str, Capability] = {"turned": "switch", "locked": "lock", "unlocked": "lock"}
        capability = needed.get(str(event).split("_")[0], "position")
        if capability not in device.capabilities:
            raise ToolError(
                "CAPABILITY_MISSING", f"{device.name} ({device.id}) is never {str(event).replace('_', ' ')}"
            )


def _step(world: World, step: StepIn) -> Step:
    """A step as rows keep it: whole numbers, temperatures in tenths."""
    device, command, value = need_device(world, step["device_id"]), step["command"], step["value"]
    if _NEEDS[command] not in device.capabilities:
        raise ToolError("CAPABILITY_MISSING", f"{device.name} ({device.id}) cannot {command.replace('_', ' ')}")
    if command in ("turn_on", "turn_off", "lock"):
        if value is not None:
            raise ToolError("BAD_STEPS", f"{command} takes no value, not {value!r:.40}")
        return device.id, command, None
    if command == "set_thermostat_mode":
        if value not in device.modes:
            modes = ", ".join(device.modes)
            raise ToolError(
                "CAPABILITY_MISSING", f"{device.name} ({device.id}) has the modes {modes}, not {value!r:.40}"
            )
        return device.id, command, str(value)
    if not isinstance(value, int | float):
        raise ToolError("BAD_STEPS", f"{command} takes a number, not {value!r:.40}")
    low, high, factor = _VALUES[command]
    if not low <= value <= high or value * factor != int(value * factor):
        raise ToolError("OUT_OF_RANGE", f"{command} takes {low} to {high} in steps of {1 / factor:g}, not {value}")
    return device.id, command, round(value * 10) if command == "set_temperature" else int(value)


#: Least and most value of a command, and how many steps there are in one.
_VALUES: Final[dict[Command, tuple[int, int, int]]] = {
    "set_brightness": (1, 100, 1),
    "set_temperature": (5, 30, 2),
    "set_fan_speed": (1, 10, 1),
    "set_position": (0, 100, 1),
}
GUARDING: Final[list[FunctionTool]] = [
    lock_door,
    unlock_door,
    arm_alarm,
    disarm_alarm,
    activate_scene,
    create_automation,
    delete_automation,
]
