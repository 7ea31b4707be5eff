"""Commands in processes of their own without waiting for their imports: one process imports, each command is its fork.

The process has no thread when it forks. It reads a line for each command (arguments, environment, and the files of its
streams), answers with the process id, and with its status, or null, when it is asked for that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Forge:
    """The process that imports and forks."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(environment)
        )

    def ask(self, **question: Any) -> Any:
        """The answer to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class Command:
    """A command under way: what the tests need of :class:`subprocess.Popen`."""

    def __init__(self, forge: Forge, words: list[str], folder: Path) -> None:
        self._forge, self._streams = forge, [folder / "stdout", folder / "stderr"]
        folder.mkdir()
        environment = dict(os.environ)
        self.pid = forge.ask(words=words, environment=environment, streams=[str(path) for path in self._streams])
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(9)

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """What it said, when it has ended. Raises ``TimeoutError`` if that takes longer than so many seconds."""
        until = time.monotonic() + timeout
        while self.returncode is None:
            self.returncode = self._forge.ask(wait=self.pid)
            if self.returncode is None and time.monotonic() > until:
                raise TimeoutError(f"the command is still under way after {timeout} s")
            time.sleep(0.01 if self.returncode is None else 0)
        output, errors = (path.read_text() for path in self._streams)
        return output, errors


def serve() -> None:
    """Import, then fork for each line. In a fork this returns, and the command is what comes next."""
    import openai  # noqa: F401

    import callwright.cli.evaluation_folder
    import callwright.plugins

    callwright.plugins.default_registry().create("parser", "json")
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            ended, status = os.waitpid(asked["wait"], os.WNOHANG)
            found = os.waitstatus_to_exitcode(status) if ended else None
        else:
            found = os.fork()
            if found == 0:
                begin(asked)
                return
        print(json.dumps(found), flush=True)
    sys.exit(0)


def begin(asked: Mapping[str, Any]) -> None:
    """Become the command: its streams, its environment, its arguments."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, path in enumerate(asked["streams"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    # The old one has read ahead.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["callwright", *asked["words"]]


if __name__ == "__main__":
    serve()
    from callwright.cli import main

    main()
