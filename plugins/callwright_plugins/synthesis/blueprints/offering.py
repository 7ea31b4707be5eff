"""What is offered: the tools of the environment, those of others beside them, and schemas without their closed sets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from callwright.environments.protocol import Environment, OutOfProcess, TakesAnything, declares
from callwright.errors import CallwrightError
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Distractor, Stage
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import briefly_known
from callwright_plugins.synthesis.blueprints.repertoire import Repertoire
from callwright_plugins.synthesis.exploration.names import words_of
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.sayable import Sayable

#: How many other environments tools and requests are taken from, at most.
_OTHERS: Final = 6
#: What can be done in environments that are one with another one, by name and schema hash: shaped once in a process.
_shaped: dict[tuple[str, str], Repertoire] = {}


class Offering:
    """Draws what is offered in the conversations of an environment."""

    def __init__(
        self, environment: Environment, registry: Registry, knobs: Knobs, rng: Random, cache: Path | None = None
    ) -> None:
        self.environment, self.registry, self.knobs, self.rng, self.cache = environment, registry, knobs, rng, cache
        self.environments = {environment.name: environment}
        self.others = self._others()
        self._sayable: dict[str, Sayable] = {}

    def offered(self, environment: Environment) -> tuple[str, ...]:
        """The tools of the environment, or of several as one, in a random order."""
        self.environments[environment.name] = environment
        own = [name for name, spec in environment.tools.items() if not spec.hidden]
        return tuple(self.rng.sample(own, len(own)))

    def partners(self, count: int) -> list[Environment]:
        """Other environments that may be one with this one: a registry makes both by their names alone.

        That is not so of a server, which is made by its command.
        """
        name = self.environment.name
        if "+" in name or not self.registry.knows("environment", name) or declares(self.environment, OutOfProcess):
            return []
        return list(self.others.values())[:count]

    def repertoire(self, partner: Environment) -> Repertoire:
        """What can be done in a partner, by what is briefly known of it."""
        knowledge = briefly_known(partner, registry=self.registry, cache=self.cache)
        key = partner.name, knowledge.explored.schema
        if key not in _shaped:
            _shaped[key] = Repertoire(partner, knowledge)
        return _shaped[key]

    # Other environments -----------------------------------------------------------------------------------------------

    def _others(self) -> dict[str, Environment]:
        """A few other environments whose worlds are in this process."""
        registry, own = self.registry, self.environment.name.split("+")
        names, known = list(self.knobs.others), registry.names("environment")
        if not names:
            plugins = {registry.spec("environment", one).plugin for one in own if registry.knows("environment", one)}
            names = [one for one in known if registry.spec("environment", one).plugin in plugins]
            names = names if len(names) > len(own) else []
        found: dict[str, Environment] = {}
        for name in self._drawn([one for one in names or known if one not in own], apart=not names):
            if len(found) >= _OTHERS:
                break
            if not self.knobs.others and registry.spec("environment", name).reach({}):
                continue  # nothing is started or sent for a distractor
            try:
                made = registry.create("environment", name)
            except CallwrightError:
                if self.knobs.others:
                    raise
                continue
            if not declares(made, OutOfProcess) and not declares(made, TakesAnything):
                found[name] = made
        return found

    def _drawn(self, names: Sequence[str], *, apart: bool) -> Sequence[str]:
        """The names in a random order. ``apart``: each has its place by itself, so that an environment which somebody
        installs does not move the others, and changes a plan only if it is drawn for it.
        """
        if not apart:
            return self.rng.sample(names, len(names))
        salt = self.rng.getrandbits(64)
        return sorted(names, key=lambda name: hashlib.sha256(f"{salt}\n{name}".encode()).digest())

    def distractors(self, blueprint: Blueprint) -> tuple[Distractor, ...]:
        """Tools of other environments: unrelated ones, or by the knob ``confusable`` such as are alike."""
        own = self.environments[blueprint.environment].tools
        taken = {*own, *(call.tool for stage in blueprint.stages for call in stage.asked.calls)}
        found = [
            Distractor(name, tool)
            for name, environment in self.others.items()
            for tool, spec in environment.tools.items()
            if not spec.hidden and tool not in taken and name not in blueprint.environment.split("+")
        ]
        found = list({one.tool: one for one in self.rng.sample(found, len(found))}.values())
        count = self.rng.randint(self.knobs.least_distractors, self.knobs.most_distractors)
        about = [call.tool for stage in blueprint.stages for call in stage.calls if call.tool in own]
        if about and self.rng.random() < self.knobs.confusable:
            wanted = [own[tool] for tool in dict.fromkeys(about)]
            found.sort(
                key=lambda one: -max(alike(spec, self.others[one.environment].tools[one.tool]) for spec in wanted)
            )
        return tuple(found[:count])

    def foreign_request(self, environment: Environment) -> Stage | None:
        """A turn that asks for a tool of another environment than this, with arguments that mean something there."""
        names = [name for name in self.others if name not in environment.name.split("+")]
        for name in self.rng.sample(names, len(names)):
            other = self.others[name]
            explored = briefly_known(other, registry=self.registry, cache=self.cache).explored
            calls = [
                witness.calls[-1]
                for tool, found in sorted(explored.witnesses.items())
                for witness in found
                if tool not in environment.tools
            ]
            if name not in self._sayable:
                self._sayable[name] = Sayable(other, self.registry)
            sayable = self._sayable[name]
            for call in self.rng.sample(calls, min(5, len(calls))):
                asked = Plan.of([call])
                if sayable(asked):
                    return Stage(asked, ending="refusal", elsewhere=name)
        return None

    # Schemas ----------------------------------------------------------------------------------------------------------

    def closed(self, blueprint: Blueprint) -> list[tuple[str, str]]:
        """Parameters of the offered tools that take the members of a closed set."""
        tools = self.environments[blueprint.environment].tools
        specs = [tools[tool] for tool in blueprint.offered]
        specs += [self.others[one.environment].tools[one.tool] for one in blueprint.distractors]
        return [
            (spec.name, name)
            for spec in specs
            for name, schema in spec.parameters.get("properties", {}).items()
            if isinstance(schema, Mapping) and ("enum" in schema or _closed_inside(schema))
        ]

    def stripped(self, blueprint: Blueprint) -> tuple[tuple[str, str], ...]:
        """All of them: the values are to be inferred from descriptions."""
        return tuple(self.closed(blueprint))


def _closed_inside(schema: Mapping[str, Any]) -> bool:
    inner: Sequence[Any] = (*schema.get("anyOf", ()), *schema.get("oneOf", ()), schema.get("items"))
    return any(isinstance(one, Mapping) and "enum" in one for one in inner)


def alike(one: ToolSpec, other: ToolSpec) -> float:
    """How easily two tools are taken for one another, by the words of their names and parameters: 0 to 1."""
    mine, theirs = set(words_of(one.name)), set(words_of(other.name))
    names = len(mine & theirs) / max(1, len(mine | theirs))
    mine, theirs = set(one.parameters.get("properties", {})), set(other.parameters.get("properties", {}))
    return max(names, len(mine & theirs) / max(1, len(mine | theirs)))
