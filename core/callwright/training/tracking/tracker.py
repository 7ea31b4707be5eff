"""The protocol of trackers: what a run is shown by elsewhere, such as TensorBoard or the server of a team.

The run folder stays the source. A tracker is handed what is new in it, step by step, in a thread of its own, so that
training never waits for one; what a tracker raises leaves it out of the run, and stops nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.training.run_folder import Run
from callwright.training.run_folder import flat as flat

#: What stands in a row of a table. Texts are Unicode that can be encoded, and at most 20,000 characters long.
Cell = str | float | bool | None


@frozen
class Step:
    """What is new of a training step: figures by name, and rollouts, each a row with the same columns.

    A step may come in several parts: an evaluation or a rollout that is written later comes by itself. Step 0 is what
    was measured before training. Names of figures have slashes where they belong together (``scores/format``,
    ``seconds/sampling``, ``evaluation/overall``); rows have the parts of the reward as ``scores/NAME`` and what is to
    be said about them as ``evidence``.
    """

    number: int
    figures: Mapping[str, float] = field(factory=dict)
    rollouts: tuple[Mapping[str, Cell], ...] = ()


@runtime_checkable
class TrackedRun(Protocol):
    """One run as a tracker keeps it."""

    @property
    def id(self) -> str:
        """What :meth:`Tracker.follow` is given to go on with it; not empty."""

    def send(self, step: Step) -> None:
        """Show what is new. Figures that were sent before are not sent again."""

    def close(self, completed: bool) -> None:
        """Send what is left, and let go. Not ``completed``: the run was stopped, and may go on later."""


@runtime_checkable
class Tracker(Protocol):
    """Shows runs elsewhere. Making one costs nothing and reaches nobody: :meth:`follow` does.

    It is made before training, so that a missing package and a wrong option are said before any time is spent.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    def follow(self, run: Run, known: str | None) -> TrackedRun:
        """Begin to show a run; with the id of a run that was begun before, go on with that one.

        Files of its own a tracker keeps in ``run.path / "trackers"``. Raises whatever went wrong.
        """


def recipe_of(run: Run) -> dict[str, Any]:
    """The recipe of a run as data, without secrets: what a tracker shows as its settings."""
    return tomllib.loads((run.path / "recipe.toml").read_text(encoding="utf-8"))
