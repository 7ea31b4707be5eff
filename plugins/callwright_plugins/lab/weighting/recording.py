"""Recording: what every term gave every attempt, so that weights can be changed without asking a component again.

The value of a term hangs on the attempt and on the gates before it, never on weights. So the totals under other weights
are those that the changed recipe would have given, to the last bit. A penalty changes values: the components of each
penalty score the attempt, which is parsed and executed once.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence

from attrs import define, field

from callwright.errors import UsageError
from callwright.language.shortening import brief, shortened
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward, RewardRecipe
from callwright_plugins.lab.ledger import AT_ONCE
from callwright_plugins.lab.weighting.schemes import Schemes

_LONGEST = 320

Values = tuple[float, ...]


@define(eq=False)
class Cell:
    """Attempts that no scheme can tell apart: the values of all terms, per penalty, and what went wrong first."""

    values: dict[float | None, Values]
    kind: str


@define(eq=False)
class Said:
    """An attempt as it is shown."""

    row_id: str | int
    task: str
    text: str


@define(eq=False)
class Recording:
    """``cells[i]`` is the position in ``known`` of attempt ``i``; ``said`` shows one attempt a group and cell."""

    schemes: Schemes
    cells: array[int] = field(factory=lambda: array("l"))
    known: list[Cell] = field(factory=list)
    groups: list[dict[int, int]] = field(factory=list)
    said: dict[tuple[int, int], Said] = field(factory=dict)
    _numbers: dict[Hashable, int] = field(factory=dict)
    _places: dict[Hashable, int] = field(factory=dict)
    _waiting: list[tuple[Attempt, str, Hashable, str | int, Reward]] = field(factory=list)

    def enter(self, attempt: Attempt, kind: str, group: Hashable, row_id: str | int, reward: Reward) -> None:
        """Record an attempt that is not masked. ``reward`` is the reference's.

        Raises :class:`callwright.UsageError` if the reference's total is not the weighted sum of its terms. Where a
        scheme waits for its scores, it does so for many attempts together: the last are recorded by :meth:`finish`.
        """
        self._waiting.append((attempt, kind, group, row_id, reward))
        waits = any(recipe.waits for recipe in self.schemes.penalised.values())
        if len(self._waiting) >= (AT_ONCE if waits else 1):
            self.finish()

    def finish(self) -> None:
        """Record what was entered and is not recorded yet. Raises as :meth:`enter` does."""
        waiting, self._waiting = self._waiting, []
        attempts = [attempt for attempt, *_ in waiting]
        scored = [
            recipe.scoring(attempts) if number else iter([reward for *_, reward in waiting])
            for number, recipe in enumerate(self.schemes.penalised.values())
        ]
        for (attempt, kind, group, row_id, reward), *rewards in zip(waiting, *scored, strict=True):
            values = {
                penalty: tuple(weighted.score.value for weighted in found.scores.values())
                for penalty, found in zip(self.schemes.penalised, rewards, strict=True)
            }
            self._record(attempt, kind, group, row_id, reward, values)

    def _record(
        self,
        attempt: Attempt,
        kind: str,
        group: Hashable,
        row_id: str | int,
        reward: Reward,
        values: dict[float | None, Values],
    ) -> None:
        key = (kind, *values.values())
        number = self._numbers.get(key)
        if number is None:
            reference = self.schemes.reference
            if abs(total(reference.recipe, values[reference.penalty]) - (reward.total or 0.0)) > 1e-9:
                raise UsageError(
                    f"--weights: the totals of {self.schemes.name!r} are not the weighted sums of its terms, so what "
                    "other weights would give is not known"
                )
            number = self._numbers[key] = len(self.known)
            self.known.append(Cell(values, kind))
        place = self._places.setdefault(group, len(self._places))
        if place == len(self.groups):
            self.groups.append({})
        counts = self.groups[place]
        if number not in counts:
            self.said[place, number] = Said(row_id, attempt.task.id, shown(attempt))
        counts[number] = counts.get(number, 0) + 1
        self.cells.append(number)


def total(recipe: RewardRecipe, values: Sequence[float]) -> float:
    """The total that a recipe gives these values, added up as scoring does."""
    found = 0.0
    for weight, value in zip(recipe.weights.values(), values, strict=True):
        found += weight * value
    return found


def shown(attempt: Attempt) -> str:
    """The calls of an attempt in one line; its text if it is no program."""
    program = attempt.program
    if program is None:
        return shortened(attempt.completion.text, _LONGEST)
    calls = (
        f"{call.id}: {call.tool}({', '.join(f'{key}={_value(value)}' for key, value in call.arguments.items())})"
        for call in program.calls
    )
    return shortened("; ".join(calls) or "calls nothing", _LONGEST)


def _value(value: object) -> str:
    return brief(value, 60)
