"""Recoveries make sense: nothing is undone to be done again, and a slip looks like what is meant."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

import callwright as cw
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints

ALONE = {"several_servers": 0.0, "irrelevance": 0.0, "abstentions": 0.0, "distractors": 0.0}


@cw.row("people", prefix="U")
class Person:
    id: str
    name: str
    followed: bool
    muted: bool


@cw.tool(read_only=True, discovery=True)
def list_people(world: cw.World, /) -> list[dict[str, str]]:
    """List the people."""
    return [{"id": one.id, "name": one.name} for one in world.rows(Person)]


def changed(world: cw.World, person_id: str, code: str, **changes: bool) -> bool:
    person = world.need(Person, person_id)
    if all(getattr(person, name) == value for name, value in changes.items()):
        raise cw.ToolError(code, "that is so already")
    world.update(person, **changes)
    return True


@cw.tool
def follow_person(world: cw.World, /, person_id: str) -> bool:
    """Follow a person."""
    return changed(world, person_id, "ALREADY_FOLLOWED", followed=True)


@cw.tool
def unfollow_person(world: cw.World, /, person_id: str) -> bool:
    """No longer follow a person."""
    return changed(world, person_id, "NOT_FOLLOWED", followed=False)


@cw.tool
def mute_person(world: cw.World, /, person_id: str) -> bool:
    """Mute a person who is followed."""
    if not world.need(Person, person_id).followed:
        raise cw.ToolError("NOT_FOLLOWED", "follow the person first")
    return changed(world, person_id, "ALREADY_MUTED", muted=True)


def people(rng: random.Random, scale: float) -> Iterator[Person]:
    for number in range(12):
        yield Person(f"U{number + 1:05d}", f"Person {rng.randrange(10**6)}", rng.random() < 0.5, False)


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    scenarios = {"typical": cw.Scenario(people, "people")}
    tools = [list_people, follow_person, unfollow_person, mute_person]
    environment = cw.StatefulEnvironment("people", rows=[Person], tools=tools, scenarios=scenarios)
    registry = default_registry()
    knowledge = known(environment, registry=registry, calls=600)
    knobs = Knobs.from_json({"recoveries": 0.6, "failing": 0.1, **ALONE})
    materials = Materials(environment=environment, seed=3, count=60, registry=registry)
    planned = plan_blueprints(materials, knowledge, knobs)
    return [stage for one in planned for stage in one.stages if stage.failing]


def recovered(stages: list[Stage], way: str) -> list[Stage]:
    return [stage for stage in stages if any(one.recovery == way for one in stage.failing)]


def test_nothing_is_undone_to_be_done_again(stages: list[Stage]) -> None:
    """Who is followed already is not to be followed anew, and who follows nobody need not begin to."""
    found = recovered(stages, "tool")
    assert found
    for stage in found:
        called = {call.tool for call in stage.calls}
        assert not {"follow_person", "unfollow_person"} <= called
        assert "mute_person" in called, "who is not followed can be, so that it may be muted"


def test_a_slip_looks_like_what_is_meant(stages: list[Stage]) -> None:
    found = recovered(stages, "parameters")
    assert found
    for stage in found:
        for failing in stage.failing:
            assert re.fullmatch(r"U\d+", str(stage.calls[failing.call].arguments["person_id"]))
