"""Every example runs as a user would run it, and prints what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "sdk_examples"

#: What each example must print, line by line: the beginning of each line.
PRINTED = {
    "score_one_string.py": [
        "list restaurants in Lima open at 15",
        '0.375: types 0.75/1: call 1 FilterByOpen.hour: expected integer, found string "15"',
        "  execution 0/1: call 1 FilterByOpen did not execute",
        "  not reached: answer",
    ],
    "own_reward.py": [
        "reference 1: every point",
        "repeats itself 0.958333: brevity 0.75/1: 3 calls, where 2 are enough",
    ],
    "own_environment.py": [
        "{'additionalProperties': False, 'properties': {'forecasts': {'items':",
        "1: every point",
        "0.4: execution 0/1: call 0 get_forecast did not execute",
        "  not reached: answer",
    ],
    "own_stateful_environment.py": [
        "63 ['B00003', 'B00009']",
        "NONE_LEFT True",
        "ok {'copies': [2, 1]}",
        "True",
    ],
    "own_database.py": [
        "TOO_FEW True",
        "{'order': 1, 'left': ",
        "{'goods': {'changed': {'5': {'stock': [",
    ],
    "embed_two_registries.py": [
        "house: 0: format 0/1: there is no <think> tag",
        "  not reached: answer",
        "house: 1: every point",
        "heard of: [0.0, 1.0]",
        "the other registry: There is no reward recipe named 'house'. Known: ",
    ],
}


def run(name: str, *arguments: str) -> list[str]:
    """The lines that an example prints."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", PRINTED)
def test_example_prints_what_it_promises(name: str) -> None:
    lines = run(name)
    expected = PRINTED[name]
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTED, "train_tiny.py", "train_with_trl.py"}


@pytest.mark.slow
def test_training_writes_a_run(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    folder = tmp_path / "run"
    lines = run("train_tiny.py", str(folder))
    assert [line.partition(":")[0] for line in lines] == ["step 1", "step 2", "step 3", "report"]
    assert (folder / "report.html").is_file()
    evaluation = json.loads((folder / "evaluation.json").read_text())
    assert evaluation["before"]["n"] == evaluation["after"]["n"] == 14


@pytest.mark.slow
def test_training_with_trl(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs the extra 'trl'")
    lines = run("train_with_trl.py")
    assert [line[:16] for line in lines] == [*["step 1: reward 0", "step 2: reward 0"] * 2, "turns of an epis"]
