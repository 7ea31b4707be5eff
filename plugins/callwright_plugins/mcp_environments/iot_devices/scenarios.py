"""The scenarios of the home: a large house, a bare flat, and a house in which much does not work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.iot_devices.rows import (
    ALARM,
    Alarm,
    AlarmMode,
    Automation,
    Capability,
    Device,
    Kind,
    Lock,
    LockEntry,
    Mode,
    Profile,
    Quantity,
    Room,
    Scene,
    Series,
    State,
    Step,
    Usage,
)
from callwright_plugins.mcp_environments.people import full_name
from callwright_plugins.mcp_environments.times import DAY, HOUR, MINUTE

_ROOMS: Final = (
    ("Hall", 0),
    ("Living room", 0),
    ("Kitchen", 0),
    ("Study", 0),
    ("Garage", 0),
    ("Bedroom", 1),
    ("Nursery", 1),
    ("Guest room", 1),
    ("Bathroom", 1),
    ("Attic", 2),
    ("Garden", 0),
    ("Terrace", 0),
)
_ALL_MODES: Final[tuple[Mode, ...]] = ("off", "heat", "cool", "auto", "eco")
_RADIATOR: Final[tuple[Mode, ...]] = ("off", "heat", "eco")
_CAPABILITIES: Final[dict[Kind, tuple[Capability, ...]]] = {
    "light": ("switch",),
    "plug": ("switch",),
    "fan": ("switch", "speed"),
    "thermostat": ("mode",),
    "cover": ("position",),
    "lock": ("lock",),
    "sensor": ("sense",),
}


class _House:
    """Rows of a house in the making; ids are given in the order in which they are asked for."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self._last: dict[type[Any], int] = {}

    def number(self, kind: type[Any]) -> str:
        """The next id, as :meth:`callwright.World.new_id` writes it."""
        self._last[kind] = self._last.get(kind, 0) + 1
        return table_of(kind).identifier(self._last[kind])

    def add(self, row: Any) -> Any:
        """Keep a row."""
        self.rows.append(row)
        return row

    def device(
        self,
        name: str,
        room: Room,
        kind: Kind,
        *,
        extra: tuple[Capability, ...] = (),
        online: bool = True,
        watts: int = 0,
        modes: tuple[Mode, ...] = (),
        mode: Mode = "off",
        on: bool = False,
        awning: bool = False,
        obstacle: int = 0,
        position: int = 0,
        days: int = 7,
    ) -> Device:
        """A device, how it is set, and what it drew in the last days."""
        rng = self.rng
        device: Device = self.add(
            Device(
                id=self.number(Device),
                name=name,
                room_id=room.id,
                type=kind,
                capabilities=(*_CAPABILITIES[kind], *extra),
                online=online,
                watts=watts,
                modes=modes,
                min_brightness=rng.choice((1, 5, 10)) if "brightness" in extra else 0,
                max_speed=rng.choice((3, 4, 5)) if kind == "fan" else 0,
                awning=awning,
                obstacle=obstacle,
            )
        )
        drawn = watts // device.max_speed if device.max_speed else watts
        usage = ""
        if watts:
            for day in range(days, 0, -1):
                start = NOW - day * DAY + rng.randrange(0, 18 * 60) * MINUTE
                self.add(Usage(self.number(Usage), device.id, start, start + rng.randint(10, 300) * MINUTE, drawn))
        since = NOW - rng.randrange(5, 60) * MINUTE
        if on or mode not in ("off", "eco"):
            usage = self.add(Usage(self.number(Usage), device.id, since, None, drawn)).id
        self.add(
            State(
                id=device.id,
                on=on,
                brightness=100,
                color="",
                color_temperature_k=2700,
                mode=mode,
                target_tenths=210,
                speed=1,
                position=position,
                changed_at=since,
                usage_id=usage,
            )
        )
        return device

    def sensor(
        self,
        name: str,
        room: Room,
        quantity: Quantity,
        base: int,
        swing: int = 0,
        noise: int = 0,
        *,
        online: bool = True,
    ) -> Device:
        """A sensor and how its values go."""
        device = self.device(name, room, "sensor", online=online)
        units = {"temperature": "°C", "humidity": "%", "motion": "", "contact": "", "wind": "km/h"}
        peak = {"temperature": 15, "humidity": 6, "motion": 19, "contact": 0, "wind": 14}[quantity]
        self.add(Series(device.id, quantity, units[quantity], base, swing, noise, peak))
        return device

    def lock(self, name: str, room: Room, code: str, *, exterior: bool = True, **flags: bool) -> Device:
        """A lock with the sensor of its door and a history."""
        contact = self.sensor(f"{name} contact", room, "contact", 10 if flags.get("door_open") else 0)
        device = self.device(f"{name} lock", room, "lock", online=not flags.get("offline"))
        locked = flags.get("locked", True)
        self.add(Lock(device.id, locked, bool(flags.get("jammed")), exterior, code, 0, 0, contact.id))
        for day in range(3, 0, -1):
            for hour, event in ((8, "unlocked"), (22, "locked")):
                at = NOW - day * DAY + (hour - 9) * HOUR
                self.add(
                    LockEntry(
                        self.number(LockEntry), device.id, at, "locked" if event == "locked" else "unlocked", "me"
                    )
                )
        return device

    def scene(self, name: str, steps: Sequence[Step]) -> Scene:
        """A scene."""
        made: Scene = self.add(Scene(self.number(Scene), name, tuple(steps)))
        return made

    def automation(self, name: str, **fields: Any) -> None:
        """An automation; fields that are not given say nothing."""
        defaults: dict[str, Any] = {
            "trigger": "daily",
            "minute": 0,
            "days": (),
            "source_id": "",
            "event": None,
            "scene_id": "",
            "steps": (),
            "created_at": NOW - 30 * DAY,
            "last_run_at": None,
            "last_skipped": 0,
        }
        self.add(Automation(id=self.number(Automation), name=name, **{**defaults, **fields}))

    def home(self, name: str, mode: AlarmMode, code: str) -> None:
        """The person and the alarm."""
        self.add(Profile("me", name, "Home", NOW))
        self.add(Alarm(ALARM, mode, code, 0, 0, NOW - 10 * HOUR, ()))


