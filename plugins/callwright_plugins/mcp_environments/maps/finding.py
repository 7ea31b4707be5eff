"""Tools that find places, addresses, elevations and time zones."""

from __future__ import annotations

import math
import re
from operator import itemgetter
from typing import Annotated, Final, NamedTuple

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.maps.geometry import Location, cell_at, distance_m, point_of
from callwright_plugins.mcp_environments.maps.rows import Category, Place
from callwright_plugins.mcp_environments.times import DAY, iso, parse_time

#: Candidates that an ambiguous address shows.
_CANDIDATES: Final = 10
#: The nearest address may be this far from a point.
_NEAR_M: Final = 500.0
CategoryKey = Annotated[str, Field(max_length=40, description="Key of a category; see list_place_categories.")]


class AddressView(TypedDict):
    """An address; give ``location`` to the tools for routes."""

    address: str
    city: str
    location: str
    place_id: str
    name: str


class GeocodeView(TypedDict):
    """What an address may mean, the best first, and how many there are in all."""

    results: list[AddressView]
    total: Annotated[int, Field(description="Of all results.")]


class NearestView(AddressView):
    """The nearest address, and how far it is."""

    distance_m: Annotated[int, Field(description="As the crow flies.")]


class CategoryView(TypedDict):
    """A category and the number of its places."""

    category: str
    name: str
    places: Annotated[int, Field(description="How many.")]


class PlaceLine(TypedDict):
    """A place in a list; ``distance_m`` only where a centre was given."""

    place_id: str
    name: str
    category: str
    address: str
    location: str
    rating: Annotated[float, Field(description="1 to 5 stars.")]
    distance_m: Annotated[int | None, Field(description="As the crow flies; null without a centre.")]


class PlaceView(PlaceLine):
    """A place with its hours in local time; ``open_now`` is as of the session's time."""

    opens: Annotated[str, Field(description="Local time.")]
    closes: Annotated[str, Field(description="Local time.")]
    open_now: bool
    timezone: str


class ElevationView(TypedDict):
    """The mean elevation of the cell of a location."""

    location: str
    elevation_m: int


class TimezoneView(TypedDict):
    """The time zone of a location, and what time it is there."""

    location: str
    timezone: str
    utc_offset_minutes: int
    local_time: Annotated[str, Field(description="At the location.")]


def zone_name(minutes: int) -> str:
    """``UTC+01:00``."""
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def local_iso(at: int, minutes: int) -> str:
    """The time with its offset: ``2026-03-02T10:00:00+01:00``."""
    return iso(at + 60 * minutes).removesuffix("Z") + zone_name(minutes)[3:]


def address_view(place: Place) -> AddressView:
    """The view of an address."""
    return {
        "address": place.address,
        "city": place.city,
        "location": f"{place.lat:.5f},{place.lon:.5f}",
        "place_id": place.id,
        "name": place.name,
    }


def _line(place: Place, distance: float | None = None) -> PlaceLine:
    return {
        "place_id": place.id,
        "name": place.name,
        "category": place.category,
        "address": place.address,
        "location": f"{place.lat:.5f},{place.lon:.5f}",
        "rating": place.rating,
        "distance_m": None if distance is None else round(distance),
    }


class _Written(NamedTuple):
    """A place with what searches read of it."""

    place: Place
    address: str
    text: str
    city: str


def _written(place: Place) -> _Written:
    address = f" {place.number} {place.street} {place.city} "
    return _Written(place, address.casefold(), f"{place.name} {place.street}".casefold(), place.city.casefold())


def _located(place: Place) -> tuple[float, float, Place]:
    return place.lat, place.lon, place


def _best_first(place: Place) -> float:
    return -place.rating


@tool(read_only=True)
def geocode(
    world: World,
    /,
    address: Annotated[str, Field(min_length=1, max_length=200, description="Address, or a part of it.")],
    city: Annotated[str, Field(max_length=60, description="Only in this city; empty for all.")] = "",
) -> GeocodeView:
    """Find the location of an address such as "12 Birch Street, Calder". Several that fit are a partial outcome
    (AMBIGUOUS) with candidates: give the number and the city. Fails with ADDRESS_NOT_FOUND."""
    words = re.findall(r"\w+", address.casefold())
    fitting = world.prepared(Place, _written) if words else ()
    for word in words:
        fitting = [one for one in fitting if f" {word} " in one.address]
    wanted = city.casefold()
    found = [one.place for one in fitting if not city or one.city == wanted]
    if not found:
        where = f" in {city}" if city else ""
        raise ToolError("ADDRESS_NOT_FOUND", f"no address fits {address[:80]!r}{where}; check its spelling")
    houses = {(place.address, place.node): place for place in reversed(found)}  # several places may share a house
    found = [place for place in found if houses[place.address, place.node] is place]
    if len(found) > 1:
        world.warn("AMBIGUOUS", f"{len(found)} addresses fit {address[:80]!r}; give the number and the city")
    return {"results": [address_view(place) for place in found[:_CANDIDATES]], "total": len(found)}


