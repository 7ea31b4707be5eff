"""One owner at a time: who holds a folder, who left one behind, and what the second is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from callwright.errors import RunError
from callwright.training.ledger import owner
from callwright.training.ledger.owner import LOCK, owned, owned_file

DIES = """
import os, sys
from pathlib import Path
from callwright.training.ledger import owner
if sys.argv[2] == "none":
    owner.fcntl = None
with owner.owned(Path(sys.argv[1])):
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(params=["flock", "none"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "none":
        monkeypatch.setattr(owner, "fcntl", None)
    return str(request.param)


def test_the_second_is_told_who_holds_a_folder_and_nothing_is_left(tmp_path: Path, locks: str) -> None:
    with owned(tmp_path / "run", "run folder") as before:
        assert before is None
        with (
            pytest.raises(RunError, match=rf"run is being written by process {os.getpid()} on \S+ since 20"),
            owned(tmp_path / "run", "run folder"),
        ):
            pytest.fail("two owners")
    assert list((tmp_path / "run").iterdir()) == []
    out = tmp_path / "out.jsonl"
    with owned_file(out), pytest.raises(RunError, match="being written"), owned_file(out):
        pytest.fail("two owners")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path: Path, locks: str) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path), locks], check=False)
    assert died.returncode == -9
    assert any(tmp_path.iterdir())
    with owned(tmp_path) as before:
        assert before is not None
        assert before.is_gone
    assert list(tmp_path.iterdir()) == []


def test_of_another_host_nothing_is_known_so_it_says_what_to_do(tmp_path: Path, locks: str) -> None:
    lock = tmp_path / (LOCK if locks == "flock" else f"{LOCK}.held")
    lock.write_text(json.dumps({"host": "elsewhere", "process": 1, "since": "2026-01-01T00:00:00+00:00"}))
    with pytest.raises(RunError, match=rf"process 1 on elsewhere.*cannot be seen.*rm {lock}"), owned(tmp_path):
        pytest.fail("taken from somebody who may be alive")
    lock.unlink()
    with owned(tmp_path):
        pass
