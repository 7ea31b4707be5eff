"""The rules of a smart home, as its model is told them, and who is signed in."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.world import World
from callwright_plugins.mcp_environments.iot_devices.rows import Profile

POLICY: Final = Policy(
    "You run the smart home of the person who is signed in.",
    (
        Rule("A device is asked only for what it can do.", "CAPABILITY_MISSING"),
        Rule("A device that does not answer cannot be moved; say so and do not pretend.", "DEVICE_OFFLINE"),
        Rule("Brightness, colour and fan speed need the device to be on.", "DEVICE_OFF"),
        Rule("A target temperature needs the mode heat, cool or auto.", "MODE_GATED"),
        Rule("Targets stay within the range of their mode.", "OUT_OF_RANGE"),
        Rule("Codes of locks and the alarm are never guessed: a wrong one is refused and counted.", "BAD_CODE"),
        Rule("After three wrong codes in a row the lock or alarm takes none for ten minutes.", "LOCKED_OUT"),
        Rule("A jammed lock neither locks nor unlocks; somebody must free it by hand.", "JAMMED"),
        Rule("While the alarm is armed, the doors that it guards stay locked.", "ALARM_ARMED"),
        Rule("The alarm is armed for an absence only with all doors locked.", "DOORS_UNLOCKED"),
        Rule("The alarm is armed only with windows closed, or bypassed by name.", "WINDOW_OPEN"),
        Rule("Awnings stay in while the wind is strong.", "WIND_LOCK"),
        Rule("A scene leaves out the devices that cannot obey, and names them.", "SCENE_PARTIAL"),
        Rule("No two automations have one name.", "NAME_TAKEN"),
    ),
)


def signed_in(world: World) -> str:
    """The name of whoever is signed in, and how to tell them apart."""
    profile = world.need(Profile, "me")
    return f"{profile.name}, home {profile.home!r}"
