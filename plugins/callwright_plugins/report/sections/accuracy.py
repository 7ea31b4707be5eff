"""The section on accuracy: before and after, by depth and structure, and how it grew between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from callwright_plugins.report.drawing.markup import percent, points, safe, section
from callwright_plugins.report.reading import RunData, dig, number, table
from callwright_plugins.report.verdict import Change, changes, overall


def accuracy(data: RunData) -> Iterator[str]:
    """Accuracy before and after, by depth and structure, and how it grew between."""
    depths = changes(data, "by_depth")
    if not depths:
        return
    lead = (
        "Share of held-out tasks whose answer is right, greedy decoding. Depth is the number of calls that a task "
        "needs. Lines are Wilson’s 95% intervals."
    )
    body = _comparison(depths, overall(data), "Depth")
    body += _growth(data)
    structures = changes(data, "by_structure")
    if len(structures) > 1:
        compared = _comparison(structures, None, "Structure")
        body += f"<details><summary>By structure of the program</summary>{compared}</details>"
    wrong = failures(table(data.after.get("failures") or data.before.get("failures")))
    if wrong:
        body += f"<details><summary>What still goes wrong, by depth</summary>{wrong}</details>"
    yield section("Accuracy", body, lead=lead, key="accuracy")


def _comparison(found: list[Change], whole: Change | None, heading: str) -> str:
    body = "".join(_comparison_row(change) for change in found)
    foot = f"<tfoot>{_comparison_row(whole)}</tfoot>" if whole is not None else ""
    legend = (
        '<span class="key before">before</span> <span class="key after">after</span>'
        '<span class="scale"><span>0</span><span>50</span><span>100%</span></span>'
    )
    return (
        f'<table class="compare"><thead><tr><th scope="col">{safe(heading)}</th><th scope="col" class="n">Tasks</th>'
        f'<th scope="col" class="plotted">{legend}</th><th scope="col" class="n">Before</th>'
        f'<th scope="col" class="n">After</th><th scope="col" class="n">Points</th></tr></thead>'
        f"<tbody>{body}</tbody>{foot}</table>"
    )


def _comparison_row(change: Change) -> str:
    marks = "".join(
        f'<i class="span {side}" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
        f'<i class="dot {side}" style="left:{100 * value:.2f}%"></i>'
        for side, measured in (("before", change.before), ("after", change.after))
        if measured is not None
        for value, low, high in (measured,)
    )
    gain = change.gain
    tone = {1: "up", -1: "down", 0: "same"}[change.direction]
    shown = "–" if gain is None else points(gain, signed=True)
    title = {1: "better beyond chance", -1: "worse beyond chance", 0: "no difference beyond chance"}[change.direction]
    return (
        f'<tr><th scope="row">{safe(change.label)}</th><td class="n tasks">{change.n:,}</td>'
        f'<td class="plotted"><div class="track">{marks}</div></td>'
        f'<td class="n">{_measured(change.before)}</td><td class="n">{_measured(change.after)}</td>'
        f'<td class="n {tone}" title="{title}">{shown}</td></tr>'
    )


def _measured(value: tuple[float, float, float] | None) -> str:
    if value is None:
        return "–"
    share, low, high = value
    return f'<span title="{percent(low)} to {percent(high)}">{percent(share)}</span>'


def _growth(data: RunData) -> str:
    """Accuracy by depth at each evaluation, as a table whose cells are shaded."""
    columns: list[tuple[str, dict[str, Any]]] = []
    if data.before:
        columns.append(("0", data.before))
    columns += [(f"{number(row.get('step')) or 0:,.0f}", row) for row in data.during]
    if data.after:
        columns.append((f"{data.steps:,}" if data.steps else "end", data.after))
    if len(columns) < 3:
        return ""
    while len(columns) > 12:  # the first and last always stay
        columns = [*columns[:-1:2], columns[-1]]
    depths = [change.label for change in changes(data, "by_depth")]
    heads = "".join(f'<th scope="col" class="n">{safe(step)}</th>' for step, _ in columns)
    body = "".join(
        f'<tr><th scope="row">{safe(depth)}</th>'
        + "".join(_shade(number(dig(result, ("by_depth", depth, "accuracy")))) for _, result in columns)
        + "</tr>"
        for depth in depths
    )
    return (
        '<h3>While it trained</h3><div class="scroll"><table class="heat"><thead><tr><th scope="col">Depth \\ step</th>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _shade(share: float | None) -> str:
    if share is None:
        return '<td class="n">–</td>'
    strong = " strong" if share >= 0.55 else ""
    return f'<td class="n shade{strong}" style="--share:{100 * share:.0f}%">{100 * share:.0f}</td>'


def failures(found: dict[str, Any]) -> str:
    """A table of the failures of each depth with their counts; empty if there are none."""
    lines = []
    for depth in sorted(found, key=lambda key: (len(key), key)):
        counts = [(name, number(count)) for name, count in table(found[depth]).items()]
        words = ", ".join(f"{safe(name)} <b>{count:,.0f}</b>" for name, count in counts if count)
        if words:
            lines.append(f'<tr><th scope="row">{safe(depth)}</th><td>{words}</td></tr>')
    return f'<table class="plain"><tbody>{"".join(lines)}</tbody></table>' if lines else ""
