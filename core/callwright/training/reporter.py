"""Progress: what long work reports to whoever watches. Silent unless a caller passes a reporter.

The command line passes one that draws bars with estimates; an embedder passes its own or nothing.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable


@runtime_checkable
class Reporter(Protocol):
    """Hears of one stage after the other: ``start``, any number of ``advance``, ``finish``."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """A stage of ``total`` units begins; ``done`` of them were finished before (a run that goes on)."""

    def advance(self, units: int = 1, **figures: float) -> None:
        """``units`` more are done. ``figures`` are worth showing beside the bar, such as ``reward=0.42``."""

    def say(self, text: str) -> None:
        """A line for a person: a warning, or what was decided."""

    def finish(self) -> None:
        """The stage is over, early or not."""


class Silent:
    """Reports to nobody."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """Nothing."""

    def advance(self, units: int = 1, **figures: float) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


SILENT: Final[Reporter] = Silent()
