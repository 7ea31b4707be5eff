"""Every way to fail ends in one clear line and the right exit status."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from callwright.cli.failures import describe

Invoke = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.mark.parametrize(
    ("how", "status", "line"),
    [
        ("memory", 1, "error: out of memory\n"),
        ("disk", 1, "error: out.jsonl: No space left on device\n"),
        (
            "bug",
            5,
            "error: plugin 'fakes': its command 'world fail' raised RuntimeError: two lines. This is a bug of the "
            "plugin (where: run it again as callwright --traceback …)\n",
        ),
        ("escape", 2, "error: a name with ␛[31m in it\n"),
        ("interrupt", 130, "\nstopped\n"),
        ("extra", 3, None),
    ],
)
def test_failures_of_a_command(invoke: Invoke, how: str, status: int, line: str | None) -> None:
    result = invoke("world", "fail", how)
    assert result.exit_code == status
    assert result.stdout == ""
    if line is not None:
        assert result.stderr == line
    else:
        assert "pip install 'callwright[train]'" in result.stderr


def test_a_traceback_is_shown_when_asked_for(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in invoke("world", "fail", "bug").stderr
    assert "Traceback" in invoke("--traceback", "world", "fail", "bug").stderr
    monkeypatch.setenv("CALLWRIGHT_TRACEBACK", "1")
    result = invoke("world", "fail", "bug")
    assert "Traceback" in result.stderr
    assert result.exit_code == 5


def test_a_bug_that_is_nobody_elses_is_ours(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(**given: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("callwright.cli.schema.schema.callback", stumble)
    result = invoke("schema", "task")
    assert result.exit_code == 70
    assert result.stderr == (
        "error: unexpected RuntimeError: two lines (where: run it again as callwright --traceback …)\n"
    )


def test_usage_errors_are_those_of_click(invoke: Invoke) -> None:
    result = invoke("score")
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_a_closed_pipe_is_no_error_message() -> None:
    assert describe(BrokenPipeError(32, "Broken pipe")) == (141, "")


def test_the_reader_of_the_output_goes_away(start: Start, tmp_path: Path) -> None:
    rows = tmp_path / "in.jsonl"
    rows.write_text('{"id": 1, "task": "train-1", "completion": "x"}\n' * 4000)
    process = start("score", rows, "--corpus", "sums-v1", "--recipe", "sums", "-o", "-")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait() == 141
    assert errors == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_stdout_on_a_full_disk(start: Start) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        process = start("schema", "recipe", stdout=full)
        _, errors = process.communicate()
    assert process.returncode == 1
    assert errors == "error: No space left on device\n"


def until_it_waits(process: int, pipe: int) -> None:
    """Until a process has read all that is in a pipe and sleeps: it waits for more."""
    until, asleep = time.monotonic() + 300, 0
    while asleep < 20 and time.monotonic() < until:
        left = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if left == 0 and state == "S" else 0
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at a process in /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stop_while_scoring_keeps_what_was_scored(start: Start, tmp_path: Path, number: int, status: int) -> None:
    source, target = tmp_path / "pipe", tmp_path / "out.jsonl"
    os.mkfifo(source)
    process = start("score", source, "--corpus", "sums-v1", "--recipe", "sums", "-o", target)
    with source.open("w") as pipe:
        pipe.write('{"id": "a", "task": "train-1", "completion": "x"}\n' * 3)
        pipe.flush()
        until_it_waits(process.pid, pipe.fileno())
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == status
    assert errors == (
        f"stopped after line 3 of {source}; the rewards of 3 rows are in {target}; the same command goes on\n"
    )
    assert len(target.read_text().splitlines()) == 3
