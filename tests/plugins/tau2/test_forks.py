"""Forks of databases: whatever is done to one, it is what a deep copy would be, and the parsed one stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import date
from enum import StrEnum
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel

from callwright_plugins.tau2.backend.forks import Items, Parsed, copied


class Colour(StrEnum):
    red = "red"
    blue = "blue"


class Thing(BaseModel):
    name: str
    parts: list[dict[str, Any]] = []
    colour: Colour = Colour.red
    made: date = date(2026, 1, 1)


class Db(BaseModel):
    things: list[Thing]
    by_name: dict[str, Thing]
    notes: list[str]
    one: Thing
    empty: list[Thing] = []


def db() -> Db:
    things = [Thing(name=f"t{number}", parts=[{"n": number}, {}]) for number in range(6)]
    return Db(
        things=things, by_name={one.name: one.model_copy(deep=True) for one in things}, notes=["a"], one=things[0]
    )


def scribble(one: Thing, draw: Random) -> None:
    one.name = f"n{draw.randrange(9)}"
    one.parts.append({"n": draw.random()})
    one.parts[0]["n"] = draw.randrange(9)
    one.colour = draw.choice(list(Colour))


LISTS: list[Callable[[Any, Random], Any]] = [
    lambda it, draw: scribble(it[draw.randrange(len(it))], draw) if len(it) else None,
    lambda it, draw: scribble(it[-1], draw) if len(it) else None,
    lambda it, draw: [scribble(one, draw) for one in it[1:3]] and None,
    lambda it, draw: next((scribble(one, draw) for one in it if one.name > f"t{draw.randrange(6)}"), None),
    lambda it, draw: it.append(Thing(name="new")),
    lambda it, draw: it.extend([Thing(name="x"), Thing(name="y")]),
    lambda it, draw: it.insert(draw.randrange(4), Thing(name="put")),
    lambda it, draw: it.pop(0).name if len(it) else None,
    lambda it, draw: it.remove(it[len(it) // 2]) if len(it) else None,
    lambda it, draw: it.sort(key=lambda one: (one.name, len(one.parts))),
    lambda it, draw: it.reverse(),
    lambda it, draw: it.__setitem__(0, Thing(name="first")) if len(it) else None,
    lambda it, draw: it.__delitem__(len(it) - 1) if len(it) else None,
    lambda it, draw: [one.name for one in sorted(it, key=lambda one: one.name)],
    lambda it, draw: [one.name for one in [*it, *reversed(it)]] + [one.name for one in list(it) + it.copy()],
    lambda it, draw: (len(it), Thing(name="new") in it, it == list(it)),
]


@pytest.mark.parametrize("seed", range(40))
def test_lists_of_a_fork_are_those_of_a_deep_copy(seed: int) -> None:
    first = db()
    parsed = Parsed(first)
    before = first.model_dump()
    fork, plain = parsed.fork(), copy.deepcopy(first)
    assert isinstance(fork.things, Items)
    draw = Random(seed)
    for _ in range(draw.randrange(1, 8)):
        act, inner = draw.choice(LISTS), draw.random()
        found, wanted = act(fork.things, Random(inner)), act(plain.things, Random(inner))
        assert found == wanted
    assert [one.model_dump() for one in fork.things] == [one.model_dump() for one in plain.things]
    assert first.model_dump() == before
    assert parsed.fork().things[0].model_dump() == before["things"][0]


def test_what_a_fork_is_asked_for_is_its_own() -> None:
    first = db()
    parsed = Parsed(first)
    before = first.model_dump()
    fork = parsed.fork()
    assert fork.__dict__ == {}
    assert isinstance(fork, Db)
    fork.one.parts[0]["n"] = 99
    fork.by_name["t1"].name = "other"
    fork.notes.append("b")
    fork.empty.append(Thing(name="z"))
    fork.by_name.pop("t2")
    assert first.model_dump() == before
    again = Parsed(fork, parsed).fork()
    assert again.one.parts[0]["n"] == 99
    assert again.by_name["t1"].name == "other"
    assert "t2" not in again.by_name
    assert [*again.notes, again.empty[0].name, len(again.things)] == ["a", "b", "z", 6]
    again.one.name = again.by_name["t1"].name = "third"
    assert (fork.one.name, fork.by_name["t1"].name) == ("t0", "other")
    with pytest.raises(AttributeError):
        _ = fork.nothing


def test_copies_keep_one_object_one() -> None:
    inner = {"a": [1, 2.5, None, Colour.blue, date(2026, 3, 2)]}
    value = [inner, inner, Thing(name="t", parts=[inner])]
    made = copied(value, {})
    assert made == value
    assert made[0] is made[1]
    assert made[0] is not inner
    made[0]["a"].append(3)
    assert len(made[1]["a"]) == 6
    assert len(inner["a"]) == 5
    assert made[2].model_fields_set == {"name", "parts"}