@tool(read_only=True)
def reverse_geocode(world: World, /, location: Location) -> NearestView:
    """The address that is nearest to a location, within 500 m. Fails with ADDRESS_NOT_FOUND, OUT_OF_COVERAGE,
    HOME_NOT_SET, NOT_FOUND, BAD_LOCATION."""
    point = point_of(world, location)
    wide = 0.01 / max(math.cos(math.radians(point.lat)), 1e-6)  # more than _NEAR_M, as 0.01 degrees of latitude are
    near = [
        (distance_m(point.lat, point.lon, lat, lon), place)
        for lat, lon, place in world.prepared(Place, _located)
        if abs(lat - point.lat) < 0.01 and (abs(lon - point.lon) < wide or abs(lon - point.lon) > 360 - wide)
    ]
    distance, nearest = min(near, key=itemgetter(0), default=(_NEAR_M + 1, None))
    if nearest is None or distance > _NEAR_M:
        raise ToolError("ADDRESS_NOT_FOUND", f"there is no address within {_NEAR_M:.0f} m of {point.name}")
    return {**address_view(nearest), "distance_m": round(distance)}


@tool(read_only=True, discovery=True)
def list_place_categories(world: World, /, limit: Limit = 50, cursor: Cursor = "") -> Page[CategoryView]:
    """List the categories of places with how many there are of each."""
    return page(
        list(world.rows(Category)),
        lambda one: {"category": one.key, "name": one.name, "places": world.count(Place, category=one.key)},
        limit,
        cursor,
    )


def _category(world: World, key: str) -> None:
    if key:
        world.need(Category, key, message=f"there is no category {key!r}; see list_place_categories")


@tool(read_only=True, discovery=True)
def search_places(
    world: World,
    /,
    query: Annotated[str, Field(max_length=100, description="Text in the name or street; empty for all.")] = "",
    category: CategoryKey = "",
    city: Annotated[str, Field(max_length=60, description="Only in this city.")] = "",
    min_rating: Annotated[float, Field(ge=0, le=5, description="Only with this rating or a better one.")] = 0,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[PlaceLine]:
    """Search places by name, category, city and rating; the best rated first. Houses without a place are left out.
    Fails with NOT_FOUND for a category that does not exist."""
    _category(world, category)
    wanted, in_city = query.casefold(), city.casefold()
    found = [
        one.place
        for one in world.prepared(Place, _written, _best_first)
        if wanted in one.text
        and (one.place.category == category if category else one.place.category != "address")
        and one.place.rating >= min_rating
        and (not city or one.city == in_city)
    ]
    return page(found, _line, limit, cursor)


@tool(read_only=True)
def places_nearby(
    world: World,
    /,
    location: Location,
    category: CategoryKey = "",
    radius_m: Annotated[int, Field(ge=1, le=50_000, description="How far as the crow flies, in metres.")] = 1000,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[PlaceLine]:
    """List the places around a location, the nearest first. Fails with OUT_OF_COVERAGE, HOME_NOT_SET, NOT_FOUND,
    BAD_LOCATION."""
    _category(world, category)
    point = point_of(world, location)
    band = radius_m / 111_000 + 0.001
    found = []
    for lat, lon, place in world.prepared(Place, _located):
        if abs(lat - point.lat) > band:
            continue
        if place.category == category if category else place.category != "address":
            distance = distance_m(point.lat, point.lon, lat, lon)
            if distance <= radius_m:
                found.append((distance, place))
    found.sort(key=itemgetter(0))
    return page(found, lambda pair: _line(pair[1], pair[0]), limit, cursor)


@tool(read_only=True)
def get_place(world: World, /, place_id: Annotated[str, Field(max_length=20, description="Id.")]) -> PlaceView:
    """A place with its opening hours. Fails with NOT_FOUND."""
    place = world.need(Place, place_id, message=f"there is no place {place_id!r}; see search_places")
    offset = cell_at(world, place.lat, place.lon).utc_offset_minutes
    minute = (world.now + 60 * offset) % DAY // 60
    always = place.opens == place.closes
    if place.opens <= place.closes:
        is_open = always or place.opens <= minute < place.closes
    else:  # past midnight
        is_open = minute >= place.opens or minute < place.closes
    return {
        **_line(place),
        "opens": _clock(place.opens),
        "closes": "24:00" if always else _clock(place.closes),
        "open_now": is_open,
        "timezone": zone_name(offset),
    }


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


@tool(read_only=True)
def get_elevation(world: World, /, location: Location) -> ElevationView:
    """The elevation at a location in metres above the sea. Fails with OUT_OF_COVERAGE, HOME_NOT_SET, NOT_FOUND,
    BAD_LOCATION."""
    point = point_of(world, location)
    return {"location": point.text, "elevation_m": cell_at(world, point.lat, point.lon).elevation_m}


@tool(read_only=True)
def get_timezone(
    world: World,
    /,
    location: Location,
    at: Annotated[str, Field(max_length=40, description="ISO 8601 time; empty: now.")] = "",
) -> TimezoneView:
    """The time zone at a location, and the local time there. Fails with OUT_OF_COVERAGE, BAD_TIME, HOME_NOT_SET,
    NOT_FOUND, BAD_LOCATION."""
    point = point_of(world, location)
    offset = cell_at(world, point.lat, point.lon).utc_offset_minutes
    moment = usable_time(at, world.now)
    return {
        "location": point.text,
        "timezone": zone_name(offset),
        "utc_offset_minutes": offset,
        "local_time": local_iso(moment, offset),
    }


def usable_time(text: str, now: int) -> int:
    """The seconds of a time, ``now`` for none; BAD_TIME also for years that no clock shows."""
    moment = parse_time(text) if text else now
    if not 0 <= moment < 250_000_000_000:
        raise ToolError("BAD_TIME", f"{text[:40]!r} is before 1970 or too far ahead")
    return moment


TOOLS: Final[list[FunctionTool]] = [
    geocode,
    reverse_geocode,
    list_place_categories,
    search_places,
    places_nearby,
    get_place,
    get_elevation,
    get_timezone,
]
