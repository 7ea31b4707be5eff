"""What is offered: the tools of the environment, those of others beside them, and schemas without their closed sets."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from attrs import evolve

from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.dialogue.worlds import environment_of

NEVER: Final = -1


def offered_tools(blueprint: Blueprint, environment: Environment, registry: Registry, seed: int) -> dict[str, ToolSpec]:
    """The tools of a task by name, in the order in which they are listed: without those that never appear.

    Tools of other environments are listed among them, and nothing else is of those: a call of one comes to nothing.
    Raises :class:`callwright.errors.DataError` for a tool that is not there.
    """
    found = {name: _spec(environment, name) for name in blueprint.offered if blueprint.hidden.get(name) != NEVER}
    order = list(found)
    rng = Random(f"offered/{seed}/{environment.name}")
    for one in blueprint.distractors:
        if one.tool not in environment.tools and one.tool not in found:
            found[one.tool] = _spec(environment_of(registry, one.environment), one.tool)
            order.insert(rng.randint(0, len(order)), one.tool)
    for tool, parameter in blueprint.stripped:
        if tool in found:
            found[tool] = stripped(found[tool], parameter)
    return {name: found[name] for name in order}


def stripped(spec: ToolSpec, parameter: str) -> ToolSpec:
    """The tool without the closed set of a parameter: the values are to be inferred from descriptions."""
    properties = spec.parameters.get("properties", {})
    if parameter not in properties:
        return spec
    schema = {**spec.parameters, "properties": {**properties, parameter: _open(properties[parameter])}}
    return evolve(spec, parameters=schema)


def _open(schema: Any) -> Any:
    """A schema without ``enum``, also in its alternatives and items."""
    if isinstance(schema, Mapping):
        closed = schema.get("enum")
        made = {key: _open(inner) if key in ("anyOf", "oneOf", "items") else inner for key, inner in schema.items()}
        made.pop("enum", None)
        if closed and "type" not in made and all(isinstance(one, str) for one in closed):
            made["type"] = "string"
        return made
    return [_open(one) for one in schema] if isinstance(schema, list | tuple) else schema


def _spec(environment: Environment, name: str) -> ToolSpec:
    if name not in environment.tools:
        raise DataError(f"the environment {environment.name!r} has no tool {name!r}, which a blueprint offers")
    return environment.tools[name]
