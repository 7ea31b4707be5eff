"""Work for executors, importable by name in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import callwright as cw


def prepare(offset: int = 0) -> dict[str, Any]:
    return {"offset": offset, "process": os.getpid(), "made": 0}


def double(state: dict[str, Any], chunk: list[int]) -> list[int]:
    state["made"] += 1
    return [2 * number + state["offset"] for number in chunk]


def where(state: dict[str, Any], chunk: int) -> tuple[int, int]:
    state["made"] += 1
    return state["process"], os.getpid()


def bad_preparation() -> None:
    raise cw.UsageError("no such corpus")


def unknown(state: Any, chunk: int) -> int:
    if chunk == 3:
        raise cw.errors.UnknownName("thing", "x", ["y"])
    return chunk


class Stubborn(Exception):
    """Cannot be pickled."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)
        self.two = two
        self.lock = open(os.devnull)  # noqa: SIM115, PTH123


def stubborn(state: Any, chunk: int) -> int:
    raise Stubborn("stubborn", "very")


def die_once(folder: str, state: Any, chunk: int) -> int:
    """The worker that gets chunk 5 first is killed, as by the kernel."""
    marker = Path(folder) / "died"
    if chunk == 5 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return chunk * chunk


def die_always(state: Any, chunk: int) -> int:
    if chunk == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return chunk


def components(source: Any) -> list[tuple[str, str, str, str]]:
    registry = source.load()
    return [(kind, lazy.name, lazy.plugin, str(lazy.target)) for kind, lazy in registry.components()]


def components_of(state: Any, chunk: Any) -> list[tuple[str, str, str, str]]:
    return components(chunk)


def squares(state: Any, chunk: list[int]) -> list[int]:
    """Number 13 kills its process, 17 hangs."""
    for number in chunk:
        if number == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 17:
            time.sleep(3600)
    return [number * number for number in chunk]


def halves(chunk: list[int]) -> list[list[int]]:
    middle = len(chunk) // 2
    return [chunk[:middle], chunk[middle:]] if middle else [chunk]


def slow_start(seconds: float) -> None:
    time.sleep(seconds)


def die_before_it_is_ready(folder: str, times: int) -> None:
    for number in range(times):
        marker = Path(folder) / str(number)
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def joined(parts: list[list[Any]]) -> list[Any]:
    return [one for part in parts for one in part]


def lost(chunk: list[int], reason: str) -> list[Any]:
    return [(chunk[0], reason)]


def names_itself_and_hangs(folder: str, state: Any, chunk: int) -> int:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)
    return chunk
