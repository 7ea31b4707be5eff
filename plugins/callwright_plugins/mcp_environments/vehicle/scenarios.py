"""Cars: one parked before a trip, one fresh from the dealer, an electric one, and those with everything wrong."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import CITIES, company, full_name
from callwright_plugins.mcp_environments.times import DAY, HOUR
from callwright_plugins.mcp_environments.vehicle.rows import (
    DOORS,
    KM,
    LITRE,
    ZONES,
    Climate,
    Destination,
    Door,
    Dtc,
    Refuelling,
    Route,
    Tire,
    Vehicle,
)

_POSITIONS: Final = ("front_left", "front_right", "rear_left", "rear_right")
_CATEGORIES: Final = ("friend", "work", "fuel", "charging", "shop", "hotel", "doctor", "leisure")
_STREETS: Final = ("Birch Street", "Oak Avenue", "Mill Lane", "Station Road", "High Street", "Harbor Road")
_FAULTS: Final = (
    ("P0128", "engine", "coolant is below the temperature of the thermostat"),
    ("P0171", "engine", "mixture is too lean, bank 1"),
    ("P0420", "exhaust", "catalyst is below its efficiency"),
    ("P0442", "fuel", "small leak in the evaporation system"),
    ("C0035", "brakes", "signal of the left front wheel is missing"),
    ("B1342", "body", "control unit of the doors reset itself"),
    ("U0100", "network", "no message from the engine control unit"),
)


def _destination(rng: Random, number: int, category: str, name: str, kilometres: float) -> Destination:
    address = f"{rng.randrange(1, 90)} {rng.choice(_STREETS)}, {rng.choice(CITIES)}"
    return Destination(f"D{number:05d}", name, category, address, round(kilometres * KM))


def _fault(number: int, which: tuple[str, str, str], severity: str, active: bool, at: int) -> Dtc:
    return Dtc(f"DTC{number:04d}", which[0], which[1], severity, which[2], active, at)


def typical(rng: Random, scale: float) -> Iterable[Any]:
    """A petrol car in a car park: unlocked, closed, the tank a quarter full, old faults, many destinations."""
    tank = 52 * LITRE
    fuel = rng.randrange(11 * LITRE, 16 * LITRE)
    odometer = rng.randrange(20_000, 90_000) * KM
    yield Vehicle("car", "Kestrel Estate 1.5", "petrol", tank, fuel, 18_000, odometer, NOW)
    yield from (Door(name, False, False) for name in DOORS)
    yield from (Climate(zone, 210) for zone in ZONES)
    yield from (Tire(position, rng.randrange(225, 246), 240) for position in _POSITIONS)
    yield Destination("D00001", "Home", "home", "12 Birch Street, Calder", 14 * KM)
    yield Destination("D00002", "Office", "work", "3 Station Road, Calder", 23 * KM)
    for number in range(3, 3 + max(6, round(240 * scale))):
        category = _CATEGORIES[number % len(_CATEGORIES)]
        name = full_name(rng) if category in ("friend", "doctor") else company(rng)
        yield _destination(rng, number, category, name, rng.choice((rng.uniform(1, 60), rng.uniform(60, 900))))
    for number in range(1, 1 + max(3, round(40 * scale))):
        severity = rng.choice(("info", "info", "warning", "critical"))
        active = number < 4 and severity != "critical"
        yield _fault(number, rng.choice(_FAULTS), severity, active, NOW - rng.randrange(HOUR, 500 * DAY))
    at = NOW
    for number in range(1, 1 + max(2, round(30 * scale))):
        at -= rng.randrange(4, 15) * DAY
        yield Refuelling(f"F{number:05d}", at, rng.randrange(20, 45) * LITRE, max(0, odometer - number * 500 * KM))
    for number in range(1, 1 + max(1, round(20 * scale))):
        way = rng.randrange(5, 300) * KM
        state = rng.choice(("arrived", "cancelled"))
        left = 0 if state == "arrived" else rng.randrange(way)
        yield Route(f"R{number:05d}", f"D{rng.randrange(1, 9):05d}", NOW - number * DAY, way, left, state)


def sparse(rng: Random, scale: float) -> Iterable[Any]:
    """A new diesel car: locked, five litres in the tank, one destination for every unit of scale, no history."""
    yield Vehicle("car", "Heron City", "diesel", 38 * LITRE, 5 * LITRE, 14_000, 7 * KM, NOW)
    yield from (Door(name, True, False) for name in DOORS)
    yield from (Climate(zone, 200) for zone in ZONES)
    yield from (Tire(position, 240, 240) for position in _POSITIONS)
    for number in range(1, 1 + max(1, round(scale))):
        yield _destination(rng, number, "dealer", "Heron Dealer", 7 + number)


def adversarial(rng: Random, scale: float) -> Iterable[Any]:
    """At night: two doors unlocked, the tank nearly empty, a flat tire, the brake released, namesakes everywhere."""
    yield Vehicle(
        "car", "Falcon GT", "diesel", 60 * LITRE, 6 * LITRE, 21_000, 199_999 * KM, NOW + 12 * HOUR, parking_brake=False
    )
    yield from (Door(name, name not in ("rear_left", "trunk"), False) for name in DOORS)
    yield from (Climate(zone, 160) for zone in ZONES)
    yield from (Tire(position, 150 if position == "rear_right" else 239, 240) for position in _POSITIONS)
    for number in range(1, 1 + max(10, round(80 * scale))):
        name = ("Home", "home", "Home ", "Homes", "Office", "Off ice")[number % 6]
        near = 49.0 + number / 100  # around the end of the range with its reserve
        yield _destination(rng, number, rng.choice(("home", "friend")), name, near)
    for number in range(1, 1 + max(4, round(30 * scale))):
        yield _fault(number, _FAULTS[number % 7], ("critical", "warning")[number % 2], number % 2 == 1, NOW - number)


def electric(rng: Random, scale: float) -> Iterable[Any]:
    """An electric car on a morning: a sixth of 58 kWh left, chargers at all distances, friends and work behind them."""
    battery = 58 * LITRE
    charge = rng.randrange(9 * LITRE, 12 * LITRE)
    yield Vehicle("car", "Kestrel E", "electric", battery, charge, 50_000, rng.randrange(5_000, 40_000) * KM, NOW)
    yield from (Door(name, True, False) for name in DOORS)
    yield from (Climate(zone, 200) for zone in ZONES)
    yield from (Tire(position, rng.randrange(235, 251), 240) for position in _POSITIONS)
    yield Destination("D00001", "Home", "home", "12 Birch Street, Calder", 9 * KM)
    for number in range(2, 2 + max(6, round(40 * scale))):
        category = ("charging", "friend", "work", "charging", "hotel")[number % 5]
        name = f"{company(rng)} Charge" if category == "charging" else full_name(rng)
        yield _destination(rng, number, category, name, rng.choice((rng.uniform(2, 20), rng.uniform(20, 220))))


def broken(rng: Random, scale: float) -> Iterable[Any]:
    """A car that will not start: the trunk is open, a critical fault is active, and the tank is dry."""
    yield Vehicle("car", "Kestrel Estate 1.5", "petrol", 52 * LITRE, 0, 18_000, 120_000 * KM, NOW)
    yield from (Door(name, name != "trunk", name == "trunk") for name in DOORS)
    yield from (Climate(zone, 210) for zone in ZONES)
    yield from (Tire(position, 236, 240) for position in _POSITIONS)
    for number in range(1, 1 + max(1, round(20 * scale))):
        yield _destination(rng, number, "workshop", company(rng), rng.uniform(1, 40))
    yield _fault(1, _FAULTS[-1], "critical", True, NOW - HOUR)


SCENARIOS: Final = {
    "typical": Scenario(typical, "a parked car with a quarter of a tank and a long list of destinations"),
    "sparse": Scenario(sparse, "a new car with little fuel and one destination"),
    "adversarial": Scenario(
        adversarial, "night, a flat tire, unlocked doors and destinations at the end of the range", NOW + 12 * HOUR
    ),
    "electric": Scenario(electric, "an electric car with a sixth of its charge left, and chargers on the way"),
    "broken": Scenario(broken, "an open trunk, a critical fault and an empty tank"),
}
