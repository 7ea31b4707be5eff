"""Comparing two sources: what changed, for which tasks, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.statistics.intervals import paired_difference
from callwright_plugins.viewer.answers.tables import histogram
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.index.filtering import Filter, read_filter

#: Tasks that are listed.
_MOST: Final = 300


def compared(first: Index, second: Index, text: str = "") -> dict[str, Any]:
    """Two sources over the tasks that both have.

    Totals as bars over one range, the paired difference of the tasks' means with its interval (95%), the tasks that
    differ most, first those that were right once and wrong then; of two evaluations also what ``callwright compare``
    says: McNemar's test and the differences by depth.
    """
    chosen = [read_filter(text, index.components) for index in (first, second)]
    ends = [
        index.one(
            f"SELECT min(total), max(total), avg(total), count(*), avg(answered) FROM rollouts WHERE {one.where}",
            one.values,
        )
        for index, one in zip((first, second), chosen, strict=True)
    ]
    lows, highs = ([row[place] for row in ends if row[place] is not None] for place in (0, 1))
    bars = [
        histogram(index, one, min(lows), max(highs)) if lows else None
        for index, one in zip((first, second), chosen, strict=True)
    ]
    left, right = (_by_task(index, one) for index, one in zip((first, second), chosen, strict=True))
    shared = [task for task in left if task in right]
    answered = bool(shared) and all(side[task].answered is not None for side in (left, right) for task in shared)
    before, after = (_values(side, shared, answered) for side in (left, right))
    both = [task for task in before if task in after]
    difference = paired_difference(before, {task: after[task] for task in both})
    changed = sorted(both, key=lambda task: (-abs(after[task] - before[task]), task))
    flips = [
        {
            "task": task,
            "query": left[task].query or right[task].query,
            "first": before[task],
            "second": after[task],
            "rows": [left[task].n, right[task].n],
        }
        for task in changed[:_MOST]
        if after[task] != before[task]
    ]
    return {
        "of": "answered" if answered else "total",
        "sides": [
            {"mean": row[2], "rows": row[3], "answered": row[4], "totals": bar}
            for row, bar in zip(ends, bars, strict=True)
        ],
        "tasks": len(both),
        "gained": sum(1 for task in both if after[task] > before[task]),
        "lost": sum(1 for task in both if after[task] < before[task]),
        "difference": difference.to_json(),
        "flips": flips,
        "evaluations": _evaluations(first, second) if not text else None,
    }


@frozen
class _Task:
    """The means of a task's rows, and the first of them."""

    total: float | None
    answered: float | None
    n: int
    query: str


def _by_task(index: Index, chosen: Filter) -> dict[str, _Task]:
    found = index.rows(
        f"SELECT task, avg(total) AS total, avg(answered) AS answered, min(n) AS n FROM rollouts "
        f"WHERE {chosen.where} AND task != '' GROUP BY task",
        chosen.values,
    )
    queries = dict(map(tuple, index.rows("SELECT n, query FROM texts")))
    return {row["task"]: _Task(row["total"], row["answered"], row["n"], queries.get(row["n"]) or "") for row in found}


def _values(tasks: Mapping[str, _Task], shared: Sequence[str], answered: bool) -> dict[str, float]:
    values = {task: tasks[task].answered if answered else tasks[task].total for task in shared}
    return {task: value for task, value in values.items() if value is not None}


def _evaluations(first: Index, second: Index) -> dict[str, Any] | None:
    """What ``callwright compare`` says of two evaluation folders; ``None`` where it says nothing."""
    from callwright.measuring.comparison import compare
    from callwright.measuring.folders import read_evaluated

    folders = [index.source.folder for index in (first, second) if index.source.kind == "evaluation"]
    if len(folders) < 2 or folders[0] is None or folders[1] is None:
        return None
    try:
        told = compare(read_evaluated(folders[0]), read_evaluated(folders[1]))
    except CallwrightError as error:
        return {"why": str(error)}
    made = told.to_json()
    made.pop("flips", None)
    return made
