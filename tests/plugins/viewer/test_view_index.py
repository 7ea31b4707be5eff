"""The index: it follows what grows, begins anew where a file is another one, and can be thrown away."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.plugins.viewer.conftest import board_of, make_run, rollouts, write_rows

from callwright.plugins import default_registry
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.sources.finding import sources_of


def index_of(run: Path) -> Path:
    return run / ".rollouts.jsonl.view.sqlite"


def test_what_grows_is_followed_and_nothing_is_read_twice(own: Path) -> None:
    board = board_of(own)
    before = board.answer("rows", {"source": "own"})["total"]
    more = list(rollouts(1, first=3))
    write_rows(own / "rollouts.jsonl", more)
    with (own / "rollouts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(more[0])[:40])  # a line that is being written
    board.read_all()
    assert board.answer("rows", {"source": "own"})["total"] == before + len(more)
    with (own / "rollouts.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(more[0])[40:] + "\n")
    board.read_all()
    page = board.answer("rows", {"source": "own", "sort": "-n", "limit": "1"})
    assert page["total"] == before + len(more) + 1
    assert page["rows"][0]["task"] == more[0]["task"]
    board.close()


def test_in_parts_it_is_the_same(own: Path) -> None:
    whole = board_of(own)
    wanted = whole.answer("rows", {"source": "own", "limit": "500"})
    whole.close()
    index_of(own).unlink()
    parts = Board(sources_of([own], default_registry()), default_registry())
    turns = 1
    while parts.indexes["own"].refresh(5):
        turns += 1
    assert turns > 3
    assert parts.answer("rows", {"source": "own", "limit": "500"}) == wanted
    parts.close()


def test_a_file_that_begins_otherwise_is_another_one(own: Path) -> None:
    board_of(own).close()
    (own / "rollouts.jsonl").write_text("", "utf-8")
    make_run(own, 1, right=0.2, prompts=1)
    board = board_of(own)
    assert board.answer("rows", {"source": "own"})["total"] == 4
    board.close()


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + b"\x00" * 200])
def test_a_damaged_index_is_built_anew(own: Path, damage: bytes) -> None:
    board_of(own).close()
    index_of(own).write_bytes(damage)
    board = board_of(own)
    assert board.answer("rows", {"source": "own"})["total"] == 24
    board.close()


def test_an_index_of_another_version_is_built_anew(own: Path) -> None:
    board_of(own).close()
    with sqlite3.connect(index_of(own)) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    board = board_of(own)
    assert board.answer("rows", {"source": "own"})["total"] == 24
    board.close()


def test_rows_that_anybody_wrote_are_listed(tmp_path: Path) -> None:
    odd = [
        {"step": "one", "task": 7, "completion": None, "total": "much", "scores": [], "observations": 3, "trace": "x"},
        {"step": 2**80, "total": 1e400, "scores": {"a": {"value": True}, "b": 1, "c": {"value": 0.5, "evidence": 9}}},
        {"query": "\ud800 half", "completion": "\x00\x1b[31m", "turns": [1, {"completion": ["x"]}], "messages": [5]},
        {"total": None, "masked": "the judge was down", "scores": {f"s{n}": {"value": n} for n in range(90)}},
    ]
    path = tmp_path / "run" / "rollouts.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in odd) + "no json\n[1]\n", "utf-8")
    board = board_of(tmp_path / "run")
    page = board.answer("rows", {"source": "run"})
    assert page["total"] == 6
    for row in page["rows"]:
        assert board.answer("rollout", {"source": "run", "n": str(row["n"])}) is not None or row["n"] > 4
    assert board.answer("rows", {"source": "run", "q": "masked:yes"})["total"] >= 1
    board.close()


def test_counts_are_of_the_rows_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "scored.jsonl"
    right = []
    board: Board | None = None
    for total in (0.0, 1.0, 0.0):
        rows = [{"id": at, "task": f"at {total}", "total": total, "scores": {}} for at in range(3)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        board = board or Board(sources_of([path], default_registry()), default_registry())
        board.read_all()
        right.append(board.answer("rows", {"source": "scored", "q": "total>0.5"})["total"])
    assert right == [0, 3, 0]
    assert board is not None
    board.close()


def test_a_folder_that_cannot_be_written_has_its_index_elsewhere(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from callwright_plugins.viewer.index import building

    real = building.Index._prepare

    def refuses(self: building.Index, path: Path) -> None:
        if path.parent == own:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        real(self, path)

    monkeypatch.setattr(building.Index, "_prepare", refuses)
    board = board_of(own)
    assert board.answer("rows", {"source": "own"})["total"] == 24
    assert not index_of(own).exists()
    board.close()
