"""A file or folder that is not there is answered with the nearest one that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from callwright.cli.root import root as callwright
from callwright.errors import near_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "rows.jsonl").touch()
    (tmp_path / "mine.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("row.jsonl", ". Did you mean 'rows.jsonl'?"),
        ("runs/dmo", ". Did you mean 'runs/demo'?"),
        ("run/demo", ". Did you mean 'runs'?"),
        ("runs/demo/state.json", ""),
        ("something-else", ""),
        ("", ""),
    ],
)
def test_the_first_part_that_is_missing_is_what_is_meant(path: str, meant: str) -> None:
    assert near_path(path) == meant


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["score", "row.jsonl", "--corpus", "toolworld-mini-v1"], "rows.jsonl"),
        (["lab", "runs/dmo"], "runs/demo"),
        (["doctor", "runs/dmo"], "runs/demo"),
        (["run", "mines.toml"], "mine.toml"),
        (["rescore", "runs/dmo"], "runs/demo"),
        (["report", "runs/dmo"], "runs/demo"),
        (["run", "runs/dmo"], "runs/demo"),
        (["compare", "runs/dmo", "runs/demo"], "runs/demo"),
    ],
)
def test_commands_name_it(command: list[str], meant: str) -> None:
    done = CliRunner().invoke(callwright, command)
    assert done.exit_code != 0
    assert f"Did you mean '{meant}'?" in done.output + str(done.exception)
