"""``callwright score`` on rows that bring their own ground truth, without a corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command

CALL = '<tool_call>\n{"name": "get", "parameters": {"n": 1}}\n</tool_call>'
TRUTH = f"<think>so</think>\n{CALL}"


def score(tmp_path: Path, rows: list[dict[str, Any]], *words: str) -> tuple[Result, list[dict[str, Any]]]:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(root_command, ["score", str(source), "-o", str(out), *words])
    written = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return result, written


def row(row_id: Any, completion: str = TRUTH, truth: Any = TRUTH, **more: Any) -> dict[str, Any]:
    return {"id": row_id, "completion": completion, "ground_truth": truth, **more}


def test_rows_with_their_ground_truth_need_no_corpus(tmp_path: Path) -> None:
    rows = [row("a"), row(2, CALL), row("c", "nothing")]
    result, written = score(tmp_path, rows, "--recipe", "toolrl")
    assert result.exit_code == 0
    assert [(one["id"], one["total"]) for one in written] == [("a", 4.0), (2, 3.0), ("c", -3.0)]
    recipe = cw.reward("toolrl")
    for given, one in zip(rows, written, strict=True):
        reward = recipe.score_pair(given["completion"], given["ground_truth"])
        assert one == {"id": given["id"], **json.loads(json.dumps(reward.to_json()))}


def test_schedules_read_the_step(tmp_path: Path) -> None:
    rows = [
        row(1, step=0, total_steps=105),
        row(2, step=105, total_steps=105),
        row(3, step=200, total_steps=105),
        row(4),
    ]
    result, written = score(tmp_path, rows, "--recipe", "toolrl-dynamic-scale")
    assert result.exit_code == 1
    assert "'toolrl-dynamic-scale' has a schedule: the row needs 'step' and 'total_steps'" in result.output
    assert [(one["scores"]["format"]["high"], one["total"]) for one in written] == [(2.0, 4.0), (1.0, 4.0), (1.0, 4.0)]


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        (None, "the row has no 'ground_truth', or it is not a string"),
        (
            "<think>a</think>\n<tool_call>\noops\n</tool_call>",
            "task '2': the ground truth cannot be read: line 1 of its calls",
        ),
    ],
)
def test_a_bad_ground_truth_is_a_bad_row(tmp_path: Path, truth: Any, reason: str) -> None:
    result, written = score(tmp_path, [row(1), row(2, truth=truth)], "--recipe", "toolrl-released-default")
    assert result.exit_code == 1
    assert f"in.jsonl:2: {reason}" in result.output
    assert [one["id"] for one in written] == [1]


def test_a_recipe_over_tasks_asks_for_the_corpus(tmp_path: Path) -> None:
    result, _ = score(tmp_path, [row(1)], "--recipe", "tier")
    assert isinstance(result.exception, cw.UsageError) or result.exit_code == 2
    assert "scores tasks of a corpus. Name it: --corpus NAME" in f"{result.output}{result.exception}"
    result, _ = score(tmp_path, [row(1)], "--recipe", "toolrl", "--data", "somewhere")
    assert result.exit_code == 2
    assert "name it with --corpus" in result.output
