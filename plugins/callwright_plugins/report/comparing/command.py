"""``callwright compare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands.options import json_option, refuse_what_is_no_page
from callwright.commands.safe_text import say

if TYPE_CHECKING:
    from callwright.measuring.comparison import Board, Comparison


@click.command("compare")
@click.argument("folders", metavar="[NAME=]DIR...", nargs=-1, required=True)
@click.option("--by", multiple=True, metavar="KEY[,KEY]", help="Groups. Default: depth, and structure.")
@click.option("--template", "templates", multiple=True, metavar="NAME", help="A paper's table, such as tier-1.")
@click.option("--flips", type=click.IntRange(min=0), default=5, show_default=True, help="Flipped tasks that are shown.")
@click.option("-o", "--output", metavar="DIR", help="Write compare.html, compare.md and compare.csv there.")
@json_option
def compare(
    folders: tuple[str, ...],
    by: tuple[str, ...],
    templates: tuple[str, ...],
    flips: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Compare evaluations: DIR is what callwright evaluate -o left, NAME what tables call the checkpoint.

    Every other evaluation of the same tasks is compared with the first: paired differences with 95% intervals from a
    bootstrap over tasks and families, McNemar's exact test, and the tasks that flipped. The page shows their
    completions.
    """
    from callwright.errors import DataError
    from callwright.measuring.comparison import board_of
    from callwright.measuring.folders import RESULT, VERDICTS, read_evaluated
    from callwright.measuring.templates import template_named
    from callwright.training.ledger.row_digests import DigestedRows
    from callwright.training.run_folder import write_atomically
    from callwright.training.summary import check_groups
    from callwright_plugins.report.comparing.page import render
    from callwright_plugins.report.comparing.texts import as_csv, as_markdown, templates_in_markdown

    chosen = [template_named(name) for name in templates]
    keys = [tuple(part.strip() for part in one.split(",") if part.strip()) for one in by or ("depth", "structure")]
    if not all(keys):
        raise click.UsageError("--by needs the name of a key, such as 'kind' or 'depth,structure'")
    evaluations = [read_evaluated(path, name) for name, path in map(_named, folders)]
    for one in evaluations:
        if not one.verdicts:
            raise DataError(f"{one.path} holds no verdict yet")
        damage = DigestedRows(one.path / VERDICTS).damage(finished=(one.path / RESULT).exists())
        if damage is not None:
            say(f"{one.path}: {VERDICTS}, {damage}. What follows counts what is there; callwright doctor {one.path}")
        check_groups(keys, one.verdicts)
    board = board_of(evaluations, keys)
    if output is not None:
        folder = Path(output)
        refuse_what_is_no_page(folder / "compare.html")
        folder.mkdir(parents=True, exist_ok=True)
        tables = templates_in_markdown(board, chosen)
        write_atomically(folder / "compare.html", render(board, chosen))
        write_atomically(folder / "compare.md", as_markdown(board) + (f"\n{tables}" if tables else ""))
        write_atomically(folder / "compare.csv", as_csv(board))
    if as_json:
        click.echo(json.dumps(_as_json(board), indent=2))
        return
    _draw_board(board)
    for comparison in board.comparisons:
        _draw(comparison, flips)
    if chosen:
        click.echo(templates_in_markdown(board, chosen), nl=False)
    if output is not None:
        click.echo(str(Path(output) / "compare.html"))


def _named(text: str) -> tuple[str | None, Path]:
    """``NAME=DIR``, or a folder whose name may hold the sign itself."""
    name, sign, path = text.partition("=")
    if not sign or Path(text).exists() or not name:
        return None, Path(text)
    return name, Path(path)


def _as_json(board: Board) -> dict[str, Any]:
    from callwright.measuring.comparison import accuracy_of

    return {
        "benchmarks": {
            benchmark: {
                name: dict(accuracy_of(board.results[benchmark, name]))
                for name in board.checkpoints
                if (benchmark, name) in board.results
            }
            for benchmark in board.benchmarks
        },
        "comparisons": [one.to_json() for one in board.comparisons],
        "unofficial": list(board.unofficial),
    }


def _draw_board(board: Board) -> None:
    from callwright.commands.terminal import parts, screen, text, whole_accuracy

    rows = []
    for benchmark in board.benchmarks:
        cells = (board.results.get((benchmark, name)) for name in board.checkpoints)
        rows.append([benchmark, *map(whole_accuracy, cells)])
    console = screen()
    for shown in parts(["", *board.checkpoints], rows, "accuracy", console):
        console.print(shown)
    for reason in board.unofficial:
        console.print(text(reason))


def _draw(comparison: Comparison, flips: int) -> None:
    from callwright.commands.terminal import parts, percent, screen, text
    from callwright_plugins.report.comparing.texts import chance, difference

    title = f"{comparison.second.name} against {comparison.first.name} on {comparison.first.benchmark}"
    rows: list[Sequence[str] | None] = []
    for groups in (*(some for keys, some in comparison.tables.items() if keys), [comparison.whole]):
        rows.append(None)
        for one in groups:
            counts = str(one.difference.n), percent(one.first), percent(one.second)
            rows.append((one.name, *counts, difference(one), f"+{one.gained} -{one.lost}", chance(one.p)))
    console = screen()
    for shown in parts(["", "tasks", "before", "after", "points", "flips", "p"], rows, title, console):
        console.print(shown)
    for remark in comparison.remarks:
        console.print(text(f"not the same: {remark}" if ": " in remark else remark))
    for flip in comparison.flips[:flips]:
        row = comparison.second.row(flip.rows[1])
        console.print(text(f"{'gained' if flip.gained else 'lost'} {flip.task}: {str(row.get('query', ''))[:120]}"))
    if len(comparison.flips) > flips:
        console.print(f"{len(comparison.flips)} tasks flipped; -o DIR writes a page with all of them")
