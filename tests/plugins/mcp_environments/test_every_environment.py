"""What holds for all twenty environments: the paper's counts, determinism, isolation, JSON, no change by failure."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any

import pytest

import callwright as cw
from callwright.environments.rows import table_of
from callwright.testing import checks_for
from callwright.testing.arguments import WORDS, fitting_arguments, wrong_arguments
from callwright.tools.reading import SENSITIVE, holds_mark
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_environments import TOOLS

#: Table 2 of the paper, transcribed once more than in the package, so that neither can drift alone.
TABLE_2 = {
    "banking": 17, "trading": 13, "payments": 10, "calendar": 17, "email": 17, "filesystem": 40, "shopping": 23,
    "marketplace": 13, "retail_chain": 11, "travel_booking": 20, "maps": 16, "social_media": 15, "team_chat": 11,
    "iot_devices": 25, "vehicle": 20, "crm": 16, "issue_tracker": 20, "budget": 12, "food_delivery": 17,
    "video_meeting": 10,
}  # fmt: skip
NAMES = list(TABLE_2)
#: The names that more than one environment has.
SHARED = {
    "list_orders", "get_order", "cancel_order", "list_messages", "search_messages", "get_thread", "list_users",
    "list_categories", "list_addresses", "track_order", "list_comments",
}  # fmt: skip


@cache
def made(name: str) -> cw.StatefulEnvironment:
    environment = cw.environment(name)
    assert isinstance(environment, cw.StatefulEnvironment)
    return environment


def test_the_counts_are_the_papers() -> None:
    assert dict(TOOLS) == TABLE_2
    assert {name: len(made(name).tools) for name in NAMES} == TABLE_2
    assert sum(TABLE_2.values()) == 343


def test_names_collide_where_they_are_known_to() -> None:
    names = [tool for name in NAMES for tool in made(name).tools]
    assert {name for name in names if names.count(name) > 1} == SHARED
    offered = cw.offer(*map(made, NAMES))
    assert len(offered) == 343
    assert {tool.original for name, tool in offered.items() if "__" in name} == SHARED


@pytest.mark.parametrize("name", NAMES)
def test_the_annotations_make_sense(name: str) -> None:
    specs = made(name).tools
    assert any(spec.discovery for spec in specs.values())
    assert any(not spec.read_only for spec in specs.values())
    for spec in specs.values():
        assert spec.read_only or not spec.discovery, spec.name
        assert not (spec.read_only and spec.destructive), spec.name
        assert spec.sensitive == holds_mark(spec.parameters, SENSITIVE), spec.name
        assert len(spec.description) >= 20, spec.name
        assert spec.result is not None, spec.name
        for parameter, schema in spec.parameters.get("properties", {}).items():
            said = [schema, *schema.get("anyOf", ())]
            assert any(one.get("description") for one in said), f"{spec.name}.{parameter} has no description"


@pytest.mark.parametrize("name", NAMES)
def test_scenarios_are_large_named_and_repeatable(name: str) -> None:
    environment = made(name)
    assert len(environment.scenarios) >= 3
    assert {"typical", "sparse", "adversarial"} <= set(environment.scenarios)
    sizes = {}
    for scenario, described in environment.scenarios.items():
        assert described.summary
        first, again, other = (environment._build(scenario, seed) for seed in (5, 5, 6))
        assert first.dump() == again.dump()
        assert first.total == again.total != other.total
        sizes[scenario] = sum(map(len, first.tables.values()))
    assert sizes["typical"] >= 300
    assert sizes["sparse"] < sizes["typical"]
    larger = cw.environment(name, scale=3)
    assert sum(map(len, larger.base("typical", 5).tables.values())) > 1.5 * sizes["typical"]  # type: ignore[attr-defined]


@cache
def script(name: str, scenario: str, rounds: int = 4) -> list[tuple[str, dict[str, Any]]]:
    """Calls with drawn arguments; ids and names from answers and from the tables are among them."""
    environment = made(name)
    rng, session = random.Random(f"{name}/{scenario}"), environment.open(scenario, 1)
    known = [*WORDS[:3]]
    for kind in environment.kinds:
        for row in list(session.world.rows(kind))[:12]:
            known += map(str, table_of(kind).values_of(row))
    rng.shuffle(known)
    calls = []
    for _ in range(rounds):
        for tool, spec in environment.tools.items():
            fitting = fitting_arguments(spec, rng, rng.sample(known, min(60, len(known))))
            if fitting is not None:
                calls.append((tool, fitting))
            calls += [(tool, wrong) for wrong in islice(wrong_arguments(spec, rng), 1)]
    rng.shuffle(calls)
    return calls


def _only_json(value: Any) -> bool:
    if isinstance(value, Mapping):
        return type(value) is dict and all(type(key) is str and _only_json(inner) for key, inner in value.items())
    if isinstance(value, list):
        return type(value) is list and all(map(_only_json, value))
    return value is None or type(value) in (str, int, float, bool)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
def test_calls_with_drawn_arguments(name: str, scenario: str) -> None:
    """Outcomes fit the result schemas and are JSON; failures and reads change nothing; nothing is shared."""
    import jsonschema_rs

    environment = made(name)
    base = environment.base(scenario, 1)
    before_all = base.total
    session, twin = environment.open(scenario, 1), environment.open(scenario, 1)
    results = {tool: jsonschema_rs.Draft202012Validator(spec.result) for tool, spec in environment.tools.items()}
    kinds = set()
    for tool, arguments in script(name, scenario):
        digest, given = session.digest(), copy_json(arguments)
        outcome = session.call(tool, given)
        kinds.add(outcome.kind)
        assert given == arguments, f"{tool} changed its arguments"
        if environment.tools[tool].read_only or not (outcome.executed or outcome.kind == "refused"):
            assert session.digest() == digest, f"{tool}({arguments}) changed the state: {outcome}"
        if outcome.executed:
            assert _only_json(outcome.value), f"{tool}: {outcome.value!r:.300}"
            problems = [str(error) for error in results[tool].iter_errors(outcome.value)]
            assert not problems, f"{tool}({arguments}): {problems[:2]}"
            json.dumps(outcome.value, allow_nan=False)
        else:
            assert outcome.code, tool
            assert outcome.message, tool
            assert outcome.kind == "schema_error" or outcome.code == outcome.code.upper(), f"{tool}: {outcome.code}"
        again = twin.call(tool, copy_json(arguments))
        assert again == outcome, f"{tool}({arguments}) was answered differently"
    assert twin.digest() == session.digest()
    assert {"schema_error", "execution_error"} <= kinds
    session.reset()
    assert session.digest() == environment.open(scenario, 1).digest()
    assert base.count_again() == before_all


@pytest.mark.parametrize("name", NAMES)
def test_helpers_are_hidden(name: str) -> None:
    environment = made(name)
    session = environment.open()
    before = session.digest()
    for helper, spec in environment.helpers.items():
        assert spec.hidden
        assert helper not in environment.tools
        assert session.call(helper, {}).kind == "unknown_tool"
    assert session.digest() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_interleaved_sessions_do_not_meet(name: str) -> None:
    environment = made(name)
    calls = script(name, "typical", 1)[:8]
    rng = random.Random(name)
    base = environment.base("typical", 0)
    total = base.total
    sessions = [environment.open("typical", 0) for _ in range(1000)]
    turns = [number for number in range(1000) for _ in calls]
    rng.shuffle(turns)
    done = [0] * 1000
    for number in turns:
        tool, arguments = calls[done[number]]
        sessions[number].call(tool, copy_json(arguments))
        done[number] += 1
    assert len({session.digest() for session in sessions}) == 1
    assert base.count_again() == total


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", checks_for("environment", scenarios=("sparse", "adversarial")), ids=str)
def test_other_scenarios_conform_too(name: str, check: Any) -> None:
    check(made(name))
