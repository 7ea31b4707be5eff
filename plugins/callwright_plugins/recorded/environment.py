"""An environment that answers from a recording, and the recording itself.

A recording is a folder with ``function_definitions.json`` (name -> definition) and ``cassette.jsonl`` (plain or
``.gz``), a row per call: ``{"scenario", "tool", "arguments", "status", "value" | "error"}``. ``status`` is ``ok`` (it
returned ``value``), ``missing`` (no such tool) or ``raised`` (it failed with ``error``). For environments with state a
row also has ``state`` and ``next``, the digests before and after, and the first one of a session that began otherwise
than the first of its scenario the ``seed``; ``kind`` and ``code`` keep the exact outcome.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from attrs import evolve, frozen

from callwright.compression.packing import unpacked_text
from callwright.environments.calling import OneThread, in_use
from callwright.environments.protocol import Environment, Outcome, OutcomeKind, Session
from callwright.errors import DataError
from callwright.language.long_numbers import json_value
from callwright.language.strict_json import kind as json_kind
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.recorded.fingerprint import fingerprint_of_arguments, remember

DEFINITIONS: Final = "function_definitions.json"
CASSETTE: Final = "cassette.jsonl"
#: Recordings that somebody has, by where they are and what their file was when it was read.
_IN_USE: Final[WeakValueDictionary[Hashable, Recording]] = WeakValueDictionary()
_STATUS_KIND: Final[Mapping[str, OutcomeKind]] = {"ok": "ok", "missing": "unknown_tool", "raised": "execution_error"}


class Dependent(Outcome, ABC):
    """A recorded outcome that hangs on more of the arguments than what JSON says of them."""

    @abstractmethod
    def of(self, arguments: Mapping[str, Any]) -> Outcome:
        """The outcome for these arguments, whose JSON is that of the recorded ones."""


@frozen(eq=False)
class Recording:
    """Everything that was recorded, ready for lookup."""

    outcomes: Mapping[tuple[str, str, str, str], tuple[Outcome, str]]
    #: The first state of each scenario and seed, and of each scenario whatever the seed (``None``): the first recorded.
    initial: Mapping[tuple[str, int | None], str]
    known: Mapping[int, str]
    owned: dict[Hashable, Any]
    #: The function of a module, and its arguments, that read it; they read it again where it is unpickled.
    source: tuple[Any, ...]

    def __reduce__(self) -> Any:
        return made_by(self, *self.source)

    def twin(self, value: Any) -> Any:
        """The recorded object that equals this value, if there is one: comparing the two is then free."""
        return remember(value, {}, self.owned)


class RecordedEnvironment(Environment):
    """Tools that answer what was recorded; a call that was not is an infrastructure error, never a wrong answer.

    ``data`` is the folder. ``scenario_tools`` maps tools that read the scenario to the parameter by which a call may
    name another one. Raises :class:`callwright.errors.DataError` for a folder that is not a recording.
    """

    def __init__(
        self,
        data: str | Path,
        *,
        name: str = "recorded",
        definitions: str | Path | None = None,
        scenario_tools: Mapping[str, str] | None = None,
    ) -> None:
        folder = Path(data).absolute()
        self._name = name
        self._folder = folder
        self._definitions = Path(definitions).absolute() if definitions else folder / DEFINITIONS
        self._scenario_tools = dict(scenario_tools or {})
        self._tools = read_definitions(self._definitions)
        for tool, parameter in self._scenario_tools.items():
            if tool in self._tools:
                self._tools[tool] = _with_optional_string(self._tools[tool], parameter)
        self.recording = read_recording(folder)

    def __reduce__(self) -> Any:
        """As the folder, which must be where it is unpickled."""
        return made_by(
            self, _environment, self._folder, self._name, self._definitions, tuple(self._scenario_tools.items())
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every recorded tool by name."""
        return self._tools

    @property
    def pure(self) -> bool:
        """True: recorded values are only handed out."""
        return True

    @property
    def takes_anything(self) -> Literal[True]:
        """True: what was recorded is answered, also where today's schema would refuse the call."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> RecordedSession:
        """A session in the world of this scenario and seed; of the first one recorded, if that seed was not."""
        return RecordedSession(self.recording, self._scenario_tools, scenario, seed)


def _environment(
    folder: Path, name: str, definitions: Path, scenario_tools: tuple[tuple[str, str], ...]
) -> RecordedEnvironment:
    return RecordedEnvironment(folder, name=name, definitions=definitions, scenario_tools=dict(scenario_tools))


class RecordedSession(OneThread, Session):
    """A session that looks its answers up, for one thread at a time."""

    __slots__ = ("_recording", "_scenario", "_scenario_tools", "_state")
    bounds_results = True  # by what stands in the files

    def __init__(self, recording: Recording, scenario_tools: Mapping[str, str], scenario: str, seed: int = 0) -> None:
        self._recording = recording
        self._scenario_tools = scenario_tools
        self._scenario = scenario
        known = recording.initial
        self._state = known.get((scenario, seed)) or known.get((scenario, None), "")
        self._turn = Lock()

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        scenario = ""
        parameter = self._scenario_tools.get(tool)
        if parameter is not None:
            scenario = self._scenario
            if parameter in arguments:
                named = arguments[parameter]
                scenario = named if isinstance(named, str) else scenario
                arguments = {key: value for key, value in arguments.items() if key != parameter}
        elif not self._scenario_tools:
            scenario = self._scenario
        recording = self._recording
        asked = fingerprint_of_arguments(arguments, recording.known)
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        found = recording.outcomes.get((scenario, self._state, tool, asked))
        if found is not None:
            outcome, self._state = found
            turn.release()
            return outcome if type(outcome) is Outcome else outcome.of(arguments)  # type: ignore[attr-defined]
        turn.release()
        return Outcome(
            "infrastructure_error",
            code="not_recorded",
            message=f"the recording has no answer of {tool} for these arguments",
        )

    def digest(self) -> str:
        """The recorded digest of the state; empty where the recorded environment has none."""
        return self._state

    def close(self) -> None:
        """Nothing to give back."""


def find_file(folder: Path, name: str) -> Path | None:
    """The file, plain or compressed."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def read_json(path: Path) -> Any:
    """The JSON value in a plain or compressed file. Raises :class:`callwright.errors.DataError`."""
    try:
        return json.loads(unpacked_text(path))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error


