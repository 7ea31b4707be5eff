"""Every tool with arguments that fit, at every boundary of its schema, and just beyond each."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from callwright.tools.validation import TABLE
from callwright.walk.execution import execute
from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.environment import DepthBench
from callwright_plugins.depthbench.specifications import specifications
from callwright_plugins.depthbench.tools import TOOLS

ENVIRONMENT = DepthBench()


@cache
def used() -> dict[str, tuple[str, dict[str, Any]]]:
    """Tool -> a scenario and resolved arguments with which some task calls it."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    corpus = DepthBenchCorpus()
    for task in (task for split in corpus.splits for task in corpus[split]):
        assert task.program is not None
        for step in execute(task.program, ENVIRONMENT, task.tools, scenario=task.scenario).records:
            found.setdefault(step.tool, (task.scenario, dict(step.arguments)))
    return found


def places(schema: Any, value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The paths of the literals in arguments, with the schema of each."""
    if schema.get(TABLE):
        return
    if path:
        yield path, schema
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(schema["properties"][name], inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from places(schema["items"], value[0], (*path, 0))


def changed(arguments: dict[str, Any], path: tuple[Any, ...], value: Any, *, drop: bool = False) -> dict[str, Any]:
    """The arguments with one place changed (tables are shared, everything above the place is copied)."""
    made = dict(arguments)
    here: Any = made
    for part in path[:-1]:
        here[part] = copy.copy(here[part])
        here = here[part]
    if drop:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return made


def inside(schema: Any) -> Iterator[Any]:
    """The boundary values of a schema."""
    for key in ("minimum", "maximum"):
        if key in schema:
            yield schema[key]
    yield from schema.get("enum", ())
    if schema.get("type") == "string" and "maxLength" in schema and "pattern" not in schema:
        yield "x" * schema["maxLength"]
        yield "x" * schema.get("minLength", 1)


def outside(schema: Any) -> Iterator[Any]:
    """Values just beyond, and of another type."""
    if "anyOf" in schema:
        yield 7
        return
    if "minimum" in schema:
        yield schema["minimum"] - 1
    if "maximum" in schema:
        yield schema["maximum"] + 1
    kind = schema.get("type")
    if "enum" in schema or "pattern" in schema:
        yield "?"
    if "maxLength" in schema and kind == "string":
        yield "x" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield ""
    if kind == "array":
        yield from ([], "text") if schema.get("minItems") else ("text",)
    if kind == "integer":
        yield 1.5
    if kind in ("integer", "number"):
        yield from ("1", True, None)
    if kind in ("string", "object"):
        yield from (5, [], None)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_tool_at_its_boundaries(tool: str) -> None:
    scenario, arguments = used()[tool]
    schema = specifications()[tool].parameters
    session = ENVIRONMENT.open(scenario)
    assert session.call(tool, arguments).kind == "ok"
    for path, place in places(schema, arguments):
        for value in inside(place):
            outcome = session.call(tool, changed(arguments, path, value))
            assert outcome.kind in ("ok", "empty", "execution_error"), (path, value, outcome)
        for value in outside(place):
            outcome = session.call(tool, changed(arguments, path, value))
            assert outcome.kind == "schema_error", (path, value, outcome)
            assert outcome.code in ("type", "value"), (path, value, outcome)
        if place.get("type") == "object":
            for name in place["required"]:
                outcome = session.call(tool, changed(arguments, (*path, name), None, drop=True))
                assert (outcome.kind, outcome.code) == ("schema_error", "missing"), (path, name)
            assert session.call(tool, changed(arguments, (*path, "more"), 1)).code == "unexpected"
    for name in schema.get("required", ()):
        outcome = session.call(tool, {key: value for key, value in arguments.items() if key != name})
        assert (outcome.kind, outcome.code) == ("schema_error", "missing")
    assert session.call(tool, {**arguments, "more": 1}).code == "unexpected"
