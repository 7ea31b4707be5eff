"""Difficulty: how often a solver solves a task, of the attempts of an evaluation with several samples.

A task holds it as the fact :data:`DIFFICULTY`: ``{"attempts", "right", "pass@1", "pass@N", "reward", "solver"}``, where
N is the number of attempts that count and ``reward`` has ``mean``, ``deviation``, ``least`` and ``most``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.errors import DataError, UsageError
from callwright.statistics.samples import pass_at
from callwright.training.verdicts import Verdict

if TYPE_CHECKING:
    from callwright.measuring.folders import Evaluated

#: The fact of a task that holds how difficult it is.
DIFFICULTY: Final = "difficulty"


@frozen
class Difficulty:
    """How some attempts at one task went: ``right`` of ``attempts`` that count, and their ``rewards`` as far as they
    were kept. ``solver`` is whose attempts these are.
    """

    attempts: int
    right: int
    rewards: tuple[float, ...] = ()
    solver: str = ""

    @property
    def solved(self) -> float:
        """pass@1: the share of attempts that are right, in [0, 1]."""
        return self.right / self.attempts

    def to_json(self) -> dict[str, Any]:
        """The fact."""
        stated: dict[str, Any] = {"attempts": self.attempts, "right": self.right, "pass@1": self.solved}
        if self.attempts > 1:
            stated[f"pass@{self.attempts}"] = pass_at(self.attempts, self.right, self.attempts)
        if self.rewards:
            mean = math.fsum(self.rewards) / len(self.rewards)
            squares = math.fsum((one - mean) ** 2 for one in self.rewards)
            stated["reward"] = {
                "mean": mean,
                "deviation": math.sqrt(squares / (len(self.rewards) - 1)) if len(self.rewards) > 1 else 0.0,
                "least": min(self.rewards),
                "most": max(self.rewards),
            }
        return {**stated, "solver": self.solver} if self.solver else stated


def difficulties(
    verdicts: Iterable[Verdict], rewards: Mapping[tuple[str, int], float] | None = None, solver: str = ""
) -> dict[str, Difficulty]:
    """The difficulty of each task, by its id. Masked attempts do not count; a task that has no others is left out."""
    counted: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if not verdict.masked:
            counted.setdefault(verdict.task, []).append(verdict)
    kept = rewards or {}
    return {
        task: Difficulty(
            len(group),
            sum(one.answer for one in group),
            tuple(kept[task, one.sample] for one in group if (task, one.sample) in kept),
            solver,
        )
        for task, group in counted.items()
    }


def difficulties_in(evaluated: Evaluated, rows: Iterable[Mapping[str, Any]]) -> dict[str, Difficulty]:
    """The difficulties that an evaluation folder tells of the tasks of a file, by their ids.

    ``rows`` are the rows of the file. Raises :class:`callwright.errors.DataError` where the folder is of other tasks:
    none of its ids is there, or one has another query.
    """
    queries = {str(row.get("id")): row.get("query") for row in rows}
    first: dict[str, int] = {}
    for place, verdict in enumerate(evaluated.verdicts):
        first.setdefault(verdict.task, place)
    shared = [task for task in first if task in queries]
    if not shared:
        raise DataError(f"{evaluated.path} holds attempts at none of these tasks; evaluate this file, or name another")
    for task in shared:
        if evaluated.row(first[task]).get("query", queries[task]) != queries[task]:
            raise DataError(
                f"{evaluated.path} is of other tasks: {task!r:.80} asks for something else there; evaluate this file "
                "(--corpus tasks --corpus-option file=FILE)"
            )
    found = difficulties(evaluated.verdicts, evaluated.rewards, evaluated.name)
    return {task: one for task, one in found.items() if task in queries}


def with_difficulty(row: Mapping[str, Any], difficulty: Difficulty) -> dict[str, Any]:
    """The row of a task with its difficulty among its facts, in place of what stood there."""
    facts = row.get("facts")
    return {**row, "facts": {**(facts if isinstance(facts, Mapping) else {}), DIFFICULTY: difficulty.to_json()}}


def solved_share(facts: Any) -> float | None:
    """pass@1 of a task by its facts, in [0, 1]; ``None`` where nobody has measured it."""
    stated = facts.get(DIFFICULTY) if isinstance(facts, Mapping) else None
    rate = stated.get("pass@1") if isinstance(stated, Mapping) else None
    return float(rate) if isinstance(rate, int | float) and not isinstance(rate, bool) else None


@frozen
class Band:
    """The tasks whose pass@1 is from ``low`` to ``high``, both included; those that nobody measured are in none.

    Raises :class:`callwright.UsageError` for bounds that are no shares, or the wrong way round.
    """

    low: float = 0.0
    high: float = 1.0

    def __attrs_post_init__(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not 0 <= bound <= 1:
                raise UsageError(f"pass@1 lies in [0, 1]; {bound!r:.40} is no bound for it")
        if self.low > self.high:
            raise UsageError(f"no task is solved in at least {self.low:g} and at most {self.high:g} of its attempts")

    def places(self, rows: Iterable[Mapping[str, Any]]) -> Sequence[int]:
        """The places of the rows that lie in it."""
        found = []
        for place, row in enumerate(rows):
            rate = solved_share(row.get("facts"))
            if rate is not None and self.low <= rate <= self.high:
                found.append(place)
        return found
