"""The tables of the home. Temperatures are tenths of a degree Celsius, times seconds of the session's clock."""

from __future__ import annotations

from typing import Any, Final, Literal

from callwright.environments.rows import row

Kind = Literal["light", "plug", "fan", "thermostat", "cover", "lock", "sensor"]
Capability = Literal["switch", "brightness", "color", "color_temperature", "speed", "mode", "position", "lock", "sense"]
Mode = Literal["off", "heat", "cool", "auto", "eco"]
AlarmMode = Literal["disarmed", "armed_home", "armed_away"]
Quantity = Literal["temperature", "humidity", "motion", "contact", "wind"]
Command = Literal[
    "turn_on",
    "turn_off",
    "set_brightness",
    "set_thermostat_mode",
    "set_temperature",
    "set_fan_speed",
    "set_position",
    "lock",
]
Trigger = Literal["daily", "device", "alarm"]
Event = Literal[
    "turned_on", "turned_off", "locked", "unlocked", "opened", "closed", "armed_home", "armed_away", "disarmed"
]
#: A step of a scene: device, command, and the value where the command takes one.
Step = tuple[str, Command, int | str | None]


# When automations were looked at last.
@row("profile", bookkeeping=("settled_at",))
class Profile:
    """The person at home. Automations have been run until ``settled_at``."""

    id: str
    name: str
    home: str
    settled_at: int


@row("rooms", prefix="RM")
class Room:
    """A room; the garden is one too."""

    id: str
    name: str
    floor: int


@row("devices", prefix="D", index=("room_id", "type"))
class Device:
    """What a device is. Ranges are ``None`` where they mean nothing for it."""

    id: str
    name: str
    room_id: str
    type: Kind
    capabilities: tuple[Capability, ...]
    online: bool
    #: What it draws at most.
    watts: int
    modes: tuple[Mode, ...]
    min_brightness: int
    max_speed: int
    #: Covers: awnings stay in when the wind is strong; an obstacle stops the way down at a position.
    awning: bool
    obstacle: int


# A lamp that was switched on and off again is off.
@row("device_state", bookkeeping=("changed_at", "usage_id"))
class State:
    """How a device is set; ``usage_id`` is the open record of what it draws."""

    id: str
    on: bool
    brightness: int
    color: str
    color_temperature_k: int
    mode: Mode
    target_tenths: int
    speed: int
    position: int
    changed_at: int
    usage_id: str


# The log of what devices drew follows from how they were set, and when.
@row("energy", prefix="E", index=("device_id",), bookkeeping=True)
class Usage:
    """A time in which a device drew so many watts; ``end`` is ``None`` while it does."""

    id: str
    device_id: str
    start: int
    end: int | None
    watts: int


@row("sensor_series")
class Series:
    """How a sensor's value goes: a daily wave around a base, with noise; all in tenths of the unit."""

    id: str
    quantity: Quantity
    unit: str
    base: int
    swing: int
    noise: int
    #: Hour of the day at which it is highest.
    peak_hour: int


# Counters of wrong codes.
@row("locks", bookkeeping=("wrong", "locked_out_until"))
class Lock:
    """A door lock; its code is never shown. ``contact_id`` is the sensor that knows whether the door is open."""

    id: str
    locked: bool
    jammed: bool
    exterior: bool
    code: str
    wrong: int
    locked_out_until: int
    contact_id: str


# A log.
@row("lock_log", prefix="LL", index=("lock_id",), bookkeeping=True)
class LockEntry:
    """What happened to a lock."""

    id: str
    lock_id: str
    at: int
    event: Literal["locked", "unlocked", "wrong_code"]
    by: str


# Counters of wrong codes, and when.
@row("alarm", bookkeeping=("wrong", "locked_out_until", "changed_at"), unordered=("bypassed",))
class Alarm:
    """The alarm; its code is never shown. ``bypassed`` are sensors that it leaves out."""

    id: str
    mode: AlarmMode
    code: str
    wrong: int
    locked_out_until: int
    changed_at: int
    bypassed: tuple[str, ...]


@row("scenes", prefix="S")
class Scene:
    """Settings of several devices."""

    id: str
    name: str
    steps: tuple[Step, ...]


# What it did last shows in devices.
@row(
    "automations",
    prefix="AU",
    index=("trigger",),
    stamps=("created_at",),
    bookkeeping=("last_run_at", "last_skipped"),
    unordered=("days",),
)
class Automation:
    """What happens by itself: a scene or steps, daily at a minute on some weekdays (Monday = 0), or after an event."""

    id: str
    name: str
    trigger: Trigger
    minute: int
    days: tuple[int, ...]
    source_id: str
    event: Event | None
    scene_id: str
    steps: tuple[Step, ...]
    created_at: int
    last_run_at: int | None
    last_skipped: int


ROWS: Final[list[type[Any]]] = [
    Profile,
    Room,
    Device,
    State,
    Usage,
    Series,
    Lock,
    LockEntry,
    Alarm,
    Scene,
    Automation,
]
#: The one alarm of a home.
ALARM: Final = "ALARM"
