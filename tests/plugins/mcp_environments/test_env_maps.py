"""The maps environment: its surface, every failure, its golden edges, its routes against naive ones, its scenarios."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import pytest
from environment_sessions import code, executed
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright_plugins.mcp_environments.maps import environment
from callwright_plugins.mcp_environments.maps.geometry import EARTH_M, bearing_degrees, cell_at, distance_m
from callwright_plugins.mcp_environments.maps.routing import Plan, search, seconds, usable
from callwright_plugins.mcp_environments.maps.rows import Category, Edge, Node, Place, Profile, SavedPlace

READ_ONLY = (
    "geocode reverse_geocode list_place_categories search_places places_nearby get_place compute_route "
    "compute_route_matrix get_distance estimate_arrival get_elevation get_timezone list_saved_places"
).split()
DISCOVERY = "list_place_categories search_places list_saved_places".split()
MUTATING = "save_place delete_saved_place set_home".split()
MODES = ("drive", "walk", "bicycle", "transit")
ENV = environment()

Call = tuple[str, dict[str, Any]]


def test_surface() -> None:
    assert len(ENV.tools) == 16
    assert sorted(ENV.tools) == sorted(READ_ONLY + MUTATING)
    for mark, names in (("read_only", READ_ONLY), ("discovery", DISCOVERY), ("destructive", ["delete_saved_place"])):
        assert sorted(name for name, spec in ENV.tools.items() if getattr(spec, mark)) == sorted(names), mark


#: The scenario, the call and its code.
FAILURES: list[tuple[str, Call, str]] = [
    ("sparse", ("geocode", {"address": "99 High Street"}), "ADDRESS_NOT_FOUND"),
    ("sparse", ("geocode", {"address": "High Street", "city": "Calder"}), "ADDRESS_NOT_FOUND"),
    ("sparse", ("geocode", {"address": "?!"}), "ADDRESS_NOT_FOUND"),
    ("sparse", ("reverse_geocode", {"location": "47.54,11.54"}), "ADDRESS_NOT_FOUND"),
    ("sparse", ("reverse_geocode", {"location": "10,10"}), "OUT_OF_COVERAGE"),
    ("sparse", ("get_elevation", {"location": "0,0"}), "OUT_OF_COVERAGE"),
    ("sparse", ("get_timezone", {"location": "-47.5,11.5"}), "OUT_OF_COVERAGE"),
    ("sparse", ("set_home", {"location": "0,0"}), "OUT_OF_COVERAGE"),
    ("sparse", ("get_elevation", {"location": "91,0"}), "BAD_LOCATION"),
    ("sparse", ("get_elevation", {"location": "the café"}), "BAD_LOCATION"),
    ("sparse", ("compute_route", {"destination": "P00001"}), "HOME_NOT_SET"),
    ("sparse", ("set_home", {"location": "home"}), "HOME_NOT_SET"),
    ("sparse", ("compute_route", {"origin": "P00001", "destination": "P00003", "mode": "drive"}), "NO_ROUTE"),
    ("sparse", ("compute_route", {"origin": "P00001", "destination": "47.54,11.54", "mode": "walk"}), "NO_ROUTE"),
    ("sparse", ("compute_route", {"origin": "P00099", "destination": "P00001"}), "NOT_FOUND"),
    ("sparse", ("get_place", {"place_id": "P00099"}), "NOT_FOUND"),
    ("sparse", ("search_places", {"category": "zoo"}), "NOT_FOUND"),
    ("sparse", ("delete_saved_place", {"saved_id": "SV00001"}), "NOT_FOUND"),
    ("sparse", ("compute_route_matrix", {"origins": ["P00001"] * 11, "destinations": ["P00002"] * 10}),
     "MATRIX_TOO_LARGE"),
    ("sparse", ("estimate_arrival", {"route_code": "drive.time.-.N00001.N00009"}), "BAD_ROUTE"),
    ("sparse", ("estimate_arrival", {"route_code": "fly.time.-.N00001.N00002"}), "BAD_ROUTE"),
    ("sparse", ("estimate_arrival", {"route_code": "drive.time.mx.N00001.N00002"}), "BAD_ROUTE"),
    ("sparse", ("estimate_arrival", {"route_code": "drive.time.-.N00001.N00003"}), "NO_ROUTE"),
    ("sparse", ("estimate_arrival", {"route_code": "walk.time.-.N00001.N00002", "depart_at": "2026-03-02T08:59:59Z"}),
     "PAST_TIME"),
    ("sparse", ("get_timezone", {"location": "P00001", "at": "noon"}), "BAD_TIME"),
    ("sparse", ("get_timezone", {"location": "P00001", "at": "9999-12-31T23:59:59Z"}), "BAD_TIME"),
    ("adversarial", ("save_place", {"location": "P00001", "label": "CAFÉ 7"}), "LABEL_TAKEN"),
    ("adversarial", ("save_place", {"location": "P00001", "label": "new"}), "SAVED_LIMIT"),
    ("adversarial", ("delete_saved_place", {"saved_id": "SV00001"}), "IN_USE"),
    ("adversarial", ("compute_route", {"destination": "SV00050"}), "NO_ROUTE"),
    ("adversarial", ("search_places", {"cursor": "x"}), "BAD_CURSOR"),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "call", "expected"), FAILURES)
def test_failures_leave_the_state_untouched(scenario: str, call: Call, expected: str) -> None:
    assert code(ENV.open(scenario), call[0], **call[1]) == expected


def test_ambiguous_addresses_are_partial_and_the_city_settles_them() -> None:
    session = ENV.open("adversarial")
    outcome = session.call("geocode", {"address": "3 high street"})
    assert (outcome.kind, outcome.code) == ("partial", "AMBIGUOUS")
    assert outcome.value["total"] == 4  # two towns are called Westbrook; only their locations tell them apart
    assert {one["city"] for one in outcome.value["results"]} == {"Westbrook", "West Brook", "Westbrooke"}
    one = session.call("geocode", {"address": "3 High Street", "city": "westbrooke"})
    assert (one.kind, one.value["total"]) == ("ok", 1)
    assert executed(session, "geocode", address="High Street")["total"] > 10
    assert len(executed(session, "geocode", address="High Street")["results"]) == 10


def test_edge_geocode_then_route_then_arrival() -> None:
    session = ENV.open("typical")
    house = next(one for one in session.world.rows(Place) if one.category == "address")
    found = executed(session, "geocode", address=house.address)["results"][0]
    outcome = session.call("compute_route", {"destination": found["location"], "mode": "walk"})
    assert outcome.kind == "ok"
    way = outcome.value
    arrival = executed(session, "estimate_arrival", route_code=way["route_code"])
    assert arrival["duration_s"] == way["duration_s"]
    assert arrival["departs"] == "2026-03-02T09:00:00Z"
    assert code(session, "estimate_arrival", route_code="walk") == "BAD_ROUTE"


def test_edge_search_then_save_then_delete() -> None:
    session = ENV.open("typical")
    place = executed(session, "search_places", category="museum")["items"][0]
    saved = executed(session, "save_place", location=place["place_id"], label="Treat")
    assert saved["place_id"] == place["place_id"]
    assert saved in executed(session, "list_saved_places")["items"]
    assert executed(session, "get_distance", origin=saved["saved_id"], destination=place["location"])["distance_m"] == 0
    assert executed(session, "delete_saved_place", saved_id=saved["saved_id"]) == saved
    assert code(session, "delete_saved_place", saved_id=saved["saved_id"]) == "NOT_FOUND"


def test_edge_home_is_where_routes_begin() -> None:
    session = ENV.open("sparse")
    assert code(session, "compute_route", destination="P00001", mode="walk") == "HOME_NOT_SET"
    executed(session, "set_home", location="P00003")
    way = executed(session, "compute_route", destination="P00001", mode="walk")
    assert way["origin"] == executed(session, "get_place", place_id="P00003")["name"]
    assert [step["road"] for step in way["steps"]] == ["Mill Lane footpath", "High Street"]


def test_traffic_and_time_zones() -> None:
    session = ENV.open("typical")
    world = session.world
    nodes = list(world.rows(Node))
    far = next(one for one in nodes if one.lon > 12.05)  # the eastern zone, one hour ahead
    way = executed(session, "compute_route", destination=f"{far.lat},{far.lon}")
    for depart, rush in (
        ("2026-03-03T06:30:00Z", True),  # Tuesday 07:30 at home
        ("2026-03-03T08:00:00Z", False),
        ("2026-03-03T15:00:00Z", True),
        ("2026-03-07T06:30:00Z", False),  # Saturday
    ):
        arrival = executed(session, "estimate_arrival", route_code=way["route_code"], depart_at=depart)
        assert arrival["traffic_s"] == (way["duration_s"] * 35 // 100 if rush else 0)
        assert arrival["arrives_local"].endswith("+02:00")
    assert executed(session, "get_timezone", location="home")["local_time"] == "2026-03-02T10:00:00+01:00"


def test_opening_hours_go_by_the_local_clock() -> None:
    session = ENV.open("typical")
    for place in list(session.world.rows(Place))[:60]:
        view = executed(session, "get_place", place_id=place.id)
        offset = int(view["timezone"][4:6])
        now = (9 + offset) * 60
        inside = [
            minute % 1440 for minute in range(place.opens, place.closes + (1440 if place.closes <= place.opens else 0))
        ]
        assert view["open_now"] == (now in inside)


# Routes ---------------------------------------------------------------------------------------------------------------


def naive_costs(edges: list[Edge], plan: Plan, source: str) -> dict[str, int]:
    """The cost of every junction that can be reached, by Bellman and Ford's rounds over all edges."""
    costs = {source: 0}
    changed = True
    while changed:
        changed = False
        for edge in edges:
            if edge.source in costs and usable(edge, plan):
                further = costs[edge.source] + (seconds(edge, plan.mode) if plan.goal == "time" else edge.length_m)
                if further < costs.get(edge.target, math.inf):
                    costs[edge.target] = further
                    changed = True
    return costs


