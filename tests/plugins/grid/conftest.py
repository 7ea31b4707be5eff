"""Grids over a world whose results are known beforehand, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).parent / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

RECIPE = """name = "sums"
corpus = "nowhere-v1"
reward = "flat"
algorithm = "nothing"

[trainer]
name = "arithmetic"
steps = 4
rate = 0.1
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "sums.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``start("--seeds", "0-2", …)``: the command over the recipe, in the folder ``grid``."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "callwright", "-p", "grid_fakes", "grid", "sums.toml", "-o", "grid", *words]
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "COLUMNS": "200", "OMP_NUM_THREADS": "7"}
        process = subprocess.Popen(
            command,
            text=True,
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def grid(recipe: Path, start: Callable[..., subprocess.Popen[str]]) -> Callable[..., tuple[int, str, str]]:
    """Run the command to its end: its status and what it wrote to stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        process = start(*words)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    return run


@pytest.fixture
def found(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """What ``grid.json`` holds."""
    return lambda: json.loads((tmp_path / "grid" / "grid.json").read_text(encoding="utf-8"))


@pytest.fixture
def processes(tmp_path: Path) -> Callable[[], dict[str, list[str]]]:
    """The lines that the processes of every run left: the id, and how many threads it was allowed."""

    def read() -> dict[str, list[str]]:
        files = sorted((tmp_path / "grid").glob("*/seed-*/processes.txt"))
        return {f"{path.parts[-3]}/{path.parts[-2]}": path.read_text(encoding="utf-8").splitlines() for path in files}

    return read
