"""Locations as text, distances on the sphere, cells."""

from __future__ import annotations

import math
import re
from typing import Annotated, Final

from attrs import frozen
from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.maps.rows import CELL, Cell, Node, Place, Profile, SavedPlace

#: Mean radius of the earth, in metres.
EARTH_M: Final = 6_371_008.8
#: Farther from any junction than this, a point is on no road.
SNAP_M: Final = 3000.0
_POINT: Final = re.compile(r"\s*(-?\d{1,3}(?:\.\d{1,12})?)\s*,\s*(-?\d{1,3}(?:\.\d{1,12})?)\s*")

#: A parameter that says where.
Location = Annotated[
    str,
    Field(min_length=1, max_length=60, description="home, the id of a place or saved place, or latitude,longitude."),
]


@frozen
class Point:
    """Where a location is; ``node`` is its junction where it is known without looking for it."""

    lat: float
    lon: float
    name: str
    node: str = ""

    @property
    def text(self) -> str:
        return f"{self.lat:.5f},{self.lon:.5f}"


def distance_m(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """The length of the great circle between two points in metres (haversine formula)."""
    a, b = math.radians(lat), math.radians(other_lat)
    half = math.sin((b - a) / 2) ** 2
    half += math.cos(a) * math.cos(b) * math.sin(math.radians(other_lon - lon) / 2) ** 2
    return 2 * EARTH_M * math.asin(min(1.0, math.sqrt(half)))


def bearing_degrees(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    """The direction in which the great circle begins, clockwise from north, from 0 to below 360."""
    a, b, turn = math.radians(lat), math.radians(other_lat), math.radians(other_lon - lon)
    east = math.sin(turn) * math.cos(b)
    north = math.cos(a) * math.sin(b) - math.sin(a) * math.cos(b) * math.cos(turn)
    degrees = math.degrees(math.atan2(east, north)) % 360.0
    return degrees if degrees < 360.0 else 0.0  # -1e-20 % 360.0 is 360.0


def cell_at(world: World, lat: float, lon: float) -> Cell:
    """The cell of a point; OUT_OF_COVERAGE where the map has none."""
    key = (math.floor(lat / CELL), math.floor(lon / CELL))
    return world.need(Cell, key, "OUT_OF_COVERAGE", f"the map does not cover {lat:.5f},{lon:.5f}")


def point_of(world: World, location: str) -> Point:
    """What a location means: HOME_NOT_SET, NOT_FOUND, OUT_OF_COVERAGE, or BAD_LOCATION for text that is none."""
    if location == "home":
        home = world.need(Profile, "me").home
        if not home:
            raise ToolError("HOME_NOT_SET", "no home is set; set_home sets it")
        location = home
    match = _POINT.fullmatch(location)
    if match:
        lat, lon = float(match[1]), float(match[2])
        if abs(lat) > 90 or abs(lon) > 180:
            raise ToolError("BAD_LOCATION", f"{location!r}: latitude is within 90 degrees, longitude within 180")
        cell_at(world, lat, lon)
        return Point(lat, lon, f"{lat:.5f},{lon:.5f}")
    saved = world.get(SavedPlace, location)
    if saved is not None:
        place = world.get(Place, saved.place) if saved.place else None
        return Point(saved.lat, saved.lon, saved.label, place.node if place else "")
    place = world.get(Place, location)
    if place is not None:
        return Point(place.lat, place.lon, place.name, place.node)
    if re.fullmatch(r"(P|SV)\d+", location):
        raise ToolError("NOT_FOUND", f"there is no place {location!r}; see search_places and list_saved_places")
    raise ToolError("BAD_LOCATION", f"{location[:60]!r} is no location; geocode finds the one of an address")


def node_of(world: World, point: Point) -> str:
    """The junction of a point, or the nearest one; NO_ROUTE if no road is near."""
    if point.node:
        return point.node
    scale = math.cos(math.radians(point.lat))
    nearest = min(
        world.rows(Node),
        key=lambda node: (node.lat - point.lat) ** 2 + ((node.lon - point.lon) * scale) ** 2,
        default=None,
    )
    if nearest is None or distance_m(point.lat, point.lon, nearest.lat, nearest.lon) > SNAP_M:
        raise ToolError("NO_ROUTE", f"there is no road within {SNAP_M:.0f} m of {point.name}")
    return nearest.id