@pytest.mark.parametrize("scenario", ["typical", "adversarial", "sparse"])
@pytest.mark.parametrize("mode", MODES)
def test_routes_are_as_short_as_naive_ones_and_fail_where_those_do(scenario: str, mode: Any) -> None:
    rng = Random(mode)
    session = environment(scale=0.4).open(scenario, 3)
    nodes, edges = list(session.world.rows(Node)), list(session.world.rows(Edge))
    by_ends: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        by_ends.setdefault((edge.source, edge.target), []).append(edge)
    for _ in range(6):
        goal: Any = rng.choice(("time", "distance"))
        avoid: Any = rng.sample(["motorway", "toll", "ferry"], rng.randrange(3))
        source = rng.choice(nodes)
        plan = Plan(mode, goal, tuple(avoid))
        costs = naive_costs(edges, plan, source.id)
        everything = search(session.world, plan, source.id, frozenset(node.id for node in nodes))
        assert {key: cost for key, (cost, _) in everything.items()} == costs
        target = rng.choice(nodes)
        outcome = session.call(
            "compute_route",
            {
                "origin": f"{source.lat},{source.lon}",
                "destination": f"{target.lat},{target.lon}",
                "mode": mode,
                "optimise": goal,
                "avoid": avoid,
            },
        )
        if target.id not in costs:
            assert outcome.code == "NO_ROUTE"
            continue
        way = outcome.value
        assert way["duration_s" if goal == "time" else "distance_m"] == costs[target.id]
        assert sum(step["distance_m"] for step in way["steps"]) == way["distance_m"]
        assert sum(step["duration_s"] for step in way["steps"]) == way["duration_s"]
        assert not {step["kind"] for step in way["steps"]} & set(avoid)


