"""Sessions: isolation, digests, scenarios, determinism, and what is not imported."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from callwright.environments.protocol import Environment, Session
from callwright.errors import UsageError
from callwright.plugins import load_plugins
from callwright_plugins import toolworld
from callwright_plugins.toolworld import world as data
from callwright_plugins.toolworld.environment import ToolWorld, read_scenario, scenario_of

#: The tables of version 1. Other tables are another version of the world.
GOLDEN_WORLD = "7b20b45319a652b453ca20542468b821f88ef4cf1909d0eb88c9efc1d125fca0"
#: The first tasks of both splits, demonstrations and the vocabulary of version 1.
GOLDEN_TASKS = "38ab570e13967b9f9bea323ea3fabcff8ff99c0201868567c357fa513be90294"


def tables() -> str:
    return json.dumps({name: getattr(data, name) for name in sorted(vars(data)) if name.isupper() and len(name) > 3})


def test_the_world_is_that_of_version_1() -> None:
    assert hashlib.sha256(tables().encode()).hexdigest() == GOLDEN_WORLD


def test_registered_and_fits_the_protocols() -> None:
    registry = load_plugins(entry_points=False, extra={"toolworld": toolworld})
    made = registry.create("environment", "toolworld-mini-v1")
    assert isinstance(made, Environment)
    assert isinstance(made.open(), Session)
    assert made.name == "toolworld-mini-v1"
    assert made.pure is True


@pytest.mark.parametrize("scenario", ["Paris|18|EUR|Oslo", "Delhi|0|EGP|Lima", "Oslo|23|INR|Oslo"])
def test_a_scenario_opens_its_context(scenario: str, world: ToolWorld) -> None:
    assert scenario_of(read_scenario(scenario)) == scenario
    assert world.open(scenario, seed=1).digest() == world.open(scenario, seed=2).digest()


BAD_SCENARIOS = [
    "Paris",
    "|||",
    "Paris|18|EUR",
    "Paris|24|EUR|Oslo",
    "Paris|-1|EUR|Oslo",
    "Paris|018|EUR|Oslo",
    "Paris|١٨|EUR|Oslo",
    "Bonn|18|EUR|Oslo",
    "Paris|18|XXX|Oslo",
    "Paris|18|EUR|Oslo|",
    "Paris|18|EUR|Oslo\n",
]


@pytest.mark.parametrize("scenario", [*BAD_SCENARIOS, "|" * 100_000])
def test_another_scenario_is_refused_in_words(scenario: str, world: ToolWorld) -> None:
    with pytest.raises(UsageError, match=r"is no scenario of toolworld-mini-v1; one is 'location\|hour") as caught:
        world.open(scenario)
    assert len(str(caught.value)) < 300


def test_without_a_scenario_the_seed_draws_the_context(world: ToolWorld) -> None:
    digests = [world.open(seed=seed).digest() for seed in range(40)]
    assert digests == [ToolWorld().open("", seed).digest() for seed in range(40)]
    assert len(set(digests)) > 30


def test_digests_tell_contexts_apart(world: ToolWorld) -> None:
    scenarios = [
        f"{location}|{hour}|{currency}|{home}"
        for location in data.CITIES
        for hour in data.HOURS
        for currency in data.CURRENCIES
        for home in data.CITIES
    ]
    assert len({world.open(scenario).digest() for scenario in scenarios}) == len(scenarios)
    expected = hashlib.sha256(b"toolworld-mini-v1|Paris|18|EUR|Oslo").hexdigest()
    assert world.open("Paris|18|EUR|Oslo").digest() == expected


def test_sessions_do_not_see_each_other(world: ToolWorld) -> None:
    one, other = world.open("Paris|18|EUR|Oslo"), world.open("Lima|9|PEN|Rome")
    before = other.digest(), other.call("FindRestaurants", {"location": "Paris"}).value
    found = one.call("FindRestaurants", {"location": "Paris"}).value
    found.reverse()
    found.clear()  # a caller that breaks its own copy breaks nobody else's
    one.call("FilterByRating", {"restaurants": 3})
    one.close()
    one.close()
    assert (other.digest(), other.call("FindRestaurants", {"location": "Paris"}).value) == before
    assert other.call("GetLocation", {}).value == {"location": "Lima"}


def test_calls_change_neither_their_arguments_nor_the_world(world: ToolWorld) -> None:
    session, before = world.open("Paris|18|EUR|Oslo"), tables()
    rows = session.call("FindRestaurants", {"location": "Paris"}).value
    given = json.dumps(rows)
    for tool in ("FilterByCuisine", "ExcludeCuisine"):
        assert session.call(tool, {"restaurants": rows, "cuisine": "Indian"}).kind == "ok"
    assert json.dumps(rows) == given
    assert tables() == before


_PROBE = """
import hashlib, json, sys
from callwright_plugins.toolworld.corpus import ToolWorldCorpus
from callwright.language.program import plain
corpus = ToolWorldCorpus(evaluation_size=6)
def shown(task, program):
    calls = [[call.id, call.tool, plain(call.arguments)] for call in program.calls]
    return [task.id, task.query, list(task.tools), task.scenario, list(task.answer.values), calls, task.structure,
            task.facts["composition"], corpus.prompt_text(task)]
rows = [shown(task, task.program) for split in corpus.splits for task in corpus[split][:42]]
rows += [shown(task, program) for task, program in corpus.demonstrations(3, 40)]
text = json.dumps([rows, corpus.vocabulary(), list(corpus.environment.tools)])
print(hashlib.sha256(text.encode()).hexdigest(), *sorted({"pydantic", "jsonschema_rs", "torch"} & set(sys.modules)))
"""


def probe(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_process_makes_the_same_bytes_and_loads_no_schema_library() -> None:
    assert probe("1") == GOLDEN_TASKS  # the digest alone: none of the heavy modules was imported
    assert probe("4242") == GOLDEN_TASKS


def test_registering_imports_nothing_of_the_world() -> None:
    code = (
        "import sys, callwright_plugins.toolworld as t;"
        "list(t.callwright_environments()), list(t.callwright_corpora());"
        "print([m for m in sys.modules if m.startswith('callwright_plugins.toolworld.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_specs_are_complete_for_models(world: ToolWorld) -> None:
    for name, spec in world.tools.items():
        definition: dict[str, Any] = spec.to_openai()["function"]
        assert definition["name"] == name
        properties = definition["parameters"]["properties"]
        assert definition["parameters"]["required"] == list(properties)
        assert all("type" in schema for schema in properties.values())
        assert spec.compiled.result_types(()) is not None
