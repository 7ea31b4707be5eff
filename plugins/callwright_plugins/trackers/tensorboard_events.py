"""TensorBoard: event files in the run folder, with figures over steps and a table of rollouts at each."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from attrs import frozen
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from callwright.training import Run, Step
from callwright.training.tracking.tracker import Cell

FOLDER: Final = "trackers/tensorboard"


@frozen
class TensorBoard:
    """Shows runs in TensorBoard: ``tensorboard --logdir runs`` finds them all. It reaches nobody."""

    @property
    def name(self) -> str:
        """The registered name."""
        return "tensorboard"

    def follow(self, run: Run, known: str | None) -> EventFiles:
        """One more event file in the folder, which TensorBoard reads with those that are there."""
        folder = run.path / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        files = EventFiles(str(folder))
        if known is None:
            files.add(0, text_pb("recipe", _code((run.path / "recipe.toml").read_text(encoding="utf-8"))))
        return files


class EventFiles:
    """The event files of a run."""

    id = FOLDER

    def __init__(self, folder: str) -> None:
        self._writer: Any = EventFileWriter(folder)

    def add(self, step: int, summary: Any) -> None:
        """One summary."""
        self._writer.add_event(Event(step=step, wall_time=time.time(), summary=summary))

    def send(self, step: Step) -> None:
        """A scalar for each figure, and a table as text."""
        for name, value in step.figures.items():
            self.add(step.number, scalar_pb(name, value))
        if step.rollouts:
            rows = [[_code(cell) for cell in rollout.values()] for rollout in step.rollouts]
            self.add(step.number, text_pb("rollouts/table", np.array([list(step.rollouts[0]), *rows], dtype=object)))
        self._writer.flush()

    def close(self, completed: bool) -> None:
        """Close the file."""
        self._writer.close()


def _code(cell: Cell) -> str:
    """A cell as it stands: TensorBoard reads texts as Markdown, in which what a model wrote might load an image."""
    return "" if cell is None else "\n".join(f"    {line}" for line in str(cell).splitlines())
