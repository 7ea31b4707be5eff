"""Curves as lines of block characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"


def smoothed(values: Sequence[float | None], by: float) -> list[float | None]:
    """An exponentially weighted mean that starts without a bias: ``by`` in [0, 1) is the weight of what was before."""
    total = weight = 0.0
    made: list[float | None] = []
    for value in values:
        if value is None:
            made.append(total / weight if weight else None)
            continue
        total, weight = by * total + (1 - by) * value, by * weight + (1 - by)
        made.append(total / weight)
    return made


def plot(values: Sequence[float | None], width: int, height: int) -> list[str]:
    """``height`` lines of ``width`` characters, the topmost first: columns as high as their mean, from the smallest.

    A column without a value is empty.
    """
    known = [value for value in values if value is not None]
    if not known or width < 1 or height < 1:
        return [" " * width for _ in range(height)]
    low, high = min(known), max(known)
    columns = [_mean(part) for part in _parts(values, width)]
    eighths = [
        -1
        if value is None
        else 1 + round((value - low) / (high - low) * (height * 8 - 1))
        if high > low
        else height * 4
        for value in columns
    ]
    return ["".join(_BLOCKS[max(0, min(8, one - 8 * level))] for one in eighths) for level in range(height - 1, -1, -1)]


def _parts(values: Sequence[float | None], width: int) -> list[Sequence[float | None]]:
    """The values of each column; of fewer values than columns, each stands in several."""
    count = len(values)
    made = []
    for column in range(width):
        first = column * count // width
        made.append(values[first : max(first + 1, (column + 1) * count // width)])
    return made


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
