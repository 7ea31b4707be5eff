"""A smart home: lights, plugs, climate, fans, covers, locks, an alarm, sensors, scenes, automations.

- A device has capabilities; a call that it cannot obey is CAPABILITY_MISSING, and one that it does not answer is
  DEVICE_OFFLINE. Brightness, colour and fan speed need the device to be on.
- A thermostat's target is set only in the mode ``heat``, ``cool`` or ``auto``; the range depends on the mode.
- Covers are moved in percent; with strong wind awnings stay in, and a blocked cover moves only as far as the obstacle.
- Locks are unlocked with a code. A jammed lock neither locks nor unlocks. While the alarm is ``armed_home`` the doors
  to the outside stay locked, and every door while it is ``armed_away``, for which all doors and windows must be closed.
- Wrong codes are refused (BAD_CODE) and counted. After three in a row the lock or alarm takes no code for ten minutes
  (LOCKED_OUT).
- A scene sets several devices. Those that cannot obey are left out, and the outcome is partial.
- Automations run at times of the day by the clock, or when a device or the alarm changes. They can do what scenes can:
  neither unlock nor disarm. What an automation does starts no other one.
- Energy is worked out from the times that a device was on, and the watts that it drew then.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person", "events")
