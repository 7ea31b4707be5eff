"""Splits: what is held out for evaluation is of environments, chains or worlds that training never sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import UnknownName, UsageError
from callwright.training.synthesis.units import Rejected
from callwright_plugins.synthesis.duplicates.jaccard import THRESHOLD, near_duplicates
from callwright_plugins.synthesis.gates.comparing import HELD_OUT, Compared, held_out, leaks

STAGE: Final = "splits"
_LEARNT: Final = "train"
_KEYS: Final = ("by", "share", "name")


@frozen
class Split:
    """What to hold out: about ``share`` of the tasks, as the split ``name``, by whole environments, chains of tools or
    worlds (environment, scenario and seed).
    """

    by: str = "chain"
    share: float = 0.1
    name: str = "validation"

    @classmethod
    def from_json(cls, stated: Any) -> Split:
        """From an option. Raises :class:`callwright.UsageError` for anything that is no split."""
        if not isinstance(stated, Mapping):
            raise UsageError(f"a split is a table with {', '.join(_KEYS)}, not {stated!r:.60}")
        for key in stated:
            if key not in _KEYS:
                raise UnknownName("key of a split", str(key), _KEYS)
        made = cls(**stated)
        if made.by not in HELD_OUT:
            raise UnknownName("thing to hold out by", str(made.by), HELD_OUT)
        if isinstance(made.share, bool) or not isinstance(made.share, int | float) or not 0 < made.share < 1:
            raise UsageError(f"the share that is held out is between 0 and 1, not {made.share!r:.40}")
        if not isinstance(made.name, str) or not made.name or made.name == _LEARNT:
            raise UsageError(f"what is held out is a split of its own name, such as validation, not {made.name!r:.40}")
        return made

    def of(self, rows: Iterable[Mapping[str, Any]], seed: int) -> list[str | Rejected]:
        """The split of each task, or why it can be in none: training would see what is evaluated.

        Raises :class:`callwright.UsageError` where all tasks are of one environment, chain or world.
        """
        tasks = [Compared.of_row(row) for row in rows]
        verdicts: list[str | Rejected] = [_LEARNT] * len(tasks)
        whole = [place for place, one in enumerate(tasks) if self.by != "environment" or "+" not in one.environment]
        for place, held in zip(whole, held_out([tasks[one] for one in whole], self.by, self.share, seed), strict=True):
            if held:
                verdicts[place] = self.name
        if tasks and self.name not in verdicts:
            raise UsageError(
                f"nothing can be held out by {self.by}: all {len(tasks):,} tasks are of one; hold out by another of "
                f"{', '.join(HELD_OUT)}"
            )
        if self.by == "environment":
            self._composed(tasks, verdicts)
        for place in _near(tasks, verdicts, self.name):
            verdicts[place] = Rejected(STAGE, "nearly the same calls are evaluated", {"threshold": THRESHOLD})
        check(tasks, verdicts, self.by)
        return verdicts

    def _composed(self, tasks: Sequence[Compared], verdicts: list[str | Rejected]) -> None:
        """Tasks of several environments are where all of these are."""
        away = {one.environment for one, verdict in zip(tasks, verdicts, strict=True) if verdict == self.name}
        for place, one in enumerate(tasks):
            parts = set(one.environment.split("+"))
            if len(parts) > 1 and parts & away:
                both = Rejected(STAGE, "of environments on both sides", {"held out": sorted(parts & away)})
                verdicts[place] = self.name if parts <= away else both


def check(tasks: Sequence[Compared], verdicts: Sequence[str | Rejected], by: str) -> None:
    """Hold splits to what they promise. Raises :class:`callwright.UsageError` for tasks that leak."""
    from attrs import evolve

    placed = [
        evolve(one, split=verdict) for one, verdict in zip(tasks, verdicts, strict=True) if isinstance(verdict, str)
    ]
    found = [(one, said) for one, said in zip(placed, leaks(placed, by), strict=True) if said is not None]
    if found:
        one, said = found[0]
        raise UsageError(f"the splits leak: {len(found):,} tasks, the first of them {one.id!r}: {said.reason}")


def _near(tasks: Sequence[Compared], verdicts: Sequence[str | Rejected], held: str) -> list[int]:
    """The places of tasks to learn from whose calls are nearly those of one that is held out."""
    sets = [one.elements for one in tasks]
    calling = [place for place, one in enumerate(tasks) if one.calls]
    pending = [place for place in calling if verdicts[place] == held]
    learnt = [place for place in calling if verdicts[place] == _LEARNT]
    found: list[int] = []
    while pending:
        # Each is dropped for the first that it is like, and those that are held out come first. The ones among them
        # that are dropped for one another come first in the next round.
        places = [*pending, *learnt]
        dropped = near_duplicates([sets[place] for place in places])
        near = {places[one] for one, other in dropped.items() if one >= len(pending) > other}
        found += sorted(near)
        learnt = [place for place in learnt if place not in near]
        pending = [places[one] for one in dropped if one < len(pending)]
    return sorted(found)
