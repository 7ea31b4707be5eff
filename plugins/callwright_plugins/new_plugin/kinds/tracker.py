"""The tracker ``zebra``: a run as one table of figures, a CSV file that spreadsheets open. It reaches nobody.

A tracker is handed what is new of a run, step by step, in a thread of its own. One that shows runs on a server opens
its client in ``follow`` and lets it go in ``close``.
"""

from __future__ import annotations

import csv
from pathlib import Path

from callwright.training import Run, Step


class Zebra:
    """``delimiter`` stands between the cells."""

    name = "zebra"

    def __init__(self, delimiter: str = ",") -> None:
        self.delimiter = delimiter

    def follow(self, run: Run, known: str | None) -> Figures:
        """Write into the run folder; a run that goes on adds to its file."""
        folder = run.path / "trackers"
        folder.mkdir(parents=True, exist_ok=True)
        return Figures(folder / (known or "zebra.csv"), self.delimiter)


class Figures:
    """The file of one run: step, figure, value, one line for each."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.id = path.name
        self._path, self._delimiter = path, delimiter

    def send(self, step: Step) -> None:
        """Add the figures of a step. What models wrote (``step.rollouts``) would stand here, too."""
        with self._path.open("a", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter=self._delimiter)
            rows.writerows((step.number, name, value) for name, value in step.figures.items())

    def close(self, completed: bool) -> None:
        """Nothing is open between two steps."""
