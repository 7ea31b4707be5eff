"""Which rollouts a report shows: for each depth the best, a typical and the worst of the end of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from callwright_plugins.report.reading import ROLLOUTS, RunData, number, row_at, rows

#: Rollouts of this last share of the steps are looked at, so that they show what was learned.
LATE: Final = 1 / 3


@frozen
class Example:
    """A rollout and why it is shown."""

    depth: int
    why: str
    row: dict[str, Any]


@frozen
class _Place:
    offset: int
    step: int
    depth: int
    total: float


def pick(data: RunData) -> list[Example]:
    """Examples by depth, each rollout at most once. Only places and totals are held, however large the file is."""
    places: dict[int, list[_Place]] = {}
    last = 0
    for offset, row in rows(data, ROLLOUTS):
        step, depth, total = row.get("step"), row.get("depth", 0), number(row.get("total"))
        if type(step) is int and type(depth) is int and total is not None:
            places.setdefault(depth, []).append(_Place(offset, step, depth, total))
            last = max(last, step)
    examples = []
    for depth in sorted(places):
        late = [place for place in places[depth] if place.step > last * (1 - LATE)] or places[depth]
        for why, place in _chosen(late):
            examples.append(Example(depth, why, row_at(data, ROLLOUTS, place.offset)))
    return examples


def _chosen(places: Sequence[_Place]) -> list[tuple[str, _Place]]:
    """The best, one with the median total, the worst; of equal totals the latest. One alone if all totals are equal."""
    ordered = sorted(places, key=lambda place: (place.total, place.step, place.offset))
    worst = max((place for place in places if place.total == ordered[0].total), key=lambda place: place.step)
    best = ordered[-1]
    if worst.total == best.total:
        return [("typical", best)]
    inner = [place for place in ordered if place is not best and place is not worst]
    chosen = [("best", best)]
    if inner:
        median = ordered[len(ordered) // 2].total
        chosen.append(("typical", min(inner, key=lambda place: (abs(place.total - median), -place.step))))
    return [*chosen, ("worst", worst)]
