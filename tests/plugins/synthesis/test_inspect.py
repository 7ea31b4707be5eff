"""Looking at tasks: what is shown of one, and decisions that survive."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError, UsageError
from callwright.walk.task_rows.decisions import Decision, decide, decisions_file, read_decisions
from callwright_plugins.synthesis import inspect_command
from callwright_plugins.synthesis.report.replaying import replayed, state_lines


def run(*words: str) -> Result:
    environment = {"COLUMNS": "160"}
    return CliRunner().invoke(
        root, ["synthesize", "inspect", *words], obj=App(), standalone_mode=False, env=environment
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    corpus = cw.corpus("worlds-mini-v1")
    path = tmp_path / "tasks.jsonl"
    cw.write_tasks(path, [task for split in corpus.splits for task in corpus[split]][:6])
    return path


def test_every_reference_is_made_again_and_comes_to_its_goal() -> None:
    corpus = cw.corpus("worlds-mini-v1")
    tasks = [task for split in corpus.splits for task in corpus[split]]
    assert len(tasks) == 50
    for task in tasks:
        again = replayed(task)
        assert again.wrong == ""
        stated = [call for turn in task.facts["gold"] for call in turn.get("calls", ())]
        made = [record for turn in again.turns for record in turn.records]
        assert [record.tool for record in made] == [call["tool"] for call in stated]
        assert bool(list(state_lines(again.state))) >= bool(task.facts["goal"])


def test_one_task_is_shown_without_keys_with_conversation_plan_and_change(file: Path) -> None:
    tasks = cw.read_tasks(file)
    first = tasks[0]
    shown = run(str(file), "--task", first.id, "--no-gates")
    assert shown.exception is None
    for title in ("conversation", "plan", "what changes", "gates"):
        assert title in shown.output
    said = "".join(shown.output.replace("│", " ").split())
    assert "".join(first.query[:30].split()) in said
    assert all(call["tool"] in shown.output for turn in first.facts["gold"] for call in turn.get("calls", ()))


def test_decisions_are_kept_beside_the_tasks_and_leave_them_out(file: Path, tmp_path: Path) -> None:
    ids = [task.id for task in cw.read_tasks(file)]
    assert run(str(file), "--task", ids[1], "--decide", "drop", "--note", "twice", "--no-gates").exception is None
    assert run(str(file), "--task", ids[2], "--decide", "keep", "--no-gates").exception is None
    rows = [json.loads(line) for line in decisions_file(file).read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"task": ids[1], "verdict": "drop", "note": "twice"},
        {"task": ids[2], "verdict": "keep"},
    ]
    kept = tmp_path / "kept.jsonl"
    assert run(str(file), "-o", str(kept)).exception is None
    assert [task.id for task in cw.read_tasks(kept)] == [one for one in ids if one != ids[1]]


def test_keys_keep_drop_take_back_and_go_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = iter("dknpuq")
    monkeypatch.setattr(click, "getchar", lambda: next(keys))
    tasks = cw.read_tasks(file)
    show = inspect_command._Shower(App(), tasks, with_gates=False)
    inspect_command._by_keys(show, range(len(tasks)), tasks, decisions_file(file))
    ids = [task.id for task in tasks]
    # d: the first goes; k: the second stays; n over the third, p back to it, u: nothing is decided of it; q
    assert read_decisions(decisions_file(file)) == {
        ids[0]: Decision(ids[0], "drop"),
        ids[1]: Decision(ids[1], "keep"),
    }


def test_without_a_terminal_it_says_how_to_look_at_one(file: Path) -> None:
    refused = run(str(file))
    assert isinstance(refused.exception, UsageError)
    assert "--task" in str(refused.exception)
    assert isinstance(run(str(file), "--decide", "drop").exception, UsageError)


def test_a_folder_without_a_finished_synthesis_is_refused(tmp_path: Path) -> None:
    refused = run(str(tmp_path), "--task", "x")
    assert isinstance(refused.exception, DataError)
    assert "no finished synthesis" in str(refused.exception)


def test_the_last_decision_counts_and_a_line_that_was_cut_off_does_not(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.decisions.jsonl"
    assert read_decisions(path) == {}
    decide(path, Decision("a", "drop"))
    decide(path, Decision("b", "keep"))
    decide(path, Decision("a", "keep", "on second thoughts"))
    decide(path, Decision("b", "undecided"))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"task": "c", "ver')
    assert read_decisions(path) == {"a": Decision("a", "keep", "on second thoughts")}
    decide(path, Decision("d", "drop"))
    assert set(read_decisions(path)) == {"a", "d"}
    path.write_text('{"task": "a", "verdict": "perhaps"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=":1: a decision is"):
        read_decisions(path)
