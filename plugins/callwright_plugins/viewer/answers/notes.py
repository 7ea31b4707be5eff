"""Notes: what people think of a row, in a file beside it, and what is made of the rows that they marked.

    {"n": 17, "row": "9f2c…", "mark": "bad", "comment": "the unit is wrong"}

The last line about a row counts. ``row`` is a digest of the row, so that a note about a row of a file that was written
anew is not taken for one about another row. Notes about synthesised tasks are decisions, which ``synthesize inspect``
and the corpus ``tasks`` read: a good one is kept, a bad one dropped.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.errors import UsageError
from callwright.training.run_folder import append_jsonl, read_jsonl
from callwright.walk.task_rows.decisions import Decision, decide, decisions_file, read_decisions
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.sources.entries import text_of
from callwright_plugins.viewer.sources.finding import Source

MARKS: Final = ("good", "bad", "look", "")
#: Characters of a comment, at most.
LONGEST: Final = 10_000
_KEPT: Final = {"keep": "good", "drop": "bad"}
_DECIDED: Final = {"good": "keep", "bad": "drop"}
_writing = threading.Lock()


@frozen
class Note:
    """A note about a row: a mark, words, or both."""

    n: int
    mark: str = ""
    comment: str = ""

    def to_json(self) -> dict[str, Any]:
        """As pages get it."""
        return {"n": self.n, "mark": self.mark, "comment": self.comment}


def notes_file(source: Source) -> Path:
    """Where the notes about a source stand."""
    if source.kind == "tasks":
        return decisions_file(source.rows)
    return (
        source.folder / "notes.jsonl"
        if source.folder is not None
        else source.rows.with_name(f"{source.rows.name}.notes.jsonl")
    )


def read_notes(index: Index) -> dict[int, Note]:
    """The notes that count, by the number of their row.

    Raises :class:`callwright.errors.DataError` for a file that is none of notes.
    """
    path = notes_file(index.source)
    if index.source.kind == "tasks":
        decisions = read_decisions(path)
        rows = index.rows("SELECT n, task FROM rollouts") if decisions else []
        return {
            row["n"]: Note(row["n"], _KEPT[one.verdict], one.note)
            for row in rows
            if (one := decisions.get(row["task"])) is not None
        }
    if not path.exists():
        return {}
    found: dict[int, tuple[Note, str]] = {}
    for row in read_jsonl(path, torn_tail=True):
        n = row.get("n")
        if isinstance(n, int):
            found[n] = Note(n, text_of(row.get("mark")), text_of(row.get("comment"))), text_of(row.get("row"))
    return {n: note for n, (note, row) in found.items() if (note.mark or note.comment) and row == digest(index, n)}


def write_note(index: Index, n: int, mark: str, comment: str) -> Note:
    """Write a note down, at once. Raises :class:`callwright.UsageError` for a row or a mark that is not there."""
    if mark not in MARKS:
        raise UsageError(f"a mark is good, bad, look or empty, not {mark!r:.40}")
    if len(comment) > LONGEST:
        raise UsageError(f"a comment has at most {LONGEST:,} characters")
    row = index.row(n)
    if row is None:
        raise UsageError(f"there is no row {n}")
    path = notes_file(index.source)
    with _writing:
        if index.source.kind == "tasks":
            verdict: Any = _DECIDED.get(mark, "undecided")
            decide(path, Decision(text_of(row.get("id")), verdict, comment))
        else:
            about: dict[str, Any] = {key: row[key] for key in ("id", "task", "step", "group", "sample") if key in row}
            append_jsonl(path, [{"n": n, "row": digest(index, n), **about, "mark": mark, "comment": comment}])
    return Note(n, mark, comment)


def marked(notes: Mapping[int, Note]) -> dict[str, list[int]]:
    """The rows with each mark, as filters take them."""
    found: dict[str, list[int]] = {"comment": [n for n, note in notes.items() if note.comment]}
    for n, note in notes.items():
        if note.mark:
            found.setdefault(note.mark, []).append(n)
    return found


def digest(index: Index, n: int) -> str:
    """A digest of a row as it stands in its file: 16 digits."""
    row = index.row(n)
    return hashlib.sha256(json.dumps(row, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()[:16]


# What is made of them -------------------------------------------------------------------------------------------------


def exported(index: Index, what: str) -> tuple[str, str]:
    """The marked rows as ``sft``, ``preference`` or ``lab`` rows, or as ``tests``: a file name and its text.

    Raises :class:`callwright.UsageError` where nothing is marked that makes one, with what to mark.
    """
    notes = read_notes(index)
    rows = {n: row for n in sorted(notes) if (row := index.row(n)) is not None}
    good = {n: row for n, row in rows.items() if notes[n].mark == "good"}
    bad = {n: row for n, row in rows.items() if notes[n].mark == "bad"}
    name = index.source.key
    if what == "sft":
        made = [_told(row) for row in good.values()]
        _expect(made, "mark rows as good: each becomes one to learn from")
        return f"{name}-sft.jsonl", _lines(made)
    if what == "preference":
        made = [
            {"prompt": _asked(better), "chosen": _answer(better), "rejected": _answer(worse)}
            for better, worse in _pairs(good, bad)
        ]
        _expect(made, "mark one row of a task as good and another one of the same task as bad")
        return f"{name}-preference.jsonl", _lines(made)
    if what == "lab":
        made = [
            {"id": str(n), "task": row.get("task"), "completion": row.get("completion"), **_more(row)}
            for n, row in {**good, **bad}.items()
            if isinstance(row.get("completion"), str)
        ]
        _expect(
            made,
            "mark rows with a completion as good or bad: callwright lab FILE --corpus NAME compares rewards on them",
        )
        return f"{name}-lab.jsonl", _lines(made)
    if what == "tests":
        from callwright_plugins.viewer.answers.marked_tests import tests_of

        return f"test_{name.replace('-', '_').replace('.', '_')}_marked.py", tests_of(index.source, good, bad)
    raise UsageError(f"marked rows become sft, preference, lab or tests, not {what!r:.40}")


def _pairs(good: Mapping[int, Any], bad: Mapping[int, Any]) -> Iterator[tuple[Any, Any]]:
    for better in good.values():
        for worse in bad.values():
            if better.get("task") == worse.get("task"):
                yield better, worse


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    messages = row.get("messages")
    if isinstance(messages, list) and messages:
        return {"messages": messages}
    return {"prompt": _asked(row), "completion": _answer(row)}


def _asked(row: Mapping[str, Any]) -> Any:
    messages = row.get("messages")
    if isinstance(messages, list) and messages:
        return messages[:-1]
    return text_of(row.get("prompt")) or text_of(row.get("query"))


def _answer(row: Mapping[str, Any]) -> Any:
    messages = row.get("messages")
    if isinstance(messages, list) and messages:
        return messages[-1:]
    return text_of(row.get("completion"))


def _more(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("truncated", "turns", "said", "completions") if key in row}


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _expect(made: list[Any], otherwise: str) -> None:
    if not made:
        raise UsageError(f"nothing is marked that makes such a row: {otherwise}")
