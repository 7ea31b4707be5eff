"""``callwright score`` with rewards that wait: the same bytes, sooner. Chunks adapt to what a row costs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.cli import score as scoring
from callwright.commands import Pace
from callwright.commands.jsonl import ROWS
from callwright.commands.outputs import unfinished
from callwright.plugins import load_plugins

Invoke = Callable[..., Result]
Write = Callable[..., Path]
SUMS = ("--corpus", "sums-v1")
WORKERS = {
    "alone": (),
    "threads": ("--workers", "3", "--executor", "thread"),
    "processes": ("--workers", "2"),
}


@pytest.fixture
def registry() -> cw.Registry:
    """The small world and the rewards that wait."""
    import cli_fakes
    import cli_waits

    import callwright_plugins.json_ir

    modules: dict[str, Any] = {"json-ir": callwright_plugins.json_ir, "fakes": cli_fakes, "waits": cli_waits}
    return load_plugins(extra=modules, entry_points=False)


@pytest.fixture
def source(write_rows: Write) -> Path:
    """Forty rows of different lengths, some of which cannot be scored."""
    rows: list[Any] = [{"id": number, "task": "train-1", "completion": "x" * (3 * number + 1)} for number in range(40)]
    rows[5], rows[6], rows[39] = "no JSON", {"id": 6, "task": "nowhere", "completion": "x"}, {"id": 39}
    return write_rows(rows)


def score(invoke: Invoke, source: Path, out: Path, recipe: str, *more: str) -> Result:
    return invoke("score", source, *SUMS, "--recipe", recipe, "-o", out, *more)


@pytest.mark.parametrize("recipe", ["waits", "batches"])
@pytest.mark.parametrize("workers", WORKERS)
def test_rows_and_complaints_are_those_of_a_reward_that_does_not_wait(
    invoke: Invoke, source: Path, tmp_path: Path, recipe: str, workers: str
) -> None:
    expected, found = tmp_path / "expected.jsonl", tmp_path / "found.jsonl"
    one_by_one = score(invoke, source, expected, "at-once")
    together = score(invoke, source, found, recipe, *WORKERS[workers])
    assert found.read_bytes() == expected.read_bytes()
    assert (together.exit_code, together.stderr) == (one_by_one.exit_code, one_by_one.stderr) == (1, one_by_one.stderr)
    assert one_by_one.stderr.count("in.jsonl:") == 3
    assert "37 rows scored, 6 of them masked, 3 bad" in one_by_one.stderr


def test_as_many_rows_wait_at_once_as_the_component_allows(
    invoke: Invoke, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cli_waits

    monkeypatch.setattr(cli_waits.Waits, "most_at_once", 0)
    monkeypatch.setattr(cli_waits.Waits, "meet", 8)
    score(invoke, source, tmp_path / "out.jsonl", "waits")
    assert cli_waits.Waits.most_at_once == 8


@pytest.mark.parametrize("workers", WORKERS)
def test_each_process_sets_up_once_and_closes(
    invoke: Invoke, source: Path, tmp_path: Path, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said.txt"
    monkeypatch.setenv("WAITS_SAY", str(said))
    score(invoke, source, tmp_path / "out.jsonl", "waits", *WORKERS[workers])
    lines = [line.split() for line in said.read_text().splitlines()]
    processes = {process for _, process in lines}
    for process in processes:
        assert [what for what, own in lines if own == process] == ["setup", "close"]
    assert (str(os.getpid()) in processes) is (workers != "processes")


def test_an_output_that_was_interrupted_ends_in_the_same_bytes(
    invoke: Invoke, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    score(invoke, source, whole, "waits")
    monkeypatch.setattr(unfinished, "EVERY", 0.0)
    monkeypatch.setattr(unfinished, "_SHARE", 0.0)

    class Interrupted(Pace):
        heard = 0

        def learn(self, rows: int, seconds: float) -> None:
            Interrupted.heard += 1
            if Interrupted.heard % 11 == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr(scoring, "Pace", Interrupted)
    results = [score(invoke, source, out, "waits") for _ in range(4)]
    assert "going on after line 10" in results[1].stderr
    assert [result.exit_code for result in results] == [130, 130, 130, 1]
    assert out.read_bytes() == whole.read_bytes()


def test_few_rows_that_take_long_are_shared_by_all_workers(invoke: Invoke, write_rows: Write, tmp_path: Path) -> None:
    """With chunks of many rows one thread would wait for the other three, which have none."""
    rows = write_rows([{"id": number, "task": "train-1", "completion": "x"} for number in range(8)])
    workers = ("--workers", "4", "--executor", "thread")
    result = score(invoke, rows, tmp_path / "out.jsonl", "four", *workers)
    assert result.exit_code == 0, result.stderr


def test_chunks_grow_as_long_as_rows_are_cheap() -> None:
    pace, sizes = Pace(), []
    for _ in range(12):
        sizes.append(pace())
        pace.learn(pace(), 50e-6 * pace())
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256]
    assert max(sizes) == ROWS


@pytest.mark.parametrize(("seconds_a_row", "rows"), [(0.01, 20), (0.1, 2), (0.15, 1), (3.0, 1), (0.0, 16)])
def test_chunks_take_a_fifth_of_a_second_where_rows_are_dear(seconds_a_row: float, rows: int) -> None:
    pace = Pace(16)
    pace.learn(16, 16 * seconds_a_row)
    assert pace() == rows


def test_chunks_of_nothing_teach_nothing() -> None:
    pace = Pace(4)
    pace.learn(0, 1.0)
    assert pace() == 4
