"""Writes down what limiters granted, by the clock that they go by themselves.

When requests arrive at a server also hangs on how busy the machine is; what was granted hangs on the limiter alone. The
module records in each process that imports it, also as a plugin (``-p grants``), into the file that the environment
variable names: all processes of a test into the same one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from callwright.hookspecs import hookimpl
from callwright.machines.model_server.limiter import Limiter

FILE = "CALLWRIGHT_TEST_GRANTS"
plain = Limiter.take


def take(self: Limiter, tokens: int) -> float:
    """As the limiter does it, and a line: its clock's seconds, the tokens asked for, and the seconds to wait."""
    seen: list[float] = []
    clock = self._clock
    self._clock = lambda: seen.append(clock()) or seen[-1]  # type: ignore[func-returns-value]
    try:
        wait = plain(self, tokens)
    finally:
        self._clock = clock
    file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{json.dumps([seen[-1], tokens, wait])}\n".encode())  # short lines are not mixed up
    finally:
        os.close(file)
    return wait


if os.environ.get(FILE):
    Limiter.take = take  # type: ignore[method-assign]


@hookimpl
def callwright_samplers() -> Iterable[Any]:
    """None: to be imported where plugins are is all."""
    return ()


class Grants:
    """What is in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def takes(self) -> list[tuple[float, int, float]]:
        """Each try to begin a request: when, with how many tokens, and how long it was told to wait."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return sorted(tuple(json.loads(line)) for line in lines)

    def times(self) -> list[float]:
        """When requests were let begin."""
        return [at for at, _, wait in self.takes() if wait == 0]


def most_in(times: Sequence[float], span: float) -> int:
    """The most in any so many seconds: brute force over all windows that begin with one."""
    return max(sum(start <= at < start + span for at in times) for start in times)


def environment(path: Path) -> dict[str, Any]:
    """The environment of a process that records."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, FILE: str(path), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