def read_definitions(path: Path) -> dict[str, ToolSpec]:
    """Tool definitions by name, in any of the dialects."""
    found = path if path.is_file() else find_file(path.parent, path.name)
    if found is None:
        raise DataError(f"{path} is missing: it holds the definitions of the tools, name -> definition")
    definitions = read_json(found)
    if not isinstance(definitions, dict):
        raise DataError(f"{found}: expected an object name -> definition, found {json_kind(definitions)}")
    tools = {}
    for name, definition in definitions.items():
        if not isinstance(definition, dict):
            raise DataError(f"{found}: the definition of {name!r} is not an object")
        reader = ToolSpec.from_mcp if "inputSchema" in definition else ToolSpec.from_tier
        if "function" in definition:
            reader = ToolSpec.from_openai
        spec = reader({"name": name, **definition} if "function" not in definition else definition)
        flags = definition.get("callwright")
        tools[name] = evolve(spec, **flags) if isinstance(flags, dict) else spec
    return tools


def read_recording(folder: Path) -> Recording:
    """The cassette of a folder; an empty recording if it has none (then only parsing and validation are possible).

    As long as anybody has it, it is read once, unless the file changes: environments, corpora and what is unpickled of
    them share it. Raises :class:`callwright.errors.DataError` where it is not one.
    """
    path = find_file(folder, CASSETTE)
    about = path.stat() if path else None
    key = (folder.absolute(), path, about and (about.st_ino, about.st_mtime_ns, about.st_size))
    found = _IN_USE.get(key)
    if found is None:
        found = _IN_USE[key] = _read(folder, path)
    return found


def _read(folder: Path, path: Path | None) -> Recording:
    known: dict[int, str] = {}
    owned: dict[Hashable, Any] = {}
    outcomes: dict[tuple[str, str, str, str], tuple[Outcome, str]] = {}
    initial: dict[tuple[str, int | None], str] = {}
    for number, row in _rows(path) if path else ():
        try:
            scenario, tool, arguments, status = row["scenario"], row["tool"], row["arguments"], row["status"]
            kind: OutcomeKind = row.get("kind") or _STATUS_KIND[status]
        except KeyError as error:
            raise DataError(f"{path}:{number}: {error} is missing or unknown") from error
        if not isinstance(arguments, dict):
            raise DataError(f"{path}:{number}: arguments is not an object")
        value = remember(row.get("value"), known, owned)
        error_text = str(row.get("error") or "")
        code = row.get("code") or {"missing": "unknown_tool", "raised": error_text.partition(":")[0]}.get(status, "")
        message = error_text or ("no tool of this name" if status == "missing" else "")
        state = row.get("state", "")
        initial.setdefault((scenario, None), state)
        if type(seed := row.get("seed")) is int:
            initial.setdefault((scenario, seed), state)
        notices, injected = tuple(map(str, row.get("notices") or ())), str(row.get("injected") or "")
        outcome = Outcome(kind, value, code, message, str(row.get("undeclared") or ""), notices, injected)
        outcomes[scenario, state, tool, fingerprint_of_arguments(arguments, known)] = (outcome, row.get("next", state))
    return Recording(outcomes, initial, known, owned, (read_recording, folder.absolute()))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # Not splitlines(): a text within a row may hold U+2028 and other ends of lines, which JSON need not escape.
    for number, line in enumerate(unpacked_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json_value(line)
        except ValueError as error:
            raise DataError(f"{path}:{number}: not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: expected an object, found {json_kind(row)}")
        yield number, row


def _with_optional_string(spec: ToolSpec, parameter: str) -> ToolSpec:
    properties = {**spec.parameters.get("properties", {}), parameter: {"type": "string"}}
    return evolve(spec, parameters={**spec.parameters, "properties": properties})
