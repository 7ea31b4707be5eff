"""Commands under limits: tools that print, hang and end their process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.language.program import Call, Program

SUPPORT = Path(__file__).parents[1] / "support"
ASKED = ("--corpus", "wild-v1", "--recipe", "tier", "-o", "-")


def callwright(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "callwright", "-p", "wild_plugin", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
        timeout=300,
    )


def completions(tmp_path: Path, tools: list[str]) -> str:
    """A file of rows that call each of the tools."""
    parser = cw.parser("json")
    source = tmp_path / "in.jsonl"
    rows = [
        {"id": number, "task": tool, "completion": parser.render(Program((Call(0, tool, {}),)))}
        for number, tool in enumerate(tools)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(source)


def score(tmp_path: Path, *words: str, tools: list[str]) -> tuple[int, list[dict[str, Any]], str]:
    done = callwright("score", completions(tmp_path, tools), *ASKED, *words)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize("words", [(), ("--isolation", "none"), ("--workers", "2")])
def test_what_tools_print_is_not_among_the_rows(tmp_path: Path, words: tuple[str, ...]) -> None:
    status, rows, said = score(tmp_path, *words, tools=["loud"] * 3)
    assert (status, [row["id"] for row in rows]) == (0, [0, 1, 2])
    assert all(row["total"] == 1.0 for row in rows)
    assert "noise of a library" in said


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_what_tools_print_here_is_not_in_a_result_either(tmp_path: Path, command: str) -> None:
    """Which has standard output for itself, also where rows go to a file."""
    corpus = ("--corpus", "wild-v1", "--isolation", "none", "--json")
    if command == "score":
        output = str(tmp_path / "out.jsonl")
        done = callwright("score", completions(tmp_path, ["loud"]), "--recipe", "tier", "-o", output, *corpus)
    else:
        done = callwright("evaluate", "--split", "loud", "--sampler", "gold", *corpus)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows" if command == "score" else "n"] == 1
    assert "noise of a tool" in done.stderr
    assert "noise of a library" in done.stderr


def test_a_command_survives_tools_that_end_their_process(tmp_path: Path) -> None:
    status, rows, _ = score(tmp_path, tools=["loud", "lethal", "loud"])
    assert status == 0
    assert [row["total"] for row in rows] == [1.0, None, 1.0]
    assert "lethal ended its process with status 9" in rows[1]["masked"]


def test_a_command_survives_tools_that_close_its_files(tmp_path: Path) -> None:
    status, rows, said = score(tmp_path, tools=["loud", "closing", "loud"])
    assert status == 0
    assert [row["total"] for row in rows] == [1.0, None, 1.0]
    assert "closing closed" in rows[1]["masked"]
    assert "3 rows scored, 1 of them masked" in said


def test_here_a_tool_that_ends_its_process_ends_the_command_which_then_goes_on_elsewhere(tmp_path: Path) -> None:
    """What no process can do about itself: so foreign tools have others, unless somebody says ``none``."""
    out = tmp_path / "out.jsonl"
    words = ("-o", str(out))
    tools = ["loud"] * 3 + ["lethal"] + ["loud"] * 3
    status, _, said = score(tmp_path, *words, "--isolation", "none", tools=tools)
    assert status == 9
    assert "Traceback" not in said
    status, _, said = score(tmp_path, *words, tools=tools)
    assert (status, "is the output of another command (isolation was" in said) == (2, True), "settings are compared"
    status, _, said = score(tmp_path, *words, "--overwrite", tools=tools)
    assert status == 0, said
    assert [json.loads(line)["total"] for line in out.read_text().splitlines()] == [1.0] * 3 + [None] + [1.0] * 3


def test_a_command_kills_what_hangs(tmp_path: Path) -> None:
    words = ("--time-limit", "1")
    status, rows, _ = score(tmp_path, *words, tools=["loud", "endless", "endless", "endless", "loud"])
    assert status == 0
    assert [row["total"] for row in rows] == [1.0, None, None, None, 1.0]
    assert "endless took more than 1 s" in rows[1]["masked"]


def test_in_process_a_command_stops_in_words_after_two_overruns(tmp_path: Path) -> None:
    words = ("--isolation", "none", "--time-limit", "1")
    status, rows, said = score(tmp_path, *words, tools=["loud", "endless", "endless", "loud"])
    assert status == 5
    assert [row["total"] for row in rows] == [1.0, None, None]
    assert "2 threads still run that went over their time limit (endless, endless)" in said
    assert "--isolation process" in said


def test_an_evaluation_survives_them_too() -> None:
    words = ["--corpus", "wild-v1", "--split", "train", "--sampler", "gold", "--json"]
    done = callwright("evaluate", *words, "--time-limit", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["masked"] == 3