def _furnish(house: _House, room: Room, *, offline: float) -> None:
    """The usual devices of a room; ``offline`` is the share of them that does not answer."""
    rng, name = house.rng, room.name

    def online() -> bool:
        return rng.random() >= offline

    house.device(
        f"{name} ceiling light",
        room,
        "light",
        extra=("brightness", "color_temperature"),
        watts=12,
        on=rng.random() < 0.3,
        online=online(),
    )
    house.device(
        f"{name} lamp", room, "light", extra=("brightness", "color", "color_temperature"), watts=9, online=online()
    )
    house.device(
        f"{name} socket", room, "plug", watts=rng.choice((40, 120, 1500)), on=rng.random() < 0.2, online=online()
    )
    if name not in ("Garden", "Terrace", "Garage"):
        cooled = rng.random() < 0.5
        mode: Mode = rng.choice(("off", "heat", "eco"))
        house.device(
            f"{name} thermostat",
            room,
            "thermostat",
            watts=900,
            modes=_ALL_MODES if cooled else _RADIATOR,
            mode=mode,
            online=online(),
        )
        house.device(f"{name} blind", room, "cover", position=rng.choice((0, 50, 100)), online=online())
        house.device(f"{name} fan", room, "fan", watts=60, on=rng.random() < 0.2, online=online())
        house.sensor(f"{name} window", room, "contact", 10 if rng.random() < 0.1 else 0, online=online())
    house.sensor(f"{name} temperature", room, "temperature", rng.randint(170, 220), 20, 3, online=online())
    house.sensor(f"{name} humidity", room, "humidity", rng.randint(400, 600), 60, 10, online=online())
    house.sensor(f"{name} motion", room, "motion", -5, 10, 4, online=online())


