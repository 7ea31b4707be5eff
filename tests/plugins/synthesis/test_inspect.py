"""Looking at tasks: what is shown of one, and decisions that survive."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import click
import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from rich.console import Console

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError, UsageError
from callwright.walk.task_rows.decisions import Decision, decide, decisions_file, read_decisions
from callwright_plugins.synthesis import inspect_command
from callwright_plugins.synthesis.report.replaying import replayed, state_lines
from callwright_plugins.synthesis.report.showing import show_task


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
    for title in ("conversation", "plan", "what changes"):
        assert title in shown.output
    assert "gates" not in shown.output  # which nobody asked
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
    written = run(str(file), "-o", str(kept))
    assert written.exception is None
    assert written.output == f"5 tasks in {kept}; 1 was dropped\n"
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


def test_without_a_terminal_those_that_are_drawn_are_printed_one_after_the_other(file: Path) -> None:
    ids = [task.id for task in cw.read_tasks(file)]
    printed = run(str(file), "--random", "2", "--no-gates")
    assert printed.return_value in (0, None)
    assert sum(name in printed.output for name in ids) == 2
    assert printed.output.count("conversation") == 2


def test_a_damaged_row_is_said_with_its_line_and_a_status(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines[:2], lines[2][:600]]) + "\n", encoding="utf-8")
    name = json.loads(lines[2])["id"]
    refused = run(str(file), "--task", name, "--no-gates")
    assert isinstance(refused.exception, DataError)
    assert "tasks.jsonl:3: not valid JSON" in str(refused.exception)
    some = run(str(file), "--random", "2", "--no-gates")
    assert some.return_value == 1
    assert "tasks.jsonl:3: not valid JSON" in some.output
    assert json.loads(lines[1])["id"] in some.output  # the other one is shown all the same


ENVIRONMENT = cw.environment("email")
TELLING = cw.Task(
    id="t",
    query="Log some work.",
    environment=ENVIRONMENT,
    tools=ENVIRONMENT.tools,
    answer=cw.Answer(()),
    facts={
        "gold": [
            {"say": "On which one?"},
            {"calls": [{"tool": "list_folders", "arguments": {}}]},
            {"say": "That is done."},
            {"say": "How many?"},
            {"say": "All done."},
        ]
    },
    user=cw.UserSpec(
        "scripted",
        {
            "knows": {"issue": "A-1"},
            "asked": {"issue": ["which one"], "many": ["how many"]},
            "tells": {"issue": "It is A-1."},
            "then": [{"say": "Again, please.", "knows": {"many": 2}, "tells": {"many": "Make it 2."}}],
        },
    ),
)


def test_a_conversation_is_shown_as_it_went_with_what_the_user_keeps_back() -> None:
    again = replayed(TELLING)
    assert again.wrong == ""
    out = Console(file=StringIO(), width=90)
    show_task(out, evolve(TELLING, appear={"search_messages": 1}), place="1/1", gates=None, decision=None)
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    panel = [line.strip("│ \n") for line in shown.split("╰")[0].splitlines()]
    told = [line for line in panel if line.startswith(("user:", "agent:", "→", "keeps", "offered"))]
    assert told == [
        "user: Log some work.",
        'keeps back until it is asked: issue ("A-1")',
        "agent: On which one?",
        "user: It is A-1.",
        "offered from here on: search_messages",
        "→ list_folders()",
        "agent: That is done.",
        "user: Again, please.",
        "keeps back until it is asked: many (2)",
        "agent: How many?",
        "user: Make it 2.",
        "agent: All done.",
        "user: Thank you, that is all.",
    ]
    assert "'say'" not in shown


def test_nobody_else_is_asked_who_looks_at_a_task_whose_user_may_be_a_model() -> None:
    asking = evolve(TELLING, user=cw.UserSpec("model", {"base_url": "http://127.0.0.1:9"}))
    again = replayed(asking)
    assert again.wrong == ""
    assert [turn.heard for turn in again.turns] == [None] * 5
    out = Console(file=StringIO(), width=90)
    show_task(out, asking, place="1/1", gates=None, decision=None)
    assert "its user (model) answers in its own words" in out.file.getvalue()  # type: ignore[attr-defined]


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
