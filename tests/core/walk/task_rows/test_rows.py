"""A task and its row hold the same, and a row that is no task is refused with words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve, fields

import callwright as cw
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.people.person import Person
from callwright.errors import DataError, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.language.program import Call, Program, Reference
from callwright.plugins import Lazy, Registry, default_registry
from callwright.testing.sample import SHOP, sample_tasks
from callwright.tools.spec import ToolSpec
from callwright.walk.openings.opening import InitialCall, Opening
from callwright.walk.task_rows.rows import TaskReader, task_row
from callwright.walk.task_rows.schema import KEYS
from callwright.walk.task_rows.stated import Stated, make, stated
from callwright.walk.task_rows.tools import read_spec, spec_row
from callwright.walk.tasks import Answer, Instance, Task

REGISTRY = default_registry()
OWN = Stated(SHOP.name)


def full() -> Task:
    """A task with something in every field."""
    task = sample_tasks()[3]
    price = task.tools["price_of"]
    return evolve(
        task,
        scenario="day",
        seed=7,
        split="validation",
        chain=2,
        returns="all",
        tools={
            **task.tools,
            "price_of": evolve(price, description="What it costs.", cost=3, latency=2),
            "shop_total": evolve(task.tools["total"], read_only=False, destructive=True),
            "elsewhere": ToolSpec("elsewhere", "Of another world.", {"type": "object", "properties": {"a": {}}}),
        },
        program=Program(
            (Call(3, "find_items", {"below": 4.0}), Call(9, "price_of", {"name": Reference(3, ("names", 0))})),
            "all",
            thought="First the items.",
        ),
        answer=Answer(({"a": [1, 2.5, None, True]}, "ä", 10**5000), others=((1, {}), ()), open=("a",)),
        facts={"goal": {"nothing_else": True}, "kind": "x"},
        clock=ClockPolicy(call=30, jumps=(0, 7200)),
        hazards=read_hazards("unavailable=0.5,limit=3/60,seed=4"),
        user=cw.UserSpec("scripted", {"knows": {"pin": "1"}}),
        shown=("price_of", "find_items"),
        tells_costs=True,
        opening=Opening(
            (InitialCall("price_of", {"name": "a"}, "user"),),
            (Message.user("Hello?"), Message.assistant("", (ToolCall("1", "total", "{}"),)), Message.tool("3", "1")),
        ),
        appear={"elsewhere": 1},
        instances=(Instance("night", Answer((1,)), 3), Instance("dawn", Answer(()))),
    )


@pytest.mark.parametrize("task", [*sample_tasks(), full()], ids=lambda task: task.id + task.split)
def test_a_task_and_its_row_hold_the_same(task: Task) -> None:
    from callwright.language.long_numbers import json_text, json_value

    row = json_value(json_text(task_row(task, REGISTRY, OWN)))
    found = TaskReader(lambda _: task.environment).task(row)
    assert found == task
    assert list(found.tools) == list(task.tools)
    assert found.offered == task.offered
    if found.program is not None and task.program is not None:
        assert (found.program.thought, found.program.text) == (task.program.thought, task.program.text)


def test_a_row_has_a_key_for_every_field_of_a_task() -> None:
    assert set(KEYS) == {attribute.name for attribute in fields(Task)}
    assert list(task_row(full(), REGISTRY, OWN)) == sorted(KEYS, key=KEYS.index)


def test_tools_stand_by_name_unless_they_were_changed() -> None:
    rows = task_row(full(), REGISTRY, OWN)["tools"]
    named = [row for row in rows if isinstance(row, str)]
    assert named == [name for name in full().tools if full().tools[name] is SHOP.tools.get(name)]
    written = {row.get("as", row["name"]): row for row in rows if not isinstance(row, str)}
    assert set(written) == {"price_of", "shop_total", "elsewhere"}
    assert written["shop_total"]["name"] == "total"
    assert "latency" not in written["elsewhere"]


def test_equal_tools_of_a_file_are_one_object() -> None:
    reader = TaskReader(lambda _: SHOP)
    row = json.loads(json.dumps(task_row(evolve(full(), answer=Answer()), REGISTRY, OWN)))
    first, second = (reader.task({**row, "id": name}) for name in "ab")
    assert first.tools["elsewhere"] is second.tools["elsewhere"]


@pytest.mark.parametrize("name", ["email", "depthbench-v1", "toolworld-mini-v1", "email+calendar"])
def test_every_field_of_a_tool_is_written(name: str) -> None:
    for spec in REGISTRY.create("environment", name).tools.values():
        assert read_spec(json.loads(json.dumps(spec_row(spec)))) == spec


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answer": Answer(((1, 2),))}, "the answer"),
        ({"answer": Answer((float("nan"),))}, "the answer"),
        ({"facts": {"values": (1,)}}, "a tuple"),
        ({"facts": {1: "a"}}, "a key that is no text"),
        ({"facts": {"f": print}}, "no JSON"),
        ({"program": Program((Call(0, "total", {"prices": ["API_RESPONSE_7"]}),))}, "reads as a reference"),
    ],
)
def test_what_json_would_change_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        task_row(evolve(sample_tasks()[1], **change), REGISTRY, OWN)
    assert "sample-1" in str(caught.value)


GOOD = json.loads(json.dumps(task_row(sample_tasks()[3], REGISTRY, OWN)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"quary": "x"}, "Did you mean 'query'"),
        ({"id": ""}, "'id' is a text"),
        ({"depth": True}, "'depth' is a whole number"),
        ({"tools": "find_items"}, "'tools' is a list"),
        ({"tools": ["find_itms"]}, "Did you mean 'find_items'"),
        ({"tools": ["total", "total"]}, "stands twice"),
        ({"tools": [{"name": "x", "color": 1}]}, "field of a tool"),
        ({"tools": [{"name": "x", "hidden": 1}]}, "'hidden' cannot be 1"),
        ({"tools": [{"name": "x", "read_only": True, "irreversible": True}]}, "tool 'x'"),
        ({"tools": [{}]}, "an object with a 'name'"),
        ({"shown": ["nothing"]}, "in 'shown'"),
        ({"returns": "some"}, "'returns' is one of"),
        ({"program": {"calls": [{"id": 0, "tool": "total"}]}}, "a call of a program"),
        ({"program": []}, "a program is an object"),
        ({"answer": {}}, "'answer' is a list"),
        ({"answer": {"values": [], "other": []}}, "Did you mean 'others'"),
        ({"answer": {"values": [], "others": [3]}}, "are lists of values"),
        ({"appear": {"find_itms": 1}}, "Did you mean 'find_items'"),
        ({"appear": {"find_items": -1}}, "'appear' is an object of turns"),
        ({"opening": {"history": 3}}, "history"),
        ({"instances": [3]}, "an instance"),
        ({"facts": []}, "'facts'"),
        ({"user": {"nome": "x"}}, "a user is an object"),
        ({"clock": {"call": -1}}, "clock"),
        ({"hazards": {"faults": 3}}, "faults"),
        ({"environment": 3}, "an environment is a name"),
        ({"environment": {"name": "a", "version": 1}}, "an environment is a name"),
        ({"tells_costs": "yes"}, "'tells_costs' is true or false"),
    ],
)
def test_a_row_that_is_no_task_is_refused_with_words(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        TaskReader(lambda _: SHOP).task({**GOOD, **change})


@pytest.mark.parametrize("missing", ["id", "split", "query", "tools", "answer", "environment"])
def test_a_row_needs_what_has_no_default(missing: str) -> None:
    with pytest.raises(DataError):
        TaskReader(lambda _: SHOP).task({key: value for key, value in GOOD.items() if key != missing})


# Environments ---------------------------------------------------------------------------------------------------------


def same(one: cw.Environment, other: cw.Environment, scenario: str = "", seed: int = 3) -> bool:
    """Whether sessions of two environments begin in the same state."""
    return one.open(scenario, seed).digest() == other.open(scenario, seed).digest()


COMPOSED = {
    "by name": lambda: REGISTRY.create("environment", "email+calendar"),
    "with options": lambda: REGISTRY.create("environment", "email+calendar", email={"scale": 2}, people="own"),
    "composed here": lambda: cw.compose("email", "banking"),
    "of parts": lambda: ComposedEnvironment(
        [REGISTRY.create("environment", "email", scale=0.5), REGISTRY.create("environment", "banking")],
        people="own",
        money="own",
    ),
    "of people": lambda: ComposedEnvironment(
        [REGISTRY.create("environment", name) for name in ("email", "calendar")],
        people=[Person("Ada Berg"), Person("Bo Lind", email="bo@example.org")],
    ),
}


@pytest.mark.parametrize("which", COMPOSED)
def test_a_composed_environment_is_made_again(which: str) -> None:
    environment = COMPOSED[which]()
    one = stated(environment, REGISTRY)
    again = make(Stated.from_json(json.loads(json.dumps(one.to_json()))), default_registry())
    assert again.name == environment.name
    assert list(again.tools) == list(environment.tools)
    assert same(environment, again)


@pytest.mark.parametrize("corpus", ["depthbench-v1", "toolworld-mini-v1"])
def test_an_environment_that_no_registry_made_is_found_by_its_name(corpus: str) -> None:
    environment = cw.corpus(corpus).environment
    assert stated(environment, REGISTRY) == Stated(environment.name)


def test_an_environment_that_nobody_could_make_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'sample-shop' is not registered.*environments="):
        stated(SHOP, REGISTRY)
    with pytest.raises(UsageError, match="task 'sample-0' cannot be written"):
        task_row(sample_tasks()[0], REGISTRY)
    other = cw.environment("email", tools=[])
    with pytest.raises(UsageError, match="not registered"):
        stated(other, REGISTRY)


def test_a_file_does_not_get_to_start_programs() -> None:
    one = Stated.of("mcp", {"command": ["touch", "/tmp/never"]})
    with pytest.raises(UsageError, match=r"touch.*does not get to do so.*--trust"):
        make(one, REGISTRY)


def test_options_that_are_no_json_are_refused() -> None:
    registry = Registry()

    class Plugin:
        @staticmethod
        @cw.hookimpl
        def callwright_environments() -> list[Lazy]:
            return [Lazy("shop", lambda state=None: cw.environment("shop", tools=[]), "a shop")]

    registry.add(Plugin(), name="shop")
    assert stated(registry.create("environment", "shop"), registry) == Stated("shop")
    with pytest.raises(UsageError, match="no JSON"):
        stated(registry.create("environment", "shop", state=print), registry)