def test_a_matrix_holds_the_routes_of_its_pairs() -> None:
    session = ENV.open("typical")
    rng = Random(1)
    ids = [place.id for place in rng.sample(list(session.world.rows(Place)), 5)]
    kinds = set()
    for mode in MODES:
        outcome = session.call("compute_route_matrix", {"origins": ids[:3], "destinations": ids, "mode": mode})
        missing = False
        for origin, line in zip(ids, outcome.value["rows"], strict=False):
            for destination, cell in zip(ids, line, strict=True):
                one = session.call("compute_route", {"origin": origin, "destination": destination, "mode": mode})
                if one.kind == "ok":
                    assert cell == {name: one.value[name] for name in ("distance_m", "duration_s")}
                else:
                    missing = True
                    assert cell == {"distance_m": None, "duration_s": None}
        assert (outcome.kind, outcome.code) == (("partial", "NO_ROUTE") if missing else ("ok", ""))
        kinds.add(outcome.kind)
    island = next(edge.name for edge in session.world.rows(Edge) if edge.kind == "ferry").removeprefix("Ferry to ")
    there = next(place for place in session.world.rows(Place) if place.city == island)
    assert code(session, "compute_route", destination=there.id, mode="drive") == "NO_ROUTE"
    assert executed(session, "compute_route", destination=there.id, mode="transit")["duration_s"] > 0
    assert code(session, "compute_route", destination=there.id, mode="transit", avoid=["ferry"]) == "NO_ROUTE"


latitudes, longitudes = st.floats(-89, 89), st.floats(-180, 180)


@example(1.0, 0.0, 0.0, -1e-17)  # a direction a hair west of north
@example(0.0, 0.0, 1.0, -1e-17)
@given(latitudes, longitudes, latitudes, longitudes)
def test_distances_agree_with_vectors(lat: float, lon: float, other_lat: float, other_lon: float) -> None:
    def vector(a: float, b: float) -> tuple[float, float, float]:
        a, b = math.radians(a), math.radians(b)
        return math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)

    one, other = vector(lat, lon), vector(other_lat, other_lon)
    chord = math.dist(one, other)
    assert distance_m(lat, lon, other_lat, other_lon) == pytest.approx(
        2 * EARTH_M * math.asin(min(1.0, chord / 2)), rel=1e-6, abs=0.5
    )
    assert 0 <= bearing_degrees(lat, lon, other_lat, other_lon) < 360


