"""Tools that do what tools must not, for sessions in processes. Other processes import this module."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import callwright as cw


@cw.tool
def add(state: list[int], /, n: int) -> list[int]:
    """Add a number."""
    state.append(n)
    return state


@cw.tool
def leave(status: int) -> int:
    """End the process."""
    os._exit(status)


@cw.tool
def sleep(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds


@cw.tool
def spin() -> int:
    """Never end."""
    while True:
        pass


@cw.tool
def fill(megabytes: int) -> int:
    """Take memory."""
    return len(bytearray(megabytes * 2**20)) >> 20


@cw.tool
def fork() -> int:
    """Two processes."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return 1


@cw.tool
def linger() -> int:
    """Two processes, of which one stays."""
    child = os.fork()
    while not child:
        time.sleep(60)
    print(child, flush=True)
    return child


@cw.tool
def move() -> str:
    """Another folder."""
    os.chdir("/")
    return str(Path.cwd())


@cw.tool
def vary() -> str:
    """Other variables."""
    os.environ["WILD_TOOL"] = "1"
    os.environ.pop("HOME", None)
    return os.environ["WILD_TOOL"]


@cw.tool
def variables() -> list[str | None]:
    """What the tool above changes, as programs that are started here would see it."""
    return [os.environ.get("WILD_TOOL"), os.environ.get("HOME")]


@cw.tool
def shut(what: str) -> int:
    """Close files that belong to everybody."""
    if what == "output":
        sys.stdout.close()
    elif what == "handles":
        os.close(1)
        os.close(2)
    else:
        os.closerange(3, 1024)
    return 1


@cw.tool
def twice(values: list[int]) -> list[int]:
    """The numbers, and once more."""
    return [*values, *values]


@cw.tool
def where() -> str:
    """This folder."""
    return str(Path.cwd())


@cw.tool
def shout() -> int:
    """Print."""
    print("noise")
    sys.stdout.flush()
    os.write(1, b"more noise\n")
    return 1


@cw.tool
def interrupt(kind: str) -> int:
    """Raise what ends programs."""
    raise {"ctrl-c": KeyboardInterrupt, "generator": GeneratorExit, "exit": SystemExit}[kind]("mine")


@cw.tool
def process() -> int:
    """The number of the process."""
    return os.getpid()


@cw.tool
def wide(n: int) -> str:
    """A long text."""
    return "x" * n


TOOLS = [
    add, leave, sleep, spin, fill, fork, linger, move, vary, variables, shut, twice, where, shout, interrupt, process,
    wide,
]  # fmt: skip


def numbers(scenario: str, seed: int) -> list[Any]:
    """The state: nothing yet. One scenario hangs, one is not there, and one has moved."""
    if scenario == "moves":
        os.chdir("/")
    if scenario == "hangs":
        time.sleep(3600)
    if scenario == "gone":
        os._exit(3)
    return []
