"""Tools for routes, distances and times of arrival."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.maps.finding import local_iso, usable_time
from callwright_plugins.mcp_environments.maps.geometry import (
    Location,
    bearing_degrees,
    cell_at,
    distance_m,
    node_of,
    point_of,
)
from callwright_plugins.mcp_environments.maps.routing import (
    Avoid,
    Goal,
    Mode,
    Plan,
    path,
    read_code,
    route,
    search,
    seconds,
)
from callwright_plugins.mcp_environments.maps.rows import Edge, Node
from callwright_plugins.mcp_environments.times import DAY, iso

#: Most pairs of a matrix.
LARGEST_MATRIX: Final = 100
#: Driving takes this many per cent more in the rush hours of the place of departure.
RUSH_PERCENT: Final = 35
ModeOf = Annotated[Mode, Field(description="How to travel.")]
AvoidOf = Annotated[list[Avoid], Field(max_length=3, description="What to stay off.")]
Places = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=60)]],
    Field(min_length=1, max_length=100, description="Locations, as for compute_route."),
]


class StepView(TypedDict):
    """A stretch on one road."""

    road: str
    kind: str
    distance_m: Annotated[int, Field(description="By road.")]
    duration_s: Annotated[int, Field(description="Without traffic.")]


class RouteView(TypedDict):
    """A route; ``route_code`` names it for estimate_arrival."""

    route_code: Annotated[str, Field(description="Names the route for estimate_arrival.")]
    mode: str
    origin: str
    destination: str
    distance_m: Annotated[int, Field(description="By road.")]
    duration_s: Annotated[int, Field(description="Without traffic.")]
    steps: list[StepView]


class CellView(TypedDict):
    """One pair of a matrix; ``None`` where there is no route."""

    distance_m: Annotated[int | None, Field(description="By road; null: no route.")]
    duration_s: Annotated[int | None, Field(description="null: no route.")]


class MatrixView(TypedDict):
    """``rows[i][j]`` is the way from origin i to destination j."""

    mode: str
    origins: list[str]
    destinations: list[str]
    rows: list[list[CellView]]


class DistanceView(TypedDict):
    """The way as the crow flies, and its direction clockwise from north."""

    distance_m: Annotated[int, Field(description="As the crow flies.")]
    bearing_degrees: Annotated[float, Field(description="Direction clockwise from north.")]


class ArrivalView(TypedDict):
    """When one arrives; local time is that of the destination."""

    departs: Annotated[str, Field(description="UTC.")]
    arrives: Annotated[str, Field(description="UTC.")]
    arrives_local: Annotated[str, Field(description="At the destination.")]
    duration_s: Annotated[int, Field(description="With traffic.")]
    traffic_s: Annotated[int, Field(description="Seconds that traffic adds.")]


def _steps(edges: list[Edge], mode: str) -> list[StepView]:
    steps: list[StepView] = []
    for edge in edges:
        took = seconds(edge, mode)
        if steps and steps[-1]["road"] == edge.name and steps[-1]["kind"] == edge.kind:
            steps[-1]["distance_m"] += edge.length_m
            steps[-1]["duration_s"] += took
        else:
            steps.append({"road": edge.name, "kind": edge.kind, "distance_m": edge.length_m, "duration_s": took})
    return steps


@tool(read_only=True)
def compute_route(
    world: World,
    /,
    destination: Location,
    origin: Location = "home",
    mode: ModeOf = "drive",
    optimise: Annotated[Goal, Field(description="What is to be least.")] = "time",
    avoid: AvoidOf = [],  # noqa: B006 (tools never change their arguments)
) -> RouteView:
    """The best route between two locations, road by road, without traffic. Fails with NO_ROUTE, HOME_NOT_SET,
    OUT_OF_COVERAGE, NOT_FOUND, BAD_LOCATION."""
    begin, end = point_of(world, origin), point_of(world, destination)
    source, target = node_of(world, begin), node_of(world, end)
    plan = Plan(mode, optimise, tuple(avoid))
    edges = route(world, plan, source, target)
    return {
        "route_code": plan.code(source, target),
        "mode": mode,
        "origin": begin.name,
        "destination": end.name,
        "distance_m": sum(edge.length_m for edge in edges),
        "duration_s": sum(seconds(edge, mode) for edge in edges),
        "steps": _steps(edges, mode),
    }


@tool(read_only=True)
def compute_route_matrix(
    world: World,
    /,
    origins: Places,
    destinations: Places,
    mode: ModeOf = "drive",
    avoid: AvoidOf = [],  # noqa: B006
) -> MatrixView:
    """Lengths and times of the quickest routes from every origin to every destination, at most 100 pairs
    (MATRIX_TOO_LARGE). Pairs without a route are null (partial, NO_ROUTE). Fails as compute_route for locations."""
    if len(origins) * len(destinations) > LARGEST_MATRIX:
        pairs = len(origins) * len(destinations)
        raise ToolError("MATRIX_TOO_LARGE", f"{pairs} pairs were asked for, and at most {LARGEST_MATRIX} are allowed")
    begins = [point_of(world, one) for one in origins]
    ends = [point_of(world, one) for one in destinations]
    targets = [node_of(world, end) for end in ends]
    plan = Plan(mode, "time", tuple(avoid))
    rows: list[list[CellView]] = []
    for begin in begins:
        settled = search(world, plan, node_of(world, begin), frozenset(targets))
        line: list[CellView] = []
        for target in targets:
            if target in settled:
                edges = path(settled, target)
                line.append({"distance_m": sum(edge.length_m for edge in edges), "duration_s": settled[target][0]})
            else:
                line.append({"distance_m": None, "duration_s": None})
        rows.append(line)
    missing = sum(cell["distance_m"] is None for line in rows for cell in line)
    if missing:
        world.warn("NO_ROUTE", f"{missing} of {len(begins) * len(ends)} pairs have no {mode} route")
    return {
        "mode": mode,
        "origins": [begin.name for begin in begins],
        "destinations": [end.name for end in ends],
        "rows": rows,
    }


@tool(read_only=True)
def get_distance(world: World, /, origin: Location, destination: Location) -> DistanceView:
    """The distance between two locations as the crow flies. Fails with OUT_OF_COVERAGE, HOME_NOT_SET, NOT_FOUND,
    BAD_LOCATION."""
    one, other = point_of(world, origin), point_of(world, destination)
    return {
        "distance_m": round(distance_m(one.lat, one.lon, other.lat, other.lon)),
        "bearing_degrees": round(bearing_degrees(one.lat, one.lon, other.lat, other.lon), 1) % 360.0,
    }


@tool(read_only=True)
def estimate_arrival(
    world: World,
    /,
    route_code: Annotated[str, Field(max_length=80, description="route_code that compute_route gave.")],
    depart_at: Annotated[str, Field(max_length=40, description="ISO 8601 time; empty: now.")] = "",
) -> ArrivalView:
    """When one arrives on a route, with traffic: driving takes 35 % longer if one departs on a working day between 7
    and 9 or 16 and 18 o'clock local time. Fails with BAD_ROUTE, PAST_TIME, BAD_TIME, NO_ROUTE."""
    plan, source, target = read_code(world, route_code)
    departs = usable_time(depart_at, world.now)
    if departs < world.now:
        raise ToolError("PAST_TIME", f"{depart_at} is before now, {iso(world.now)}")
    duration = sum(seconds(edge, plan.mode) for edge in route(world, plan, source, target))
    begin, end = world.need(Node, source), world.need(Node, target)
    local = departs + 60 * cell_at(world, begin.lat, begin.lon).utc_offset_minutes
    is_working_day = (local // DAY + 3) % 7 < 5  # 1 January 1970 was a Thursday
    hour = local % DAY // 3600
    rush = plan.mode == "drive" and is_working_day and hour in (7, 8, 16, 17)
    traffic = duration * RUSH_PERCENT // 100 if rush else 0
    arrives = departs + duration + traffic
    return {
        "departs": iso(departs),
        "arrives": iso(arrives),
        "arrives_local": local_iso(arrives, cell_at(world, end.lat, end.lon).utc_offset_minutes),
        "duration_s": duration + traffic,
        "traffic_s": traffic,
    }


TOOLS: Final[list[FunctionTool]] = [compute_route, compute_route_matrix, get_distance, estimate_arrival]
