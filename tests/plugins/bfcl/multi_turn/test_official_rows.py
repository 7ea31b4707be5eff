"""The official verdicts that are here, by the classes of the official wheels."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import callwright as cw
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

PARSER = cw.parser("json")


@pytest.mark.parametrize(
    ("version", "release", "folder"), [("v3", "2025.8.6.2", "v3_git"), ("v4", "2026.3.23", "v4_package")]
)
def test_verdicts_equal_the_official_ones(
    version: str, release: str, folder: str, official_data: Path, official_wheels: Path
) -> None:
    rows = official_data / "bfcl" / f"official_verdicts_mt_perturbed_{version}.jsonl.gz"
    if not rows.is_file():
        pytest.skip("the official verdicts are not here (CALLWRIGHT_DATA)")
    wheel = official_wheels / f"bfcl_eval-{release}-py3-none-any.whl"
    suite = MultiTurn(version, official_data / "bfcl" / folder, wheel)
    tasks = {task.id: task for category in CATEGORIES for task in suite.tasks(category)}
    known = [json.loads(line) for line in gzip.decompress(rows.read_bytes()).splitlines()]
    attempts = []
    for row in known:
        attempt = suite.answer(row, tasks[row["id"]], PARSER)
        assert attempt is not None
        attempts.append((tasks[row["id"]], attempt))
    found = suite.judge_together(attempts)
    assert [(one.correct, one.error or None) for one in found] == [(row["valid"], row["error_type"]) for row in known]
    assert len(found) == 2432
    suite.close()
