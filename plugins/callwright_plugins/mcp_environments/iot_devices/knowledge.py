"""What the people at home know: codes of doors and alarm, and what they find comfortable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.world import World
from callwright_plugins.mcp_environments.iot_devices.rows import ALARM, Alarm, Device, Lock, Profile
from callwright_plugins.mcp_environments.wishes import ME, wishes


def known(world: World, entity: str) -> Mapping[str, Any] | None:
    """The codes and comfort of whoever lives there (``me``); of a lock, by id or name: its code."""
    if entity != ME:
        lock = world.get(Lock, entity)
        if lock is None:
            named = [one.id for one in world.rows(Device) if one.type == "lock" and one.name == entity]
            lock = world.get(Lock, named[0]) if len(named) == 1 else None
        return None if lock is None else {"lock_code": lock.code}
    profile = world.get(Profile, ME)
    if profile is None:
        return None
    rng = wishes(world, "iot_devices")
    facts: dict[str, Any] = {"name": profile.name}
    alarm = world.get(Alarm, ALARM)
    if alarm is not None:
        facts["alarm_code"] = alarm.code
    locks = list(world.rows(Lock))
    if locks:
        facts["lock_code"] = locks[0].code
    return facts | {
        "comfort_celsius": rng.choice((20.5, 21.0, 21.5, 22.0)),
        "night_celsius": rng.choice((16.5, 17.0, 18.0)),
        "reading_light_percent": rng.choice((35, 60, 75)),
        "wake_time": rng.choice(("06:15", "06:45", "07:10")),
        "bed_time": rng.choice(("21:50", "22:30", "23:05")),
    }