def _typical(rng: Random, scale: float) -> Iterable[Any]:
    house = _House(rng)
    house.home(full_name(rng), "disarmed", "2468")
    rooms = []
    for n in range(max(len(_ROOMS), round(len(_ROOMS) * scale))):
        name, floor = _ROOMS[n % len(_ROOMS)]
        again = f" {n // len(_ROOMS) + 1}" if n >= len(_ROOMS) else ""
        rooms.append(house.add(Room(house.number(Room), f"{name}{again}", floor)))
    for room in rooms:
        _furnish(house, room, offline=0.06)
    by_name = {room.name: room for room in rooms}
    front = house.lock("Front door", by_name["Hall"], "1379")
    house.lock("Terrace door", by_name["Living room"], "8642", locked=False)
    house.lock("Study door", by_name["Study"], "5050", exterior=False)
    house.lock("Garage side door", by_name["Garage"], "7711", jammed=True)
    house.device("Garage door", by_name["Garage"], "cover", obstacle=15, position=80)
    house.device("Terrace awning", by_name["Terrace"], "cover", awning=True)
    house.sensor("Wind gauge", by_name["Garden"], "wind", 250, 120, 40)
    house.sensor("Study bay window", by_name["Study"], "contact", 10)
    house.sensor("Garage window", by_name["Garage"], "contact", 0, online=False)
    ids = {one.name: one.id for one in house.rows if isinstance(one, Device)}
    lights = [one.id for one in house.rows if isinstance(one, Device) and one.type == "light"]
    night = house.scene("Good night", [*((name, "turn_off", None) for name in lights), (front.id, "lock", None)])
    house.scene(
        "Movie",
        [
            (ids["Living room lamp"], "turn_on", None),
            (ids["Living room lamp"], "set_brightness", 20),
            (ids["Living room ceiling light"], "turn_off", None),
            (ids["Living room blind"], "set_position", 0),
        ],
    )
    house.scene(
        "Leave home",
        [
            *((name, "turn_off", None) for name in lights),
            *(
                (ids[f"{name} thermostat"], "set_thermostat_mode", "eco")
                for name in ("Living room", "Study", "Bedroom")
            ),
            (front.id, "lock", None),
        ],
    )
    house.scene(
        "Warm study",
        [(ids["Study thermostat"], "set_thermostat_mode", "heat"), (ids["Study thermostat"], "set_temperature", 215)],
    )
    house.automation("Night", minute=23 * 60, days=tuple(range(7)), scene_id=night.id)
    house.automation(
        "Morning light", minute=390, days=(0, 1, 2, 3, 4), steps=((ids["Kitchen ceiling light"], "turn_on", None),)
    )
    house.automation(
        "Hall light when the door is unlocked",
        trigger="device",
        source_id=front.id,
        event="unlocked",
        steps=((ids["Hall ceiling light"], "turn_on", None),),
    )
    house.automation("All off when away", trigger="alarm", event="armed_away", scene_id=night.id)
    return house.rows


def _sparse(rng: Random, scale: float) -> Iterable[Any]:
    house = _House(rng)
    house.home(full_name(rng), "disarmed", "1111")
    for number in range(max(1, round(scale))):
        room = house.add(Room(house.number(Room), f"Room {number + 1}", 0))
        house.device(f"Lamp {number + 1}", room, "light", extra=("brightness",), watts=8, days=0)
        house.sensor(f"Thermometer {number + 1}", room, "temperature", 200, 10, 2)
    return house.rows


def _adversarial(rng: Random, scale: float) -> Iterable[Any]:
    house = _House(rng)
    house.home("Ada Berg", "armed_home", "9876")
    # Rooms and devices with the same names on two floors, and a third of them offline.
    rooms = []
    for n in range(max(8, round(8 * scale))):
        rooms.append(house.add(Room(house.number(Room), ("Bedroom", "Bathroom")[n % 2], n // 2 % 3)))
        _furnish(house, rooms[-1], offline=0.35)
    first, last = rooms[0], rooms[-1]
    house.lock("Front door", first, "1234", locked=False, door_open=True)
    house.lock("Front door", last, "1235")
    house.lock("Back door", first, "4321", jammed=True)
    house.lock("Side door", first, "4322", offline=True)
    house.lock("Cellar door", first, "4323", exterior=False)
    house.device("Shutter", first, "cover", obstacle=40, position=100)
    house.device("Shutter", last, "cover", online=False)
    house.device("Awning", first, "cover", awning=True)
    house.sensor("Wind gauge", last, "wind", 620, 20, 10)
    dead = [one.id for one in house.rows if isinstance(one, Device) and not one.online and "switch" in one.capabilities]
    alive = [one.id for one in house.rows if isinstance(one, Device) and one.online and "switch" in one.capabilities]
    house.scene("Evening", [(name, "turn_on", None) for name in dead])
    house.scene("Evenings", [(name, "turn_on", None) for name in (*dead[:2], *alive[:3])])
    bright = [
        one.id for one in house.rows if isinstance(one, Device) and one.online and "brightness" in one.capabilities
    ]
    house.scene("Dim", [(name, "set_brightness", 10) for name in bright])
    house.automation("Soon", minute=9 * 60 + 1, days=(0,), steps=((alive[0], "turn_on", None),))
    house.automation("Just now", minute=9 * 60, days=(0,), steps=((alive[1], "turn_on", None),))
    house.automation("Nothing works", minute=10 * 60, days=tuple(range(7)), steps=((dead[0], "turn_on", None),))
    return house.rows


SCENARIOS: Final = {
    "typical": Scenario(_typical, "a house of twelve rooms with some 120 devices, four scenes, four automations"),
    "sparse": Scenario(_sparse, "a flat with one lamp and one thermometer: no locks, scenes or automations"),
    "adversarial": Scenario(
        _adversarial, "namesakes on three floors, a third offline, an armed alarm, jammed and open doors, a storm"
    ),
}
