"""Pictures: the edges between tools that tasks use, as SVG without scripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

_WIDTH: Final = 760
_LEAST_HEIGHT: Final = 300
#: Pixels of height for each tool, so that labels do not touch.
_EACH: Final = 17
_ACROSS: Final = 150
_HEAD: Final = 7.0

Pair = tuple[str, str]


def picture(pairs: Mapping[Pair, int], names: Mapping[str, str]) -> str:
    """The tools around an ellipse, and a curve from each to those that are used after it, thicker for more tasks.

    ``names`` are the tools as they are to be written into the page. Neighbours on the ellipse are tools that share
    many tasks; the same pairs give the same picture. Empty where there is no pair.
    """
    order = _order(pairs)
    if not order:
        return ""
    height = max(_LEAST_HEIGHT, _EACH * len(order))
    x, y = _WIDTH / 2, height / 2
    across, down = _WIDTH / 2 - _ACROSS, height / 2 - 20
    places = {
        tool: (x + across * math.sin(angle), y - down * math.cos(angle))
        for tool, angle in ((tool, 2 * math.pi * (at + 0.5) / len(order)) for at, tool in enumerate(order))
    }
    most = max(pairs.values())
    drawn = [
        _curve(places[source], places[target], (x, y), count / most)
        for (source, target), count in sorted(pairs.items(), key=lambda one: (one[1], one[0]))
        if source != target
    ]
    marks = [_mark(places[tool], x, names[tool]) for tool in order]
    label = f"{len(order)} tools, {len(pairs)} edges"
    return (
        f'<svg class="graph" role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {height}">'
        f"{''.join(drawn)}{''.join(marks)}</svg>"
    )


def _order(pairs: Mapping[Pair, int]) -> list[str]:
    """The tools, each beside the one not yet placed that it shares most tasks with."""
    shared: dict[str, Counter[str]] = {}
    for (source, target), count in pairs.items():
        shared.setdefault(source, Counter())[target] += count
        shared.setdefault(target, Counter())[source] += count
    left = set(shared)
    found: list[str] = []
    while left:
        near = [one for one in shared[found[-1]] if one in left] if found else []
        if near:
            last = shared[found[-1]]
            following = min(near, key=lambda one: (-last[one], one))
        else:
            following = min(left, key=lambda one: (-shared[one].total(), one))
        found.append(following)
        left.remove(following)
    return found


def _curve(start: tuple[float, float], end: tuple[float, float], middle: tuple[float, float], share: float) -> str:
    """A curve that is bent towards the middle, with a head at its end."""
    bend = [(a + b) / 2 * 0.55 + m * 0.45 for a, b, m in zip(start, end, middle, strict=True)]
    angle = math.atan2(end[1] - bend[1], end[0] - bend[0])
    tip = (end[0] - 5 * math.cos(angle), end[1] - 5 * math.sin(angle))
    sides = [
        (tip[0] - _HEAD * math.cos(angle + turn), tip[1] - _HEAD * math.sin(angle + turn)) for turn in (0.42, -0.42)
    ]
    head = " ".join(f"{px:.1f},{py:.1f}" for px, py in (tip, *sides))
    width, strength = 0.8 + 2.4 * share, 0.3 + 0.6 * share
    return (
        f'<g opacity="{strength:.2f}"><path class="edge" stroke-width="{width:.1f}" '
        f'd="M{start[0]:.1f} {start[1]:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {tip[0]:.1f} {tip[1]:.1f}"/>'
        f'<polygon class="bar" points="{head}"/></g>'
    )


def _mark(place: tuple[float, float], middle: float, name: str) -> str:
    right = place[0] >= middle
    anchor, x = ("start", place[0] + 8) if right else ("end", place[0] - 8)
    return (
        f'<circle class="bar" cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5"/>'
        f'<text x="{x:.1f}" y="{place[1] + 4:.1f}" text-anchor="{anchor}">{name}</text>'
    )
