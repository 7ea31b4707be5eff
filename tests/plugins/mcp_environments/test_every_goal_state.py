"""What holds for end states of all twenty environments: the order of independent writes is nothing, and one foreign
change is always seen."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.goals import compare
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.rows import table_of
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_environments import TOOLS

_SPEC = importlib.util.spec_from_file_location("drawn_writes", Path(__file__).with_name("drawn_writes.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
drawn_writes: Any = importlib.util.module_from_spec(_SPEC)
sys.modules.setdefault("drawn_writes", drawn_writes)
_SPEC.loader.exec_module(drawn_writes)

NAMES = list(TOOLS)
#: How many different writing tools are drawn of each environment, at least.
FEWEST = {"maps": 1, "video_meeting": 2}


@cache
def made(name: str) -> cw.StatefulEnvironment:
    environment = cw.environment(name)
    assert isinstance(environment, cw.StatefulEnvironment)
    return environment


def after(name: str, *calls: tuple[str, dict[str, Any]]) -> tuple[Any, list[cw.Outcome]]:
    """A session after some calls, and what they came to."""
    session = drawn_writes.signed_in(made(name))
    return session, [session.call(tool, copy_json(arguments)) for tool, arguments in calls]


def _content(row: Any) -> list[Any] | None:
    """What is in a row, but for bookkeeping."""
    if row is None:
        return None
    return [getattr(row, name) for name in table_of(type(row)).fields if name not in table_of(type(row)).bookkeeping]


def writes_of(session: Any, call: tuple[str, dict[str, Any]]) -> tuple[cw.Outcome, set[Any], bool]:
    """Make a call: the places it writes (but new rows under ids of its own), and whether one is a row that is new."""
    world = session.world
    before = {kind: dict(rows) for kind, rows in world.changes().items()}
    already = {kind: world.made_ids(kind) for kind in session.environment.kinds}
    tool, arguments = call
    outcome = session.call(tool, copy_json(arguments))
    places = {
        (kind, key)
        for kind in session.environment.kinds
        if table_of(kind).is_compared
        for key in {*world.changes().get(kind, ()), *before.get(kind, ())}
        if _content(world.get(kind, key)) != _content(before.get(kind, {}).get(key, world.base.rows(kind).get(key)))
    }
    own = {(kind, key) for kind, key in places if key in world.made_ids(kind) and key not in already[kind]}
    late = any(key in already[kind] for kind, key in places)
    return outcome, places - own, late


@pytest.mark.parametrize("clock", [None, ClockPolicy()], ids=["still", "moving"])
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_independent_writes_is_nothing(name: str, clock: ClockPolicy | None) -> None:
    """Of two calls that write no row in common, and each of which writes after the other what it writes alone."""
    calls = drawn_writes.writes(made(name))
    assert len({tool for tool, _ in calls}) >= FEWEST.get(name, 3)
    places = [writes_of(after(name)[0], call)[1] for call in calls]
    tried = 0
    for one, other in combinations(range(len(calls)), 2):
        if places[one] & places[other]:
            continue
        ends = []
        for first, second in ((one, other), (other, one)):
            session, _ = after(name)
            if clock is not None:
                session.keep_time(clock)
            answer = session.call(calls[first][0], copy_json(calls[first][1]))
            outcome, wrote, late = writes_of(session, calls[second])
            if answer.executed and outcome.executed and wrote == places[second] and not late:
                ends.append(session.goal_state())
        if len(ends) == 2:
            comparison = compare(None, *ends)
            assert comparison.equal, (calls[one], calls[other], list(map(str, comparison.differences)))
            assert comparison.credit == 1.0
            tried += 1
    assert tried


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + random.choice((1, 7, -3))
    if isinstance(value, tuple):
        return value[1:] if value and random.random() < 0.5 else (*value, value[0] if value else "odd")
    return f"{value}~" if random.random() < 0.5 or not value else value[:-1]


def _meddle(session: Any, random: Random) -> str:
    """Change one row of a session, whichever, in one field that comparing looks at; or drop it."""
    world = session.world
    kinds = [kind for kind in session.environment.kinds if table_of(kind).is_compared and world.count(kind)]
    changed = [kind for kind in kinds if kind in world.changes()]
    while True:
        kind = random.choice(changed if changed and random.random() < 0.6 else kinds)
        table = table_of(kind)
        rows = list(world.rows(kind))
        new = [row for row in rows if table.key_of(row) in world.changes().get(kind, {})]
        row = random.choice(new if new and random.random() < 0.6 else rows)
        if random.random() < 0.15:
            world.drop(row)
            return f"dropped {row}"
        fields = [
            name
            for name in table.fields
            if name not in table.key and name not in table.bookkeeping and name not in table.generated
        ]
        if not fields:
            continue
        name = random.choice(fields)
        value = getattr(row, name)
        made_up = 12_345 if name in table.stamps else _other(value, random)
        if made_up != value and (name not in table.relative or value):
            world.update(row, **{name: made_up})
            return f"{table.name}.{name} of {row} became {made_up!r}"


@pytest.mark.parametrize("name", NAMES)
def test_one_foreign_change_is_always_seen(name: str) -> None:
    random = Random(name)
    calls = drawn_writes.writes(made(name))
    for _ in range(60):
        expected, _ = after(name, *random.sample(calls, min(3, len(calls))))
        found = expected.fork()
        what = _meddle(found, random)
        comparison = compare(None, expected.goal_state(), found.goal_state())
        assert not comparison.equal, what
        assert comparison.credit < 1.0, what
        assert comparison.differences, what
        back = compare(None, found.goal_state(), expected.goal_state())
        assert not back.equal, what


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_json_and_that_of_an_untouched_session_is_empty(name: str) -> None:
    calls = drawn_writes.writes(made(name))
    session, _ = after(name, *calls[:5])
    state = session.goal_state()
    assert json.loads(json.dumps(state, allow_nan=False)) == state
    assert compare(None, json.loads(json.dumps(state)), state).equal
    assert compare(state, state, state).right == 0
    assert made(name).open().goal_state() == {"form": "rows", "made": [], "tables": {}}


def test_a_line_that_was_put_in_the_cart_and_taken_out_is_nothing() -> None:
    shop = made("shopping")
    session = shop.open()
    session.call("add_to_cart", {"variant_id": "V00001"})
    session.call("clear_cart", {})
    assert session.digest() != shop.open().digest()
    assert compare(None, shop.open().goal_state(), session.goal_state()).equal


def test_a_lamp_that_was_switched_on_and_off_is_off() -> None:
    home = made("iot_devices")
    session = home.open()
    state = next(row for kind in home.kinds for row in session.world.rows(kind) if type(row).__name__ == "State")
    calls = ["turn_off", "turn_on"] if state.on else ["turn_on", "turn_off"]
    assert session.call(calls[0], {"device_id": state.id}).executed
    assert not compare(None, home.open().goal_state(), session.goal_state()).equal
    assert session.call(calls[1], {"device_id": state.id}).executed
    assert session.digest() != home.open().digest()
    assert compare(None, home.open().goal_state(), session.goal_state()).equal


def test_the_table_of_declarations_is_that_of_the_rows() -> None:
    text = (Path(__file__).parents[3] / "docs" / "goals.md").read_text(encoding="utf-8")
    told = [line for line in text.splitlines() if line.startswith("| `") and line.split("`")[1] in NAMES]
    declared = []
    for name in NAMES:
        for kind in made(name).kinds:
            table = table_of(kind)
            parts = (table.bookkeeping, table.stamps, table.relative, table.unordered, table.generated)
            cells = [", ".join(f"`{field}`" for field in table.fields if field in part) for part in parts]
            if not table.is_compared:
                cells[0] = "everything"
            if any(cells):
                declared.append(f"| `{name}` | `{table.name}` | {' | '.join(cells)} |")
    assert told == declared
