"""The same pages as files: every answer that the app may ask for, written once.

A page that is opened from a folder may load scripts and nothing else, so answers are scripts that hand over an object.
Filters, sorting and groups are the app's own there; what it shows is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from callwright.errors import CallwrightError, UsageError
from callwright.training.run_folder import write_atomically
from callwright_plugins.viewer.answers import comparing, curves, lab, notes, rollouts, synthesis, tables
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.serving.server import static

#: Documents of one file.
_PART: Final = 50
_MOST: Final = 5_000
#: Sources of which each two are compared.
_COMPARED: Final = 6
_POLICY: Final = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'none'"
)


def export(
    board: Board, folder: Path, most: int = _MOST, complain: Callable[[str], object] = lambda text: None
) -> None:
    """Write the pages of a board into a folder, which is there not yet or holds an earlier export.

    Of more than ``most`` rows of a source only the last ones are written; ``complain`` hears of that.

    Raises :class:`callwright.UsageError` for a folder that holds something else.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "data" / "state.js").exists():
        raise UsageError(f"{folder} holds other files; name a folder that is not there yet (--export)")
    (folder / "data").mkdir(parents=True, exist_ok=True)
    state = {**board.state(), "exported": True}
    for one in state["sources"]:
        index = board.indexes[one["key"]]
        if one["rows"] > most:
            complain(f"{one['name']}: of {one['rows']:,} rows the last {most:,} are exported; --most N takes more")
        _source(board, index, folder, most)
        one.update(exported=min(most, one["rows"]), part=_PART)
    keys = [one["key"] for one in state["sources"]][:_COMPARED]
    for first in keys:
        for second in keys:
            if first != second:
                told = comparing.compared(board.indexes[first], board.indexes[second])
                _write(folder, f"{first}--{second}--compare", told)
    _write(folder, "state", state)
    for name in ("app.js", "app.css", "icon.svg"):
        (folder / name).write_bytes(static(name))
    # Opened from a folder a page has no origin of its own: scripts and styles are those beside it.
    page = static("index.html").decode()
    page = page.replace("<!-- policy -->", f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">')
    write_atomically(folder / "index.html", page.replace("<html ", '<html data-exported="yes" '))


def _source(board: Board, index: Index, folder: Path, most: int) -> None:
    key = index.source.key
    first = max(0, index.count - most)
    rows: list[dict[str, Any]] = []
    while True:
        page = tables.page(index, f"n>{first}", "n", len(rows), tables.MOST)
        if not page["rows"]:
            break
        rows += page["rows"]
    words = {row["n"]: "" for row in rows}
    _write(folder, f"{key}--rows", rows)
    for start in range(0, len(rows), _PART):
        part = rows[start : start + _PART]
        made = {row["n"]: rollouts.rollout(index, row["n"]) for row in part}
        tokens = {row["n"]: kept for row in part if (kept := rollouts.tokens(index, row["n"]))}
        words |= {n: _words(one) for n, one in made.items()}
        _write(folder, f"{key}--part-{start // _PART}", {"documents": made, "tokens": tokens})
    _write(folder, f"{key}--words", words)
    _write(folder, f"{key}--curves", curves.curves(index.source))
    _write(folder, f"{key}--funnel", synthesis.funnel(index.source))
    _write(folder, f"{key}--notes", [note.to_json() for note in notes.read_notes(index).values()])
    try:
        told = lab.agreement(index, board.scored(index))
        _write(folder, f"{key}--agreement", told)
        pairs = {
            f"{cell['first']}|{cell['second']}": lab.disagreeing(
                index, board.scored(index), cell["first"], cell["second"]
            )
            for cell in told["cells"]
            if cell["opposite"]
        }
        _write(folder, f"{key}--disagreeing", pairs)
    except CallwrightError:
        _write(folder, f"{key}--agreement", {"rewards": {}, "groups": 0, "cells": []})


def _words(row: Any) -> str:
    """What is searched of a row: its query, and everything that was said or told as evidence."""
    if row is None:
        return ""
    told = row["document"]
    said = [one["text"] for one in told["conversation"] if one["role"] not in ("system", "prompt")]
    reasons = [str(one.get("reason", "")) for score in told["scores"] for one in score["evidence"]]
    return "\n".join([row["query"] or "", row["task"] or "", row["failure"] or "", *said, *reasons])[:20_000]


def _write(folder: Path, name: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str)
    # As a script: no text of a model may end it.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    write_atomically(folder / "data" / f"{name}.js", f"callwrightData({json.dumps(name)},{text});\n")
