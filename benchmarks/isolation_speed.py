"""What limits cost a user's environment: 1,000 rows without any, under the clock, and in processes.

    python benchmarks/isolation_speed.py [--rows 1000] [--repeat 5]

A row is a program of two calls of small typed functions with a state, scored by ``tier``. ``first`` is the first row,
which starts the process; the others are the median of the repetitions, in microseconds a row.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import time
from typing import Any

import callwright as cw
from callwright.language.program import Call, Program, Reference


@cw.tool
def put(shelf: dict[str, int], /, thing: str, count: int) -> dict[str, int]:
    """Put things on the shelf.

    Args:
        thing: What.
        count: How many.
    """
    shelf[thing] = shelf.get(thing, 0) + count
    return dict(shelf)


@cw.tool(read_only=True)
def total(shelf: dict[str, int], /, seen: dict[str, int]) -> int:
    """Count everything that was seen.

    Args:
        seen: Things and how many.
    """
    return sum(seen.values())


def shelf(scenario: str, seed: int) -> dict[str, int]:
    """The state of a session."""
    return {"cups": seed}


def measured(environment: cw.Environment, rows: int, **limits: Any) -> tuple[float, float]:
    """Seconds of the first row, and of one of the others."""
    parser, reward = cw.parser("json"), cw.reward("tier")
    task = cw.Task(
        "shelf", "Put three plates on it. How much is there?", environment.tools, cw.Answer((3,)), environment
    )
    program = Program((Call(0, "put", {"thing": "plates", "count": 3}), Call(1, "total", {"seen": Reference(0)})))
    text = parser.render(program)
    begun = time.perf_counter()
    first = reward.score(task, text, ir=parser, **limits)
    assert first.masked is None, first.masked
    ready = time.perf_counter()
    for _ in range(rows):
        reward.score(task, text, ir=parser, **limits)
    return ready - begun, (time.perf_counter() - ready) / rows


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1000)
    options.add_argument("--repeat", type=int, default=5)
    asked = options.parse_args()
    here = importlib.import_module("isolation_speed")  # as other processes know these functions
    environment = cw.environment("shelf", tools=[here.put, here.total], state=here.shelf)
    ways: dict[str, dict[str, Any]] = {
        "no limits": {"isolation": "none", "time_limit": math.inf},
        "the clock": {"isolation": "none"},
        "processes": {"isolation": "auto"},
    }
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(asked.repeat):  # in turns, so that a busy machine is busy for all
        for way, limits in ways.items():
            found[way].append(measured(environment, asked.rows, **limits))
    print(f"{'':<12}{'first, ms':>12}{'each, µs':>12}{f'{asked.rows:,} rows, s':>16}")
    for way, times in found.items():
        first, each = times[0][0], statistics.median(each for _, each in times)
        print(f"{way:<12}{first * 1e3:>12.1f}{each * 1e6:>12.0f}{first + asked.rows * each:>16.2f}")


if __name__ == "__main__":
    main()
