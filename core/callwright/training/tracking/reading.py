"""What is new in a run folder since a tracker last looked, and where it was when the process before this one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, define, field

from callwright.language.long_numbers import json_value
from callwright.training.run_folder import METRICS, ROLLOUTS, Run
from callwright.training.tracking.rows import cells_of, evaluations_of, figures_of, seconds_of
from callwright.training.tracking.tracker import Cell, Step

EVALUATION: Final = "evaluation.json"
TIMINGS: Final = "timings.jsonl"


@define
class Marks:
    """How far a tracker has come: the last step of each file of rows, and the evaluations that were sent."""

    steps: dict[str, int] = field(factory=dict)
    evaluations: list[str] = field(factory=list)

    def to_json(self) -> dict[str, Any]:
        """As ``trackers/NAME.json`` holds it."""
        return asdict(self)


class NewRows:
    """The whole lines of a JSONL file that were not read yet, of training steps past ``known``."""

    def __init__(self, path: Path, known: int) -> None:
        self._path = path
        self._known = self.last = known
        self._at = 0

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            if file.seek(0, 2) < self._at:  # shorter than it was: a trainer went back to a checkpoint
                self._at, self._known = 0, self.last
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):  # still being written
                    return
                self._at += len(line)
                row = json_value(line)
                step = row.get("step")
                # A warm start counts its own steps.
                if isinstance(step, int) and step > self._known and row.get("phase", "train") == "train":
                    self.last = max(self.last, step)
                    yield step, row


class News:
    """What is new in a run folder, as steps in their order. Rows up to ``marks`` were sent before.

    A trainer that goes back to a checkpoint does steps again, which are not sent again.
    """

    def __init__(self, run: Run, marks: Marks) -> None:
        self.marks = marks
        self._run = run
        self._files: dict[str, tuple[NewRows, Callable[[Mapping[str, Any]], Mapping[str, float]]]] = {
            name: (NewRows(run.path / name, marks.steps.get(name, -1)), figures)
            for name, figures in ((METRICS, figures_of), (TIMINGS, seconds_of))
        }
        self._rollouts = NewRows(run.path / ROLLOUTS, marks.steps.get(ROLLOUTS, -1))
        self._evaluated: tuple[int, int] | None = None

    def read(self) -> list[Step]:
        """The steps with something new; ``marks`` are past them then."""
        figures: dict[int, dict[str, float]] = {}
        rollouts: dict[int, list[Mapping[str, Cell]]] = {}
        for name, (rows, numbers) in self._files.items():
            for step, row in rows:
                figures.setdefault(step, {}).update(numbers(row))
            self.marks.steps[name] = rows.last
        for step, row in self._rollouts:
            rollouts.setdefault(step, []).append(cells_of(row))
        self.marks.steps[ROLLOUTS] = self._rollouts.last
        for step, measured in self._evaluations():
            figures.setdefault(step, {}).update(measured)
        return [
            Step(step, figures.get(step, {}), _table(rollouts.get(step, [])))
            for step in sorted({*figures, *rollouts})
            if figures.get(step) or step in rollouts
        ]

    def _evaluations(self) -> Iterator[tuple[int, dict[str, float]]]:
        path = self._run.path / EVALUATION
        if not path.exists():
            return
        found = path.stat()
        if (found.st_mtime_ns, found.st_size) == self._evaluated:
            return
        self._evaluated = (found.st_mtime_ns, found.st_size)
        last = max(self.marks.steps[METRICS], 0)
        for name, step, figures in evaluations_of(self._run.read_json(EVALUATION), last):
            if name not in self.marks.evaluations:
                self.marks.evaluations.append(name)
                yield step, figures


def _table(rows: list[Mapping[str, Cell]]) -> tuple[Mapping[str, Cell], ...]:
    """The rows with the same columns: a reward may leave a part out where one before it failed."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return tuple({column: row.get(column) for column in columns} for row in rows)
