"""OpenRLHF as another program: started, listened to, stopped with its user, never left behind."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from callwright.errors import RunError

#: Lines of the log that an error shows.
LAST_LINES: Final = 20
#: Seconds that the program gets after Ctrl-C, and after SIGTERM, before it is killed.
PATIENCE: Final = (30.0, 10.0)


class Program:
    """One run of another program in a process group of its own; everything that it prints goes to ``log`` too.

    ``ending`` are the words that end what it only watches: a job on a cluster, which goes on without its client.
    """

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], log: Path, ending: Sequence[str] | None = None
    ) -> None:
        self._ending, self._environment = ending, {**os.environ, **environment}
        self._log = log.open("a", encoding="utf-8", errors="replace")
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=self._environment,
            start_new_session=True,  # Ctrl-C reaches it through us, once
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def follow(self, look: Callable[[], bool], every: float = 1.0) -> int:
        """Write every line to the log until the program ends; its exit status.

        ``look`` is asked every so many seconds whether the program must end now. An exception, Ctrl-C too, ends it
        before it is passed on.
        """
        looked = time.monotonic()
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    line = self._lines.get(timeout=every)
                    if line is None:
                        break
                    self._log.write(line)
                    self._log.flush()
                    self._last.append(line.rstrip())
                if time.monotonic() - looked >= every:
                    looked = time.monotonic()
                    if look():
                        self.stop()
            return self._process.wait()
        except BaseException:
            self.stop()
            raise
        finally:
            self._reader.join(timeout=5)
            if self._process.stdout is not None and not self._reader.is_alive():
                self._process.stdout.close()
            self._log.close()

    def stop(self) -> None:
        """Ctrl-C for the program; then SIGTERM and SIGKILL for its whole process group if it does not end."""
        if self._ending is not None and self._process.poll() is None:
            with contextlib.suppress(subprocess.SubprocessError, OSError, KeyboardInterrupt):
                subprocess.run(
                    list(self._ending),
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    timeout=PATIENCE[0],
                    check=False,
                )
        for number, seconds in ((signal.SIGINT, PATIENCE[0]), (signal.SIGTERM, PATIENCE[1]), (signal.SIGKILL, None)):
            if self._process.poll() is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            try:
                self._process.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                continue
            except KeyboardInterrupt:  # pressed again: not so patient
                continue

    @property
    def last_line(self) -> str:
        """The last line that says something; empty before there is one."""
        return next((line for line in reversed(self._last) if line), "")

    def failed(self, status: int, log: Path) -> RunError:
        """What to raise for an exit status other than 0."""
        ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        shown = "\n  ".join(line for line in self._last if line) or "nothing"
        return RunError(f"OpenRLHF ended with {ended}. The end of {log}:\n  {shown}")
