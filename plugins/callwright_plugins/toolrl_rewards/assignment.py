"""The best assignment of predicted calls to true ones: exact, and quick for the few calls that completions hold."""

from __future__ import annotations

from collections.abc import Sequence


def assign(weights: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row, -1 for none, such that the sum of the chosen weights is largest.

    ``weights`` is ``[n][m]`` with non-negative entries; every row gets a column if ``n <= m``, and every column a row
    otherwise. Exact for any size: if each row's first largest entry stands in a column of its own, those are the
    answer; else shortest augmenting paths, O(n^2 m). For the usual one to five calls that takes 0.3 to 10 microseconds;
    scipy's takes 1 to 2 (``benchmarks/toolrl_speed.py --assignment``), which does not pay for importing it.
    """
    rows = len(weights)
    columns = len(weights[0]) if rows else 0
    if not columns:
        return [-1] * rows
    if rows <= columns:
        first = [row.index(max(row)) for row in weights]
        if len(set(first)) == rows:
            return first
        return _augmented(weights)
    turned = assign([[row[column] for row in weights] for column in range(columns)])
    chosen = [-1] * rows
    for column, row in enumerate(turned):
        chosen[row] = column
    return chosen


def _augmented(weights: Sequence[Sequence[float]]) -> list[int]:
    """Rows are added one by one along a cheapest alternating path; ``up`` and ``down`` are the dual prices.

    The costs are the negated weights. Row and column 0 are the start of every path and stand for nothing else.
    """
    rows, columns = len(weights), len(weights[0])
    infinite = float("inf")
    up, down = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner, before = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0], at = row, 0
        slack, settled = [infinite] * (columns + 1), [False] * (columns + 1)
        while True:
            settled[at] = True
            mine = owner[at]
            entries, price = weights[mine - 1], up[mine]
            step, following = infinite, 0
            for column in range(1, columns + 1):
                if not settled[column]:
                    reduced = -entries[column - 1] - price - down[column]
                    if reduced < slack[column]:
                        slack[column], before[column] = reduced, at
                    if slack[column] < step:
                        step, following = slack[column], column
            for column in range(columns + 1):
                if settled[column]:
                    up[owner[column]] += step
                    down[column] -= step
                else:
                    slack[column] -= step
            at = following
            if not owner[at]:
                break
        while at:
            owner[at] = owner[before[at]]
            at = before[at]
    chosen = [-1] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            chosen[owner[column] - 1] = column - 1
    return chosen
