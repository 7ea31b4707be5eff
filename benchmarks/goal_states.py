"""The order of independent writes, seen by digests and by goal states, and what comparing costs.

    python benchmarks/goal_states.py

In every environment calls are drawn that succeed and change something, up to three of every tool. Each pair is made in
both orders. The cost is that of telling the goal states of two sessions and comparing them, after three writes each, in
the normal world and in one ten times as large.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import click

import callwright as cw
from callwright.environments.goals import compare
from callwright.environments.living.policy import ClockPolicy
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_environments import TOOLS

_DRAWN = Path(__file__).parents[1] / "tests/plugins/mcp_environments/drawn_writes.py"


def _drawn_writes() -> Any:
    spec = importlib.util.spec_from_file_location("drawn_writes", _DRAWN)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["drawn_writes"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@click.command()
@click.option("--only", default="", help="One environment.")
@click.option("--moving", is_flag=True, help="Let time move, 20 seconds a call.")
def main(only: str, moving: bool) -> None:
    """Print a row for each environment."""
    drawn = _drawn_writes()
    click.echo(f"{'environment':15} tools pairs  digests differ  of these equal  us to compare  ten times as large")
    sums = [0, 0, 0]
    for name in [only] if only else TOOLS:
        environment = cw.environment(name)
        calls = drawn.writes(environment)
        first = drawn.signed_in(environment)
        pairs = differ = equal = 0
        for one, other in combinations(calls, 2):
            ends, executed = [], True
            for order in ((one, other), (other, one)):
                session = first.fork()
                if moving:
                    session.keep_time(ClockPolicy())
                executed &= all(session.call(tool, copy_json(given)).executed for tool, given in order)
                ends.append(session)
            if executed:
                pairs += 1
                if ends[0].digest() != ends[1].digest():
                    differ += 1
                    equal += compare(None, ends[0].goal_state(), ends[1].goal_state()).equal
        costs = [_cost(drawn, environment, calls), _cost(drawn, cw.environment(name, scale=10), calls)]
        sums = [total + count for total, count in zip(sums, (pairs, differ, equal), strict=True)]
        tools = len({tool for tool, _ in calls})
        click.echo(f"{name:15} {tools:5} {pairs:5}  {differ:14}  {equal:14}  {costs[0]:13.0f}  {costs[1]:18.0f}")
    click.echo(f"{'together':15} {'':5} {sums[0]:5}  {sums[1]:14}  {sums[2]:14}")


def _cost(drawn: Any, environment: Any, calls: Any) -> float:
    """Microseconds of processor time: the median of thirty."""
    sessions = []
    for order in (calls[:3], calls[2::-1]):
        session = drawn.signed_in(environment)
        for tool, given in order:
            session.call(tool, copy_json(given))
        sessions.append(session)
    times = []
    for _ in range(30):
        begun = time.process_time_ns()
        compare(None, sessions[0].goal_state(), sessions[1].goal_state())
        times.append((time.process_time_ns() - begun) / 1000)
    return median(times)


if __name__ == "__main__":
    main()
