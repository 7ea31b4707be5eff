"""Synthesizers: where new tasks come from. Their words come from teachers (:mod:`..teaching.teacher`).

    units = synthesizer.plan(materials)                  # everything that is drawn over all units is drawn here
    results = [synthesizer.make(unit, materials) for unit in units]      # in any order, in any process
    verdicts = synthesizer.compare(made)                 # duplicates, quotas: in the order of the plan

A unit hangs on nothing but itself and the materials. So a synthesis that was killed goes on after its last finished
unit, and threads, processes and Ray make the same tasks as a loop does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.environments.protocol import Environment
from callwright.plugins import Registry, default_registry
from callwright.training.reporter import SILENT, Reporter
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.training.teaching.teacher import Teacher
from callwright.walk.limits import TurnLimits
from callwright.walk.task_rows.rows import task_row
from callwright.walk.tasks import Task


@frozen
class Materials:
    """What tasks are made of: an environment, a teacher if there is one, and what was asked for.

    ``count`` is how many tasks are wanted of the environment; how many units that takes is the plan's business.
    ``seed`` fixes everything that is drawn. A plan that takes long tells ``reporter`` how far it is, stage by stage.
    """

    environment: Environment
    seed: int = 0
    count: int = 1
    teacher: Teacher | None = None
    registry: Registry = field(factory=default_registry, repr=False)
    reporter: Reporter = field(default=SILENT, eq=False, repr=False)

    def row(self, task: Task) -> dict[str, Any]:
        """The row of a task, for :class:`.units.Accepted`.

        Raises :class:`callwright.UsageError` for a task that no row can hold.
        """
        return task_row(task, self.registry)


@runtime_checkable
class Synthesizer(Protocol):
    """Makes tasks out of an environment's live state, in units. Registered by ``callwright_synthesizers``.

    Threads share it, and it can be pickled: what it remembers to save time changes no result.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    def plan(self, materials: Materials) -> Sequence[Unit]:
        """All units, the same ones each time; their indices count from 0. Asked for once, whatever it costs."""

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        """The task of a unit, or why there is none: the same, byte for byte, each time, everywhere and in any order.

        Raise :class:`callwright.InfrastructureFailure` where machinery failed; anything else that is raised is a bug,
        and ends the synthesis.
        """

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        """Which of all accepted units go all the same, each with its reason: duplicates, quotas. ``None`` stays.

        One answer for each of ``made``, which are in the order of the plan, environment by environment, and hold
        more than fits into memory: a sequence that reads them when they are asked for.
        """


@runtime_checkable
class LimitsEpisodes(Protocol):
    """A synthesizer whose tasks are conversations: ``limits`` stand in the head of its file."""

    @property
    def limits(self) -> TurnLimits:
        """How long episodes of its tasks may become."""


@runtime_checkable
class SplitsTasks(Protocol):
    """A synthesizer that says what is held out for evaluation."""

    def splits(self, rows: Iterable[Mapping[str, Any]], seed: int) -> Sequence[str | Rejected]:
        """The split of each task that is left, by its row, or why it can be in none. ``rows`` are read once."""
