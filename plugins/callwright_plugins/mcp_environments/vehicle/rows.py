"""Rows of the car. Ways are whole numbers of 1/3600 km (a second at 1 km/h), fuel is in nanolitres: both stay exact.

An electric car has kilowatt-hours where others have litres: its battery is a tank, and what is in it fuel.
"""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row

#: Ways of a kilometre, and nanolitres of a litre.
KM: Final = 3600
LITRE: Final = 10**9
DOORS: Final = ("front_left", "front_right", "rear_left", "rear_right", "trunk")
ZONES: Final = ("driver", "passenger", "rear")


# What driving uses up and counts; refuelling has rows of its own.
@row("vehicles", bookkeeping=("since", "fuel_nl", "odometer", "charging_nl"))
class Vehicle:
    """The car as it was at the time ``since``; :func:`motion.settled` brings it up to date.

    ``at`` is the destination at which it stands, empty once it has moved on. ``charging_nl`` is still to come from the
    charger that it is plugged in at.
    """

    id: str
    model: str
    fuel_type: str
    tank_nl: int
    fuel_nl: int
    #: Nanolitres per 1/3600 km at up to 90 km/h.
    burn_nl: int
    odometer: int
    since: int
    ignition: bool = False
    gear: str = "P"
    parking_brake: bool = True
    speed_kmh: int = 0
    headlights: str = "off"
    fan_level: int = 0
    at: str = ""
    charging_nl: int = 0


@row("doors", key="name")
class Door:
    """A door or the trunk."""

    name: str
    locked: bool
    open: bool


@row("climate", key="zone")
class Climate:
    """The temperature that a zone is to have, in tenths of a degree Celsius."""

    zone: str
    target_dc: int


@row("tires", key="position")
class Tire:
    """A tire."""

    position: str
    pressure_kpa: int
    recommended_kpa: int


@row("destinations", prefix="D", index=("category",))
class Destination:
    """A saved destination and how far it is by road, in 1/3600 km."""

    id: str
    name: str
    category: str
    address: str
    way: int


# How far the car has come by itself.
@row("routes", prefix="R", stamps=("started",), bookkeeping=("left",))
class Route:
    """A route: ``state`` is active, arrived or cancelled. ``left`` was left at the time ``since`` of the car."""

    id: str
    destination: str
    started: int
    way: int
    left: int
    state: str


@row("dtcs", stamps=("raised",))
class Dtc:
    """A diagnostic trouble code: ``severity`` is info, warning or critical; ``active`` until a workshop clears it."""

    id: str
    code: str
    system: str
    severity: str
    text: str
    active: bool
    raised: int


# As in the car.
@row("refuellings", prefix="F", stamps=("at",), bookkeeping=("odometer",))
class Refuelling:
    """Fuel that was put in."""

    id: str
    at: int
    added_nl: int
    odometer: int


ROWS: Final = (Vehicle, Door, Climate, Tire, Destination, Route, Dtc, Refuelling)
