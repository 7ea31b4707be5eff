"""Worlds to travel in: a region of cities with an island, a single village, and one full of traps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random
from typing import Any, Final

from callwright.environments.stateful import Scenario
from callwright_plugins.mcp_environments.maps.geometry import distance_m
from callwright_plugins.mcp_environments.maps.rows import CELL, Category, Cell, Edge, Node, Place, Profile, SavedPlace
from callwright_plugins.mcp_environments.people import CITIES, LAST

_CATEGORIES: Final = {
    "cafe": ("Café", ("Corner Café", "Café {name}", "Bean & {name}")),
    "restaurant": ("Restaurant", ("Trattoria {name}", "{name}'s Kitchen", "The Hungry {name}")),
    "supermarket": ("Supermarket", ("{name} Market", "Fresh & {name}")),
    "pharmacy": ("Pharmacy", ("{name} Pharmacy",)),
    "hospital": ("Hospital", ("{name} Hospital",)),
    "fuel": ("Fuel station", ("{name} Fuel",)),
    "hotel": ("Hotel", ("Hotel {name}", "{name} Inn")),
    "museum": ("Museum", ("{name} Museum",)),
    "park": ("Park", ("{name} Park",)),
    "station": ("Station", ("{city} Central",)),
    "library": ("Library", ("{name} Library",)),
    "gym": ("Gym", ("{name} Fitness",)),
}
_STREETS: Final = tuple(
    "Birch Street,Oak Avenue,Mill Lane,Station Road,Church Street,Harbor Road,Park Avenue,High Street,River Walk,"
    "Garden Lane,Bridge Street,Market Square,Castle Road,School Lane,King Street,Queen Street".split(",")
)
_ALL: Final = ("drive", "walk", "bicycle", "transit")
_ON_FOOT: Final = ("walk", "bicycle", "transit")
_STEP: Final = 0.0025  # degrees between junctions of a city: about 280 m from north to south


class _Map:
    """Rows of a map while it is drawn."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.places: list[Place] = []
        self.zones: list[tuple[float, int]] = []

    def node(self, lat: float, lon: float) -> Node:
        node = Node(f"N{len(self.nodes) + 1:05d}", round(lat, 5), round(lon, 5))
        self.nodes.append(node)
        return node

    def way(
        self,
        one: Node,
        other: Node,
        name: str,
        kind: str,
        speed: int,
        modes: tuple[str, ...],
        *,
        toll: bool = False,
        both: bool = True,
    ) -> None:
        length = max(1, round(distance_m(one.lat, one.lon, other.lat, other.lon) * self.rng.uniform(1.0, 1.15)))
        for source, target in ((one, other), (other, one))[: 2 if both else 1]:
            number = len(self.edges) + 1
            self.edges.append(Edge(f"E{number:05d}", source.id, target.id, name, kind, length, speed, modes, toll))

    def city(self, name: str, lat: float, lon: float, size: int) -> list[list[Node]]:
        """A grid of streets, some of them one-way, some only for those who walk or cycle."""
        rng = self.rng
        grid = [
            [self.node(lat + _STEP * (a + rng.uniform(-0.2, 0.2)), lon + _STEP * (b + rng.uniform(-0.2, 0.2)))
             for b in range(size)] for a in range(size)
        ]  # fmt: skip
        names = rng.sample(_STREETS, len(_STREETS))
        for a in range(size):
            for b in range(size):
                for other_a, other_b, street in ((a, b + 1, names[a % 8]), (a + 1, b, names[8 + b % 8])):
                    if other_a >= size or other_b >= size:
                        continue
                    one, other, draw = grid[a][b], grid[other_a][other_b], rng.random()
                    if draw < 0.08:
                        self.way(one, other, f"{street} footpath", "path", 5, _ON_FOOT)
                    elif draw < 0.2:
                        self.way(one, other, street, "street", 30, ("drive", "bicycle"), both=False)
                        self.way(one, other, street, "pavement", 5, ("walk", "transit"))
                    else:
                        self.way(one, other, street, "street", rng.choice((30, 50, 50)), _ALL)
        line = [grid[a][a] for a in range(size)]
        for one, other in zip(line[::2], line[2::2], strict=False):
            self.way(one, other, f"{name} tram 1", "line", 25, ("transit",))
        return grid

    def houses(self, name: str, grid: list[list[Node]], count: int) -> None:
        rng = self.rng
        near = {node.id: node for line in grid for node in line}
        streets: dict[str, list[Node]] = {}
        for edge in self.edges:
            if edge.source in near and edge.kind == "street":
                streets.setdefault(edge.name, []).append(near[edge.source])
        taken: set[tuple[str, int]] = set()
        for number in range(count):
            street = rng.choice(sorted(streets))
            node, house = rng.choice(streets[street]), rng.randrange(1, 60)
            if (street, house) in taken:
                continue
            taken.add((street, house))
            category = "address" if number % 5 < 2 else rng.choice(tuple(_CATEGORIES))
            self.place(category, street, house, name, node)

    def place(self, category: str, street: str, house: int, city: str, node: Node, name: str = "") -> Place:
        rng = self.rng
        if not name:
            form = "House" if category == "address" else rng.choice(_CATEGORIES[category][1])
            name = form.format(name=rng.choice(LAST), city=city)
        if category in ("address", "park", "hospital", "station"):
            opens = closes = 0
        else:
            opens, closes = rng.choice(((480, 1080), (540, 1200), (600, 1320), (1080, 120)))
        place = Place(
            f"P{len(self.places) + 1:05d}",
            name,
            category,
            street,
            house,
            city,
            round(node.lat + rng.uniform(-0.0006, 0.0006), 5),
            round(node.lon + rng.uniform(-0.0006, 0.0006), 5),
            node.id,
            0.0 if category == "address" else round(rng.uniform(2.0, 5.0), 1),
            opens,
            closes,
        )
        self.places.append(place)
        return place

    def cells(self, margin: int = 1) -> Iterable[Cell]:
        """Every cell that holds a junction, and those around; the time zone changes with the longitude."""
        wanted = set()
        for node in self.nodes:
            row, column = math.floor(node.lat / CELL), math.floor(node.lon / CELL)
            wanted |= {(row + a, column + b) for a in range(-margin, margin + 1) for b in range(-margin, margin + 1)}
        for row, column in sorted(wanted):
            height = 350 + 300 * math.sin(row / 7) + 150 * math.cos(column / 5)
            yield Cell(row, column, max(0, round(height)), 60 if column * CELL < 12.0 else 120)

    def rows(self, home: str, saved: Iterable[SavedPlace]) -> Iterable[Any]:
        yield from (Category(key, name) for key, (name, _) in _CATEGORIES.items())
        yield Category("address", "House")
        yield from self.nodes
        yield from self.edges
        yield from self.places
        yield from self.cells()
        yield from saved
        yield Profile("me", "You", home)


