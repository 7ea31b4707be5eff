"""The page of worlds-mini-v1 lists the tasks as they are."""

from __future__ import annotations

from pathlib import Path

from callwright_plugins.worlds_mini.script import Script, read_scripts


def row(script: Script) -> str:
    calls = sum(len(turn) for turn in script.gold if not isinstance(turn, str))
    held_back = ", ".join(f"`{name}`" for name in script.user.get("knows", {}))
    notes = [
        note for note, so in (("time moves", script.clock), ("nothing is to change", script.changes_nothing)) if so
    ]
    return f"| `{script.id}` | {script.about} | {len(script.gold)} | {calls} | {held_back} | {'; '.join(notes)} |"


def test_the_table_of_tasks_is_that_of_the_files(root: Path) -> None:
    lines = (root / "docs" / "worlds-mini.md").read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line.startswith("| `") and line.count("|") == 7]
    assert listed == [row(script) for script in read_scripts()]
    assert len(listed) == 50
