"""The scripted samplers: what they write, that it is drawn from the seed alone, and what accuracy they have."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
import callwright_plugins.json_ir
import callwright_plugins.scripted_samplers
import callwright_plugins.xml_ir
from callwright.errors import DataError, UnknownName, UsageError
from callwright.plugins import load_plugins
from callwright.tools import validate
from callwright.training import judge
from callwright_plugins.scripted_samplers.values import NoValue, another_value, random_arguments, random_value


@cw.tool(read_only=True)
def step(x: int, by: int = 1) -> int:
    """The next number."""
    return x + by


@cw.tool(read_only=True)
def back(x: int, by: int = 1) -> int:
    """The number before."""
    return x - by


ENVIRONMENT = cw.environment("counting", tools=[step, back])
TOOLS = {tool.spec.name: tool.spec for tool in (step, back)}


def chain(depth: int, name: str = "") -> cw.Task:
    """A task of ``depth`` calls in a chain, each of which changes the answer."""
    calls = [cw.Call(0, "step", {"x": 1, "by": 10})][:depth]
    calls += [cw.Call(i, "step", {"x": cw.Reference(i - 1), "by": 10 + i}) for i in range(1, depth)]
    value = 1 + sum(10 + i for i in range(depth))
    return cw.Task(
        id=name or f"chain-{depth}",
        query="count",
        tools=TOOLS,
        answer=cw.Answer((value,) if depth else ()),
        environment=ENVIRONMENT,
        depth=depth,
        program=cw.Program(tuple(calls)),
    )


@pytest.fixture(scope="module")
def registry() -> cw.Registry:
    modules = {
        "json-ir": callwright_plugins.json_ir,
        "xml-ir": callwright_plugins.xml_ir,
        "scripted-samplers": callwright_plugins.scripted_samplers,
    }
    return load_plugins(extra=modules, entry_points=False)


def texts(sampler: cw.Sampler, tasks: list[cw.Task], n: int = 1, seed: int = 0) -> list[list[str]]:
    requests = [cw.SamplingRequest((), task) for task in tasks]
    return [[one.text for one in row] for row in sampler.sample(requests, n=n, seed=seed)]


def verdicts(registry: cw.Registry, sampler: cw.Sampler, tasks: list[cw.Task]) -> list[cw.training.Verdict]:
    parser = registry.create("parser", "json")
    return [judge(cw.Attempt(task, text, parser)) for task, (text,) in zip(tasks, texts(sampler, tasks), strict=True)]


@pytest.mark.parametrize("ir", ["json", "xml"])
def test_gold_writes_the_reference_in_the_form_that_is_asked_for(registry: cw.Registry, ir: str) -> None:
    parser = registry.create("parser", ir)
    gold = registry.create("sampler", "gold", ir=ir)
    tasks = [chain(depth) for depth in range(5)]
    for task, row in zip(tasks, texts(gold, tasks, n=2), strict=True):
        assert row == [parser.render(task.program)] * 2
        assert parser.parse(row[0]) == task.program


def test_gold_needs_a_reference(registry: cw.Registry) -> None:
    task = evolve(chain(1), program=None)
    with pytest.raises(DataError, match="'chain-1' has no reference program"):
        texts(registry.create("sampler", "gold"), [task])
    assert texts(registry.create("sampler", "no-call"), [task])


def test_no_call_is_right_only_where_nothing_is_due(registry: cw.Registry) -> None:
    found = verdicts(registry, registry.create("sampler", "no-call"), [chain(depth) for depth in range(4)])
    assert [one.answer for one in found] == [True, False, False, False]
    assert {one.failure for one in found[1:]} == {"answer:abstained"}


@pytest.mark.parametrize("p", [0.0, 0.6, 0.9, 1.0])
def test_noisy_gold_is_right_as_often_as_p_to_the_depth(registry: cw.Registry, p: float) -> None:
    noisy = registry.create("sampler", "noisy-gold", p=p)
    for depth in (0, 1, 3):
        tasks = [chain(depth, f"{depth}-{number}") for number in range(300)]
        right = sum(one.answer for one in verdicts(registry, noisy, tasks))
        expected = p**depth
        allowed = 4 * (expected * (1 - expected) / 300) ** 0.5  # four standard errors; the draws are fixed by the seed
        assert abs(right / 300 - expected) <= allowed


def test_noisy_gold_spoils_calls_and_not_the_form(registry: cw.Registry) -> None:
    parser = registry.create("parser", "json")
    noisy = registry.create("sampler", "noisy-gold", p=0.0)
    kinds = set()
    for number in range(60):
        task = chain(2, str(number))
        assert task.program is not None
        ((text,),) = texts(noisy, [task])
        program = parser.parse(text)
        assert isinstance(program, cw.Program)
        assert len(program.calls) == 2
        for call, reference in zip(program.calls, task.program.calls, strict=True):
            assert call != reference
            kinds.add("tool" if call.tool != reference.tool else "argument")
    assert kinds == {"tool", "argument"}


def test_random_valid_calls_fit_their_schemas(registry: cw.Registry) -> None:
    parser = registry.create("parser", "json")
    sampler = registry.create("sampler", "random-valid", calls=3)
    seen = set()
    for number in range(40):
        ((text,),) = texts(sampler, [chain(1, str(number))])
        program = parser.parse(text)
        assert isinstance(program, cw.Program)
        assert len(program.calls) == 3
        assert validate(program, TOOLS).valid
        seen.update(call.tool for call in program.calls)
    assert seen == {"step", "back"}


def test_random_valid_leaves_out_what_no_literal_can_call(registry: cw.Registry) -> None:
    table = cw.ToolSpec.from_tier(
        {
            "name": "sort",
            "parameters": {"type": "dict", "properties": {"t": {"type": "pandas.DataFrame"}}, "required": ["t"]},
        }
    )
    hidden = evolve(TOOLS["step"], name="_reset", hidden=True)
    task = evolve(chain(1), tools={"sort": table, "_reset": hidden})
    parser = registry.create("parser", "json")
    ((text,),) = texts(registry.create("sampler", "random-valid"), [task])
    assert parser.parse(text) == cw.Program()
    ((text,),) = texts(registry.create("sampler", "random-valid"), [evolve(task, tools={"sort": table, **TOOLS})])
    program = parser.parse(text)
    assert isinstance(program, cw.Program)
    assert program.calls[0].tool in TOOLS


@pytest.mark.parametrize("name", ["gold", "no-call", "noisy-gold", "random-valid"])
def test_texts_depend_on_seed_task_and_draw_alone(registry: cw.Registry, name: str) -> None:
    sampler = registry.create("sampler", name)
    tasks = [chain(3, str(number)) for number in range(20)]
    forward = texts(sampler, tasks, n=3)
    assert texts(registry.create("sampler", name, ir="json"), tasks[::-1], n=3)[::-1] == forward
    assert [row[:1] for row in forward] == texts(sampler, tasks)
    if name in ("noisy-gold", "random-valid"):
        assert texts(sampler, tasks, seed=1) != texts(sampler, tasks, seed=0)
        assert len({text for row in forward for text in row}) > 5


def test_hash_seeds_play_no_part() -> None:
    code = (
        "import callwright as cw\nfrom callwright.plugins import load_plugins\n"
        "from callwright_plugins import json_ir, scripted_samplers, toolworld\n"
        "r = load_plugins(extra={'j': json_ir, 's': scripted_samplers, 't': toolworld}, entry_points=False)\n"
        "tasks = r.create('corpus', 'toolworld-mini-v1')['evaluation'][:40]\n"
        "for name in ('noisy-gold', 'random-valid'):\n"
        "    for row in r.create('sampler', name).sample([cw.SamplingRequest((), task) for task in tasks]):\n"
        "        print(row[0].text)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("noisy-gold", {"p": 1.5}, UsageError),
        ("noisy-gold", {"p": True}, UsageError),
        ("noisy-gold", {"p": "high"}, UsageError),
        ("random-valid", {"calls": -1}, UsageError),
        ("random-valid", {"calls": 1.5}, UsageError),
        ("gold", {"ir": "yaml"}, UnknownName),
        ("gold", {"p": 1}, UnknownName),
    ],
)
def test_options_that_mean_nothing(
    registry: cw.Registry, name: str, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        registry.create("sampler", name, **options)


SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 30, "maxLength": 40},
    {"type": "string", "format": "date"},
    {"type": "integer", "minimum": 3, "maximum": 4},
    {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 20},
    {"type": "integer", "maximum": -500},
    {"type": "number", "minimum": 0.1, "maximum": 0.2},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1e-3},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"enum": ["a", 1, None]},
    {"const": {"a": [1]}},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}]},
    {"allOf": [{"type": "integer"}, {"minimum": 10, "maximum": 12}]},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "items": False},
    {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "object", "properties": {"c": {"enum": [1]}}, "required": ["c"]},
        },
        "required": ["a", "b"],
    },
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_random_values_fit(schema: dict[str, Any]) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    for seed in range(50):
        value = random_value(schema, Random(seed))
        validator.validate(value)


@pytest.mark.parametrize(
    "schema",
    [{"type": "integer", "minimum": 4, "maximum": 3}, {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6}],
)
def test_a_schema_that_nothing_fits(schema: dict[str, Any]) -> None:
    with pytest.raises(NoValue):
        random_value(schema, Random(0))


def test_a_pattern_that_is_not_met_is_given_up() -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^[0-9]{9}$"}}, "required": ["x"]}
    with pytest.raises(NoValue):
        random_arguments(cw.ToolSpec("t", parameters=parameters), Random(0))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(_JSON, st.integers(0, 1000))
def test_another_value_differs(value: Any, seed: int) -> None:
    changed = another_value({}, value, Random(seed))
    assert changed != value or value in ({}, 0.0) or isinstance(value, float)
