"""The tables of a suite as files: Markdown, and one HTML page that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from callwright.commands.safe_text import visible
from callwright.measuring.suites.tables import Tables


def markdown(made: Tables) -> str:
    """The tables as Markdown."""
    return "\n".join(_markdown(made))


def _markdown(made: Tables) -> Iterator[str]:
    yield f"# {_cell(made.title)}\n"
    if made.source:
        yield f"Printed rows: {_cell(made.source)}.\n"
    for note in made.notes:
        yield f"{_cell(note)}\n"
    for table in made.tables:
        yield f"## {_cell(table.title)}\n"
        yield f"| {' | '.join(map(_cell, table.heads))} |"
        yield f"|{'---|' * len(table.heads)}"
        for row in table.rows:
            if row.printed and row is next(one for one in table.rows if one.printed):
                yield f"| *printed:* |{' |' * (len(table.heads) - 1)}"
            yield f"| {' | '.join(map(_cell, (row.name, *row.cells)))} |"
        yield ""
        yield from (f"- {_cell(note)}" for note in table.notes)
        yield ""
    yield "## What was measured\n"
    yield "| run | benchmark | settings | |"
    yield "|---|---|---|---|"
    for run in made.runs:
        said = "; ".join(run.reasons or [run.state])
        yield f"| {_cell(run.name)} | {_cell(run.benchmark)} | {_cell(run.settings)} | {_cell(said)} |"
    yield ""


def _cell(text: str) -> str:
    return visible(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}
table{border-collapse:collapse;margin:.5rem 0 1rem}
th,td{padding:.25rem .7rem;text-align:right}
th:first-child,td:first-child,.runs td,.runs th{text-align:left}
thead{border-bottom:2px solid #1b1f24}
tbody tr{border-bottom:1px solid #d5dae1}
tr.ours{font-weight:600;background:#eef4fb}
tr.printed td:first-child::before{content:"printed: ";opacity:.6}
li,.lead{color:#4a5360}
@media(prefers-color-scheme:dark){
body{background:#14171b;color:#e6e9ed}
thead{border-color:#e6e9ed}
tbody tr{border-color:#333a43}
tr.ours{background:#1e2a38}
li,.lead{color:#a4adb8}
}"""


def page(made: Tables) -> str:
    """The tables as one HTML file that loads nothing."""
    parts = [f"<h1>{_safe(made.title)}</h1>"]
    if made.source:
        parts.append(f'<p class="lead">Printed rows: {_safe(made.source)}.</p>')
    parts += [f'<p class="lead">{_safe(note)}</p>' for note in made.notes]
    for table in made.tables:
        rows = [
            f'<tr class="{"printed" if row.printed else "ours"}">{_row("td", (row.name, *row.cells))}</tr>'
            for row in table.rows
        ]
        notes = "".join(f"<li>{_safe(note)}</li>" for note in table.notes)
        parts.append(
            f"<h2>{_safe(table.title)}</h2>\n<table><thead><tr>{_row('th', table.heads)}</tr></thead>\n<tbody>"
            + "\n".join(rows)
            + f"</tbody></table>{f'<ul>{notes}</ul>' if notes else ''}"
        )
    runs = "\n".join(
        f"<tr>{_row('td', (run.name, run.benchmark, run.settings, '; '.join(run.reasons or [run.state])))}</tr>"
        for run in made.runs
    )
    parts.append(
        f'<h2>What was measured</h2>\n<table class="runs"><thead><tr>{_row("th", ("run", "benchmark", "settings", ""))}'
        f"</tr></thead>\n<tbody>{runs}</tbody></table>"
    )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{_safe(made.title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _row(tag: str, cells: Sequence[str]) -> str:
    return "".join(f"<{tag}>{_safe(one)}</{tag}>" for one in cells)


def _safe(text: str) -> str:
    return escape(visible(text), quote=False)
