"""What a report reads of a run folder. Anything may be absent, cut off or damaged: a report says so and goes on."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from callwright.errors import DataError
from callwright.training.run_folder import METRICS, ROLLOUTS, Run

WARM_START: Final = "warm_start.jsonl"
VERDICTS: Final = "verdicts.jsonl"


@define
class RunData:
    """A run as far as its files tell. ``notes`` says which of them could not be read, or not wholly."""

    path: Path
    command: str
    recipe_text: str = ""
    recipe: dict[str, Any] = field(factory=dict)
    manifest: dict[str, Any] = field(factory=dict)
    evaluation: dict[str, Any] = field(factory=dict)
    metrics: list[dict[str, Any]] = field(factory=list)
    warm_start: list[dict[str, Any]] = field(factory=list)
    #: Rows of the warm start that raise an alarm; they may have no loss.
    warm_alarms: list[dict[str, Any]] = field(factory=list)
    notes: list[str] = field(factory=list)

    @property
    def name(self) -> str:
        """The name of the recipe, or of the folder."""
        name = self.recipe.get("name")
        return name if isinstance(name, str) and name else self.path.resolve().name

    @property
    def before(self) -> dict[str, Any]:
        """The evaluation before training; empty if there is none."""
        return table(self.evaluation.get("before"))

    @property
    def after(self) -> dict[str, Any]:
        """The evaluation after training; empty if there is none."""
        return table(self.evaluation.get("after"))

    @property
    def during(self) -> list[dict[str, Any]]:
        """The evaluations between, with their ``step``."""
        found = self.evaluation.get("during")
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    @property
    def steps(self) -> int:
        """The last step of which there are metrics."""
        return max((row["step"] for row in self.metrics), default=0)

    @property
    def planned(self) -> int | None:
        """The steps that the recipe asks for, if it says so in the usual place."""
        steps = self.component("trainer").get("steps")
        return steps if type(steps) is int else None

    def component(self, key: str) -> dict[str, Any]:
        """The table of a component of the recipe; its shorthand as ``{"name": …}``."""
        value = self.recipe.get(key)
        return {"name": value} if isinstance(value, str) else table(value)

    def series(self, *path: str) -> list[float | None]:
        """A figure of every step, ``None`` where it is absent or no finite number."""
        return [number(dig(row, path)) for row in self.metrics]


def read_run(run: Run) -> RunData:
    """Read a run folder. Raises :class:`callwright.errors.DataError` only if it is none."""
    if not (run.path / "recipe.toml").is_file():
        raise DataError(f"{run.path} is not a run folder: it has no recipe.toml")
    data = RunData(run.path, run.command)
    data.recipe_text = read_text(data, "recipe.toml")
    try:
        data.recipe = tomllib.loads(data.recipe_text)
    except tomllib.TOMLDecodeError as error:
        data.notes.append(f"recipe.toml is not valid TOML: {error}")
    data.manifest = read_json(data, "manifest.json")
    stated = data.manifest.get("command")
    data.command = stated if isinstance(stated, str) and stated else run.command
    data.evaluation = read_json(data, "evaluation.json")
    steps: dict[int, dict[str, Any]] = {}
    for _, row in rows(data, METRICS):
        if type(row.get("step")) is int:
            steps[row["step"]] = row
    data.metrics = [steps[step] for step in sorted(steps)]
    shown = [row for _, row in rows(data, WARM_START)]
    data.warm_start = [row for row in shown if number(row.get("loss")) is not None]
    data.warm_alarms = [row for row in shown if isinstance(row.get("alarm"), str) and type(row.get("step")) is int]
    return data


def rows(data: RunData, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a JSONL file with their offsets, one in memory at a time. A torn last line is left out silently."""
    path = data.path / name
    if not path.is_file():
        return
    damaged = 0
    try:
        with path.open("rb") as file:
            offset = 0
            for line in file:
                begin, offset = offset, offset + len(line)
                row = _row(line)
                if row is not None:
                    yield begin, row
                elif line.endswith(b"\n") and line.strip():
                    damaged += 1
    except OSError as error:
        data.notes.append(f"{name} cannot be read: {error.strerror or error}")
    if damaged:
        data.notes.append(f"{name}: {damaged} damaged {'row was' if damaged == 1 else 'rows were'} left out")


def row_at(data: RunData, name: str, offset: int) -> dict[str, Any]:
    """The row that begins at an offset which :func:`rows` gave."""
    with (data.path / name).open("rb") as file:
        file.seek(offset)
        return _row(file.readline()) or {}


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def read_text(data: RunData, name: str) -> str:
    """The text of a file; empty if it is absent or, with a note, cannot be read."""
    try:
        return (data.path / name).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        data.notes.append(f"{name} cannot be read: {error.strerror or error}")
        return ""


def read_json(data: RunData, name: str) -> dict[str, Any]:
    """The object of a JSON file; empty if it is absent or, with a note, is none."""
    text = read_text(data, name)
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        data.notes.append(f"{name} is not valid JSON: {error}")
        return {}
    return table(value)


def table(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: object) -> float | None:
    """The value if it is a finite number, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def dig(row: Mapping[str, Any], path: Sequence[str]) -> object:
    """The value at a path of keys; ``None`` if there is none."""
    value: object = row
    for key in path:
        value = table(value).get(key)
    return value


__all__ = [
    "METRICS",
    "ROLLOUTS",
    "VERDICTS",
    "WARM_START",
    "RunData",
    "dig",
    "number",
    "read_json",
    "read_run",
    "read_text",
    "row_at",
    "rows",
    "table",
]
