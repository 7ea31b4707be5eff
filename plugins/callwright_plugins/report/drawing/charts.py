"""Line charts as SVG, drawn here so that a report loads nothing. Colours are classes; the style sheet sets them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Final

from attrs import frozen

#: More points than this are averaged together; a screen has no more columns.
_POINTS: Final = 400


@frozen
class Line:
    """One line: values by step (``None``: not known), a CSS class, and whether a smoothed copy is drawn over it."""

    name: str
    values: Sequence[float | None]
    style: str = "a"
    smooth: bool = True


@frozen
class Frame:
    """Size of the drawing and of its margins, in the units of the view box (CSS pixels at full size)."""

    width: int
    height: int
    left: int = 34
    right: int = 10
    top: int = 10
    bottom: int = 22


def smoothing_window(count: int) -> int:
    """How many steps are averaged for the smoothed line: about a twelfth of all, an odd number."""
    return max(1, count // 12) | 1


def smoothed(values: Sequence[float | None], window: int) -> list[float | None]:
    """Centred means over ``window`` steps, fewer at the ends; ``None`` where the window holds no value."""
    half = window // 2
    sums, counts = [0.0], [0]
    for value in values:
        sums.append(sums[-1] + (value or 0.0))
        counts.append(counts[-1] + (value is not None))
    found: list[float | None] = []
    for index in range(len(values)):
        low, high = max(0, index - half), min(len(values), index + half + 1)
        count = counts[high] - counts[low]
        found.append((sums[high] - sums[low]) / count if count else None)
    return found


def thinned(steps: Sequence[int], lines: Sequence[Line]) -> tuple[list[float], list[Line]]:
    """At most 400 points a line: means over neighbours."""
    size = math.ceil(len(steps) / _POINTS)
    if size <= 1:
        return [float(step) for step in steps], list(lines)
    blocks = [range(start, min(start + size, len(steps))) for start in range(0, len(steps), size)]
    thin_steps = [sum(steps[i] for i in block) / len(block) for block in blocks]
    return thin_steps, [
        Line(line.name, [_mean([line.values[i] for i in block]) for block in blocks], line.style, line.smooth)
        for line in lines
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round values from ``low`` to ``high``, about ``count`` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def label(value: float) -> str:
    """A tick or value in few characters."""
    size = abs(value)
    if size == 0:
        text = "0"
    elif 100 <= size < 1_000_000:
        text = f"{value:,.0f}"
    elif size >= 1_000_000 or size < 0.001:
        text = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−")


def reach(lines: Sequence[Line], at_least: tuple[float | None, float | None]) -> tuple[float, float]:
    """A range that holds every value and, where given, ``at_least``."""
    known = [value for line in lines for value in line.values if value is not None]
    known += [bound for bound in at_least if bound is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:
        high = low + (abs(low) or 1.0)
    return low, high


def chart(
    steps: Sequence[int],
    lines: Sequence[Line],
    frame: Frame,
    *,
    description: str,
    bounds: tuple[float | None, float | None] = (0.0, None),
    y_ticks: int = 4,
    x_ticks: int = 6,
) -> str:
    """An SVG element. The values are also in an attribute, from which the script shows those under the pointer."""
    window = smoothing_window(len(steps))
    # Smooth first: a thinned line would be smoothed over other steps than the caption says.
    curves = [Line(line.name, smoothed(line.values, window), line.style) if line.smooth else line for line in lines]
    xs, thin = thinned(steps, lines)
    _, curves = thinned(steps, curves)
    low, high = reach(thin, bounds)
    first, last = (xs[0], xs[-1]) if xs else (0.0, 1.0)
    inner_width = frame.width - frame.left - frame.right
    inner_height = frame.height - frame.top - frame.bottom

    def x(step: float) -> float:
        return frame.left + (inner_width * (step - first) / (last - first) if last > first else inner_width / 2)

    def y(value: float) -> float:
        return frame.top + inner_height * (high - value) / (high - low)

    parts = [
        f'<svg class="plot" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(description, quote=True)}" data-chart="{_data(xs, thin, curves, frame)}">'
    ]
    for value in ticks(low, high, y_ticks):
        at = y(value)
        base = " base" if value == 0 else ""
        ends = f'x1="{frame.left}" x2="{frame.width - frame.right}" y1="{at:.1f}" y2="{at:.1f}"'
        place = f'x="{frame.left - 6}" y="{at + 3.5:.1f}"'
        parts.append(f'<line class="grid{base}" {ends}/>')
        parts.append(f'<text class="tick" {place} text-anchor="end">{label(value)}</text>')
    for value in ticks(first, last, x_ticks):
        at, anchor = x(value), "middle"
        if at > frame.width - frame.right - 12:
            anchor = "end"
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{frame.height - 6}" text-anchor="{anchor}">{label(value)}</text>'
        )
    for line, curve in zip(thin, curves, strict=True):
        if line.smooth and window > 1:
            parts.append(f'<path class="raw {line.style}" d="{_path(xs, line.values, x, y)}"/>')
        parts.append(f'<path class="line {line.style}" d="{_path(xs, curve.values, x, y)}"/>')
    parts.append(f'<line class="rule" y1="{frame.top}" y2="{frame.height - frame.bottom}"/></svg>')
    return "".join(parts)


def _path(xs: Sequence[float], values: Sequence[float | None], x: object, y: object) -> str:
    assert callable(x)
    assert callable(y)
    pieces, drawing = [], False
    known = [value is not None for value in values]
    for index, (step, value) in enumerate(zip(xs, values, strict=True)):
        if value is None:
            drawing = False
            continue
        pieces.append(f"{'L' if drawing else 'M'}{x(step):.1f} {y(value):.1f}")
        alone = not drawing and not (index + 1 < len(known) and known[index + 1])
        if alone:
            pieces.append("h0.01")  # a single point is a dot, by its round ends
        drawing = True
    return "".join(pieces)


def _data(xs: Sequence[float], lines: Sequence[Line], curves: Sequence[Line], frame: Frame) -> str:
    def short(values: Sequence[float | None]) -> list[float | None]:
        return [None if value is None else float(f"{value:.4g}") for value in values]

    shown = {
        "x": [round(step) for step in xs],
        "left": frame.left,
        "right": frame.width - frame.right,
        "width": frame.width,
        "lines": [
            {"name": line.name, "style": line.style, "raw": short(line.values), "smooth": short(curve.values)}
            if line.smooth
            else {"name": line.name, "style": line.style, "raw": short(line.values)}
            for line, curve in zip(lines, curves, strict=True)
        ],
    }
    return escape(json.dumps(shown, separators=(",", ":")), quote=True)
