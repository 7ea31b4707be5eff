"""Conversations that were killed in the making, or made elsewhere: the same bytes as a loop in one process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = ("plan.jsonl", "units.jsonl", "tasks.jsonl", "rejected.jsonl")
COUNT = 44
RECIPE = f"""name = "resumed"

[synthesis]
environments = ["vehicle", "video_meeting"]
count = {COUNT}
seed = 3

[synthesis.synthesizer]
name = "grounded"
cache = "known"
calls = 300
others = ["vehicle", "video_meeting"]
"""

pytestmark = pytest.mark.slow


def words(out: str, executor: str) -> list[str]:
    workers = "1" if executor == "serial" else "2"
    given = ["synthesize", "recipe.toml", "-o", out, "--executor", executor, "--workers", workers]
    return [sys.executable, "-m", "callwright", *given]


def left(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, what is known of its environments, and what a loop in one process makes of it."""
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "recipe.toml").write_text(RECIPE)
    done = subprocess.run(words("whole", "serial"), cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("executor", ["thread", "process", "ray"])
def test_every_executor_leaves_the_same_bytes(whole: Path, executor: str) -> None:
    if executor == "ray":
        pytest.importorskip("ray")
    done = subprocess.run(words(executor, executor), cwd=whole, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert left(whole / executor) == left(whole / "whole")


def test_it_is_killed_again_and_again_and_leaves_the_same_bytes(whole: Path) -> None:
    folder = whole / "killed"

    def made() -> int:
        return (folder / "units.jsonl").read_bytes().count(b"\n") if (folder / "units.jsonl").exists() else 0

    def killed_when(reached: Callable[[], bool]) -> bool:
        process = subprocess.Popen(
            words("killed", "process"),
            cwd=whole,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while process.poll() is None and not reached():
                time.sleep(0.01)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its workers, too
            process.wait()
        assert process.returncode in (-signal.SIGKILL, 0)
        return process.returncode != 0

    assert killed_when((folder / "settings.json").exists)  # while it plans
    assert not (folder / "plan.jsonl").exists()
    assert killed_when((folder / "plan.jsonl").exists)
    # Workers write eight units at a time: one has written its first ones; both have written, and are at work; all is
    # made, and compared or written. Where this process has to wait for the processor, the later moments may be over.
    moments = [least for least in (1, 17, 48) if made() < least and killed_when(lambda: made() >= least)]  # noqa: B023
    assert moments
    done = subprocess.run(words("killed", "process"), cwd=whole, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert left(folder) == left(whole / "whole")
