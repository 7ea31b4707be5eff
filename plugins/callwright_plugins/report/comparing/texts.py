"""A comparison as Markdown and as CSV, one figure a cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from callwright.commands.terminal import whole_accuracy
from callwright.measuring.comparison import accuracy_of
from callwright.measuring.templates import table_of

if TYPE_CHECKING:
    from callwright.measuring.comparison import Board, GroupDifference
    from callwright.measuring.templates import Template


def difference(group: GroupDifference) -> str:
    """``+3.2 [-0.4, +6.9]`` in points; a dash for nothing."""
    found = group.difference
    if found.difference is None or found.low is None or found.high is None:
        return "–"
    return f"{100 * found.difference:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def chance(p: float | None) -> str:
    """A p value with three decimals, or below which it is."""
    return "–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def as_markdown(board: Board) -> str:
    """Benchmarks by checkpoints, then every comparison by its groups."""
    head = ["", *board.checkpoints]
    rows = [
        [benchmark, *(_accuracy(board, benchmark, name) for name in board.checkpoints)]
        for benchmark in board.benchmarks
    ]
    parts = ["# Comparison\n", _table(head, rows)]
    parts += ["", *(f"- {_cell(reason)}" for reason in board.unofficial)] if board.unofficial else []
    for one in board.comparisons:
        parts.append(f"\n## {_cell(one.second.name)} against {_cell(one.first.name)} on {_cell(one.first.benchmark)}\n")
        parts += [f"- {_cell(remark)}" for remark in one.remarks]
        parts += [""] if one.remarks else []
        heads = ["", "tasks", one.first.name, one.second.name, "points", "gained", "lost", "p"]
        groups = [group for some in one.tables.values() for group in some]
        parts.append(_table(heads, [_row(group) for group in groups]))
    return "\n".join(parts) + "\n"


def templates_in_markdown(board: Board, templates: Sequence[Template]) -> str:
    """The papers' tables with the checkpoints of the board as rows."""
    parts = []
    for template in templates:
        heads, rows = table_of(template, results_by_checkpoint(board))
        parts.append(
            f"\n## {template.title}\n\n{_table(heads, rows)}\n" + (f"\n{template.note}\n" if template.note else "")
        )
    return "".join(parts)


def results_by_checkpoint(board: Board) -> list[tuple[str, dict[str, Any]]]:
    """Each checkpoint with its results by benchmark."""
    return [
        (name, {place[0]: dict(result) for place, result in board.results.items() if place[1] == name})
        for name in board.checkpoints
    ]


def as_csv(board: Board) -> str:
    """A row for every group of every evaluation; differences are those with the first checkpoint of its benchmark."""
    heads = (
        "benchmark checkpoint by group n accuracy low high masked against paired_n difference difference_low "
        "difference_high gained lost p"
    ).split()
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(heads)
    for (benchmark, name), result in board.results.items():
        tables = {"": {"all": accuracy_of(result)}, "depth": result["by_depth"], "structure": result["by_structure"]}
        compared = next((o for o in board.comparisons if (o.first.benchmark, o.second.name) == (benchmark, name)), None)
        for keys, cells in {**tables, **result.get("by", {})}.items():
            paired = {group.name: group for group in (compared.tables.get(keys, ()) if compared else ())}
            for label, cell in cells.items():
                figures = [cell[key] for key in ("n", "accuracy", "low", "high")]
                row = [benchmark, name, keys, label, *figures, cell.get("masked", 0)]
                writer.writerow([_safe(one) for one in (*row, *_paired(paired.get(label), compared))])
    return written.getvalue()


def _paired(group: GroupDifference | None, compared: Any) -> list[Any]:
    if group is None:
        return [""] * 8
    found = group.difference
    return [compared.first.name, found.n, found.difference, found.low, found.high, group.gained, group.lost, group.p]


def _safe(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is set apart."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return "" if value is None else value


def _accuracy(board: Board, benchmark: str, name: str) -> str:
    return whole_accuracy(board.results.get((benchmark, name)))


def _row(group: GroupDifference) -> list[str]:
    shares = ["–" if share is None else f"{100 * share:.1f}%" for share in (group.first, group.second)]
    counts = [str(group.gained), str(group.lost)]
    return [group.name, str(group.difference.n), *shares, difference(group), *counts, chance(group.p)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(map(_cell, heads)) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A text that cannot leave its cell."""
    plain = " ".join(str(text).split())
    return plain.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
