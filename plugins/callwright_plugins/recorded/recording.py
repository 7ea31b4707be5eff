"""Recording: an environment that passes every call on to another one and writes down what came back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from callwright.compression.packing import unpacked_text
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import undeclared_failure
from callwright.errors import ComponentError, FolderTaken, InfrastructureFailure, SessionInUse
from callwright.language.long_numbers import json_text, json_value
from callwright.tools.spec import ToolSpec
from callwright.training.run_folder import append_jsonl, write_atomically
from callwright.walk.execution import copy_json
from callwright_plugins.recorded.environment import (
    CASSETTE,
    DEFINITIONS,
    find_file,
    read_definitions,
    read_recording,
)
from callwright_plugins.recorded.fingerprint import fingerprint_of_arguments

_FLAGS = ("read_only", "destructive", "discovery", "sensitive", "hidden", "irreversible")
_KIND_STATUS = {"ok": "ok", "empty": "ok", "partial": "ok", "unknown_tool": "missing"}


@define(eq=False)
class RecordingEnvironment:
    """Wraps an environment; use it in its place, then read the folder with :class:`RecordedEnvironment`.

    Each distinct call of a scenario and state is written once, when its session is closed. Infrastructure failures are
    not answers and are not written. A folder that holds a recording already is added to; raises
    :class:`callwright.errors.FolderTaken` where that is of tools which the environment does not have.
    """

    inner: Environment
    folder: Path
    rows: int = field(default=0, init=False)
    _seen: set[tuple[str, str, str, str]] = field(factory=set, init=False, repr=False)
    #: The first states that the recording knows, as :class:`.environment.Recording` has them.
    _begins: dict[tuple[str, int | None], str] = field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if find_file(self.folder, DEFINITIONS) is not None:
            gone = sorted({*read_definitions(self.folder / DEFINITIONS)} - {*self.inner.tools})
            if gone:
                raise FolderTaken(
                    f"{self.folder} holds a recording of other tools than those of {self.inner.name!r}, such as "
                    f"{gone[0]!r}, which would be lost: name another folder"
                )
        known = read_recording(self.folder)
        self._seen.update(known.outcomes)
        self._begins.update(known.initial)
        definitions = {name: definition(spec) for name, spec in self.inner.tools.items()}
        text = json.dumps(definitions, indent=1, ensure_ascii=False)
        write_atomically(self.folder / DEFINITIONS, text + "\n")

    @property
    def name(self) -> str:
        """The name of the wrapped environment."""
        return self.inner.name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools of the wrapped environment."""
        return self.inner.tools

    @property
    def pure(self) -> bool:
        """As the wrapped environment says."""
        return self.inner.pure

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A session of the wrapped environment that is listened to."""
        return _RecordingSession(self, self.inner.open(scenario, seed), scenario, seed)

    def keep(self, seed: int, rows: list[tuple[tuple[str, str, str, str], dict[str, Any]]]) -> None:
        """Write those rows of a session of this seed that are new."""
        fresh = []
        for place, (key, row) in enumerate(rows):
            begins = place == 0 and self._begins_otherwise(key[0], seed, key[1])
            if begins or key not in self._seen:
                self._seen.add(key)
                fresh.append({**row, "seed": seed} if begins else row)
        if fresh:
            self._unpack()
            append_jsonl(self.folder / CASSETTE, fresh)
            self.rows += len(fresh)

    def _begins_otherwise(self, scenario: str, seed: int, state: str) -> bool:
        """Whether a session began in a state that nobody would know to begin with."""
        if state == self._begins.setdefault((scenario, None), state) or (scenario, seed) in self._begins:
            return False
        self._begins[scenario, seed] = state
        return True

    def _unpack(self) -> None:
        """What is compressed is read only where there is no plain file, which is about to be."""
        packed = find_file(self.folder, CASSETTE)
        if packed is not None and packed.name != CASSETTE:
            write_atomically(self.folder / CASSETTE, unpacked_text(packed))
            packed.unlink()


@define(eq=False)
class _RecordingSession:
    owner: RecordingEnvironment
    inner: Session
    scenario: str
    seed: int
    _rows: list[tuple[tuple[str, str, str, str], dict[str, Any]]] = field(factory=list, init=False)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        before = self.inner.digest()
        text = json_text(arguments)  # taken before the tool can change anything
        key = (self.scenario, before, tool, fingerprint_of_arguments(arguments, {}))
        try:
            outcome = self.inner.call(tool, arguments)
        except (InfrastructureFailure, SessionInUse, ComponentError):
            raise
        except Exception as error:  # the tool's own failure: recorded as execution would report it
            outcome = undeclared_failure(tool, error)
        if outcome.kind == "infrastructure_error":
            return outcome
        status = _KIND_STATUS.get(outcome.kind, "raised")
        row: dict[str, Any] = {"scenario": self.scenario, "tool": tool, "arguments": json_value(text), "status": status}
        if status == "raised" or outcome.message:
            row["error"] = outcome.message
        if status != "raised" or outcome.value is not None:
            # It is written when the session is closed, and where nothing is pure a later call may change it till then.
            row["value"] = outcome.value if self.owner.pure else copy_json(outcome.value)
        row |= {"kind": outcome.kind, "code": outcome.code}
        if outcome.undeclared:
            row["undeclared"] = outcome.undeclared
        if outcome.injected:
            row["injected"] = outcome.injected
        if outcome.notices:
            row["notices"] = list(outcome.notices)
        after = self.inner.digest()
        if before or after:
            row |= {"state": before, "next": after}
        self._rows.append((key, row))
        return outcome

    def digest(self) -> str:
        return self.inner.digest()

    def close(self) -> None:
        self.owner.keep(self.seed, self._rows)
        self._rows = []
        self.inner.close()


def definition(spec: ToolSpec) -> dict[str, Any]:
    """A tool as ``function_definitions.json`` holds it."""
    out: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
    }
    if spec.result is not None:
        out["returns"] = dict(spec.result)
        if spec.result_field is not None:
            out["returns"]["index"] = spec.result_field
    flags = {flag: True for flag in _FLAGS if getattr(spec, flag)}
    if spec.result_field is not None and spec.result is None:
        flags["result_field"] = spec.result_field  # type: ignore[assignment]
    return {**out, "callwright": flags} if flags else out
