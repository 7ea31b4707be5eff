"""Where cities lie, how far apart, how high, how large, and what time it is there."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal

from typing_extensions import TypedDict

from callwright_plugins.depthbench.toolkit import CityName, Clock, Domain, clock, fail, minutes, says, the_city

DOMAIN: Final = Domain("maps")
MODES: Final = {"train": 120.0, "car": 85.0, "bicycle": 18.0, "walking": 5.0}
Mode = Literal["train", "car", "bicycle", "walking"]


class Coordinates(TypedDict):
    """Degrees north and east."""

    latitude: Annotated[float, says(minimum=-90, maximum=90)]
    longitude: Annotated[float, says(minimum=-180, maximum=180)]


class Position(TypedDict):
    """Where a place is."""

    place: CityName
    coordinates: Coordinates


class Distance(TypedDict):
    """How far apart two points are."""

    start: Coordinates
    end: Coordinates
    kilometres: float


class Bearing(TypedDict):
    """In which direction a point lies."""

    start: Coordinates
    end: Coordinates
    degrees: int
    direction: str


class TravelTime(TypedDict):
    """How long a way takes."""

    kilometres: float
    mode: Mode
    minutes: int


class TimeZone(TypedDict):
    """Hours from UTC, summer time aside."""

    place: CityName
    utc_offset_hours: int


class Elevation(TypedDict):
    """Height above the sea."""

    place: CityName
    metres: int


class Population(TypedDict):
    """Inhabitants."""

    place: CityName
    thousands: int


class ClockElsewhere(TypedDict):
    """A time of day in another city."""

    clock: Clock
    source: CityName
    target: CityName
    result: Clock


@DOMAIN.tool("information", "coordinates")
def coordinates_of(place: CityName) -> Position:
    """Latitude and longitude of a city."""
    city = the_city(place)
    return {"place": place, "coordinates": {"latitude": city.latitude, "longitude": city.longitude}}


@DOMAIN.tool("information", "kilometres")
def distance_between(start: Coordinates, end: Coordinates) -> Distance:
    """The distance between two points as the crow flies, in kilometres."""
    north, north_too = math.radians(start["latitude"]), math.radians(end["latitude"])
    east = math.radians(end["longitude"] - start["longitude"])
    half = math.sin((north_too - north) / 2) ** 2 + math.cos(north) * math.cos(north_too) * math.sin(east / 2) ** 2
    return {"start": start, "end": end, "kilometres": round(12742 * math.asin(min(1.0, math.sqrt(half))), 1)}


@DOMAIN.tool("information")
def bearing_between(start: Coordinates, end: Coordinates) -> Bearing:
    """In which direction one has to set out from one point to another. Fails if they are the same."""
    if start == end:
        fail("same_place", "both points are the same")
    north, north_too = math.radians(start["latitude"]), math.radians(end["latitude"])
    east = math.radians(end["longitude"] - start["longitude"])
    y = math.sin(east) * math.cos(north_too)
    x = math.cos(north) * math.sin(north_too) - math.sin(north) * math.cos(north_too) * math.cos(east)
    degrees = round(math.degrees(math.atan2(y, x))) % 360
    direction = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")[
        (degrees + 22) // 45 % 8
    ]
    return {"start": start, "end": end, "degrees": degrees, "direction": direction}


@DOMAIN.tool("information", "minutes")
def travel_time(kilometres: Annotated[float, says(minimum=0, maximum=50_000)], mode: Mode) -> TravelTime:
    """How many minutes a distance takes by train, car, bicycle or on foot."""
    return {"kilometres": kilometres, "mode": mode, "minutes": round(kilometres / MODES[mode] * 60)}


@DOMAIN.tool("information", "utc_offset_hours")
def timezone_of(place: CityName) -> TimeZone:
    """The hours by which the clocks of a city differ from UTC in winter."""
    return {"place": place, "utc_offset_hours": the_city(place).offset}


@DOMAIN.tool("information", "metres")
def elevation_of(place: CityName) -> Elevation:
    """How many metres a city lies above the sea."""
    return {"place": place, "metres": the_city(place).elevation}


@DOMAIN.tool("information", "thousands")
def population_of(place: CityName) -> Population:
    """How many thousand people live in a city."""
    return {"place": place, "thousands": the_city(place).population}


@DOMAIN.tool("information", "result")
def clock_elsewhere(clock: Clock, source: CityName, target: CityName) -> ClockElsewhere:
    """The time of day in one city when it is a given time of day in another, summer time aside."""
    first, second = the_city(source), the_city(target)
    if source == target:
        fail("same_place", "both cities are the same")
    return {"clock": clock, "source": source, "target": target, "result": _shift(clock, second.offset - first.offset)}


def _shift(time: str, hours: int) -> str:
    return clock((minutes(time) + 60 * hours) % 1440)
