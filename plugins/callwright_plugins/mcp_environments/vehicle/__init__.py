"""The vehicle environment: one car whose functions depend on each other, with fuel, doors, climate and navigation.

- The engine starts only with all doors closed and locked, the selector in P or N, the parking brake set, fuel in the
  tank and no critical fault. It stops only in P with the parking brake set.
- The gear, cruise control, climate, full lights and navigation need the ignition on (IGNITION_OFF).
- Cruise control sets the car in motion: selector in D, brake released, doors closed and locked, 30 to 180 km/h (below
  it CRUISE_MIN_SPEED); 0 lets it come to a stand. While it moves, doors stay locked and P, R and the brake are refused.
- Time moves the car: distance, fuel and the way that is left follow from the speed and the session's clock. An empty
  tank stalls it; at its destination it stops.
- Navigation refuses destinations beyond the range of the fuel less a reserve (OUT_OF_RANGE_FUEL). Refuelling takes
  the right fuel, the engine off, and no more than fits (TANK_OVERFLOW).
- An electric car is refuelled at a charger to which a route led it (NOT_AT_CHARGER), which takes its time; until then
  it does not start (CHARGING).
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "events")
