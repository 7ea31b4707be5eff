"""The backend of TIER's released benchmark, from its recording: what JSON lost of it, put back.

The recording writes what the backend returned as JSON. Two things are lost in that, and each made wrong programs pass:

* An exception that a tool caught stands inside a result with status 500. It is an ``execution_error`` here, with the
  result as its value. Other errors (400, 404, 422) are what a tool is documented to answer; they stay results.
* Three things are written ``[]``: a table without rows, a table without rows and columns, and an empty list that a
  model wrote. ``FilterByOpeningHours`` of a table without rows returns one without columns; the filters that read a
  column fail on it, and no filter takes a list for a table. The recording holds one answer for all three, that of the
  table with columns. Where it is a success, the other two get here what the backend answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from callwright.environments.protocol import Outcome
from callwright.pickling import made_by
from callwright.tools.reading import TABLE
from callwright_plugins.recorded.environment import RecordedEnvironment, RecordedSession, Recording

#: Tools that read the scenario (the released code's ``tag``), and the parameter by which gold programs state it.
SCENARIO_TOOLS: Final = dict.fromkeys(("GetTime", "GetDate", "GetLocation", "GetCurrentLocation"), "tag")
#: The tool that takes the columns from a table without rows, and what its result is called.
_LOSES_COLUMNS: Final = ("FilterByOpeningHours", "Restaurants")
#: The column that a filter of restaurants asks its table for.
_COLUMNS: Final = {"FilterByRatings": "Ratings", "FilterByCuisine": "Cuisine"}


class NoColumns(list[Any]):
    """A table without rows and columns. It is an empty list to everybody else."""


class OfficialBackend(RecordedEnvironment):
    """The recorded backend of the released benchmark.

    Raises :class:`callwright.errors.DataError` for a folder that is not a recording.
    """

    def __init__(self, data: str | Path, definitions: str | Path) -> None:
        super().__init__(data, name="depthbench-official", definitions=definitions, scenario_tools=SCENARIO_TOOLS)
        outcomes = {key: (as_failure(found), state) for key, (found, state) in self.recording.outcomes.items()}
        self.recording = evolve(self.recording, outcomes=outcomes)
        self._tables = {name: tables for name, spec in self.tools.items() if (tables := _tables(spec.parameters))}

    def __reduce__(self) -> Any:
        """As the folder, which must be where it is unpickled."""
        return made_by(self, OfficialBackend, self._folder, self._definitions)

    def open(self, scenario: str = "", seed: int = 0) -> OfficialSession:
        """A session of a scenario. The seed plays no part: there is one recording."""
        return OfficialSession(self.recording, self._tables, scenario)


class OfficialSession(RecordedSession):
    """A session that knows tables without columns, and lists that are no tables."""

    __slots__ = ("_tables",)

    def __init__(self, recording: Recording, tables: Mapping[str, tuple[str, ...]], scenario: str) -> None:
        super().__init__(recording, SCENARIO_TOOLS, scenario)
        self._tables = tables

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """The recorded outcome, where the recording knows it."""
        tables = self._tables.get(tool)
        for parameter in tables or ():
            given = arguments.get(parameter)
            if isinstance(given, list) and not given:
                return self._of_no_rows(tool, arguments, parameter, given)
        return super().call(tool, arguments)

    def _of_no_rows(self, tool: str, arguments: dict[str, Any], parameter: str, given: list[Any]) -> Outcome:
        bare = type(given) is NoColumns
        outcome = super().call(tool, {**arguments, parameter: []} if bare else arguments)
        if outcome.kind != "ok" or not isinstance(outcome.value, dict) or outcome.value.get("status_code") != 200:
            return outcome  # refused for another reason, which the backend looks at before the table, or not recorded
        if not bare and id(given) not in self._recording.known:  # no result of a tool: the model wrote it
            message = f"Parameter '{parameter}' must be of type DataFrame, got list"
            return Outcome("ok", {"status_code": 422, "error": message})
        if bare and tool in _COLUMNS:
            error = {"__repr__": f"KeyError({_COLUMNS[tool]!r})"}
            return as_failure(Outcome("ok", {"status_code": 500, "error": error}))
        if tool == _LOSES_COLUMNS[0]:
            return evolve(outcome, value={**outcome.value, _LOSES_COLUMNS[1]: NoColumns()})
        return outcome


def as_failure(outcome: Outcome) -> Outcome:
    """An outcome whose result holds an exception, as the failure that it is; another one as it is."""
    value = outcome.value
    if outcome.kind != "ok" or not isinstance(value, dict):
        return outcome
    error = value.get("error")
    if value.get("status_code") != 500 and not (isinstance(error, dict) and "__repr__" in error):
        return outcome
    raised = str(error.get("__repr__", error) if isinstance(error, dict) else error)
    return Outcome("execution_error", value, raised.partition("(")[0] or "exception", raised)


def _tables(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name, schema in parameters.get("properties", {}).items() if schema.get(TABLE))
