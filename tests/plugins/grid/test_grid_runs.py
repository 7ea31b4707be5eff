"""The runs of a grid: processes of their own, stopped and gone on with, failed, and what came of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from grid_fakes import accuracy

from callwright.commands.file_formats import schema_of
from callwright.training.run_folder import Run

Grid = Callable[..., tuple[int, str, str]]
Start = Callable[..., subprocess.Popen[str]]
Found = Callable[[], dict[str, Any]]
Processes = Callable[[], dict[str, list[str]]]
OVER = ("--over", "trainer.rate=0.1,0.3", "--seeds", "0-2")


def test_means_intervals_and_differences_are_those_of_arithmetic(
    tmp_path: Path, grid: Grid, found: Found, processes: Processes
) -> None:
    status, out, err = grid(*OVER, "--workers", "2", "--metric", "gain@0-1")
    assert status == 0, err
    result = found()
    jsonschema_rs.validator_for(schema_of("grid")).validate(result)
    assert [setting["name"] for setting in result["settings"]] == ["rate=0.1", "rate=0.3"]
    for setting, rate in zip(result["settings"], (0.1, 0.3), strict=True):
        after = [accuracy(rate, seed, 0) for seed in range(3)]
        mean = sum(after) / 3
        deviation = (sum((value - mean) ** 2 for value in after) / 2) ** 0.5
        reach = 4.302653 * deviation / 3**0.5  # t of two degrees, from a table
        cell = setting["metrics"]["after"]
        assert (cell["n"], cell["mean"], cell["std"]) == (3, pytest.approx(mean), pytest.approx(deviation))
        assert (cell["low"], cell["high"]) == pytest.approx((mean - reach, mean + reach), abs=1e-6)
        assert setting["metrics"]["before"]["mean"] == pytest.approx(0.1)
        assert setting["metrics"]["after@1"]["mean"] == pytest.approx(mean / 2)
        assert setting["metrics"]["gain"]["mean"] == pytest.approx(mean - 0.1)
        assert setting["metrics"]["gain@0-1"]["mean"] == pytest.approx(0.75 * (mean - 0.1))
        assert setting["metrics"]["reward"]["mean"] == pytest.approx(2.5 * rate + 1)  # four steps, in the mean seed 1
    (pair,) = result["differences"]
    assert (pair["first"], pair["second"]) == ("rate=0.1", "rate=0.3")
    # What a seed does, it does to both: nothing of it is left in the paired difference.
    assert pair["metrics"]["after"]["mean"] == pytest.approx(0.2)
    assert (pair["metrics"]["after"]["low"], pair["metrics"]["after"]["high"]) == pytest.approx((0.2, 0.2))
    assert "+20.0" in out

    seen = processes()
    assert len(seen) == 6
    ids = [line.split() for lines in seen.values() for line in lines]
    assert len({number for number, _ in ids}) == 6
    assert {threads for _, threads in ids} == {"1"}
    run = Run.open(tmp_path / "grid" / "rate=0.3" / "seed-2")
    stated = tomllib.loads((run.path / "recipe.toml").read_text(encoding="utf-8"))
    assert (stated["seed"], stated["trainer"]["rate"]) == (2, 0.3)
    assert run.command.startswith("callwright -p grid_fakes run sums.toml --set trainer.rate=0.3 --set seed=2")
    assert (run.path / "report.html").is_file()


def test_a_finished_run_is_not_made_again_and_seeds_may_be_added(
    grid: Grid, found: Found, processes: Processes
) -> None:
    assert grid("--seeds", "0")[0] == 0
    before = processes()
    assert grid("--seeds", "0")[0] == 0
    assert processes() == before
    status, _, err = grid("--seeds", "1-2")
    assert status == 0
    assert "2 to do, 1 done before" in err
    assert found()["seeds"] == [0, 1, 2]
    assert {key: len(lines) for key, lines in processes().items()} == {f"recipe/seed-{seed}": 1 for seed in range(3)}


def test_a_key_that_is_unset_is_left_out_of_every_run(grid: Grid, tmp_path: Path) -> None:
    assert grid("--seeds", "0", "--unset", "trainer.rate")[0] == 0
    run = Run(tmp_path / "grid" / "recipe" / "seed-0")
    assert "rate" not in tomllib.loads((run.path / "recipe.toml").read_text(encoding="utf-8"))["trainer"]
    assert run.read_json("manifest.json")["command"].startswith(
        "callwright -p grid_fakes run sums.toml --unset trainer.rate --set seed=0"
    )


def test_one_seed_has_no_interval_and_the_words_say_so(grid: Grid, found: Found, tmp_path: Path) -> None:
    status, out, _ = grid("--over", "trainer.rate=0.1,0.3", "--seeds", "3")
    assert status == 0
    for part in (*found()["settings"], *found()["differences"]):
        assert all(cell["low"] is cell["high"] is cell["std"] is None for cell in part["metrics"].values())
    assert "One seed says nothing of chance, so there are no intervals" in out
    assert "[" not in out.partition("! One seed")[0]
    assert "One seed says nothing" in (tmp_path / "grid" / "grid.html").read_text(encoding="utf-8")


def test_a_failed_run_is_named_and_stops_no_other(
    tmp_path: Path, grid: Grid, found: Found, processes: Processes
) -> None:
    words = (*OVER, "--set", "trainer.fails=1")
    status, out, err = grid(*words)
    assert status == 1
    assert "rate=0.1, seed 1: failed with status 2: error: the seed 1 is unlucky" in err
    assert "2 of 6 runs failed; the same command tries them again" in err
    assert "! rate=0.3, seed 1 failed with status 2: error: the seed 1 is unlucky (rate=0.3/seed-1.log)" in out
    assert "Traceback" not in out + err
    result = found()
    jsonschema_rs.validator_for(schema_of("grid")).validate(result)
    assert [cell["metrics"]["after"]["n"] for cell in result["settings"]] == [2, 2]
    assert result["differences"][0]["metrics"]["after"]["n"] == 2
    failed = result["settings"][0]["runs"][1]
    assert (failed["finished"], failed["failure"]["status"]) == (False, 2)

    for rate in ("0.1", "0.3"):
        (tmp_path / "grid" / f"rate={rate}" / "seed-1" / "mended").touch()
    assert grid(*words)[0] == 0
    counts = {key: len(lines) for key, lines in processes().items()}
    assert counts == {f"rate={rate}/seed-{seed}": 1 + (seed == 1) for rate in ("0.1", "0.3") for seed in range(3)}
    assert [cell["metrics"]["after"]["n"] for cell in found()["settings"]] == [3, 3]


def alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what: Callable[[], object], seconds: float = 300) -> None:
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "it never came to that"
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_or_killed_it_leaves_nobody_behind_and_goes_on(
    kind: signal.Signals, tmp_path: Path, recipe: Path, grid: Grid, start: Start, processes: Processes, found: Found
) -> None:
    """Two runs are finished and two in their midst when the grid is stopped; no step is made again."""
    (tmp_path / "hold").touch()
    words = (*OVER, "--workers", "2")
    stopped = start(*words)
    held = [tmp_path / "grid" / f"rate={rate}" / "seed-1" / "metrics.jsonl" for rate in ("0.1", "0.3")]
    wait_for(lambda: all(path.exists() and path.read_bytes().count(b"\n") == 2 for path in held))
    stopped.send_signal(kind)
    _, err = stopped.communicate(timeout=300)
    numbers = [int(line.split()[0]) for lines in processes().values() for line in lines]
    wait_for(lambda: not any(map(alive, numbers)))
    if kind == signal.SIGKILL:
        assert stopped.returncode == -signal.SIGKILL
    else:
        assert stopped.returncode == 130
        assert re.search(
            r"stopped; 2 of 6 runs are finished, and nothing is lost; go on with: callwright -p grid_fakes", err
        )
        assert sum(run["finished"] for setting in found()["settings"] for run in setting["runs"]) == 2
    assert "Traceback" not in err
    (tmp_path / "hold").unlink()
    status, _, err = grid(*words)
    assert status == 0, err
    assert "4 to do, 2 done before" in err
    for path in (tmp_path / "grid").glob("*/seed-*/metrics.jsonl"):
        assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3, 4]
    counts = {key: len(lines) for key, lines in processes().items()}
    assert counts["rate=0.1/seed-0"] == counts["rate=0.3/seed-0"] == 1  # finished before
    assert counts["rate=0.1/seed-1"] == 2  # gone on with
    assert [setting["metrics"]["after"]["n"] for setting in found()["settings"]] == [3, 3]


def test_a_child_ends_when_nobody_holds_its_input(tmp_path: Path, recipe: Path) -> None:
    """However the parent went, the kernel closes the pipe; nothing else is needed to be told."""
    support = str(Path(__file__).parent / "support")
    (tmp_path / "hold").touch()
    words = ["-p", "grid_fakes", "run", "sums.toml", "-o", "run", "--set", "seed=1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "callwright_plugins.grid.child", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": support},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    wait_for(lambda: metrics.exists() or child.poll() is not None)
    assert child.stdin is not None
    child.stdin.close()
    assert child.stdout is not None
    said = child.stdout.read().decode()
    child.stdout.close()
    assert child.wait(timeout=300) == 130, said
    assert "stopped; nothing is lost" in said
