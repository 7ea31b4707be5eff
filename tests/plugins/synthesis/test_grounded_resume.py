"""Conversations that were killed in the making, or made elsewhere: the same bytes as a loop in one process leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

FILES = ("plan.jsonl", "units.jsonl", "tasks.jsonl", "rejected.jsonl")
KILLS = 20
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


def test_it_is_killed_at_random_and_leaves_the_same_bytes(whole: Path) -> None:
    random, units = Random(20), whole / "killed" / "units.jsonl"

    def made() -> int:
        return units.read_bytes().count(b"\n") if units.exists() else 0

    kills = 0
    while kills < KILLS:
        # None: while it starts or plans; else when so many units more are there.
        more = random.choice((None, 1, 5)) if kills else None
        enough = made() + (more or 0)
        process = subprocess.Popen(
            words("killed", "process"),
            cwd=whole,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while process.poll() is None and (made() < enough or not (whole / "killed" / "settings.json").exists()):
                time.sleep(0.01)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its workers, too
            process.wait()
        if process.returncode == -signal.SIGKILL:
            kills += 1
        else:  # it had come to its end before: the rest of the kills is for another one
            assert process.returncode == 0
            assert left(whole / "killed") == left(whole / "whole")
            shutil.rmtree(whole / "killed")
    done = subprocess.run(words("killed", "process"), cwd=whole, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert left(whole / "killed") == left(whole / "whole")