def test_bearings() -> None:
    assert bearing_degrees(0, 0, 1, 0) == pytest.approx(0)
    assert bearing_degrees(0, 0, 0, 1) == pytest.approx(90)
    assert bearing_degrees(0, 0, -1, 0) == pytest.approx(180)
    assert bearing_degrees(0, 0, 0, -1) == pytest.approx(270)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4000))
def test_nearby_places_are_those_within_the_radius(number: int, radius: int) -> None:
    session = ENV.open("typical")
    places = [place for place in session.world.rows(Place) if place.category != "address"]
    centre = places[number % len(places)]
    found = executed(session, "places_nearby", location=centre.id, radius_m=radius, limit=100)
    within = [place for place in places if distance_m(centre.lat, centre.lon, place.lat, place.lon) <= radius]
    assert found["total"] == len(within)
    assert found["items"][0]["distance_m"] == 0
    distances = [one["distance_m"] for one in found["items"]]
    assert distances == sorted(distances)


# Scenarios ------------------------------------------------------------------------------------------------------------


def check_references(session: StatefulSession) -> None:
    world = session.world
    nodes = {node.id for node in world.rows(Node)}
    for edge in world.rows(Edge):
        assert {edge.source, edge.target} <= nodes
        assert edge.length_m > 0
        assert edge.speed_kmh > 0
        assert set(edge.modes) <= set(MODES)
        one, other = world.need(Node, edge.source), world.need(Node, edge.target)
        assert edge.length_m >= math.floor(distance_m(one.lat, one.lon, other.lat, other.lon))
    for place in world.rows(Place):
        assert place.node in nodes
        assert world.get(Category, place.category)
        cell_at(world, place.lat, place.lon)
    for saved in world.rows(SavedPlace):
        assert not saved.place or world.get(Place, saved.place)
    home = world.need(Profile, "me").home
    assert not home or world.get(Place, home) or world.get(SavedPlace, home)


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
@pytest.mark.parametrize("scale", [0.3, 1, 3])
def test_scenarios_are_sound_and_the_same_for_a_seed(scenario: str, scale: float) -> None:
    first, second = (environment(scale=scale).open(scenario, 4) for _ in range(2))
    assert first.digest() == second.digest()
    other = environment(scale=scale).open(scenario, 5)
    assert scenario == "sparse" or first.world.dump()["tables"] != other.world.dump()["tables"]
    check_references(first)


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
def test_every_tool_works(scenario: str) -> None:
    session = ENV.open(scenario)
    place = next(one for one in session.world.rows(Place) if one.category == "cafe")
    other = next(one for one in session.world.rows(Place) if one.category == "address" and one.city == place.city)
    for saved in list(session.world.rows(SavedPlace))[1:3]:
        executed(session, "delete_saved_place", saved_id=saved.id)
    saved_id = executed(session, "save_place", location=other.id, label="first")["saved_id"]
    way = executed(session, "compute_route", origin=place.id, destination=place.id, mode="walk")
    script: list[Call] = [
        ("geocode", {"address": other.address}), ("reverse_geocode", {"location": place.id}),
        ("list_place_categories", {}), ("search_places", {"query": place.name}),
        ("places_nearby", {"location": other.id, "radius_m": 5000}), ("get_place", {"place_id": place.id}),
        ("compute_route", {"origin": place.id, "destination": other.id, "mode": "walk"}),
        ("compute_route_matrix", {"origins": [place.id], "destinations": [other.id, place.id], "mode": "walk"}),
        ("get_distance", {"origin": place.id, "destination": other.id}),
        ("estimate_arrival", {"route_code": way["route_code"]}), ("get_elevation", {"location": place.id}),
        ("get_timezone", {"location": place.id}), ("list_saved_places", {}),
        ("save_place", {"location": f"{place.lat},{place.lon}", "label": "second"}),
        ("delete_saved_place", {"saved_id": saved_id}), ("set_home", {"location": other.id}),
    ]  # fmt: skip
    assert {tool for tool, _ in script} == set(ENV.tools)
    for tool, arguments in script:
        outcome = session.call(tool, arguments)
        # Two towns of the adversarial map have one name.
        assert outcome.kind == "ok" or (scenario, outcome.code) == ("adversarial", "AMBIGUOUS"), (tool, outcome)
        json.dumps(outcome.value)