def _saved(number: int, label: str, place: Place) -> SavedPlace:
    return SavedPlace(f"SV{number:05d}", label, place.lat, place.lon, place.id)


def typical(rng: Random, scale: float) -> Iterable[Any]:
    """Six cities in two time zones, joined by roads, a motorway with a toll, a railway; one of them on an island."""
    drawn = _Map(rng)
    size = max(3, round(7 * math.sqrt(scale)))
    names = rng.sample(CITIES, 6)
    grids = []
    for number, name in enumerate(names):
        lat = 47.5 + 0.16 * (number % 3) + rng.uniform(0, 0.03)
        lon = 11.7 + 0.42 * (number // 3) + rng.uniform(0, 0.05)
        grids.append(drawn.city(name, lat, lon, size))
    centres = [grid[size // 2][size // 2] for grid in grids]
    for one, other in ((0, 1), (1, 2), (3, 4), (0, 3), (1, 4)):  # the last city is an island
        a, b = centres[one], centres[other]
        drawn.way(a, b, f"{names[one]}-{names[other]} road", "road", 80, ("drive", "bicycle", "walk"))
        drawn.way(a, b, f"Railway {names[one]}-{names[other]}", "line", 110, ("transit",))
    for one, other, toll in ((0, 2, True), (2, 4, False)):
        drawn.way(grids[one][0][0], grids[other][0][0], f"Motorway {one + 1}", "motorway", 120, ("drive",), toll=toll)
    drawn.way(grids[4][-1][-1], grids[5][0][0], f"Ferry to {names[5]}", "ferry", 30, ("walk", "bicycle", "transit"))
    for name, grid in zip(names, grids, strict=True):
        drawn.houses(name, grid, max(8, round(110 * scale)))
    homes = [place for place in drawn.places if place.category == "address" and place.city == names[0]]
    others = rng.sample([place for place in drawn.places if place.category != "address"], 3)
    saved = [_saved(number, f"{place.name} ({place.city})", place) for number, place in enumerate(others, 1)]
    return drawn.rows(homes[0].id if homes else drawn.places[0].id, saved)


def sparse(rng: Random, scale: float) -> Iterable[Any]:
    """A village with two streets, three houses and a café; no home, nothing saved."""
    drawn = _Map(rng)
    grid = [[drawn.node(47.5, 11.5), drawn.node(47.5, 11.504)], [drawn.node(47.503, 11.5)]]
    drawn.way(grid[0][0], grid[0][1], "High Street", "street", 50, _ALL)
    drawn.way(grid[0][0], grid[1][0], "Mill Lane footpath", "path", 5, ("walk",))
    drawn.place("cafe", "High Street", 1, "Eastvale", grid[0][1])
    for number in range(max(3, round(3 * scale))):
        drawn.place("address", "High Street", 2 + number, "Eastvale", grid[number % 2][0])
    return drawn.rows("", ())


def adversarial(rng: Random, scale: float) -> Iterable[Any]:
    """Traps: towns and streets of the same names, one-way rings, roads that end, a town that no car reaches."""
    drawn = _Map(rng)
    size = max(3, round(4 * math.sqrt(scale)))
    names = ("Westbrook", "Westbrook", "West Brook", "Westbrooke")
    grids = [
        drawn.city(name, 47.5 + 0.08 * (number % 2), 11.9 + 0.15 * (number // 2), size)
        for number, name in enumerate(names)
    ]
    drawn.way(grids[0][0][0], grids[1][0][0], "Toll Road", "motorway", 130, ("drive",), toll=True)
    drawn.way(grids[0][1][1], grids[1][1][1], "Old Road", "road", 60, ("drive", "bicycle"))
    drawn.way(grids[0][1][1], grids[2][1][1], "One Way Out", "road", 60, ("drive",), both=False)
    drawn.way(grids[1][1][1], grids[3][1][1], "Pilgrims' Path", "path", 5, ("walk",))
    lonely = drawn.node(47.45, 12.2)
    for name, grid in zip(names, grids, strict=True):
        first = grid[0][0]
        for house in range(1, max(3, round(20 * scale))):
            drawn.place("address", "High Street", house, name, grid[house % size][house % size])
            drawn.place("cafe", "High Street", house + 100, name, first, name="Corner Café")
    hermit = drawn.place("museum", "Nowhere Lane", 1, "Westbrook", lonely, name="Hermitage")
    saved = [_saved(number, f"Café {number}", drawn.places[1]) for number in range(1, 50)]
    return drawn.rows("SV00001", [*saved, _saved(50, "Hermit", hermit)])


SCENARIOS: Final = {
    "typical": Scenario(typical, "six cities in two time zones with roads, motorways, trams, railways and an island"),
    "sparse": Scenario(sparse, "a village with one café and nothing saved"),
    "adversarial": Scenario(adversarial, "towns and streets of like names, one-way roads, a full list of saved places"),
}
