"""Outputs: nothing that a command reads, and nothing of somebody else's, is written over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App


@pytest.fixture
def invoke() -> Callable[..., Result]:
    def run(*words: str | Path) -> Result:
        return CliRunner().invoke(root, [str(word) for word in words], obj=App(), catch_exceptions=False)

    return run


def refused(done: Result, file: Path, before: bytes, says: str) -> None:
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
    assert file.read_bytes() == before


def test_training_data_is_not_replaced_by_what_is_found_in_it(invoke: Callable[..., Result], tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text(json.dumps({"id": "one", "prompt": "Is it going to rain in Oslo on Sunday?"}) + "\n")
    words = ("benchmark", "contamination", "--train", train, "--against", "worlds-mini-v1")
    before = train.read_bytes()
    refused(invoke(*words, "-o", train), train, before, "is what this command reads")
    refused(invoke(*words, "-o", train, "--overwrite"), train, before, "is what this command reads")
    other = tmp_path / "other.jsonl"
    other.write_text("mine\n")
    refused(invoke(*words, "-o", other), other, b"mine\n", "--overwrite")
    assert invoke(*words, "-o", other, "--overwrite").exit_code == 0
    assert other.read_text() == ""


def test_an_evaluation_is_not_replaced_by_its_report(invoke: Callable[..., Result], tmp_path: Path) -> None:
    folder = tmp_path / "it"
    words = ("--corpus", "worlds-mini-v1", "--sampler", "gold", "--limit", "2", "-o", folder)
    assert invoke("evaluate", *words).exit_code == 0
    verdicts = folder / "verdicts.jsonl"
    before = verdicts.read_bytes()
    refused(invoke("report", folder, "-o", verdicts), verdicts, before, "no page of HTML")
    page = tmp_path / "page.html"
    assert invoke("report", folder, "-o", page).exit_code == 0
    assert invoke("report", folder, "-o", page).exit_code == 0, "a page is written again"
    (tmp_path / "out").mkdir()
    mine = tmp_path / "out" / "compare.html"
    mine.write_text("mine\n")
    refused(invoke("compare", folder, "-o", mine.parent), mine, b"mine\n", "no page of HTML")


def test_tasks_that_are_looked_at_are_not_replaced(invoke: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    cw.write_tasks(file, cw.corpus("worlds-mini-v1")["validation"][:3])
    before = file.read_bytes()
    words = ("synthesize", "inspect", file)
    refused(invoke(*words, "-o", file), file, before, "is what this command reads")
    kept = tmp_path / "kept.jsonl"
    assert invoke(*words, "-o", kept).exit_code == 0
    refused(invoke(*words, "-o", kept), kept, kept.read_bytes(), "--overwrite")
    assert invoke(*words, "-o", kept, "--overwrite").exit_code == 0


def test_rollouts_are_not_replaced_by_the_lab(invoke: Callable[..., Result], tmp_path: Path) -> None:
    rows = tmp_path / "rollouts.jsonl"
    rows.write_text(json.dumps({"id": 1, "task": "evaluation-16", "completion": "none"}) + "\n")
    words = ("lab", rows, "--corpus", "toolworld-mini-v1", "--overwrite", "-o", rows)
    refused(invoke(*words), rows, rows.read_bytes(), "is what this command reads")


@pytest.mark.parametrize(
    "words",
    [
        ("import", "mine.jsonl"),
        ("import", "logs.jsonl", "--truths", "mine.jsonl"),
        ("score", "logs.jsonl", "--format", "openai", "--truths", "mine.jsonl"),
        ("score", "logs.jsonl", "--format", "openai", "--tools", "mine.jsonl"),
        ("corpus", "import", "mine.jsonl", "--format", "jsonl"),
    ],
)
def test_what_is_read_stays_whatever_may_be_overwritten(
    words: tuple[str, ...], invoke: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    for name in ("mine.jsonl", "logs.jsonl"):
        (tmp_path / name).write_text(json.dumps({"messages": talk}) + "\n")
    mine = tmp_path / "mine.jsonl"
    done = invoke(*words, "-o", "mine.jsonl", "--overwrite")
    refused(done, mine, mine.read_bytes(), "is what this command reads")
    assert mine.stat().st_size


def test_a_folder_of_evaluations_is_told_from_one(invoke: Callable[..., Result], tmp_path: Path) -> None:
    for name in ("nestful", "bfcl"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "settings.json").write_text("{}")
    for command in ("report", "compare"):
        done = invoke(command, tmp_path)
        assert done.exit_code == 2
        assert "bfcl, nestful" in done.stderr


def test_a_module_is_named_without_its_ending(
    invoke: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_one.py").write_text("")
    assert "-p takes the name of a module: 'my_one'" in invoke("-p", "my_one.py", "plugins", "list").stderr
