"""``callwright evaluate`` with a recipe of several turns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Invoke = Callable[..., Result]


def test_the_turns_of_the_recipe_are_taken_and_kept(invoke: Invoke, recipe: Path, tmp_path: Path) -> None:
    folder, single = tmp_path / "several", tmp_path / "one"
    words = ("evaluate", "--recipe", recipe, "--sampler", "gold", "--json", "--limit", "8")
    several = invoke(*words, "--set", "turns.assistant_turns=3", "-o", folder)
    assert several.exit_code == 0
    assert json.loads(several.stdout)["overall"] == 1.0
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["turns"]["assistant_turns"] == 3
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    assert all(row["completion"] == row.get("completions", [row["completion"]])[-1] for row in rows)
    assert any(1 < len(row.get("completions", ())) <= 3 for row in rows)
    again = invoke(*words, "--set", "turns.assistant_turns=2", "-o", folder)
    assert again.exit_code != 0
    assert "other settings (turns)" in again.output
    assert invoke(*words, "-o", single).exit_code == 0
    assert "turns" not in json.loads((single / "settings.json").read_text())
    rows = [json.loads(line) for line in (single / "verdicts.jsonl").read_text().splitlines()]
    assert not any("completions" in row for row in rows)
