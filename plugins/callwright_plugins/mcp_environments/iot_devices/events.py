"""What the house does by itself: automations that run by the clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.environments.living.events import EventKind, Moment, Notice
from callwright.environments.world import World
from callwright_plugins.mcp_environments.iot_devices.house import due, settle
from callwright_plugins.mcp_environments.iot_devices.rows import Automation, Profile
from callwright_plugins.mcp_environments.times import DAY, MINUTE


def _next(automation: Automation, since: int) -> int | None:
    """The first run of an automation after a time; it has weekdays on which it runs, or none."""
    midnight = since - since % DAY
    for day in range(8):
        at = midnight + day * DAY + automation.minute * MINUTE
        if at > since and (at // DAY + 3) % 7 in automation.days:
            return at
    return None


def _due(world: World, since: Moment) -> Moment | None:
    settled = world.need(Profile, "me").settled_at
    times = (_next(one, max(settled, one.created_at)) for one in world.find(Automation, trigger="daily"))
    first = min((at for at in times if at is not None), default=None)
    return None if first is None else (first, "daily")


def _run(world: World, key: str) -> list[str]:
    ran = list(dict.fromkeys(automation.id for _, automation in due(world)))
    settle(world)
    return ran


def _tells(world: World, key: str, ran: list[str]) -> Iterable[Notice]:
    for automation_id in ran:
        one = world.need(Automation, automation_id)
        left = f"; {one.last_skipped} steps could not be done" if one.last_skipped else ""
        yield Notice(f"The automation {one.name!r} ({one.id}) has run{left}.")


EVENTS: Final[tuple[EventKind, ...]] = (
    EventKind("automation", "An automation runs by the clock: whoever lives there is told.", _due, _tells, _run),
)
