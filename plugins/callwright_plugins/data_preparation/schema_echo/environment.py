"""The environment: calls return their resolved arguments. It has no state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.compression.packing import unpacked
from callwright.digests import digest_of
from callwright.environments.calling import ReadyTool, call_tool, ready
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import DataError, NotThere, UnknownName, UsageError
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.data_preparation.conversations import BadRow
from callwright_plugins.data_preparation.formats import read_tool
from callwright_plugins.data_preparation.schema_echo.declared import spec_of

NAME: Final = "schema-echo"
#: The member of what a call returns that holds the resolved arguments.
ARGUMENTS: Final = "arguments"


def echoed(spec: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a call returns: its tool, and its arguments in the order of the schema with defaults in place of omissions.

    An optional parameter that declares no default and is left out is left out here, too.
    """
    properties: Mapping[str, Mapping[str, Any]] = spec.parameters.get("properties", {})
    resolved = {
        name: arguments[name] if name in arguments else schema["default"]
        for name, schema in properties.items()
        if name in arguments or "default" in schema
    }
    return {"name": spec.name, ARGUMENTS: resolved}


def ready_to_echo(spec: ToolSpec) -> ReadyTool:
    """A tool made ready for calls. Raises :class:`callwright.errors.DataError` for a schema that is not valid."""
    return ready(spec, partial(_call, spec), "mapping")


def _call(spec: ToolSpec, state: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return echoed(spec, arguments)


@frozen(eq=False)
class EchoSession(Session):
    """A session over some tools, which its environment opened for a scenario."""

    tools: Mapping[str, ReadyTool]
    environment: Environment
    scenario: str = ""

    def __reduce__(self) -> Any:
        return _opened, (self.environment, self.scenario)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return call_tool(self.tools, tool, arguments, None)

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""


def _opened(environment: Environment, scenario: str) -> Session:
    return environment.open(scenario)


class MadeReady(dict[str, ReadyTool]):
    """Tools that are made ready when they are first called: most of thousands never are.

    ``made`` are those that are, by the identity of their specs, for all that share it.
    """

    def __init__(self, specs: Mapping[str, ToolSpec], made: dict[int, ReadyTool]) -> None:
        super().__init__()
        self._specs, self._made = specs, made

    def get(self, name: str, default: Any = None) -> Any:
        """The tool, made ready; ``default`` if there is none of the name."""
        spec = self._specs.get(name)
        if spec is None:
            return default
        found = self._made.get(id(spec))
        if found is None:
            found = self._made[id(spec)] = ready_to_echo(spec)
        return found


class SchemaEcho(Environment):
    """The environment ``schema-echo``: tools that are known by their schemas, which return what they are given.

    ``schemas`` is a JSON file (plain or gzip) of definitions, as a list or by name; or ``definitions`` are these
    themselves, as a list or the JSON text of one. A file of tasks holds the text: options are stated with sorted keys,
    and the order of parameters is part of a tool. ``required`` says which parameters
    a call must have (TIER, appendix E.2): those that the schema's list ``required`` names (``"listed"``, ToolACE), or
    those without a declared default (``"defaults"``, xLAM). ``"auto"`` takes the lists unless none of the file names
    anything, as in the file of xLAM's schemas that TIER released.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read or holds no tools.
    """

    def __init__(
        self,
        schemas: str | Path | None = None,
        required: str = "auto",
        definitions: str | Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        if required not in ("auto", "listed", "defaults"):
            raise UsageError(f"required must be auto, listed or defaults, not {required!r}")
        if (schemas is None) == (definitions is None):
            raise UsageError(
                f"the environment {NAME} needs a file of schemas (schemas=FILE), or the definitions themselves"
            )
        file = None if schemas is None else Path(schemas).absolute()
        self._made_of = (file, required, definitions)
        found = _given(definitions) if file is None else _definitions(file)
        where = "definitions" if file is None else str(file)
        if not found:
            raise DataError(f"{where} holds no tools: definitions with a name and parameters are looked for")
        listed = required == "listed" or (required == "auto" and any(map(_lists, found)))
        self._specs: dict[str, ToolSpec] = {}
        for number, definition in enumerate(found):
            try:
                spec = spec_of(read_tool(definition if listed else _without_list(definition)))
            except BadRow as error:
                raise DataError(f"{where}: definition {number + 1} holds {error}") from error
            self._specs[spec.name] = spec

    def __reduce__(self) -> Any:
        return made_by(self, SchemaEcho, *self._made_of)

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool of the file, or those that were given."""
        return self._specs

    @property
    def pure(self) -> bool:
        """True: nothing is changed."""
        return True

    @cached_property
    def _ready(self) -> Mapping[str, ReadyTool]:
        return MadeReady(self._specs, {})

    def open(self, scenario: str = "", seed: int = 0) -> EchoSession:
        """A session; all are alike. Raises :class:`callwright.errors.UnknownName` for a scenario: there are none."""
        if scenario:
            raise UnknownName(f"scenario of {NAME}", scenario, [])
        return EchoSession(self._ready, self)


def _given(given: Any) -> list[Mapping[str, Any]]:
    """The definitions that were given. Raises :class:`callwright.UsageError` for anything else."""
    found = given
    if isinstance(given, str):
        try:
            found = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the definitions of the environment {NAME} cannot be read as JSON: {error}") from error
    if isinstance(found, list | tuple) and all(isinstance(one, Mapping) for one in found):
        return list(found)
    raise UsageError(f"the definitions of the environment {NAME} are a list of objects, not {given!r:.80}")


def _definitions(path: Path) -> list[Mapping[str, Any]]:
    """The definitions of a file: a list of them, or an object that has them by name."""
    if not path.is_file():
        raise NotThere(f"there is no file {path}: name a file of tool definitions (schemas=FILE)")
    try:
        with path.open("rb") as raw, unpacked(raw, str(path)) as file:
            found = json.loads(file.read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error
    if isinstance(found, Mapping):
        found = [{"name": name, **value} for name, value in found.items() if isinstance(value, Mapping)]
    return [value for value in found if isinstance(value, Mapping)] if isinstance(found, list) else []


def _lists(definition: Mapping[str, Any]) -> bool:
    parameters = definition.get("parameters")
    return bool(isinstance(parameters, Mapping) and parameters.get("required")) or bool(definition.get("required"))


def _without_list(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition in the shape of xLAM's rows: parameters stand by name, and nothing lists what is needed."""
    parameters = definition.get("parameters")
    if isinstance(parameters, Mapping) and isinstance(parameters.get("properties"), Mapping):
        return {**definition, "parameters": parameters["properties"]}
    return definition
