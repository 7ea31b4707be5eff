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

from attrs import evolve, field, frozen

from callwright.environments.protocol import Outcome
from callwright.pickling import made_by
from callwright.tools.reading import TABLE
from callwright.tools.spec import ToolSpec
from callwright_plugins.recorded.environment import Dependent, RecordedEnvironment, Recording

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
        self.recording = _as_answered(self.recording, self.tools, (_recording, self._folder, self._definitions))

    def __reduce__(self) -> Any:
        """As the folder, which must be where it is unpickled."""
        return made_by(self, open_backend, self._folder, self._definitions)


def _recording(folder: Path, definitions: Path) -> Recording:
    """What a backend answers from, made again elsewhere."""
    return OfficialBackend(folder, definitions).recording


def _as_answered(recording: Recording, tools: Mapping[str, ToolSpec], source: tuple[Any, ...]) -> Recording:
    """The recording with the outcomes that the backend had."""
    tables = {name: table for name, spec in tools.items() if (table := _table(spec.parameters)) is not None}
    outcomes: dict[tuple[str, str, str, str], tuple[Outcome, str]] = {}
    for key, (found, state) in recording.outcomes.items():
        outcome = as_failure(found)
        succeeded = isinstance(outcome.value, dict) and outcome.value.get("status_code") == 200
        if key[2] in tables and outcome.kind == "ok" and succeeded:
            table = tables[key[2]]
            outcome = _OfTable(
                "ok", outcome.value, answered=outcome, tool=key[2], parameter=table, known=recording.known
            )
        outcomes[key] = outcome, state
    return evolve(recording, outcomes=outcomes, source=source)


def open_backend(folder: Path, definitions: Path) -> OfficialBackend:
    """The backend of a folder; it is found again where it is unpickled."""
    return OfficialBackend(folder, definitions)


@frozen(slots=False, eq=False)
class _OfTable(Dependent):
    """What a filter answered a table; which kind of table or list it is given is seen when it is called."""

    #: What a table with columns is answered.
    answered: Outcome = field(default=Outcome("ok"), repr=False)
    tool: str = ""
    parameter: str = ""
    #: The containers of the recording by ``id``: a table that is not among them is no tool's result.
    known: Mapping[int, str] = field(factory=dict, repr=False)

    def of(self, arguments: Mapping[str, Any]) -> Outcome:
        """The recorded answer, unless the table is without columns or the model's own list."""
        given = arguments.get(self.parameter)
        if given or not isinstance(given, list):
            return self.answered
        bare = type(given) is NoColumns
        if not bare and id(given) not in self.known:
            message = f"Parameter '{self.parameter}' must be of type DataFrame, got list"
            return Outcome("ok", {"status_code": 422, "error": message})
        if bare and self.tool in _COLUMNS:
            error = {"__repr__": f"KeyError({_COLUMNS[self.tool]!r})"}
            return as_failure(Outcome("ok", {"status_code": 500, "error": error}))
        if self.tool == _LOSES_COLUMNS[0]:
            return Outcome("ok", {**self.value, _LOSES_COLUMNS[1]: NoColumns()})
        return self.answered


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


def _table(parameters: Mapping[str, Any]) -> str | None:
    """The parameter that takes a table; no tool has two."""
    return next((name for name, schema in parameters.get("properties", {}).items() if schema.get(TABLE)), None)
