"""Digests of models: each file is read once, and again only where its size or time of change is another one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from callwright.training.ledger import weights
from callwright.training.ledger.weights import WEIGHTS, model_folder, weight_digests


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(1000))
    (folder / ".cache").write_text("not of the model")
    return folder


def test_each_file_is_read_once_until_it_is_touched(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = weights.file_digest
    monkeypatch.setattr(weights, "file_digest", lambda path: (read.append(path.name), real(path))[1])
    folder = tmp_path / "run"
    digest = hashlib.sha256(bytes(1000)).hexdigest()
    found = weight_digests(folder, [str(model), "a-name/of-a-hub", None, 5])
    assert found == {
        str(model): {"config.json": hashlib.sha256(b"{}").hexdigest(), "model.safetensors": digest},
    }
    assert sorted(read) == ["config.json", "model.safetensors"]
    kept = (folder / WEIGHTS).read_bytes()
    assert weight_digests(folder, [str(model)]) == found
    assert len(read) == 2
    assert (folder / WEIGHTS).read_bytes() == kept
    os.utime(model / "model.safetensors", ns=(1, 1))  # as a copy has it: read again, and no other
    assert weight_digests(folder, [str(model)]) == found
    assert read[2:] == ["model.safetensors"]
    (model / "model.safetensors").write_bytes(bytes(999) + b"x")
    assert weight_digests(folder, [str(model)])[str(model)]["model.safetensors"] != digest
    (folder / WEIGHTS).write_text('{"a": [1], "b": 5}')  # no list of digests: everything is read again
    assert weight_digests(folder, [str(model)])[str(model)]["config.json"] == hashlib.sha256(b"{}").hexdigest()


def test_of_a_run_folder_the_trained_model_is_meant(model: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    model.rename(run / "checkpoints" / "final")
    assert model_folder(str(run)) == run / "checkpoints" / "final"


@pytest.mark.parametrize("named", ["", "\0", "x" * 5000, 3, None, ["a"], "nowhere"])
def test_what_names_no_folder_is_left_alone(named: object, tmp_path: Path) -> None:
    assert model_folder(named) is None
    assert weight_digests(tmp_path / "run", [named]) == {}
    assert not (tmp_path / "run").exists()
