"""What the 343 tools declare of their costs: what is said to be irreversible is, and what has an inverse is taken back.

A call is taken back if another one leaves the end state in which the session began, logs, counters and stamps aside
(:mod:`callwright.environments.goals`). The search tries every tool with values from the call, its result and the rows
that it changed.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import callwright as cw
from callwright.environments.goals import compare
from callwright.environments.rows import table_of
from callwright.tools.costing import cost_of
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_environments import TOOLS

_SPEC = importlib.util.spec_from_file_location("drawn_writes", Path(__file__).with_name("drawn_writes.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
drawn_writes: Any = importlib.util.module_from_spec(_SPEC)
sys.modules.setdefault("drawn_writes", drawn_writes)
_SPEC.loader.exec_module(drawn_writes)
drawn_writes = sys.modules["drawn_writes"]

#: Tools that another one takes back exactly, by the name of that one.
EXACT: Final = {
    "banking": {"add_payee": "remove_payee"},
    "calendar": {"add_invitee": "remove_invitee", "respond_to_invite": "respond_to_invite"},
    "email": {"mark_read": "mark_read", "add_label": "remove_label", "remove_label": "add_label"},
    "filesystem": {"mkdir": "rmdir", "touch": "rm", "write_file": "rm", "append_file": "rm", "symlink": "rm"},
    "shopping": {"add_to_cart": "remove_from_cart"},
    "social_media": {"follow_user": "unfollow_user"},
    "iot_devices": {
        "turn_on": "turn_off",
        "turn_off": "turn_on",
        "open_cover": "close_cover",
        "close_cover": "open_cover",
    },
    "vehicle": {
        "lock_doors": "unlock_doors",
        "set_parking_brake": "set_parking_brake",
        "set_headlights": "set_headlights",
    },
    "crm": {"update_contact": "update_contact"},
    "issue_tracker": {"link_issues": "unlink_issues", "unlink_issues": "link_issues"},
    "budget": {"add_expense": "delete_expense", "update_expense": "update_expense", "delete_expense": "add_expense"},
}
#: Calls that are not drawn: an order moved to a price at which it is filled, so that the shares are bought.
GIVEN: Final = {"trading": (("modify_order", {"order_id": "O00095", "limit_price_cents": 21020}),)}


@cache
def made(name: str) -> cw.StatefulEnvironment:
    environment = cw.environment(name)
    assert isinstance(environment, cw.StatefulEnvironment)
    return environment


def values_of(session: Any, first: Any, call: tuple[str, dict[str, Any]], value: Any) -> dict[str, list[Any]]:
    """Values by the names under which they stand in a call, its result, and the rows that it changed."""
    found: dict[str, list[Any]] = {}

    def add(name: str, one: Any) -> None:
        if isinstance(one, str | int | float | list) and one not in found.setdefault(name, []):
            found[name].append(one)

    def look(inner: Any) -> None:
        if isinstance(inner, dict):
            for name, one in inner.items():
                add(name, one)
                look(one)
        elif isinstance(inner, list):
            for one in inner:
                look(one)

    look(value)
    look(call[1])
    for kind, rows in session.world.changes().items():
        table = table_of(kind)
        for key, row in rows.items():
            for one in (first.world.get(kind, key), row):
                for name in table.fields if one is not None else ():
                    inner = getattr(one, name)
                    add(name, list(inner) if isinstance(inner, tuple) else inner)
                    if name == table.key[0]:
                        add("*", inner)
    return found


def tried(spec: Any, values: dict[str, list[Any]], most: int = 60) -> Iterator[dict[str, Any]]:
    """Arguments of a tool that are made of these values."""
    given: list[list[tuple[str, Any]]] = []
    required = spec.parameters.get("required", [])
    for name, schema in spec.parameters.get("properties", {}).items():
        stem = name
        for prefix in ("from_", "to_", "new_", "keep_", "merge_"):
            stem = stem.removeprefix(prefix)
        found: list[Any] = []
        for one in (name, stem, stem.removesuffix("_id"), f"{stem}_id"):
            found += values.get(one, [])
        if name.endswith("id") or name in ("issue", "user", "sprint"):
            found += values.get("*", [])
        found += schema.get("enum", [True, False] if schema.get("type") == "boolean" else [])
        if schema.get("type") == "array":
            found = [one if isinstance(one, list) else [one] for one in found]
        unique = [one for place, one in enumerate(found) if one not in found[:place]][:8]
        if not unique and name in required:
            return
        given.append([(name, one) for one in (unique if name in required else [None, *unique])])
    chosen = 0
    for combination in itertools.product(*given):
        arguments = {name: one for name, one in combination if one is not None}
        if spec.compiled.literal.validator.is_valid(arguments):
            yield arguments
            chosen += 1
            if chosen == most:
                return


def taken_back(name: str, call: tuple[str, dict[str, Any]], by: str = "") -> str | None:
    """The tool that takes a call back, of all or of one; ``None`` if none does."""
    environment = made(name)
    first = drawn_writes.signed_in(environment)
    before = first.goal_state()
    session = first.fork()
    outcome = session.call(call[0], copy_json(call[1]))
    values = values_of(session, first, call, outcome.value)
    for tool, spec in environment.tools.items():
        if spec.read_only or (by and tool != by):
            continue
        for arguments in tried(spec, values):
            other = session.fork()
            if other.call(tool, copy_json(arguments)).executed and compare(before, before, other.goal_state()).equal:
                return tool
    return None


def calls_of(name: str, tool: str) -> list[tuple[str, dict[str, Any]]]:
    return [call for call in (*drawn_writes.writes(made(name)), *GIVEN.get(name, ())) if call[0] == tool]


@pytest.mark.parametrize("name", TOOLS)
def test_nothing_takes_back_what_is_irreversible(name: str) -> None:
    for tool, spec in made(name).tools.items():
        calls = calls_of(name, tool) if spec.irreversible else []
        if calls:
            assert None in [taken_back(name, call) for call in calls], f"{tool} is taken back"


@pytest.mark.parametrize("name", EXACT)
def test_what_has_an_inverse_is_taken_back_by_it(name: str) -> None:
    for tool, inverse in EXACT[name].items():
        assert not made(name).tools[tool].irreversible
        assert inverse in [taken_back(name, call, inverse) for call in calls_of(name, tool)], tool


def test_most_of_what_is_irreversible_was_tried() -> None:
    declared = [(name, tool) for name in TOOLS for tool, spec in made(name).tools.items() if spec.irreversible]
    assert len(declared) == 56
    assert sum(bool(calls_of(name, tool)) for name, tool in declared) >= 36


def test_what_only_looks_is_free_and_harmless() -> None:
    for name in TOOLS:
        for spec in made(name).tools.values():
            assert not (spec.read_only and (spec.irreversible or spec.cost)), spec.name


def test_costs_are_in_the_results() -> None:
    """A tool whose result tells its cost has those members, in cents; and a call that has a fee is said to cost it."""
    told = {(name, tool): spec for name in TOOLS for tool, spec in made(name).tools.items() if spec.cost}
    assert len(told) == 7
    for (_, _), spec in told.items():
        assert isinstance(spec.cost, str)
        for path in spec.cost.split(" + "):
            assert path.endswith("_cents")
            assert path in (spec.result or {})["properties"], spec.name
    trips = drawn_writes.signed_in(made("travel_booking"))
    (call,) = [one for one in calls_of("travel_booking", "cancel_hotel") if one[1]["booking_id"] == "BH00001"]
    outcome = trips.call(call[0], dict(call[1]))
    assert cost_of(made("travel_booking").tools["cancel_hotel"], outcome.value) == outcome.value["fee_cents"]
    shop = made("food_delivery").tools["place_order"]
    assert cost_of(shop, {"delivery_cents": 290, "service_cents": 110, "total_cents": 3000}) == 400


def test_slow_tools_take_their_time_where_it_moves() -> None:
    slow = {name: [tool for tool, spec in made(name).tools.items() if spec.latency] for name in TOOLS}
    assert sum(map(len, slow.values())) == 64
    session = drawn_writes.signed_in(made("iot_devices"))
    session.keep_time(cw.environments.ClockPolicy(call=20))
    before = session.world.now
    ((_, arguments), *_) = calls_of("iot_devices", "open_cover")
    session.call("open_cover", dict(arguments))
    assert session.world.now - before == 40


def test_models_and_digests_know_nothing_of_it() -> None:
    for name in TOOLS:
        plain = cw.openai_tools(made(name))
        told = cw.openai_tools(made(name), costs=True)
        changed = [
            one["function"]["name"]
            for one, other in zip(plain, told, strict=True)
            if one["function"]["description"] != other["function"]["description"]
        ]
        declared = [tool for tool, spec in made(name).tools.items() if spec.cost or spec.latency or spec.irreversible]
        assert changed == declared
        assert "Cannot be undone" not in str(plain)
