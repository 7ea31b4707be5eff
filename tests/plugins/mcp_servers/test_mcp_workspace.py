"""Workspaces: filled, named, digested, deleted."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright_plugins.mcp_servers.connecting.contents import contents, difference
from callwright_plugins.mcp_servers.connecting.workspace import Workspace, refuse_misspelt


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Workspace, Workspace]:
    """Two folders with the same things in them."""
    made = []
    for name in ("one", "other"):
        folder = tmp_path / name
        (folder / "sub" / "empty").mkdir(parents=True)
        (folder / "sub" / "file.txt").write_text("content")
        (folder / "log").write_text(f"written at {folder}/sub")  # a server may write where it lives
        (folder / "link").symlink_to("sub/file.txt")
        made.append(Workspace(folder))
    return made[0], made[1]


def test_equal_folders_have_equal_digests(pair: tuple[Workspace, Workspace]) -> None:
    one, other = pair
    assert one.digest() == other.digest()
    os.utime(other.path / "sub" / "file.txt", (1, 1))
    assert one.digest() == other.digest()


@pytest.mark.parametrize("change", ["content", "name", "mode", "link", "kind", "empty folder"])
def test_every_change_is_seen(pair: tuple[Workspace, Workspace], change: str) -> None:
    one, other = pair
    file = other.path / "sub" / "file.txt"
    match change:
        case "content":
            file.write_text("Content")
        case "name":
            file.rename(file.with_name("files.txt"))
        case "mode":
            file.chmod(0o600 if file.stat().st_mode & 0o777 != 0o600 else 0o640)
        case "link":
            (other.path / "link").unlink()
            (other.path / "link").symlink_to("log")
        case "kind":
            (other.path / "link").unlink()
            (other.path / "link").write_text("content")
        case "empty folder":
            (other.path / "sub" / "empty").rmdir()
    assert one.digest() != other.digest()


def test_patterns_are_ignored(pair: tuple[Workspace, Workspace]) -> None:
    one, other = pair
    (other.path / "sub" / "file.txt").write_text("other")
    assert one.digest() != other.digest()
    assert one.digest(["sub/*"]) == other.digest(["sub/*"])


def test_filling_leaves_nothing_of_before(tmp_path: Path, pair: tuple[Workspace, Workspace]) -> None:
    template, used = pair
    before = used.digest(["log"])
    (used.path / "more").mkdir()
    (used.path / "more" / "x").write_text("x")
    (used.path / "sub").chmod(0o500)
    used.fill(template.path)
    assert used.digest(["log"]) == before
    (used.path / "sub").chmod(0o000)
    used.remove()
    assert not used.path.exists()
    with pytest.raises(DataError, match="not a folder"):
        Workspace.make(tmp_path / "none")


@given(st.text(max_size=20))
def test_names_go_in_and_come_out(text: str) -> None:
    workspace = Workspace(Path("/tmp/callwright-abc"))
    for value in (f"/workspace/{text}", "/workspace", f"file:///workspace/{text}"):
        there = workspace.inward({"a": [value]})
        assert "/tmp/callwright-abc" in there["a"][0]
        assert workspace.outward(there) == {"a": [value]}


@pytest.mark.parametrize("text", ["/workspaces/a", "see /workspace/a", "workspace", "x/workspace", ""])
def test_other_texts_stay(text: str) -> None:
    assert Workspace(Path("/tmp/callwright-abc")).inward({"a": [text, 1, None]}) == {"a": [text, 1, None]}


def database(path: Path, *rows: tuple[str, int]) -> None:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT, count INTEGER)")
        base.executemany("INSERT INTO guests (name, count) VALUES (?, ?)", rows)


def test_contents_are_those_of_files_and_not_their_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "a.txt").write_text(f"in {folder}\n")
        (folder / "blob").write_bytes(b"\xff\x00")
        (folder / "link").symlink_to("sub/a.txt")
    database(one / "x.db", ("Bo", 1), ("Di", 2))
    database(other / "x.db", ("Di", 2), ("Bo", 1))
    (one / "graph.json").write_text('{"name": "Bo\u2028"}\n{"name": "Di"}', encoding="utf-8")
    (other / "graph.json").write_text('{"name": "Di"}\n{"name": "Bo\u2028"}\n', encoding="utf-8")
    assert (one / "x.db").read_bytes() != (other / "x.db").read_bytes()
    found = contents(one, alias="/workspace")
    assert found == contents(other, alias="/workspace")
    assert found["sub"] == "folder"
    assert found["sub/a.txt"] == "in /workspace\n"
    assert found["x.db"]["tables"]["guests"]["rows"] == [["Bo", 1], ["Di", 2]]
    assert found["graph.json"] == {"lines": [{"name": "Bo\u2028"}, {"name": "Di"}]}
    assert found["blob"]["bytes"] == 2
    assert contents(one, ["x.*", "sub*"]).keys() == {"blob", "graph.json", "link"}


def test_what_differs_is_told_by_file_and_table(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{ no JSON")
    (tmp_path / "b.txt").write_text("b")
    database(tmp_path / "x.db", ("Bo", 1))
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0 and then nothing")
    first = contents(tmp_path)
    assert first["a.txt"] == "{ no JSON"
    assert "tables" not in first["broken.db"]
    assert difference(first, contents(tmp_path)) == {}
    (tmp_path / "b.txt").unlink()
    (tmp_path / "c.txt").write_text("c")
    with closing(sqlite3.connect(tmp_path / "x.db")) as base, base:
        base.execute("CREATE TABLE more (day TEXT)")
    then = difference(first, contents(tmp_path))
    assert then.keys() == {"b.txt", "c.txt", "x.db"}
    assert then["b.txt"] is None
    assert then["x.db"]["tables"].keys() == {"more"}
    with closing(sqlite3.connect(tmp_path / "x.db")) as base, base:
        base.execute("INSERT INTO guests (name, count) VALUES ('Di', 4)")
    assert difference(first, contents(tmp_path))["x.db"]["tables"]["guests"]["rows"] == [["Bo", 1], ["Di", 4]]


@pytest.mark.parametrize(
    "word", ["{worspace}/a.json", "{workspaces}", "{WORKSPACE}/a", "{work_space}", "--db={workpace}"]
)
def test_a_misspelt_placeholder_is_no_folder_of_that_name(word: str) -> None:
    with pytest.raises(UsageError, match="stands for nothing"):
        refuse_misspelt(["serve", word])
    with pytest.raises(UsageError, match="stands for nothing"):
        cw.environment("mcp", command=["no-such-program", word])


@pytest.mark.parametrize(
    "word", ["{workspace}/a", '{"workspaces": 1}', "${WORKSPACE}", "{port}", "{namespace}", "a{b}c"]
)
def test_other_words_in_braces_are_the_servers_own(word: str) -> None:
    refuse_misspelt([word])
