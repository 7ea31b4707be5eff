"""What can be looked at: folders, files, logs; and what is said of the others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.plugins.viewer.conftest import board_of, make_run, write_rows

import callwright as cw
from callwright.errors import DataError
from callwright_plugins.viewer.sources.finding import Kind, sources_of

CHAT = {
    "messages": [
        {"role": "user", "content": "How late is it?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "12:30"},
        {"role": "assistant", "content": "Half past twelve."},
    ],
    "tools": [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}],
}


def kinds(*paths: Path) -> dict[str, Kind]:
    return {one.key: one.kind for one in sources_of(paths, cw.default_registry())}


def test_a_folder_of_runs_is_all_of_them(tmp_path: Path) -> None:
    make_run(tmp_path / "grid" / "seed-1", 1)
    make_run(tmp_path / "grid" / "seed-2", 1)
    (tmp_path / "grid" / ".hidden").mkdir()
    assert kinds(tmp_path) == {"seed-1": "run", "seed-2": "run"}


def test_each_has_a_key_of_its_own(tmp_path: Path) -> None:
    make_run(tmp_path / "a" / "run", 1)
    make_run(tmp_path / "b" / "run", 1)
    assert list(kinds(tmp_path / "a", tmp_path / "b", tmp_path / "a" / "run")) == ["run", "run-2"]


def test_files_are_known_by_their_first_row(tmp_path: Path) -> None:
    scored = write_rows(tmp_path / "scored.jsonl", [{"id": 1, "total": 0.5, "scores": {}, "stage": "parse"}])
    chat = write_rows(tmp_path / "chat.jsonl", [CHAT])
    task = cw.corpus("toolworld-mini-v1")["evaluation"][:3]
    cw.write_tasks(tmp_path / "tasks.jsonl", task)
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(scored.read_bytes()))
    assert kinds(scored, chat, tmp_path / "tasks.jsonl", packed) == {
        "scored": "scored",
        "chat": "log",
        "tasks": "tasks",
        "packed": "scored",
    }


def test_what_there_is_not_and_what_holds_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no"):
        kinds(tmp_path / "nothing")
    with pytest.raises(DataError, match="holds nothing to look at"):
        kinds(tmp_path)
    write_rows(tmp_path / "odd.jsonl", [{"a": 1}])
    with pytest.raises(DataError, match="format"):
        kinds(tmp_path / "odd.jsonl")


def test_traces_are_conversations_with_their_calls(tmp_path: Path) -> None:
    board = board_of(write_rows(tmp_path / "chat.jsonl", [CHAT, CHAT]))
    told = board.answer("rollout", {"source": "chat", "n": "2"})
    roles = [(said["role"], said["calls"]) for said in told["document"]["conversation"]]
    assert roles == [("user", []), ("assistant", [0]), ("tool", []), ("assistant", [])]
    assert told["document"]["calls"][0]["kind"] == "unknown"
    assert board.answer("rows", {"source": "chat", "q": "twelve"})["total"] == 2
    assert board.answer("rows", {"source": "chat", "q": "tool:now"})["total"] == 2
    board.close()


def test_packed_files_are_looked_at_too(tmp_path: Path) -> None:
    rows = [{"id": n, "total": n / 4, "scores": {}, "stage": "parse"} for n in range(4)]
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    board = board_of(packed)
    assert board.answer("rows", {"source": "packed", "q": "total>=0.5"})["total"] == 2
    assert board.answer("rollout", {"source": "packed", "n": "4"})["total"] == 0.75
    board.close()


def test_tasks_are_their_reference_conversation(tmp_path: Path) -> None:
    cw.write_tasks(tmp_path / "tasks.jsonl", cw.corpus("toolworld-mini-v1")["evaluation"][16:18])
    board = board_of(tmp_path / "tasks.jsonl")
    page = board.answer("rows", {"source": "tasks"})
    assert page["rows"][0]["tools"]
    told = board.answer("rollout", {"source": "tasks", "n": "1"})["document"]
    assert [call["tool"] for call in told["calls"]] == [
        call.tool
        for call in cw.corpus("toolworld-mini-v1")["evaluation"][16].program.calls  # type: ignore[union-attr]
    ]
    board.close()
