"""What a conversation offers: tools of the environment, some without their enumerations, and distractors."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from attrs import evolve

from callwright.environments.protocol import Environment
from callwright.tools.spec import ToolSpec
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.dialogue.worlds import environment_of


def offer(blueprint: Blueprint, environment: Environment, materials: Materials, seed: int) -> dict[str, ToolSpec]:
    """The tools, by name, in the order in which they are listed. What is hidden for ever is not among them."""
    stripped: dict[str, list[str]] = {}
    for tool, parameter in blueprint.stripped:
        stripped.setdefault(tool, []).append(parameter)
    found = {
        name: without_values(environment.tools[name], stripped.get(name, ()))
        for name in blueprint.offered
        if blueprint.hidden.get(name) != -1
    }
    if blueprint.distractors:
        for one in blueprint.distractors:
            found.setdefault(one.tool, environment_of(one.environment, materials).tools[one.tool])
        names = list(found)
        Random(f"offer/{seed}").shuffle(names)
        found = {name: found[name] for name in names}
    return found


def without_values(spec: ToolSpec, parameters: Any) -> ToolSpec:
    """A tool without the enumerated values of some parameters: they are to be inferred from the descriptions."""
    if not parameters:
        return spec
    properties = spec.parameters.get("properties", {})
    told = {name: _without(inner) if name in parameters else inner for name, inner in properties.items()}
    return evolve(spec, parameters={**spec.parameters, "properties": told})


def _without(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {key: _without(inner) for key, inner in schema.items() if key not in ("enum", "const")}
    return [_without(one) for one in schema] if isinstance(schema, list) else schema
