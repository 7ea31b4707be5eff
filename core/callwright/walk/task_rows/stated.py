"""Environments in files: by registered name and options, with a version and a digest of every tool.

A task is right or wrong in one world only. So a file says which worlds it is of, and whoever opens it compares them
with those that are there: :func:`fingerprint` and :func:`differences`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import asdict, frozen

from callwright.capability import has
from callwright.digests import digest_of
from callwright.environments.capabilities import HasVersion
from callwright.environments.composed.environment import OWN, ComposedEnvironment
from callwright.environments.people.person import People
from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, DataError, UsageError
from callwright.pickling import registered_as
from callwright.plugins import Registry
from callwright.registration import Reach
from callwright.tools.spec import ToolSpec

#: Hex digits of the digest of a tool: 64 bits.
_SHORT: Final = 16
#: Tools that a message names before it stops.
_NAMED: Final = 4


@frozen
class Stated:
    """An environment as a row states it: its registered name, and the options that it is made with."""

    name: str
    #: JSON, as text, so that two of the same are equal and one can be a key.
    options: str = "{}"

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> Stated:
        """Raises :class:`callwright.UsageError` for options that are no JSON."""
        try:
            return cls(name, json.dumps(options, sort_keys=True, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"the options of the environment {name!r} are no JSON ({error}), so no file can state them"
            ) from error

    @classmethod
    def from_json(cls, value: Any) -> Stated:
        """A name, or an object with ``name`` and ``options``. Raises :class:`callwright.errors.DataError`."""
        if isinstance(value, str) and value:
            return cls(value)
        if isinstance(value, Mapping) and {"name"} <= value.keys() <= {"name", "options"}:
            name, options = value["name"], value.get("options", {})
            if isinstance(name, str) and name and isinstance(options, Mapping):
                return cls.of(name, options)
        raise DataError(f"an environment is a name, or an object with 'name' and 'options'; not {value!r:.80}")

    def to_json(self) -> Any:
        """The name alone where there are no options."""
        return self.name if self.options == "{}" else {"name": self.name, "options": json.loads(self.options)}

    def __str__(self) -> str:
        return repr(self.name) if self.options == "{}" else f"{self.name!r} with the options {self.options}"


def stated(environment: Environment, registry: Registry) -> Stated:
    """How a file states an environment.

    One that no registry made is stated by its name, if a registered one of this name is of the same class and has the
    same tools, and a composed one by its parts. Raises :class:`callwright.UsageError` for any other: no reader of the
    file could make it.
    """
    known = registered_as(environment)
    if known is not None and registry.knows("environment", known[0]):
        return Stated.of(*known)
    if isinstance(environment, ComposedEnvironment):
        return _composed(environment, registry)
    name = environment.name
    if registry.knows("environment", name):
        try:
            other = registry.create("environment", name)
        except CallwrightError:
            other = None
        if type(other) is type(environment) and tool_digests(other) == tool_digests(environment):
            return Stated(name)
    raise UsageError(
        f"the environment {name!r} is not registered, so nobody could read tasks of it: have a plugin register it by "
        "this name (docs/plugins.md), or give it by its name to whoever writes and reads them (environments=…)"
    )


def _composed(environment: ComposedEnvironment, registry: Registry) -> Stated:
    parts = [stated(part, registry) for part in environment.parts]
    options: dict[str, Any] = {part.name: json.loads(part.options) for part in parts if part.options != "{}"}
    people = environment.people
    if isinstance(people, People):
        if people.untouched or people.me is None:
            raise UsageError(f"the people of {environment.name!r} are more than a file can state: give persons")
        options["people"] = [asdict(person) for person in people.all]
    elif people == OWN:
        options["people"] = OWN
    if environment.money is not None:
        options["money"] = environment.money
    return Stated.of("+".join(part.name for part in parts), options)


def make(one: Stated, registry: Registry, *, trust: bool = False) -> Environment:
    """The environment that a file states.

    Raises :class:`callwright.UsageError` for one that would start programs, send secrets or run code of a folder,
    unless ``trust``: a file of tasks is data, and comes from anywhere.
    """
    options = json.loads(one.options)
    if not trust:
        for reach in reaches([one], registry):
            raise UsageError(
                f"the environment {one} {reach.what}. A file of tasks does not get to do so: if that is meant, trust "
                "the file (--trust of a command, trust = true of a corpus)"
            )
    made: Environment = registry.create("environment", one.name, **options)
    return made


def reaches(named: Iterable[Stated], registry: Registry) -> list[Reach]:
    """What environments would reach for outside of this process."""
    return [reach for one in named for reach in registry.spec("environment", one.name).reach(json.loads(one.options))]


# Which environment it was ---------------------------------------------------------------------------------------------


@frozen
class Fingerprint:
    """What tells whether an environment is the one that a file is of."""

    version: str
    schema: str
    tools: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"version": self.version, "schema": self.schema, "tools": dict(self.tools)}

    @classmethod
    def from_json(cls, value: Any) -> Fingerprint:
        """Raises :class:`callwright.errors.DataError`."""
        if (
            isinstance(value, Mapping)
            and isinstance(value.get("version"), str)
            and isinstance(value.get("schema"), str)
            and isinstance(value.get("tools"), Mapping)
            and all(isinstance(digest, str) for digest in value["tools"].values())
        ):
            return cls(value["version"], value["schema"], dict(value["tools"]))
        raise DataError(f"the head does not say which environment it was: {value!r:.80}")


def fingerprint(one: Stated, environment: Environment, registry: Registry) -> Fingerprint:
    """Version and tools of an environment as it is here."""
    tools = tool_digests(environment)
    return Fingerprint(version_of(one, environment, registry), schema_hash(tools), tools)


def tool_digests(environment: Environment) -> dict[str, str]:
    """A digest of everything that each tool says of itself, by name."""
    return {name: _digest(spec) for name, spec in environment.tools.items()}


def schema_hash(tools: Mapping[str, str]) -> str:
    """One digest of the digests of tools, whatever their order."""
    return f"sha256:{digest_of(dict(tools))}"


def _digest(spec: ToolSpec) -> str:
    return digest_of(asdict(spec, recurse=False))[:_SHORT]


def version_of(one: Stated, environment: Environment, registry: Registry) -> str:
    """Its own ``version`` where it has one, else those of the distributions that its parts come from.

    Empty for a plugin that is a module of somebody's folder: of that the tools alone are compared.
    """
    if has(environment, HasVersion) and isinstance(environment.version, str) and environment.version:
        return environment.version
    found = []
    for part in dict.fromkeys(one.name.split("+")) if registry.knows("environment", one.name) else ():
        info = registry.plugin(registry.spec("environment", part).plugin)
        if info.distribution:
            found.append(f"{info.distribution} {info.version}")
    return ", ".join(dict.fromkeys(found))


def differences(before: Fingerprint, now: Fingerprint, *, any_version: bool = False) -> str:
    """What is not as a file says, in words; empty where it is."""
    if before.schema != now.schema:
        changed = [name for name in now.tools if before.tools.get(name, now.tools[name]) != now.tools[name]]
        kinds = {
            "changed": changed,
            "gone": [name for name in before.tools if name not in now.tools],
            "new": [name for name in now.tools if name not in before.tools],
        }
        return "; ".join(f"{kind}: {_some(names)}" for kind, names in kinds.items() if names) or "other tools"
    if not any_version and before.version != now.version:
        return f"version {before.version or 'unknown'} then, {now.version or 'unknown'} now"
    return ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
