"""The page of a comparison: one HTML file in the style of the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.measuring.comparison import accuracy_of
from callwright.measuring.templates import table_of
from callwright_plugins.report.comparing.texts import chance, results_by_checkpoint
from callwright_plugins.report.drawing.markup import cut, percent, points, safe, section
from callwright_plugins.report.page import document

if TYPE_CHECKING:
    from callwright.measuring.comparison import Board, Comparison, Flip, GroupDifference
    from callwright.measuring.folders import Evaluated
    from callwright.measuring.templates import Template

#: Flipped tasks of each direction whose completions stand on the page.
MOST_FLIPS: Final = 40
_LONGEST: Final = 4000
_LEAD: Final = (
    "Differences are over the tasks that both have, in points, with 95% intervals from a bootstrap over tasks and "
    "families; p is McNemar’s exact test, which takes tasks as independent."
)


def render(board: Board, templates: Sequence[Template] = ()) -> str:
    """The whole page. The same folders give the same bytes."""
    parts = [_header(board), _board(board)]
    for place, comparison in enumerate(board.comparisons):
        parts.append(_comparison(comparison, f"comparison-{place}"))
        parts.append(_flips(comparison, f"flips-{place}"))
    parts += [_template(board, template) for template in templates]
    command = shlex.join(["callwright", "compare", *(str(one.path) for one in board.cells.values()), "-o", "DIR"])
    footer = f"Callwright. Written from evaluation folders; again with <code>{safe(command)}</code>"
    return document("Callwright comparison", "\n".join(part for part in parts if part), footer)


def _header(board: Board) -> str:
    said = [_sentence(one) for one in board.comparisons]
    details = "".join(f"<p>{safe(sentence)}</p>" for sentence in said[1:6])
    first = said[0] if said else "One evaluation, and nothing to compare it with."
    return f"""<header>
<p class="eyebrow">Callwright comparison <span class="state">{len(board.cells)} evaluations</span></p>
<h1>{safe(", ".join(board.checkpoints))}</h1>
<div class="verdict"><p class="headline">{safe(first)}</p>{details}</div>
</header>"""


def _sentence(comparison: Comparison) -> str:
    whole = comparison.whole
    found = whole.difference
    if found.difference is None or found.low is None or found.high is None:
        return f"{comparison.second.name} and {comparison.first.name} have no task in common."
    beyond = found.low > 0 or found.high < 0
    which = ("better" if found.difference > 0 else "worse") if beyond else "no different beyond chance"
    return (
        f"{comparison.second.name} is {which} on {comparison.first.benchmark}: {points(found.difference, signed=True)} "
        f"points [{points(found.low, signed=True)}, {points(found.high, signed=True)}] over {found.n:,} tasks, "
        f"{whole.gained:,} gained and {whole.lost:,} lost."
    )


def _board(board: Board) -> str:
    rows = []
    for benchmark in board.benchmarks:
        cells = (board.results.get((benchmark, name)) for name in board.checkpoints)
        rows.append([benchmark, *(_accuracy(cell) for cell in cells)])
    said = "".join(f"<li>{safe(reason)}</li>" for reason in board.unofficial)
    body = _table(["", *board.checkpoints], rows) + (f"<ul>{said}</ul>" if said else "")
    return section("Accuracy", body, lead="With 95% intervals.", key="accuracy")


def _accuracy(result: Any) -> str:
    cell = accuracy_of(result) if result is not None else {}
    if not cell.get("n"):
        return "–"
    masked = f", {cell['masked']} masked" if cell.get("masked") else ""
    if not result["headline"]:
        return f"{percent(cell['lowest'])} to {percent(cell['highest'])}{masked}"
    return f"{percent(cell['accuracy'])} [{points(cell['low'])}–{points(cell['high'])}] of {cell['n']:,}{masked}"


def _comparison(comparison: Comparison, key: str) -> str:
    heads = ["", "Tasks", comparison.first.name, comparison.second.name, "Points", "Interval", "Gained", "Lost", "p"]
    body = "".join(f"<li>{safe(remark)}</li>" for remark in comparison.remarks)
    body = f'<div class="notice"><p>What is not the same in both:</p><ul>{body}</ul></div>' if body else ""
    for keys, groups in comparison.tables.items():
        body += f"<h3>By {safe(keys.replace(',', ', '))}</h3>" if keys else ""
        body += _table(heads, [_row(group) for group in groups])
    title = f"{comparison.second.name} against {comparison.first.name}"
    return section(title, body, lead=f"{safe(comparison.first.benchmark)}. {_LEAD}", key=key)


def _row(group: GroupDifference) -> list[str]:
    found = group.difference
    if found.difference is None or found.low is None or found.high is None:
        return [group.name, *["–"] * 8]
    shares = percent(group.first), percent(group.second), points(found.difference, signed=True)
    interval = f"{points(found.low, signed=True)} to {points(found.high, signed=True)}"
    return [group.name, f"{found.n:,}", *shares, interval, f"{group.gained:,}", f"{group.lost:,}", chance(group.p)]


def _flips(comparison: Comparison, key: str) -> str:
    parts = []
    for gained, title in ((True, "Gained"), (False, "Lost")):
        some = [flip for flip in comparison.flips if flip.gained is gained]
        if some:
            shown = "".join(_flip(comparison, flip) for flip in some[:MOST_FLIPS])
            more = f"<p>{len(some) - MOST_FLIPS:,} more.</p>" if len(some) > MOST_FLIPS else ""
            parts.append(f"<h3>{title}: {len(some):,}</h3>{shown}{more}")
    if not parts:
        return ""
    return section("Tasks that flipped", "".join(parts), lead="Both completions of each.", key=key)


def _flip(comparison: Comparison, flip: Flip) -> str:
    sides = []
    for one, place in ((comparison.first, flip.rows[0]), (comparison.second, flip.rows[1])):
        sides.append(_side(one, place))
    query = str(comparison.first.row(flip.rows[0]).get("query", ""))
    return (
        f"<details><summary>{safe(flip.task)}: {safe(cut(query, 160))}</summary>"
        f"<p>{safe(cut(query, _LONGEST))}</p>{''.join(sides)}</details>"
    )


def _side(one: Evaluated, place: int) -> str:
    row, verdict = one.row(place), one.verdicts[place]
    texts = row.get("completions") or [row.get("completion", "")]
    said = "right" if verdict.answer else verdict.error or verdict.failure
    written = "".join(f"<pre>{safe(cut(str(text), _LONGEST))}</pre>" for text in texts)
    differs = ""
    if "found" in row:
        expected, found = (safe(cut(str(row.get(key)), 400)) for key in ("expected", "found"))
        differs = f"<p>Expected {expected}; found {found}.</p>"
    return f"<h4>{safe(one.name)}: {safe(said)}</h4>{written}{differs}"


def _template(board: Board, template: Template) -> str:
    heads, rows = table_of(template, results_by_checkpoint(board))
    return section(template.title, _table(heads, rows), lead=safe(template.note), key=template.name)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col"{_right(place)}>{safe(head)}</th>' for place, head in enumerate(heads))
    body = "".join(
        "<tr>"
        + f'<th scope="row">{safe(row[0])}</th>'
        + "".join(f'<td class="n">{safe(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table class="plain"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _right(place: int) -> str:
    return ' class="n"' if place else ""
