"""Disagreement: rollouts of one group that two rewards put in different orders, which is what GRPO learns from.

Rewards are the row's own total, whether the answer is right, each component, and the totals of scored files whose ids
are those of the rows, or their lines (``callwright rescore RUN --recipe X -o X.jsonl``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final

from callwright.errors import UnknownName
from callwright_plugins.viewer.index.building import Index

#: Rows that are looked at, and pairs that are shown of a cell.
_MOST_ROWS: Final = 200_000
_MOST_PAIRS: Final = 200
#: Samples of a group that are compared, each with each.
_MOST_SAMPLES: Final = 64
_EQUAL: Final = 1e-9


def rewards(index: Index, scored: Sequence[Index]) -> dict[str, dict[int, float]]:
    """What each reward gives each row, by the row's number."""
    components = index.components
    columns = {"total": "total", "answered": "answered", **{f"score.{name}": col for name, col in components.items()}}
    rows = index.rows(
        f"SELECT n, id, {', '.join(columns.values())} FROM rollouts JOIN texts USING (n) LIMIT ?", (_MOST_ROWS,)
    )
    found = {
        name: {row["n"]: float(row[column]) for row in rows if row[column] is not None}
        for name, column in columns.items()
    }
    by_id = {row["id"]: row["n"] for row in rows}
    for other in scored:
        totals = {
            row["id"]: row["total"]
            for row in other.rows("SELECT id, total FROM rollouts JOIN texts USING (n) WHERE total IS NOT NULL")
        }
        matched = {by_id[name]: value for name, value in totals.items() if name in by_id}
        if len(matched) < len(totals) / 2:  # ids are lines of the rows
            matched = {
                int(name): value for name, value in totals.items() if name.isdecimal() and int(name) <= len(rows)
            }
        found[other.source.key] = matched
    return {name: values for name, values in found.items() if values}


def agreement(index: Index, scored: Sequence[Index]) -> dict[str, Any]:
    """For each two rewards: how many pairs of a group they order alike, in opposite ways, or only one of them."""
    given = rewards(index, scored)
    groups = list(_groups(index))
    cells = []
    for first, second in combinations(given, 2):
        alike = opposite = one = 0
        for left, right in _pairs(groups):
            a, b = _order(given[first], left, right), _order(given[second], left, right)
            if a is None or b is None:
                continue
            alike += a * b > 0
            opposite += a * b < 0
            one += (a == 0) != (b == 0)
        cells.append({"first": first, "second": second, "alike": alike, "opposite": opposite, "one": one})
    return {"rewards": {name: len(values) for name, values in given.items()}, "groups": len(groups), "cells": cells}


def disagreeing(index: Index, scored: Sequence[Index], first: str, second: str) -> dict[str, Any]:
    """The pairs of rollouts that two rewards order in opposite ways, the widest apart first.

    Raises :class:`callwright.errors.UnknownName` for a reward that is not there.
    """
    given = rewards(index, scored)
    for name in (first, second):
        if name not in given:
            raise UnknownName("reward", name, list(given))
    one, two = given[first], given[second]
    found = []
    for left, right in _pairs(_groups(index)):
        a, b = _order(one, left, right), _order(two, left, right)
        if a is not None and b is not None and a * b < 0:
            better, worse = (left, right) if a > 0 else (right, left)
            found.append((abs(one[left] - one[right]) + abs(two[left] - two[right]), better, worse))
    found.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    return {
        "count": len(found),
        "pairs": [
            {"rows": [better, worse], "first": [one[better], one[worse]], "second": [two[better], two[worse]]}
            for _, better, worse in found[:_MOST_PAIRS]
        ],
    }


def _groups(index: Index) -> Iterator[list[int]]:
    name: str | None = None
    rows: list[int] = []
    for row in index.rows("SELECT n, grp FROM rollouts WHERE grp IS NOT NULL ORDER BY grp, n LIMIT ?", (_MOST_ROWS,)):
        if row["grp"] != name:
            if len(rows) > 1:
                yield rows
            name, rows = row["grp"], []
        if len(rows) < _MOST_SAMPLES:
            rows.append(row["n"])
    if len(rows) > 1:
        yield rows


def _pairs(groups: Iterable[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for rows in groups:
        yield from combinations(rows, 2)


def _order(values: dict[int, float], left: int, right: int) -> int | None:
    a, b = values.get(left), values.get(right)
    if a is None or b is None:
        return None
    return 0 if abs(a - b) < _EQUAL else 1 if a > b else -1
