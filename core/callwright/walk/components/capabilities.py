"""What rewards may offer beyond their kind: counting what they ask servers for, checking tasks, schedules.

What is to be opened and closed is :class:`callwright.capability.SetsUp` and :class:`callwright.capability.Closes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from callwright.walk.tasks import Task


@runtime_checkable
class CountsUsage(Protocol):
    """A component that asks servers and counts it: commands, metrics and budgets (``--max-cost``) have the figures."""

    @property
    def usage(self) -> Mapping[str, float]:
        """The figures of :mod:`callwright.training.spending` so far, in this process."""


@runtime_checkable
class ChecksTasks(Protocol):
    """A reward recipe that needs something of each task: it looks at those of training before any time is spent."""

    def check(self, tasks: Iterable[Task]) -> None:
        """Raise :class:`callwright.errors.DataError` naming the first task that it cannot score."""


@runtime_checkable
class Scheduled(Protocol):
    """A reward recipe that depends on how far training is: rows scored with it need ``step`` and ``total_steps``."""

    @property
    def scheduled(self) -> bool:
        """Whether it does, with its options."""
