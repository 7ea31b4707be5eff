"""``callwright synthesize check``: what it says of files, and with which status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App

TASKS = list(cw.corpus("worlds-mini-v1")["validation"])


def check(*words: str) -> Result:
    return CliRunner().invoke(root, ["synthesize", "check", *words], obj=App())


def spoiled(task: cw.Task) -> cw.Task:
    """With a goal that nobody reaches."""
    return evolve(task, id=f"{task.id}-spoiled", facts={**task.facts, "goal": {"changed": []}})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "mixed.jsonl"
    cw.write_tasks(path, [TASKS[0], spoiled(TASKS[0]), TASKS[1], evolve(TASKS[1], id="again")])
    return path


def test_findings_are_named_and_make_the_status_one(mixed: Path) -> None:
    said = check(str(mixed), "--against", "none")
    assert said.exit_code == 1, said.output
    assert "sound: the reference misses the goal" in " ".join(said.output.split())
    assert "duplicates: nearly the same calls" in " ".join(said.output.split())
    assert "2 of 4 tasks pass" in said.output


def test_json_counts_each_gate_and_says_where_what_is_wrong(mixed: Path) -> None:
    found: dict[str, Any] = json.loads(check(str(mixed), "--against", "none", "--json").stdout)
    assert (found["tasks"], found["pass"]) == (4, 2)
    assert found["gates"]["sound"] == {"passed": 3, "rejected": 1}
    assert found["gates"]["fresh process"] == {"passed": 3, "rejected": 0}
    assert found["gates"]["duplicates"] == {"passed": 2, "rejected": 1}
    assert [(one["task"], one["stage"]) for one in found["wrong"]] == [
        (f"{TASKS[0].id}-spoiled", "sound"),
        ("again", "duplicates"),
    ]
    assert all("mixed.jsonl" in one["place"] for one in found["wrong"])


def test_a_file_without_findings_has_the_status_zero(tmp_path: Path) -> None:
    path = tmp_path / "fine.jsonl"
    cw.write_tasks(path, TASKS[2:5])
    said = check(str(path), "--against", "none")
    assert said.exit_code == 0, said.output
    assert "3 of 3 tasks pass" in said.output


def test_what_stands_in_a_benchmark_is_found(tmp_path: Path) -> None:
    path, rows = tmp_path / "fine.jsonl", tmp_path / "benchmark.jsonl"
    cw.write_tasks(path, TASKS[2:4])
    rows.write_text(json.dumps({"id": "b1", "query": TASKS[3].query}) + "\n", encoding="utf-8")
    said = check(str(path), "--against", str(rows))
    assert said.exit_code == 1
    assert "decontaminated: shares its query with a benchmark" in " ".join(said.output.split())
    both = check(str(path), "--against", "none", "--against", str(rows))
    assert "nothing else can be named" in f"{both.output}{both.exception}"


def test_splits_that_share_calls_are_found(tmp_path: Path) -> None:
    path = tmp_path / "leaky.jsonl"
    goal = TASKS[5]
    chain = evolve(
        goal, id="held-out", split="test", query="Quite other words for the same wish, said by somebody else."
    )
    cw.write_tasks(path, [evolve(goal, split="train"), evolve(TASKS[6], split="test"), chain])
    found = json.loads(check(str(path), "--against", "none", "--json").stdout)
    # The same calls are a near-duplicate first; splits are looked at among what stays.
    assert [(one["task"], one["stage"]) for one in found["wrong"]] == [("held-out", "duplicates")]
    assert found["gates"]["splits"] == {"passed": 2, "rejected": 0}


def test_a_file_that_is_no_file_of_tasks_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("dear diary\n", encoding="utf-8")
    said = check(str(path))
    assert said.exit_code != 0
    assert "notes.jsonl" in f"{said.output}{said.exception}"


def test_a_file_without_tasks_is_not_told_as_one_that_passes(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    cw.write_tasks(path, TASKS[:1])
    path.write_text(path.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    said = check(str(path), "--against", "none")
    assert said.exit_code == 2
    assert "none.jsonl holds no tasks" in said.stderr
    assert said.stdout == ""


def test_the_folder_of_a_synthesis_is_taken_for_its_tasks(tmp_path: Path) -> None:
    cw.write_tasks(tmp_path / "wanted.jsonl", TASKS[2:3])
    refused = check(str(tmp_path))
    assert refused.exit_code == 2
    assert "no finished synthesis: no file manifest.json is in it" in refused.stderr
    (tmp_path / "manifest.json").write_text(json.dumps({"yields": {}, "files": {"wanted.jsonl": ""}}), encoding="utf-8")
    assert "1 of 1 tasks pass" in check(str(tmp_path), "--against", "none").output
    missing = check(str(tmp_path / "gone"))
    assert missing.exit_code == 2


def test_the_proofs_of_a_graph_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "meetings.json"
    made = CliRunner().invoke(
        root, ["synthesize", "graph", "video_meeting", "--calls", "600", "-o", str(path)], obj=App()
    )
    assert made.exit_code == 0, made.output
    assert "proofs hold" in check(str(path)).output
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["edges"][0]["proofs"][0]["without"]["code"] = "RAIN"
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert check(str(path)).exit_code == 1
