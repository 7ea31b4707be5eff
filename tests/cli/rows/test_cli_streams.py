"""Standard streams that are closed or know few characters: words and statuses, never "a bug of Callwright"."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"


def shell(redirected: str, tmp_path: Path, *, words: str = "in.jsonl", **more: str) -> subprocess.CompletedProcess[str]:
    """``callwright score`` over the small world, with a redirection of the shell."""
    (tmp_path / "in.jsonl").write_text('{"id": 1, "task": "train-1", "completion": "x"}\n')
    command = f"{sys.executable} -m callwright -p cli_fakes score {words} --corpus sums-v1 --recipe sums {redirected}"
    environ: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(SUPPORT), **more}
    return subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)


def test_a_closed_stdin_is_named(tmp_path: Path) -> None:
    done = shell("<&-", tmp_path, words="-")
    assert done.returncode == 2
    assert done.stderr == "error: stdin is closed, so there is nothing to read from '-': name a file\n"
    assert shell("<&-", tmp_path).returncode == 0


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_does_not_keep_rows_from_being_scored(tmp_path: Path, closed: str) -> None:
    done = shell(closed, tmp_path, words="in.jsonl -o out.jsonl --json")
    assert done.returncode == 0, done.stderr
    (row,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(row)["id"] == 1


def test_rows_for_a_closed_stdout_are_refused(tmp_path: Path) -> None:
    done = shell(">&-", tmp_path, words="in.jsonl -o -")
    assert done.returncode == 2
    assert "stdout is closed" in done.stderr


def test_an_encoding_with_few_characters_gets_others(tmp_path: Path) -> None:
    done = shell("", tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "0-1" in done.stdout
