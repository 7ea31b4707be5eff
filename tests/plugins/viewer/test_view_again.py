"""Rows executed again: values, changes of the world, what differs, and what is not started without being allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.plugins.viewer.conftest import board_of, make_run, write_rows

import callwright as cw
from callwright.cli.root import root
from callwright.commands import App
from callwright.errors import UsageError
from callwright_plugins.viewer.answers.again import Again, Watching
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.sources.finding import sources_of


def again(board: Board, n: int = 1, source: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = board.answer("again", {"source": source or board.sources[0].key, "n": str(n)})
    return made


def test_a_row_of_a_run_comes_to_what_it_came_to(run: Path) -> None:
    board = board_of(run)
    for n in range(1, 13):
        row = board.indexes["first"].row(n)
        assert row is not None
        made = again(board, n)
        assert made["differences"] == []
        assert made["masked"] is None
        kept = row["trace"]
        assert [(one["tool"], one["kind"]) for one in made["calls"]] == [(one["tool"], one["kind"]) for one in kept]
        assert [one.get("value") for one in made["calls"]] == [one.get("value") for one in kept]
    board.close()


def test_what_is_otherwise_is_said(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1, right=1.0)
    lines = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text("utf-8").splitlines()]
    lines[0]["observations"][0]["value"] = "0" * 16
    lines[1]["observations"].append(lines[1]["observations"][0])
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    board = board_of(folder)
    assert again(board)["differences"][0].startswith("call 0: its value was 0000000000000000, and is ")
    count = len(lines[1]["observations"])
    assert again(board, 2)["differences"] == [f"there were {count} calls, and there are {count - 1}"]
    with pytest.raises(UsageError, match="there is no row 100"):
        again(board, 100)
    board.close()


def callwright(*arguments: object) -> None:
    found = CliRunner().invoke(root, [str(one) for one in arguments], obj=App(), catch_exceptions=False)
    assert found.exit_code == 0, found.output


def test_of_an_evaluation_what_each_call_changed_in_the_world(tmp_path: Path) -> None:
    folder = tmp_path / "ev"
    callwright("evaluate", "--corpus", "worlds-mini-v1", "--sampler", "gold", "--limit", 8, "-o", folder)
    board = board_of(folder)
    changed: dict[str, Any] = {}
    for n in range(1, 9):
        made = again(board, n)
        assert (made["differences"], made["masked"]) == ([], None)
        for one in made["calls"]:
            assert one["changes"] is not None
            changed.setdefault(one["tool"], one["changes"])
    board.close()
    # What only reads lets time pass at most, and what is added stands there with its row.
    reading = [changes for tool, changes in changed.items() if tool.startswith(("search_", "list_", "get_"))]
    assert reading
    assert all(set(changes) <= {"clock"} for changes in reading)
    lead = changed["create_lead"]["leads"]["added"]
    assert [row["name"] for row in lead.values()] == ["Emil Meyer"]


def test_of_a_task_its_reference_is_executed(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    callwright("tasks", "export", "worlds-mini-v1", "-o", file)
    board = board_of(file)
    for n in range(1, 11):
        document = board.answer("rollout", {"source": "tasks", "n": str(n)})["document"]
        made = again(board, n)
        assert made["calls"]
        assert [one["tool"] for one in made["calls"]] == [one["tool"] for one in document["calls"]]
        assert all(one["kind"] in ("ok", "empty", "partial") or one["code"] for one in made["calls"])
    board.close()


def test_what_a_recipe_reaches_for_is_not_started_unasked(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1)
    recipe = folder / "recipe.toml"
    served = f'[environment]\nname = "mcp"\ncommand = ["touch", "{tmp_path}/started"]\n'
    recipe.write_text(recipe.read_text("utf-8") + served, "utf-8")
    board = board_of(folder)
    with pytest.raises(
        UsageError, match=r"^not executed: .*recipe.toml:\d+: environment 'mcp' starts: touch .* start with --yes$"
    ):
        again(board)
    board.close()
    (tmp_path / "ev").mkdir()
    write_rows(tmp_path / "ev" / "verdicts.jsonl", [{"id": "a", "task": "a", "completion": "x"}])
    corpus = {"name": "tasks", "file": str(_foreign(tmp_path)), "split": "train", "trust": True}
    (tmp_path / "ev" / "settings.json").write_text(json.dumps({"corpus": corpus, "ir": "json"}), "utf-8")
    board = board_of(tmp_path / "ev")
    with pytest.raises(UsageError, match=r"^not executed: .*settings.json: corpus 'tasks' .* start with --yes$"):
        again(board)
    board.close()
    task = {"id": "a", "split": "train", "query": "q", "environment": "mcp", "depth": 0, "tools": []}
    write_rows(tmp_path / "foreign.jsonl", [task])
    board = board_of(tmp_path / "foreign.jsonl")
    with pytest.raises(UsageError, match=r"^not executed: .*foreign.jsonl: corpus 'tasks' .*touch.* start with --yes$"):
        again(board)
    board.close()
    assert not (tmp_path / "started").exists()


def _foreign(folder: Path) -> Path:
    """A file of tasks whose environment is a program of somebody."""
    head = {
        "callwright_tasks": 1,
        "environments": [
            {
                "name": "mcp",
                "options": {"command": ["touch", str(folder / "started")]},
                "version": "1",
                "schema": "",
                "tools": {},
            }
        ],
    }
    return write_rows(folder / "foreign.jsonl", [head])


class Told:
    """A session that cannot be copied, and tells what it holds."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {"notes": {"a": 1, "b": 2}, "log": ["x"]}

    def goal_state(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.held))  # type: ignore[no-any-return]

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        self.held["notes"][arguments["name"]] = arguments["value"]
        return cw.Outcome.ok(1)


def test_of_a_session_that_cannot_be_copied_end_states_are_compared() -> None:
    watching, session = Watching(), Told()
    for value in (1, 5):
        watching(session, cw.Call(0, "put", {}), {"name": "a", "value": value})  # type: ignore[arg-type]
    assert [one.changes for one in watching.made] == [{}, {"notes": {"a": {"before": 1, "after": 5}}}]


def test_what_says_not_whose_its_tasks_are_is_said(run: Path, tmp_path: Path) -> None:
    rows = write_rows(
        tmp_path / "scored.jsonl", [{"id": 1, "task": "evaluation-1", "completion": "x", "total": 0.5, "scores": {}}]
    )
    board = board_of(rows)
    with pytest.raises(UsageError, match="does not say what its tasks are of"):
        again(board)
    board.close()
    recalled: list[Path] = []
    registry = cw.default_registry()
    board = Board(sources_of([run], registry), registry, Again(registry, recalled.append))
    board.read_all()
    again(board)
    again(board, 2)
    assert recalled == [run]
    board.close()
