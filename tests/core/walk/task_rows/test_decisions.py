"""Decisions about tasks: the last one counts, and one that was cut off does not."""

from __future__ import annotations

from pathlib import Path

from callwright.walk.task_rows.decisions import Decision, decide, read_decisions


def test_a_line_that_was_cut_off_within_a_character_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.decisions.jsonl"
    decide(path, Decision("a", "keep"))
    decide(path, Decision("b", "drop", "gleiche Wörter"))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index("ö".encode()) + 1])
    assert read_decisions(path) == {"a": Decision("a", "keep")}
    decide(path, Decision("b", "drop", "gleiche Wörter"))
    assert path.read_bytes() == whole
