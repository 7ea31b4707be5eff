"""Unified diffs by Myers' algorithm, with a bound on the work, so that no two files can make a call hang."""

from __future__ import annotations

from typing import Final

_NO_END: Final = "\\ No newline at end of file"
#: Most lines added and removed for which the shortest script is looked for; beyond it everything between the common
#: beginning and the common end counts as replaced.
MOST_EDITS: Final = 400

#: ``(tag, old from, old to, new from, new to)`` with tag ``equal`` or ``edit``.
Block = tuple[str, int, int, int, int]


def split_lines(text: str) -> list[str]:
    """Lines with their ends; only ``\\n`` ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def blocks(old: list[str], new: list[str]) -> list[Block]:
    """What is equal and what is edited, in order, from the beginnings to the ends of both."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    pairs = [(at, at) for at in range(head)]
    pairs += [(head + a, head + b) for a, b in _common(old[head : len(old) - tail], new[head : len(new) - tail])]
    pairs += [(len(old) - at, len(new) - at) for at in range(tail, 0, -1)]
    found: list[Block] = []
    a = b = 0
    for left, right in [*pairs, (len(old), len(new))]:
        if left > a or right > b:
            found.append(("edit", a, left, b, right))
        if left < len(old) and right < len(new):
            if found and found[-1][0] == "equal" and found[-1][2] == left:
                found[-1] = ("equal", found[-1][1], left + 1, found[-1][3], right + 1)
            else:
                found.append(("equal", left, left + 1, right, right + 1))
        a, b = left + 1, right + 1
    return found


def unified(old: list[str], new: list[str], old_name: str, new_name: str, context: int) -> list[str]:
    """The lines of ``diff -u`` without their ends; none if nothing differs."""
    hunks: list[list[Block]] = []
    for tag, a, left, b, right in blocks(old, new):
        if tag == "edit":
            if not hunks:
                hunks.append([("equal", max(0, a - context), a, max(0, b - context), b)])
            hunks[-1].append((tag, a, left, b, right))
        elif hunks:
            if left - a > 2 * context:
                hunks[-1].append(("equal", a, a + context, b, b + context))
                hunks.append([("equal", left - context, left, right - context, right)])
            else:
                hunks[-1].append((tag, a, left, b, right))
    if hunks and hunks[-1][-1][0] == "equal":
        last = hunks[-1].pop()
        if len(hunks[-1]) == 0:
            hunks.pop()  # the context after the last change is in the hunk before
        else:
            keep = min(context, last[2] - last[1])
            hunks[-1].append(("equal", last[1], last[1] + keep, last[3], last[3] + keep))
    lines = [f"--- {old_name}", f"+++ {new_name}"] if hunks else []
    for hunk in hunks:
        begin, end = hunk[0], hunk[-1]
        lines.append(f"@@ -{_span(begin[1], end[2])} +{_span(begin[3], end[4])} @@")
        for tag, a, left, b, right in hunk:
            if tag == "equal":
                lines += _shown(" ", old[a:left])
            else:
                lines += _shown("-", old[a:left]) + _shown("+", new[b:right])
    return lines


def _span(begin: int, end: int) -> str:
    length = end - begin
    if length == 1:
        return str(begin + 1)
    return f"{begin + 1 if length else begin},{length}"


def _shown(sign: str, lines: list[str]) -> list[str]:
    shown = []
    for line in lines:
        shown.append(sign + line.removesuffix("\n"))
        if not line.endswith("\n"):
            shown.append(_NO_END)
    return shown


def _common(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """A longest common subsequence as pairs of positions; empty if more than ``MOST_EDITS`` edits are needed."""
    if not old or not new:
        return []
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(old) + len(new), MOST_EDITS) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1])
            a = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            b = a - diagonal
            while a < len(old) and b < len(new) and old[a] == new[b]:
                a, b = a + 1, b + 1
            furthest[diagonal] = a
            if a >= len(old) and b >= len(new):
                return _traced(trail, edits, diagonal, a)
    return []


def _traced(trail: list[dict[int, int]], edits: int, diagonal: int, a: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for step in range(edits, -1, -1):
        before = trail[step]
        down = diagonal == -step or (diagonal != step and before[diagonal - 1] < before[diagonal + 1])
        start = before[diagonal + 1] if down else before[diagonal - 1] + 1
        if step == 0:
            start = 0
        while a > start:
            a -= 1
            pairs.append((a, a - diagonal))
        if step:
            diagonal = diagonal + 1 if down else diagonal - 1
            a = before[diagonal]
    return pairs[::-1]
