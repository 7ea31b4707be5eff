"""Rows and tasks that kill or hang their workers: named, set aside or masked, and everything else is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callwright as cw

Start = Callable[..., Any]


def text(tool: str) -> str:
    return cw.parser("json").render(cw.Program((cw.Call(0, tool, {"x": 1}),)))


@pytest.mark.parametrize(("tool", "why"), [("kill", "killed by SIGKILL"), ("hang", "no result after 2 s")])
def test_a_row_that_costs_its_workers_is_set_aside_and_the_others_are_scored(
    start: Start, tmp_path: Path, tool: str, why: str
) -> None:
    """So late that rows come several at a time, and their chunk is divided; each half of it costs a worker."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": n, "task": "train-1", "completion": text(tool if n == 30 else "double")} for n in range(60)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--corpus", "lethal-sums-v1", "--recipe", "sums", "-o", target, "--workers", "2", "--stuck-after", "2")
    process = start("score", source, *options, "--isolation", "none")
    _, errors = process.communicate()
    assert process.returncode == 1
    aside = tmp_path / "out.quarantine.jsonl"
    assert f"{source}:31: several workers were lost to this row" in errors
    assert why in errors
    assert "59 rows scored, 0 of them masked, 1 bad" in errors
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == [n for n in range(60) if n != 30]
    (kept,) = (json.loads(line) for line in aside.read_text().splitlines())
    assert kept["quarantined"]["line"] == 31
    assert why in kept["quarantined"]["reason"]
    assert {key: kept[key] for key in rows[30]} == rows[30]


def test_a_task_that_costs_its_workers_is_masked(start: Start, tmp_path: Path) -> None:
    """A sampler of a plugin that ends its process for one task."""
    folder = tmp_path / "evaluation"
    options = ("--corpus", "sums-v1", "--sampler", "lethal", "--batch", "2", "-o", folder)
    process = start("evaluate", *options, "--workers", "2", "--json")
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert json.loads(output)["masked"] == 1
    assert "task 'validation-5': several workers were lost to it" in errors
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"validation-{n}" for n in range(12)]
    assert [row["id"] for row in rows if row["masked"]] == ["validation-5"]
    assert "SIGKILL" in rows[5]["lost"]
