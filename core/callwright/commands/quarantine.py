"""Rows that cost several workers: found by halving their chunk, named with their line, and set aside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from callwright.training.run_folder import append_jsonl

NumberedRow = tuple[int, dict[str, Any] | str]

#: Seconds that a chunk of rows may take, unless a command says otherwise. It usually takes some hundredths of a second.
STUCK_AFTER: Final = 600.0


def halves(rows: Sequence[NumberedRow]) -> Sequence[Sequence[NumberedRow]]:
    """A chunk of rows in two, or as it is if it holds only one."""
    middle = len(rows) // 2
    return (rows[:middle], rows[middle:]) if middle else (rows,)


class Quarantine:
    """The file beside ``target`` that takes the rows nobody could work on. It is made when the first one comes.

    Its rows are those of the input with the key ``quarantined``, so that it can be given to the same command again.
    """

    def __init__(self, target: str) -> None:
        self.path = f"{target.removesuffix('.gz').removesuffix('.zst').removesuffix('.jsonl')}.quarantine.jsonl"
        self.rows = 0

    def add(self, number: int, row: dict[str, Any], reason: str) -> str:
        """Set a row aside. Returns what there is to say of it."""
        append_jsonl(Path(self.path), [{**row, "quarantined": {"line": number, "reason": reason}}])
        self.rows += 1
        return f"several workers were lost to this row ({reason}); it is set aside in {self.path}"
