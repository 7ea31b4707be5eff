"""Run folders: whole lines whatever happens, atomic files, errors that name file and line."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import DataError, RunError
from callwright.training import run_folder as runs
from callwright.training.run_folder import METRICS, Run, append_jsonl, describe_process, read_jsonl, write_atomically

ROWS = [{"step": 1, "loss": 0.5}, {"step": 2, "note": "größer ≠ \u2028"}, {"step": 3}]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", recipe_text="name = 'x'\n", manifest={"seed": 1}, command="callwright run x")


# Folders --------------------------------------------------------------------------------------------------------------


def test_a_run_is_made_and_opened_again(run: Run) -> None:
    assert (run.path / "recipe.toml").read_text(encoding="utf-8") == "name = 'x'\n"
    assert run.checkpoints.is_dir()
    assert run.manifest == {"seed": 1}
    run.append(METRICS, ROWS)
    again = Run.create(run.path, recipe_text="name = 'x'\n", manifest={"seed": 99})
    assert again == run
    assert again.manifest == {"seed": 1}, "the manifest is that of the beginning"
    assert again.rows(METRICS) == ROWS
    assert not list(run.path.glob("*.part"))


def test_the_command_of_a_run_is_known_to_whoever_opens_it(tmp_path: Path) -> None:
    Run.create(tmp_path, recipe_text="", manifest={"command": "callwright run x"})
    assert Run.open(tmp_path).command == "callwright run x"


def test_a_run_of_another_recipe_is_left_alone(run: Run) -> None:
    with pytest.raises(RunError, match="holds a run of another recipe"):
        Run.create(run.path, recipe_text="name = 'y'\n", manifest={})
    (run.path / "recipe.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match="holds a run of another recipe"):
        Run.create(run.path, recipe_text="name = 'x'\n", manifest={})


def test_a_crash_between_the_two_first_files_is_made_good(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe is written last, so a folder that has one has a manifest."""
    written: list[str] = []
    monkeypatch.setattr(runs, "write_atomically", lambda path, text: written.append(path.name))
    Run.create(run.path / "other", recipe_text="", manifest={})
    assert written == ["manifest.json", "recipe.toml"]


def test_what_is_no_run_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is not a run folder: it has no recipe.toml"):
        Run.open(tmp_path)
    with pytest.raises(DataError, match=r"there is no folder .*nowhere"):
        Run.open(tmp_path / "nowhere")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be written: "):
        Run.create(tmp_path / "file" / "run", recipe_text="", manifest={})


# Rows -----------------------------------------------------------------------------------------------------------------

json_rows = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    max_size=3,
)


@given(st.lists(st.lists(json_rows, max_size=3), max_size=4))
def test_rows_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, batches: list[Any]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    append_jsonl(path, [])
    for batch in batches:
        append_jsonl(path, batch)
    assert list(read_jsonl(path)) == [row for batch in batches for row in batch]


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_torn_last_line_is_not_read_and_is_removed_by_the_next_write(run: Run, cut: int) -> None:
    run.append(METRICS, ROWS[:2])
    path = run.path / METRICS
    path.write_bytes(path.read_bytes()[:-cut])
    assert run.rows(METRICS) == ROWS[:1]
    run.append(METRICS, ROWS[2:])
    assert run.rows(METRICS) == [ROWS[0], ROWS[2]]
    assert path.read_bytes().endswith(b"}\n")


def test_a_file_that_is_one_torn_line(run: Run) -> None:
    (run.path / METRICS).write_bytes(b'{"step"')
    assert run.rows(METRICS) == []
    run.append(METRICS, ROWS)
    assert run.rows(METRICS) == ROWS


def test_a_file_that_is_not_there_has_no_rows(run: Run) -> None:
    assert run.rows("nothing.jsonl") == []
    assert run.read_json("nothing.json") is None
    assert run.truncate("nothing.jsonl", 3) == 0
    assert not (run.path / "nothing.jsonl").exists()


@pytest.mark.parametrize("count", range(5))
def test_rows_after_a_checkpoint_are_taken_back(run: Run, count: int) -> None:
    run.append(METRICS, ROWS)
    with (run.path / METRICS).open("ab") as file:
        file.write(b'{"torn"')
    run.truncate(METRICS, count)
    assert run.rows(METRICS) == ROWS[:count]
    assert b"torn" not in (run.path / METRICS).read_bytes()


def test_a_row_that_is_not_json_writes_nothing(run: Run) -> None:
    run.append(METRICS, ROWS[:1])
    for bad in ({"loss": float("nan")}, {"loss": float("inf")}, {"loss": {1, 2}}, {"loss": object()}):
        with pytest.raises(RunError, match=r"metrics.jsonl: a row is not JSON, so none was written"):
            run.append(METRICS, [ROWS[1], bad])
    assert run.rows(METRICS) == ROWS[:1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{'a': 1}", r":2: not valid JSON: "),
        (b"[1]", r":2: expected an object, found a list"),
        (b"\xff", r":2: not valid JSON: "),
        (b"[" * 100_000, r":2: not valid JSON: "),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'\n\n{"b": 2}\n')
    found = read_jsonl(path)
    assert next(found) == {"a": 1}
    with pytest.raises(DataError, match=message):
        next(found)


