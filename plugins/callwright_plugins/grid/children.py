"""Runs as processes of their own, some at a time, which stop when they are told to or when this process is gone."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, frozen

from callwright.errors import RunError
from callwright.machines.command_folder import name_folder
from callwright_plugins.grid.child import PATIENCE
from callwright_plugins.grid.plan import GridRun

_PAUSE: Final = 0.1
#: Characters at the end of a log in which its last line is looked for.
_TAIL: Final = 4000


@frozen
class Ended:
    """How a run ended: its exit status, and what the process cost. ``said`` is the last line of its log."""

    run: GridRun
    status: int
    wall_seconds: float
    cpu_seconds: float
    peak_memory_mb: int
    said: str

    def to_json(self) -> dict[str, Any]:
        """A row of ``attempts.jsonl``."""
        return {
            "run": self.run.key,
            "status": self.status,
            "wall_seconds": round(self.wall_seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "peak_memory_mb": self.peak_memory_mb,
            "said": "" if self.status == 0 else self.said,
        }


@define(eq=False)
class _Child:
    run: GridRun
    process: subprocess.Popen[bytes]
    log: Path
    log_begins: int
    began: float

    def ended(self) -> Ended | None:
        """How it ended; ``None`` while it goes on."""
        found, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not found:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.stdin is not None:
            self.process.stdin.close()
        return Ended(
            self.run,
            self.process.returncode,
            time.monotonic() - self.began,
            usage.ru_utime + usage.ru_stime,
            round(usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)),
            self._last_line(),
        )

    def _last_line(self) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(max(self.log_begins, file.seek(0, os.SEEK_END) - _TAIL))
                lines = file.read().decode("utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def signal(self, number: int) -> None:
        """Send a signal to the process and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def carry_out(
    runs: Iterable[GridRun],
    folder: Path,
    workers: int,
    words: Callable[[GridRun], Sequence[str]],
    heard: Callable[[Ended], None],
) -> None:
    """Run ``callwright <words>`` for each run, ``workers`` at a time; ``heard`` is told of each that ended.

    Every process has one thread for its arithmetic, a log beside its run folder, and a process group of its own.
    Whatever ends this function (Ctrl-C, SIGTERM, an error) first stops those that are running, as Ctrl-C would.
    """
    waiting, running = deque(runs), list[_Child]()
    with _sigterm_is_ctrl_c():
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    running.append(_start(waiting.popleft(), folder, words))
                if not _collect(running, heard):
                    time.sleep(_PAUSE)
        except BaseException:
            _stop(running, heard)
            raise


def _start(run: GridRun, folder: Path, words: Callable[[GridRun], Sequence[str]]) -> _Child:
    log = folder / f"{run.key}.log"
    command = [sys.executable, "-m", "callwright_plugins.grid.child", *words(run)]
    name_folder()  # the limits of a grid hold for its runs together
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(f"$ {shlex.join(['callwright', *command[3:]])}\n".encode())
            file.flush()
            begins = file.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # a Ctrl-C of the terminal reaches it once, through this process
            )
            return _Child(run, process, log, begins, time.monotonic())
    except OSError as error:
        raise RunError(f"{log}: the run cannot be started: {error.strerror or error}") from error


def _collect(running: list[_Child], heard: Callable[[Ended], None]) -> bool:
    """Take out those that ended; whether there were any."""
    ended = [(child, found) for child in running if (found := child.ended()) is not None]
    for child, found in ended:
        running.remove(child)
        heard(found)
    return bool(ended)


def _stop(running: list[_Child], heard: Callable[[Ended], None]) -> None:
    """Interrupt all that still run, and end those that do not stop in time, or at once if asked a second time."""
    for child in running:
        child.signal(signal.SIGINT)
    limit = time.monotonic() + PATIENCE
    try:
        while running and time.monotonic() < limit:
            if not _collect(running, heard):
                time.sleep(_PAUSE)
    finally:
        for child in running:
            child.signal(signal.SIGKILL)
            child.process.wait()


@contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not the main thread, which alone hears signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
