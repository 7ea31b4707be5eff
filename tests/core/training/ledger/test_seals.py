"""Seals: whatever becomes of a checkpoint's files, or of the rows before it, is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.errors import RunError
from callwright.training.ledger.seals import SEAL, Lengths, Seal, examine, last_good, seal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lengths = Lengths(tmp_path, ["metrics.jsonl"])
    for step in range(3):
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.write(f'{{"step": {step}}}\n' * 2)
        folder = tmp_path / "checkpoints" / f"train-{step}"
        folder.mkdir(parents=True)
        (folder / "model").write_bytes(bytes(range(256)) * 10)
        seal(folder, position=(1, step), rows=lengths.now())
    return tmp_path


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("train-*"))


@pytest.mark.parametrize("at", [0, 1279, 2559])
def test_any_flipped_byte_is_found_and_the_one_before_is_taken(run: Path, at: int) -> None:
    path = run / "checkpoints" / "train-2" / "model"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    said: list[str] = []
    found = last_good(checkpoints(run), said.append, run)
    assert found is not None
    assert found.name == "train-1"
    assert "train-2/model is damaged" in said[0]
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["set-aside-train-2", "train-0", "train-1"]


@pytest.mark.parametrize("name", ["model", SEAL])
def test_nothing_is_begun_anew_without_being_asked(run: Path, name: str) -> None:
    for path in checkpoints(run):
        (path / name).write_text("{")
    with pytest.raises(RunError, match="no checkpoint is whole"):
        last_good(checkpoints(run), str, run)
    assert len(checkpoints(run)) == 3


def test_rows_after_a_checkpoint_are_free_and_those_before_it_are_not(run: Path) -> None:
    path = run / "metrics.jsonl"
    data = path.read_bytes()
    path.write_bytes(data + b'{"step": 9}\n{"to')
    newest = Seal.of(checkpoints(run)[-1])
    assert newest.rows["metrics.jsonl"]["rows"] == 6
    assert newest.lost_rows(run) == []
    path.write_bytes(data.replace(b"2", b"7"))
    assert newest.lost_rows(run) == ["metrics.jsonl is not as train-2 left it: its first 6 rows were changed"]
    path.unlink()
    assert newest.lost_rows(run) == ["metrics.jsonl is not as train-2 left it: it is missing"]


def test_rows_that_are_gone_lead_back_to_the_checkpoint_that_fits(run: Path) -> None:
    path = run / "metrics.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    found = examine(run)
    assert found.good == "train-1"
    assert found.damage == ["metrics.jsonl is not as train-2 left it: it holds 5 of 6 rows"]
    assert found.lost == {"metrics.jsonl": 2}
    assert [bad.name for bad in found.bad] == ["train-2"]


def test_what_a_checkpoint_needs_is_looked_at_too(run: Path) -> None:
    reference = run / "checkpoints" / "reference"
    reference.mkdir()
    (reference / "model").write_text("x")
    seal(reference)
    newest = checkpoints(run)[-1]
    seal(newest, position=(1, 2), needs=["reference"])
    assert Seal.of(newest).damage() == []
    (reference / "model").write_text("y")
    assert examine(run).good == "train-1"
    assert "reference/model is damaged" in Seal.of(newest).damage()[0]