def test_blank_lines_and_a_missing_line_end_are_nothing_to_complain_about(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'\n{"a": 1}\n  \n{"b": 2}')
    assert list(read_jsonl(path)) == [{"a": 1}, {"b": 2}]
    assert list(read_jsonl(path, torn_tail=True)) == [{"a": 1}]
    with pytest.raises(DataError, match="cannot be read: No such file"):
        list(read_jsonl(tmp_path / "nowhere"))


# A full disk ----------------------------------------------------------------------------------------------------------


class FullDisk:
    """A file that takes some bytes and then has no space left, like a disk that fills up in the middle of a line."""

    def __init__(self, file: Any, space: int) -> None:
        self.file, self.space = file, space
        self.buffered = not isinstance(file, io.RawIOBase)

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, data: Any) -> int:
        if self.space == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken: int = self.file.write(bytes(data)[: self.space])
        self.space -= taken
        if self.buffered and taken < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("torn", [b"", b'{"step": 9'])
@pytest.mark.parametrize("space", [0, 1, 10, 30, 50])
def test_a_full_disk_leaves_the_file_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch, space: int, torn: bytes
) -> None:
    """Not half a line, which readers would forgive, nor one row of two, which they would believe."""
    run.append(METRICS, ROWS[:1])
    before = (run.path / METRICS).read_bytes()
    (run.path / METRICS).write_bytes(before + torn)
    opened = Path.open

    def full(path: Path, *arguments: Any, **more: Any) -> Any:
        return FullDisk(opened(path, *arguments, **more), space)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(RunError, match=r"metrics.jsonl cannot be written: No space left on device"):
            run.append(METRICS, ROWS[1:])
    assert (run.path / METRICS).read_bytes() == before
    run.append(METRICS, ROWS[1:])
    assert run.rows(METRICS) == ROWS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_the_real_full_device_is_reported_in_words() -> None:
    with pytest.raises(RunError, match=r"^/dev/full cannot be written: No space left on device$"):
        append_jsonl(Path("/dev/full"), ROWS)


def test_a_short_write_is_gone_on_with(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FullDisk):
        def write(self, data: Any) -> int:
            return int(self.file.write(bytes(data)[:3]))

    opened = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *a, **k: Slow(opened(path, *a, **k), 0))
        append_jsonl(run.path / METRICS, ROWS)
    assert run.rows(METRICS) == ROWS


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evaluation.json"
    write_atomically(path, "old")
    opened = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, *a, **k: FullDisk(opened(path, *a, **k), 2))
        with pytest.raises(RunError, match=r"evaluation.json cannot be written: No space left on device"):
            write_atomically(path, "a new text")
    assert [file.name for file in tmp_path.iterdir()] == ["evaluation.json"]
    assert path.read_text(encoding="utf-8") == "old"
    write_atomically(path, b"new \xff")
    assert path.read_bytes() == b"new \xff"
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be written: Not a directory"):
        write_atomically(tmp_path / "file" / "x", "y")


def test_json_files(run: Run) -> None:
    run.write_json("evaluation.json", {"b": 1, "a": [None]})
    assert run.read_json("evaluation.json") == {"b": 1, "a": [None]}
    assert list(json.loads((run.path / "evaluation.json").read_text(encoding="utf-8"))) == ["b", "a"]
    for bad in (b"{", b"\xff", b"[" * 100_000):
        (run.path / "evaluation.json").write_bytes(bad)
        with pytest.raises(DataError, match=r"evaluation.json is not valid JSON"):
            run.read_json("evaluation.json")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        run.read_json("checkpoints")
    (run.path / "manifest.json").write_text("[1]", encoding="utf-8")
    assert run.manifest == {}


def test_a_manifest_says_what_took_part() -> None:
    registry = cw.Registry()
    registry.add(type("P", (), {})(), name="mine")
    manifest = describe_process(registry, seed=3)
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["seed"] == 3
    assert manifest["plugins"] == [{"name": "mine", "distribution": "", "version": ""}]
    assert manifest["versions"]["callwright"] == cw.__version__


def test_a_lone_surrogate_is_kept(tmp_path: Path) -> None:
    """A sampler may return one; a run must not end for it."""
    path = tmp_path / "rows.jsonl"
    runs.append_jsonl(path, [{"text": "a\ud800b"}, {"text": "é"}])
    assert list(runs.read_jsonl(path)) == [{"text": "a\ud800b"}, {"text": "é"}]
