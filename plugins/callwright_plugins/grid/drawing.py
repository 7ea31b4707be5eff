"""Learning curves as SVG: the mean over seeds as a line, its interval as a band. Colours are in the style sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from attrs import frozen

from callwright.statistics.intervals import MeanInterval, mean_interval

_WIDTH, _HEIGHT = 320, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 10, 8, 22
#: More points than this are not drawn; a chart has no more columns.
_POINTS: Final = 200


@frozen
class Curve:
    """A mean with its interval at each of some steps."""

    points: tuple[tuple[int, MeanInterval], ...]

    @property
    def reach(self) -> list[float]:
        """Every value and bound."""
        found = [value for _, one in self.points for value in (one.mean, one.low, one.high)]
        return [value for value in found if value is not None]


def curve(seeds: Sequence[Mapping[int, float]], *, smooth: bool) -> Curve:
    """The mean over seeds at every step that all of them have; ``smooth`` averages each over a twelfth of the steps."""
    steps = sorted(set[int].intersection(*map(set, seeds))) if seeds else []
    window = max(1, len(steps) // 12) | 1 if smooth else 1
    each = [_smoothed([one[step] for step in steps], window) for one in seeds]
    every = max(1, math.ceil(len(steps) / _POINTS))
    drawn = sorted({*range(0, len(steps), every), len(steps) - 1}) if steps else []
    return Curve(tuple((steps[index], mean_interval([values[index] for values in each])) for index in drawn))


def _smoothed(values: Sequence[float], window: int) -> list[float]:
    """Centred means, fewer values at the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    half = window // 2
    ends = ((max(0, index - half), min(len(values), index + half + 1)) for index in range(len(values)))
    return [(sums[high] - sums[low]) / (high - low) for low, high in ends]


def round_ends(low: float, high: float) -> tuple[float, float]:
    """Round numbers around a range, a whole number of steps of 1, 2 or 5 apart."""
    if not high > low:
        return low, low + 1.0
    power = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= (high - low) / 2 * 0.5)
    return math.floor(low / step) * step, math.ceil(high / step) * step


def chart(one: Curve, low: float, high: float, *, percent: bool, description: str) -> str:
    """An SVG element of a curve; ``low`` and ``high`` are the ends of its upright axis."""
    steps = [step for step, _ in one.points]
    first, last = (steps[0], steps[-1]) if steps else (0, 1)

    def x(step: float) -> float:
        inner = _WIDTH - _LEFT - _RIGHT
        return _LEFT + (inner * (step - first) / (last - first) if last > first else inner / 2)

    def y(value: float) -> float:
        share = (high - min(high, max(low, value))) / (high - low or 1.0)
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * share

    parts = [f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(description)}">']
    for value in (low, (low + high) / 2, high):
        text = f"{100 * value:.0f}%" if percent else f"{value:.3g}".replace("-", "−")
        parts.append(
            f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 3.5:.1f}" text-anchor="end">{text}</text>')
    for step, anchor in ((first, "start"), (last, "end")) if last > first else ((first, "middle"),):
        parts.append(f'<text x="{x(step):.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{step:,}</text>')
    band = [(step, cell.low, cell.high) for step, cell in one.points if cell.low is not None and cell.high is not None]
    if len(band) > 1:
        above = [f"{x(step):.1f} {y(top):.1f}" for step, _, top in band]
        below = [f"{x(step):.1f} {y(bottom):.1f}" for step, bottom, _ in reversed(band)]
        parts.append(f'<path class="band" d="M{"L".join([*above, *below])}Z"/>')
    line = [f"{x(step):.1f} {y(cell.mean):.1f}" for step, cell in one.points if cell.mean is not None]
    if line:
        parts.append(f'<path class="line" d="M{"L".join(line)}{"h0.01" if len(line) == 1 else ""}"/>')
    return "".join([*parts, "</svg>"])
