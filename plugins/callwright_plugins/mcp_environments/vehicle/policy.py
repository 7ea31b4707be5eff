"""The rules of a car, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You operate the functions of one car for its driver.",
    (
        Rule("The engine starts, and the car moves, only with all doors locked.", "DOORS_UNLOCKED"),
        Rule("An open door must be closed by somebody before it can be locked.", "DOORS_OPEN"),
        Rule("The engine starts and stops with the parking brake set.", "BRAKE_NOT_SET"),
        Rule("Without fuel the engine does not start.", "NO_FUEL"),
        Rule("A critical fault keeps the engine off.", "FAULT_ACTIVE"),
        Rule("Gear, cruise control, climate, full lights and navigation need the ignition on.", "IGNITION_OFF"),
        Rule("Cruise control needs the selector in D.", "GEAR_NOT_DRIVE"),
        Rule("The car moves with the parking brake released.", "BRAKE_ENGAGED"),
        Rule("Cruise control holds 30 km/h or more; 0 lets the car come to a stand.", "CRUISE_MIN_SPEED"),
        Rule("Cruise control holds 180 km/h at most.", "CRUISE_MAX_SPEED"),
        Rule(
            "While the car moves, doors stay locked, and P, R, the parking brake and refuelling are refused.",
            "MOVING",
        ),
        Rule("Navigation leads no further than the fuel reaches, less a reserve.", "OUT_OF_RANGE_FUEL"),
        Rule("The car takes its own kind of fuel.", "WRONG_FUEL"),
        Rule("No more is filled in than fits.", "TANK_OVERFLOW"),
        Rule("An electric car is charged where its route ended at a charger.", "NOT_AT_CHARGER"),
        Rule("While it is charged it does not start.", "CHARGING"),
        Rule("One route is active at a time.", "NAVIGATION_ACTIVE"),
    ),
)
