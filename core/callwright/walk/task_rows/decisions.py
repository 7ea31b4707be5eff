"""Decisions: which tasks people keep and drop, a line of JSON for each, in a file beside the tasks.

    tasks.jsonl -> tasks.jsonl.decisions.jsonl
    {"task": "banking-17", "verdict": "drop", "note": "asks for the same as banking-3"}

The last line about a task counts, so that a decision is changed by another one and nothing is written over.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final, Literal, get_args

from attrs import frozen

from callwright.errors import DataError

#: ``undecided`` takes a decision back.
Verdict = Literal["keep", "drop", "undecided"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@frozen
class Decision:
    """What somebody decided about a task."""

    task: str
    verdict: Verdict
    note: str = ""


def decisions_file(tasks: Path) -> Path:
    """Where the decisions about a file of tasks stand."""
    return tasks.with_name(f"{tasks.name}.decisions.jsonl")


def read_decisions(path: Path) -> dict[str, Decision]:
    """The decisions that count, by task; none if there is no file. A last line that was cut off is left out.

    Raises :class:`callwright.errors.DataError` with file and line for what is no decision.
    """
    if not path.exists():
        return {}
    found: dict[str, Decision] = {}
    *lines, rest = path.read_bytes().split(b"\n")  # the end may be within a character
    for number, line in enumerate([*lines, *([rest] if rest.endswith(b"}") else [])], 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        match row:
            case {"task": str(task), "verdict": "keep" | "drop" | "undecided" as verdict}:
                note = row.get("note", "")
                found[task] = Decision(task, verdict, note if isinstance(note, str) else "")
            case _:
                raise DataError(f'{path}:{number}: a decision is {{"task": …, "verdict": "keep" or "drop"}}')
    return {task: one for task, one in found.items() if one.verdict != "undecided"}


def decide(path: Path, decision: Decision) -> None:
    """Write a decision down, at once and for good."""
    row = {"task": decision.task, "verdict": decision.verdict, **({"note": decision.note} if decision.note else {})}
    line = json.dumps(row, ensure_ascii=False) + "\n"
    if path.exists() and (held := path.read_bytes()) and not held.endswith(b"\n"):
        whole, _, rest = held.rpartition(b"\n")  # a kill in the middle of a line: what is half there does not count
        keep = held + b"\n" if rest.endswith(b"}") else whole + b"\n" if whole else b""
        path.write_bytes(keep)
    with path.open("a", encoding="utf-8") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
