"""Shortest paths over the road graph (Dijkstra's algorithm with a heap)."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal

from attrs import frozen

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.maps.rows import Edge, Node

Mode = Literal["drive", "walk", "bicycle", "transit"]
Avoid = Literal["motorway", "toll", "ferry"]
Goal = Literal["time", "distance"]
#: By junction the edges that leave it: what each costs, where it leads, and itself.
Graph = dict[str, list[tuple[int, str, Edge]]]
#: Speeds of modes that do not depend on the road, in km/h.
SPEEDS: Final = {"walk": 5, "bicycle": 16}
#: Getting on a line or a ferry, and each stop of it, in seconds.
STOP_S: Final = 45
_AVOIDABLE: Final = ("motorway", "toll", "ferry")


@frozen
class Plan:
    """What a route is asked for."""

    mode: Mode
    goal: Goal
    avoid: tuple[Avoid, ...]

    def code(self, source: str, target: str) -> str:
        """The code of a route between two junctions: ``drive.time.mt.N00001.N00007``."""
        letters = "".join(kind[0] for kind in _AVOIDABLE if kind in self.avoid) or "-"
        return f"{self.mode}.{self.goal}.{letters}.{source}.{target}"


def read_code(world: World, code: str) -> tuple[Plan, str, str]:
    """What the code of a route says; BAD_ROUTE for text that compute_route did not give."""
    parts = code.split(".")
    if len(parts) == 5:
        mode, goal, letters, source, target = parts
        avoid = tuple(kind for kind in _AVOIDABLE if kind[0] in letters)
        fits = mode in ("drive", "walk", "bicycle", "transit") and goal in ("time", "distance")
        if fits and world.get(Node, source) is not None and world.get(Node, target) is not None:
            plan = Plan(mode, goal, avoid)  # type: ignore[arg-type]
            if plan.code(source, target) == code:
                return plan, source, target
    raise ToolError("BAD_ROUTE", f"{code[:60]!r} is no route_code of compute_route")


def seconds(edge: Edge, mode: str) -> int:
    """How long an edge takes in a mode, in whole seconds, at least 1."""
    if edge.kind in ("line", "ferry"):
        return max(1, round(edge.length_m * 3.6 / edge.speed_kmh)) + STOP_S
    speed = SPEEDS.get("walk" if mode == "transit" else mode, edge.speed_kmh)
    return max(1, round(edge.length_m * 3.6 / speed))


def usable(edge: Edge, plan: Plan) -> bool:
    """Whether a route may use an edge."""
    if plan.mode not in edge.modes or (edge.toll and "toll" in plan.avoid):
        return False
    return edge.kind not in plan.avoid


@lru_cache(maxsize=256)
def _graph_of(plan: Plan) -> Callable[[World], Graph]:
    """What makes the graph for a plan; the same function for the same plan, so that worlds remember its graph."""

    def graph(world: World) -> Graph:
        made: Graph = {}
        for edge in world.rows(Edge):
            if usable(edge, plan):
                cost = seconds(edge, plan.mode) if plan.goal == "time" else edge.length_m
                made.setdefault(edge.source, []).append((cost, edge.target, edge))
        return made

    return graph


def search(world: World, plan: Plan, source: str, targets: frozenset[str]) -> dict[str, tuple[int, Edge | None]]:
    """Cost and last edge of every junction that a search from ``source`` settled until it had all ``targets``.

    Of two paths of one cost the one is taken whose junctions come first, so that routes are the same everywhere.
    """
    graph = world.derived(_graph_of(plan), Edge)
    best: dict[str, tuple[int, Edge | None]] = {source: (0, None)}
    heap: list[tuple[int, str]] = [(0, source)]
    settled: dict[str, tuple[int, Edge | None]] = {}
    left = set(targets)
    while heap and left:
        cost, key = heapq.heappop(heap)
        if key in settled:
            continue
        settled[key] = best[key]
        left.discard(key)
        for costs, end, edge in graph.get(key, ()):
            if end in settled:
                continue
            further = cost + costs
            known = best.get(end)
            if known is None or further < known[0]:
                best[end] = (further, edge)
                heapq.heappush(heap, (further, end))
    return settled


def path(settled: dict[str, tuple[int, Edge | None]], target: str) -> list[Edge]:
    """The edges of the route to a settled junction, in order."""
    edges: list[Edge] = []
    edge = settled[target][1]
    while edge is not None:
        edges.append(edge)
        edge = settled[edge.source][1]
    return edges[::-1]


def route(world: World, plan: Plan, source: str, target: str) -> list[Edge]:
    """The edges of the best route; NO_ROUTE if there is none."""
    settled = search(world, plan, source, frozenset((target,)))
    if target not in settled:
        kinds = f" without {', '.join(plan.avoid)}" if plan.avoid else ""
        raise ToolError("NO_ROUTE", f"there is no {plan.mode} route from {source} to {target}{kinds}; try another mode")
    return path(settled, target)
